"""docs/run-isolated.md: its commands, as root, with real accounts and the real paths.

They run in namespaces of their own (mounts and processes): /etc is a copy, and the other places are empty, so that
the machine of the tester keeps its accounts and its files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.console_pages import Page, begun, ended, judge
from support.data import REPOSITORY
from support.uids import uid_block_or_skip

pytestmark = pytest.mark.root

PAGE = Page.read(REPOSITORY / "docs" / "run-isolated.md")
EMPTY = ("/run", "/srv", "/root", "/var/lib", "/var/log", "/var/mail", "/var/spool")
TOOLS = ("unshare", "mount", "useradd", "groupadd", "runuser", "install")

PRELUDE = """
set -e
copy=$(mktemp -d)
mount -t tmpfs tmpfs $copy
cp -a /etc $copy/
mount --bind $copy/etc /etc
for place in {empty}; do
    [ ! -d $place ] || mount -t tmpfs -o mode=755 tmpfs $place
done
umask 022
set +e
echo @@ ready
"""

POSTLUDE = """
echo '@@ end'
kill %1
wait %1
"""


def unshared(script, **more):
    """Run a script of bash in mount and process namespaces of its own; everything in it ends with it."""
    flags = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private")
    return subprocess.run(
        ["unshare", *flags, "bash", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=100,
        **more,
    )


@pytest.fixture
def namespaces():
    """Skips, with the reason, where the page cannot be run."""
    uid_block_or_skip()  # other uids can run this interpreter
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not on this machine: {', '.join(missing)}")
    hidden = [Path(one).resolve() for one in EMPTY]
    for place in (REPOSITORY, Path(sys.prefix), Path(sys.base_prefix)):
        if any(one in place.resolve().parents for one in hidden):
            pytest.skip(f"{place} lies below a directory that the test makes empty")
    if unshared("mount -t tmpfs tmpfs /srv").returncode != 0:
        pytest.skip("this root may not make mount namespaces")


@pytest.mark.req("CP-100", "CP-101")
def test_page(namespaces):
    """Each command of the page ends well and prints what the page shows; the doctor says isolated."""
    script = ["set -m", PRELUDE.replace("{empty}", " ".join(EMPTY))]
    for number, step in enumerate(PAGE.steps):
        script.append(f"{begun(number)}\n{step.command}\n{ended()}")
        if step.command.startswith("onrecord up"):
            script.append(
                "until runuser -u ada -- onrecord control status >/dev/null 2>&1; do sleep 0.1; done"
            )
    environment = {
        "HOME": "/root",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
    }
    done = unshared("\n".join([*script, POSTLUDE]), cwd=REPOSITORY, env=environment)
    output = done.stdout.decode("utf-8", "replace")
    judge(PAGE, output)
    assert "isolation: isolated" in output
