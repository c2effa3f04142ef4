"""A hooked server in system mode, under uids of its own: the hook tells the authority whose call it is."""

import json
import os
import shutil

import pytest

from authorize.guard.processes import SystemHouse
from authorize.hook.houses import HERE
from support.runtime import wait_for

pytest.importorskip("mcp")
pytestmark = pytest.mark.root


@pytest.fixture
def house(short_dir, uid_block):
    it = SystemHouse(short_dir, uid_block)
    shutil.copy(HERE / "sdk_servers.py", short_dir / "sdk_servers.py")
    (short_dir / "sdk_servers.py").chmod(0o644)
    text = it.file.read_text()
    old = next(line for line in text.splitlines() if line.startswith("args = "))
    args = json.dumps(["-P", str(short_dir / "sdk_servers.py"), "lowlevel", str(it.spy)])
    it.file.write_text(text.replace(old, f"args = {args}\nhook = true"))
    yield it
    it.close()


def test_the_peer_reaches_authority_and_record(house):
    """Acceptance 20, 22 for the hook: verify carries the uid of the guard's peer, which is in the record too."""
    house.start()
    house.start_guard()
    one, two = house.client(), house.client()
    for client in (one, two):
        client.open()
        assert client.call(1, text="a")["result"]["content"][0]["text"] == "a"
    assert {asked["peerUid"] for asked in house.fakes.requests("callProof/verify")} == {house.agent}
    assert {os.stat(f"/proc/{pid}").st_uid for pid in house.real_servers()} == {house.server}
    for client in (one, two):
        client.end()
    wait_for(lambda: len(house.recorder_fakes.entries()) == 8, what="everything is recorded")
    peers = [entry["peer"] for entry in house.recorder_fakes.entries() if entry.get("state") == "open"]
    assert [peer["uid"] for peer in peers] == [house.agent] * 2
    assert len({peer["pid"] for peer in peers}) == 2
