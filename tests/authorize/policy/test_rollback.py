"""The memory of the newest policy (call-proof.md 8.2, acceptance item 47)."""

import json
import os

import pytest

from onrecord.authorize.policy import RollbackState, read_bundle
from onrecord.authorize.policy.source import compose
from onrecord.base.errors import OnrecordError, PolicyError, StorageError
from onrecord.base.files import replace_whole


@pytest.fixture
def bundles(document):
    """Bundles of versions 3, 4, and another one of version 3."""
    made = []
    for version, seconds in ((3, 15), (4, 15), (3, 16)):
        bundle, _ = read_bundle(compose(document | {"version": version, "proofSeconds": seconds}))
        made.append(bundle)
    return made


def test_first_start(tmp_path, bundles):
    """Without a state file nothing was in force; accepting writes it with mode 0600."""
    state = RollbackState.load(tmp_path / "policy.state")
    assert state.previous is None
    state.accept(bundles[0])
    assert os.stat(tmp_path / "policy.state").st_mode & 0o7777 == 0o600
    assert json.loads((tmp_path / "policy.state").read_text()) == {
        "version": 3,
        "sha256": bundles[0].sha256,
        "nv": 0,
    }
    assert RollbackState.load(tmp_path / "policy.state").previous == bundles[0].loaded_version


@pytest.mark.req("CP-119")
def test_no_way_back(tmp_path, bundles):
    """After version 4, version 3 is refused, and so is another version 4; the state stays."""
    path = tmp_path / "policy.state"
    state = RollbackState.load(path).accept(bundles[0])
    with pytest.raises(PolicyError) as e:
        state.check(bundles[2])
    assert e.value.code == "policy-rollback"
    state = state.accept(bundles[1])
    before = path.read_bytes()
    with pytest.raises(PolicyError) as e:
        state.accept(bundles[0])
    assert e.value.code == "policy-rollback"
    assert path.read_bytes() == before
    assert state.accept(bundles[1]).previous == bundles[1].loaded_version


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"version":3}',
        '{"version":0,"sha256":"%s","nv":0}' % ("0" * 64),
        '{"version":3,"sha256":"00","nv":0}',
        '{"version":3,"sha256":"%s","nv":1}' % ("0" * 64),
        '{"version":true,"sha256":"%s","nv":0}' % ("0" * 64),
        '{"version":3,"version":2,"sha256":"%s","nv":0}' % ("0" * 64),
        '{"version":3,"sha256":"%s","nv":0,"x":1}' % ("0" * 64),
        "x" * 5000,
    ],
)
def test_damaged_state(tmp_path, text):
    """A state that cannot be read stops the start, since guessing would let an old policy in."""
    (tmp_path / "policy.state").write_text(text)
    with pytest.raises(PolicyError) as e:
        RollbackState.load(tmp_path / "policy.state")
    assert e.value.code == "policy-state"


def test_linked_state(tmp_path):
    """A link in place of the state is not followed."""
    (tmp_path / "policy.state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PolicyError) as e:
        RollbackState.load(tmp_path / "policy.state")
    assert e.value.code == "policy-state"


def test_full_disk(tmp_path, bundles, monkeypatch):
    """When the state cannot be written, the old one stays and no temporary file does."""
    state = RollbackState.load(tmp_path / "policy.state").accept(bundles[0])

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError) as e:
        state.accept(bundles[1])
    assert e.value.code == "policy-state-unwritable"
    assert [p.name for p in tmp_path.iterdir()] == ["policy.state"]
    assert RollbackState.load(tmp_path / "policy.state").previous == bundles[0].loaded_version


def test_order_of_writing(tmp_path, monkeypatch):
    """File first, then its name, then the directory: a crash leaves the old file or the new one, whole."""
    done = []
    fsync, rename = os.fsync, os.rename
    monkeypatch.setattr(
        os, "fsync", lambda fd: (done.append(f"fsync {os.path.isdir(f'/proc/self/fd/{fd}')}"), fsync(fd))
    )
    monkeypatch.setattr(os, "rename", lambda a, b: (done.append("rename"), rename(a, b)))
    replace_whole(tmp_path / "f", b"x", mode=0o600)
    assert done == ["fsync False", "rename", "fsync True"]


def test_missing_directory(tmp_path, bundles):
    """A state directory that is gone is an error of ours."""
    with pytest.raises(OnrecordError):
        RollbackState.load(tmp_path / "none" / "policy.state").accept(bundles[0])
