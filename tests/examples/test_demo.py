"""The demonstration itself: as root with several uids, and as an ordinary user with one."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mcp")

pytestmark = pytest.mark.timeout(300)

STEPS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "9b", "10a", "10b", "11"]


def demo(home, *options, uid=None):
    identity = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
    return subprocess.run(
        [sys.executable, "-m", "onrecord", "demo", *options],
        capture_output=True,
        text=True,
        timeout=240,
        cwd="/",
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        **identity,
    )


def judge(done, directory):
    document = json.loads(done.stdout)
    assert [step["step"] for step in document["steps"]] == STEPS
    assert [step for step in document["steps"] if not step["ok"]] == [], done.stderr
    assert document["ok"] is True
    assert done.returncode == 0
    assert document["verification"]["verdict"] == "verified"
    assert document["vcon"] == str(directory / "record.vcon.json")
    assert "workTree" not in document
    return document


def judge_kept(directory):
    """Everything to verify the record is there, and no private key."""
    names = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    assert {"record.vcon.json", "demo.json", "policy.bundle.json", "policy.bundle.json.sig"} <= names
    assert any(name.startswith("trust/vcon/") for name in names)
    assert any(name.startswith("journals/authority/") for name in names)
    assert any(name.startswith("journals/recorder/") for name in names)
    for name in names:
        assert b"PRIVATE KEY" not in (directory / name).read_bytes(), name


@pytest.mark.root
def test_system_mode(short_dir, uid_block):
    """Started as root, all steps are as expected, and the kept files verify with the ordinary commands."""
    kept = short_dir / "kept"
    done = demo(short_dir, "--yes", "--json", "--keep", str(kept))
    document = judge(done, kept)
    judge_kept(kept)
    anchor = next((kept / "trust" / "vcon").iterdir())
    for command in (["verify", document["vcon"], "--anchor", str(anchor)], ["check", document["vcon"]]):
        done = subprocess.run(
            [sys.executable, "-m", "onrecord", *command], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_user_mode(short_dir, ordinary_uid):
    """An ordinary user gets the same steps in user mode, and the first line says so."""
    if os.getuid() == 0:
        short_dir.chmod(0o700)
        os.chown(short_dir, ordinary_uid, ordinary_uid)
    uid = ordinary_uid if os.getuid() == 0 else None
    kept = short_dir / "kept"
    done = demo(short_dir, "--keep", str(kept), uid=uid)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("User mode: ")
    assert "is a script" in done.stdout
    assert "13 of 13 steps as expected" in done.stdout
    assert str(kept / "record.vcon.json") in done.stdout
    judge_kept(kept)
    document = json.loads((kept / "demo.json").read_text())
    assert document["ok"] is True


SHORT = """
import sys
from onrecord.examples.demo import driver, steps
driver.STEPS = tuple(step for step in steps.STEPS if step.id in ("8", "9"))
driver.refusal_of_git = lambda uid: "no mcp-server-git on purpose"
from onrecord.cli.main import main
sys.argv = ["onrecord", "demo", "--json", "--keep", sys.argv[1]]
main()
"""


def test_a_person_says_no(short_dir):
    """At a terminal the approver is asked; "n" makes step 8 not ok, the rest goes on, and the work tree stays.

    A step whose server is not installed is not done, says why, and is no failure. Standard output is one document.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SHORT, str(short_dir / "kept")],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd="/",
    )
    os.close(theirs)
    shown = b""
    try:
        while b"[y/n]" not in shown:
            assert select.select([ours], [], [], 60)[0], shown
            shown += os.read(ours, 4096)
        os.write(ours, b"n\n")
        document = json.loads(process.communicate(timeout=60)[0])
    finally:
        process.kill()
        os.close(ours)
    shutil.rmtree(document["workTree"])
    assert b"tool: post_comment" in shown
    results = {step["step"]: step for step in document["steps"]}
    assert {name: step["ok"] for name, step in results.items()} == {"8": False, "9": None, "11": False}
    assert "rejected by uid" in results["8"]["observed"]
    assert "tool runs: 0" in results["8"]["observed"]
    assert "on purpose" in results["9"]["observed"]
    assert document["ok"] is False
    assert process.returncode == 1
    assert document["vcon"] == str(short_dir / "kept" / "record.vcon.json")
    assert document["verification"]["verdict"] == "verified"


def test_not_empty(short_dir):
    """A directory that is not empty is refused before anything starts."""
    (short_dir / "mine").write_text("mine")
    done = demo(short_dir, "--json", "--keep", str(short_dir))
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "not-empty"
    assert [path.name for path in short_dir.iterdir()] == ["mine"]
