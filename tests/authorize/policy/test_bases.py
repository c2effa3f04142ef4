"""Bases against working directories: where the policy and the server count a relative path from."""

from __future__ import annotations

import json
import os

import pytest

from onrecord.authorize.policy.bases import check_bases
from onrecord.authorize.policy.source import read_source
from onrecord.base.configuration import Configuration
from support.data import shared_data
from support.policies import POLICY_SOURCE

TOML = """mode = "user"
[servers.filesystem]
command = "{command}"
args = {args}
cwd = "{cwd}"
"""


@pytest.fixture(scope="module")
def bundle():
    """The example policy, in which paths of both servers count from /srv/review."""
    return read_source(POLICY_SOURCE).bundle


def configuration(tmp_path, cwd, *args, command="server"):
    text = TOML.format(command=command, args=json.dumps(args), cwd=cwd)
    return Configuration.parse(text, file=tmp_path / "onrecord.toml", environ={"HOME": "/home/u"})


class TestCheckBases:
    def test_equal(self, bundle, tmp_path):
        """A server that runs where its paths count from is right, and so is one that is not configured."""
        assert not list(check_bases(bundle, configuration(tmp_path, "/srv/review")))
        assert not list(check_bases(bundle, configuration(tmp_path, "/srv/review/")))

    @pytest.mark.parametrize("name", ["onrecord.user.toml", "onrecord.system.toml"])
    def test_examples(self, bundle, tmp_path, name):
        """The shared examples fit their policy, or would if the home of the user were /srv."""
        text = shared_data("running", name).read_text()
        example = Configuration.parse(text, file=tmp_path / "onrecord.toml", environ={"HOME": "/srv"})
        assert not list(check_bases(bundle, example))

    def test_elsewhere(self, bundle, tmp_path):
        """A server that runs elsewhere gets a warning that names base, working directory and what to change."""
        (found,) = check_bases(bundle, configuration(tmp_path, "/srv"))
        assert (found.code, found.severity, found.pointer) == ("base-not-cwd", "warning", "/servers/0/bases")
        assert "review is /srv/review" in found.message
        assert "runs in /srv" in found.message
        assert 'servers.filesystem.cwd = "/srv/review"' in found.data["hint"]

    def test_default(self, bundle, tmp_path):
        """Without cwd the home of the uid counts."""
        text = TOML.replace('cwd = "{cwd}"\n', "").format(command="server", args="[]")
        made = Configuration.parse(text, file=tmp_path / "onrecord.toml", environ={"HOME": "/home/u"})
        (found,) = check_bases(bundle, made)
        assert str(made.server_cwd("filesystem")) in found.message

    @pytest.mark.parametrize("args", [["/srv/review"], ["--dir", "review"], ["--dir=/srv/review"]])
    def test_named_by_an_argument(self, bundle, tmp_path, args):
        """A base that an argument names may be right: an info says that it cannot be told."""
        (found,) = check_bases(bundle, configuration(tmp_path, "/srv", *args))
        assert found.severity == "info"
        assert "cannot be told" in found.data["hint"]

    @pytest.mark.parametrize("args", [["--repository", "/srv/review"], ["--repository=review"]])
    def test_only_confined(self, bundle, tmp_path, args):
        """mcp-server-git opens relative paths from its working directory, whatever its repository is."""
        (found,) = check_bases(bundle, configuration(tmp_path, "/srv", *args))
        assert found.severity == "warning"

    def test_own_server(self, bundle, tmp_path):
        """The example server is known to open relative paths below its --base."""
        made = configuration(tmp_path, "/", "--base", "/srv/review", command="/opt/x/onrecord-example-files")
        assert not list(check_bases(bundle, made))
        made = configuration(tmp_path, "/", "--base", "/srv/other", command="/opt/x/onrecord-example-files")
        assert [found.severity for found in check_bases(bundle, made)] == ["warning"]

    def test_link(self, tmp_path, bundle):
        """A working directory that is a link to the base is the base."""
        document = json.loads((POLICY_SOURCE / "bundle.json").read_text())
        base, link = tmp_path / "base", tmp_path / "link"
        base.mkdir()
        os.symlink(base, link)
        document["servers"][0]["bases"]["review"] = str(base)
        copy = tmp_path / "policy"
        copy.mkdir()
        for part in POLICY_SOURCE.iterdir():
            if part.name != "bundle.json":
                (copy / part.name).symlink_to(part)
        (copy / "bundle.json").write_text(json.dumps(document))
        assert not list(check_bases(read_source(copy).bundle, configuration(tmp_path, link)))
