"""Who may do what on record.sock (running.md 2.1, 2.2; call-proof.md 4.4)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest

from onrecord.base.sockets import Peer
from onrecord.base.strict_json import PLAIN
from onrecord.base.wire import Request, RpcError

AGENT, AUTHORITY, GUARD, OTHER_GUARD, AUDITOR = 2001, 900, 3001, 3002, 4001


class Connection:
    """A connection with a peer of any uid, as the server would hand it in."""

    def __init__(self, uid):
        self.peer = Peer(os.getpid(), uid, uid)
        self.state = None


@pytest.fixture
def system_rig(make_rig):
    rig = make_rig(own_uid=None)
    rig.directory.authority_uid = AUTHORITY
    rig.directory.servers = {GUARD: ["filesystem"], OTHER_GUARD: ["git", "archive"]}
    rig.directory.roles = {AUDITOR: ["auditor"]}
    return rig


def hello(server=None):
    return {"versions": ["1"], "source": "s-1"} | ({"server": server} if server else {})


def outcome(rig, uid, *requests):
    """Send requests as a peer of this uid: "closed", or the reason or "ok" of each answer."""

    async def main():
        async with rig:
            connection = Connection(uid)
            if not rig.recorder.on_connect(connection):
                return "closed"
            found = []
            for method, params in requests:
                try:
                    answer = rig.recorder.on_request(connection, Request(1, method, params, PLAIN, b""))
                    if not isinstance(answer, bytes):
                        answer = await answer
                    found.append("ok" if b'"result"' in answer else "error")
                except RpcError as error:
                    found.append(error.data["reason"])
            rig.recorder.on_disconnect(connection)
            return found

    return asyncio.run(main())


class TestAccept:
    @pytest.mark.parametrize(
        ("uid", "accepted"),
        [
            (AUTHORITY, True),
            (GUARD, True),
            (AUDITOR, True),
            (AGENT, False),
            (0, False),
            (65534, False),
            (5555, False),
        ],
    )
    def test_system_mode(self, system_rig, uid, accepted):
        """Authority, servers and control roles are let in; agents, root and strangers are closed at accept."""
        assert (outcome(system_rig, uid) != "closed") == accepted

    def test_user_mode_knows_one_uid(self, rig):
        """In user mode any uid but the own one is closed at accept."""
        assert outcome(rig, os.geteuid()) == []
        assert outcome(rig, os.geteuid() + 1) == "closed"


class TestSystemRoles:
    def test_hello(self, system_rig):
        """The authority says hello without a server, a guard for its own id only."""
        assert outcome(system_rig, AUTHORITY, ("record/hello", hello())) == ["ok"]
        assert outcome(system_rig, GUARD, ("record/hello", hello("filesystem"))) == ["ok"]
        assert outcome(system_rig, GUARD, ("record/hello", hello())) == ["ok"]
        assert outcome(system_rig, GUARD, ("record/hello", hello("git"))) == ["not_authorized"]
        assert outcome(system_rig, OTHER_GUARD, ("record/hello", hello("archive"))) == ["ok"]
        assert outcome(system_rig, OTHER_GUARD, ("record/hello", hello())) == ["not_authorized"]
        assert outcome(system_rig, AUTHORITY, ("record/hello", hello("git"))) == ["not_authorized"]
        assert outcome(system_rig, AUDITOR, ("record/hello", hello())) == ["not_authorized"]

    @pytest.mark.parametrize("method", ["record/sessions", "record/status"])
    def test_operator_calls(self, system_rig, method):
        """Control roles list and close; authority and servers do not."""
        assert outcome(system_rig, AUDITOR, (method, {})) == ["ok"]
        assert outcome(system_rig, AUTHORITY, (method, {})) == ["not_authorized"]
        assert outcome(system_rig, GUARD, (method, {})) == ["not_authorized"]
        assert outcome(system_rig, GUARD, ("record/close", {"all": True})) == ["not_authorized"]
        assert outcome(system_rig, AUDITOR, ("record/close", {"all": True})) == ["ok"]

    def test_kinds(self, system_rig, entries):
        """The authority appends decisions and proofs, a guard all other kinds for its own id; gaps come from both."""
        whole = entries.conversation()
        gap = {"n": 1, "kind": "gap", **entries.at(1), "entries": 1, "cause": "test"}
        own = whole["guard"][1] | {"n": 1}
        foreign = own | {"server": "git"}
        for entry, by_authority, by_guard in [
            (whole["authority"][0], "ok", "not_authorized"),
            (whole["authority"][3] | {"n": 1}, "ok", "not_authorized"),
            (whole["guard"][0], "not_authorized", "ok"),
            (own, "not_authorized", "ok"),
            (whole["guard"][2] | {"n": 1}, "not_authorized", "ok"),
            (foreign, "not_authorized", "not_authorized"),
            (gap, "ok", "ok"),
        ]:
            append = ("record/append", {"entries": [entry]})
            system_rig.root.joinpath("recorder").mkdir(exist_ok=True)
            name = {"versions": ["1"], "source": f"s-{entry['kind']}-{entry.get('server')}"}
            assert outcome(system_rig, AUTHORITY, ("record/hello", name), append)[1] == by_authority
            name |= {"server": "filesystem"}
            assert outcome(system_rig, GUARD, ("record/hello", name), append)[1] == by_guard

    def test_refused_batch_leaves_nothing_but_a_note(self, system_rig, entries):
        """A guard that forges a decision is refused whole, and the attempt is journaled once for the connection."""
        forged = entries.conversation()["authority"][0]
        append = ("record/append", {"entries": [forged]})
        outcome(system_rig, GUARD, ("record/hello", hello()), append, append)
        with system_rig.open_journal() as journal:
            records = journal.read()
        assert [one.type for one in records if one.type.startswith("trace")] == []
        (refused,) = [one for one in records if one.type == "role.refused"]
        assert refused.data == {"source": "s-1", "uid": GUARD, "server": "filesystem", "kind": "decision"}

    def test_sources_of_two_uids_do_not_meet(self, system_rig, entries):
        """The same source id under another uid is another source: nobody can skip or fill another's numbers."""
        entry = ("record/append", {"entries": [entries.connection(1, 0.1)]})
        assert outcome(system_rig, GUARD, ("record/hello", hello()), entry) == ["ok", "ok"]
        system_rig.directory.servers[3003] = ["filesystem"]
        second = ("record/append", {"entries": [entries.connection(2, 0.1)]})
        assert outcome(system_rig, 3003, ("record/hello", hello()), second) == ["ok", "record_gap"]


CLIENT = """
import json, os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "record/hello",
                      "params": {"versions": ["1"], "source": "x"}}).encode() + b"\\n")
print(s.makefile().readline())
"""


@pytest.mark.root
def test_real_uids(system_rig, uid_block):
    """With real uids: the authority's is answered, an agent's connection is closed without a byte."""
    rig = system_rig
    rig.directory.authority_uid = uid_block[0]

    async def ask(uid):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CLIENT, str(rig.settings.socket), str(uid), stdout=subprocess.PIPE
        )
        out, _ = await process.communicate()
        return out.strip()

    async def main():
        async with rig:
            for path in (rig.settings.socket.parent, rig.settings.socket.parent.parent):
                path.chmod(0o711)
            rig.settings.socket.chmod(0o666)
            return await ask(uid_block[0]), await ask(uid_block[1])

    authority, agent = asyncio.run(main())
    assert json.loads(authority)["result"]["version"] == "1"
    assert agent == b""
