"""Who is who: uids, sockets, roles, processes that are gone, path ownership."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from authorize.authority.house import House, issue_params
from onrecord.base.errors import ConfigurationError, NetworkError, OnrecordError, UsageError
from onrecord.base.rpc_client import BlockingRpcClient

README = "kYDQcUpVz7E57-sIPwtHHXdp-lOn9_jaIxYRTVnR4CM"


class TestCallers:
    @pytest.mark.req("CP-108")
    def test_two_uids_two_callers(self, system_house):
        """The uid alone makes the caller; a member `caller` of the request changes nothing."""
        house = system_house
        with house.agent_wire() as first, house.agent_wire(house.other_agent) as second:
            first.result("callProof/issue", issue_params(caller="second", uid=house.other_agent))
            second.result("callProof/issue", issue_params(caller="code-review"))
        granted = house.records("issue.granted")
        assert [record.data["caller"] for record in granted] == ["code-review", "second"]
        assert [record.data["platform"]["uid"] for record in granted] == [house.agent, house.other_agent]

    @pytest.mark.req("CP-108", "CP-112")
    def test_stranger(self, system_house):
        """A uid in no list gets unknown_caller to everything, hello included, and is journaled."""
        house = system_house
        with house.agent_wire(house.stranger) as stranger:
            for method, params in (("callProof/hello", {}), ("callProof/issue", issue_params())):
                assert stranger.reason(method, params) == (-33004, "unknown_caller")
        assert house.records("caller.unknown")[0].data["platform"]["uid"] == house.stranger

    @pytest.mark.req("CP-108")
    def test_root_is_nobody(self, system_house):
        """A peer with uid 0 gets unknown_caller, also on the control socket."""
        for wire in (system_house.agent_wire(0), system_house.control_wire(0)):
            with wire:
                assert wire.reason("callProof/hello") == (-33004, "unknown_caller")

    @pytest.mark.parametrize("uid", [0, 65534])
    def test_nobody_in_the_bundle(self, new_house, uid):
        """A bundle that maps uid 0 or the overflow uid to somebody does not come into force."""
        house = new_house("system")
        house.change = lambda bundle: bundle["callers"][0].update(uid=uid)
        house.sign_bundle()
        house.start()
        assert house.authority.state.in_force is None
        assert house.records("policy.refused")[0].data["detail"] == "policy-lint"

    @pytest.mark.req("CP-108")
    def test_user_mode(self, user_house):
        """In user mode the caller is the bundle's, and every record says degraded."""
        with user_house.agent_wire() as agent:
            user_house.proof(agent)
        record = user_house.records("issue.granted")[0].data
        assert (record["caller"], record["isolation"]) == ("code-review", "degraded")
        assert all(
            record.data["isolation"] == "degraded"
            for record in user_house.records()
            if not record.type.startswith("journal.")
        )

    @pytest.mark.root
    def test_user_mode_other_uid(self, user_house, uid_block):
        """In user mode another uid is closed at accept, whatever the file modes let through."""
        house = user_house
        path = house.config.agent_socket()
        for part in (house.root, path.parent):
            part.chmod(0o755)
        path.chmod(0o666)
        with house._wire(path, uid_block[6], None) as stranger:
            assert stranger.line() is None
        assert house.records("caller.unknown")[0].data["detail"] == "other_uid"


class TestRoles:
    CALLS = (
        ("callProof/hello", {}),
        ("callProof/issue", issue_params()),
        ("callProof/verify", {"actionDigest": README, "server": "filesystem", "evidence": None}),
        ("callProof/tools", {"server": "filesystem", "tools": []}),
        ("control/metrics", {}),
        ("control/policy-reload", {}),
        ("record/append", {"entries": []}),
        ("approval/list", {}),
    )

    def outcomes(self, wire) -> dict:
        seen = {}
        for method, params in self.CALLS:
            answer = wire.call(method, params)
            seen[method] = "ok" if "result" in answer else answer["error"]["data"]["reason"]
        return seen

    @pytest.mark.req("CP-109", "CP-112")
    def test_agent(self, house):
        """An agent may say hello and issue, and nothing else."""
        with house.agent_wire() as agent:
            seen = self.outcomes(agent)
        assert {method for method, outcome in seen.items() if outcome == "ok"} == {
            "callProof/hello",
            "callProof/issue",
        }
        assert {outcome for outcome in seen.values() if outcome != "ok"} == {"not_authorized"}
        assert len(house.records("role.refused")) == 6

    @pytest.mark.req("CP-109")
    def test_tool_server(self, house):
        """A tool server may say hello, verify and report, and nothing else."""
        with house.server_wire() as server:
            seen = self.outcomes(server)
        assert {method for method, outcome in seen.items() if outcome == "ok"} == {
            "callProof/hello",
            "callProof/verify",
            "callProof/tools",
        }
        assert {outcome for outcome in seen.values() if outcome != "ok"} == {"not_authorized"}

    @pytest.mark.req("CP-109")
    def test_tool_server_own_id_only(self, house):
        """A tool server verifies and reports for its own id only."""
        with house.server_wire("archive") as archive, house.agent_wire() as agent:
            issued = house.proof(agent)
            for method, params in (
                ("callProof/verify", house.verify_params(issued)),
                ("callProof/tools", {"server": "filesystem", "tools": []}),
            ):
                assert archive.reason(method, params) == (-33005, "not_authorized")
        with house.server_wire() as server:
            assert server.result("callProof/verify", house.verify_params(issued))["valid"] is True

    @pytest.mark.req("CP-109")
    def test_operator(self, house):
        """An operator may say hello and use the controls of its roles; the methods of agents are not for it."""
        with house.control_wire() as operator:
            seen = self.outcomes(operator)
        assert seen["callProof/hello"] == seen["control/metrics"] == "ok"
        assert seen["control/policy-reload"] == "invalid_params"
        assert (
            seen["callProof/issue"] == seen["callProof/verify"] == seen["callProof/tools"] == "not_authorized"
        )

    @pytest.mark.req("CP-109")
    def test_others_on_the_control_socket(self, system_house):
        """Agents and servers get nothing there even if they reach it; strangers are unknown."""
        house = system_house
        for uid in (house.agent, house.server):
            with house.control_wire(uid) as wire:
                assert wire.reason("control/metrics") == (-33101, "not_authorized")
                assert wire.reason("callProof/issue", issue_params())[1] == "not_authorized"
        with house.control_wire(house.stranger) as wire:
            assert wire.reason("control/metrics") == (-33004, "unknown_caller")

    @pytest.mark.req("CP-109")
    def test_operator_on_the_call_socket(self, system_house):
        """An operator's uid has no role on the call socket."""
        with system_house.agent_wire(system_house.operator) as wire:
            assert wire.reason("callProof/issue", issue_params()) == (-33005, "not_authorized")


class TestPeers:
    @pytest.mark.req("CP-115")
    def test_other_peer_uid(self, system_house):
        """A proof of one caller, presented by a relay whose peer has another uid, is a mismatch."""
        house = system_house
        with house.agent_wire() as agent, house.server_wire() as server:
            issued = house.proof(agent)
            params = house.verify_params(issued, peerUid=house.other_agent)
            assert server.result("callProof/verify", params)["reason"] == "mismatch"
            assert server.result("callProof/verify", house.verify_params(issued))["valid"] is True

    @pytest.mark.parametrize("how", ["exit", "exec"])
    def test_gone(self, house, how):
        """The process that connected has ended and another uses its socket: closed, and journaled."""
        script = textwrap.dedent(
            """
            import os, socket, sys
            path, ready, go, how, uid, gid = sys.argv[1:]
            if os.getuid() == 0:
                os.setgroups([]); os.setgid(int(gid)); os.setuid(int(uid))
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(path)
            hello = b'{"jsonrpc":"2.0","id":1,"method":"callProof/hello"}\\n'
            sock.sendall(hello)
            assert b'"version"' in sock.recv(4096)
            sock.set_inheritable(True)
            if os.fork():
                os._exit(0)
            if how == "exec":
                code = (
                    "import os,socket,sys; os.read(int(sys.argv[2]),1); s=socket.socket(fileno=int(sys.argv[1])); "
                    "s.sendall(sys.argv[3].encode()); print(s.recv(100))"
                )
                os.set_inheritable(int(go), True)
                os.execv(sys.executable, [sys.executable, "-c", code, str(sock.fileno()), go, hello.decode()])
            os.read(int(go), 1)
            sock.sendall(hello)
            print(sock.recv(100))
            """
        )
        ready, go = os.pipe(), os.pipe()
        path = house.config.agent_socket()
        gid = house.call_gid if house.mode == "system" else house.agent
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(path), "0", str(go[0]), how, str(house.agent), str(gid)],
            stdout=subprocess.PIPE,
            pass_fds=[go[0]],
        )
        assert child.wait(20) == 0
        os.write(go[1], b"x")
        assert child.stdout.read().strip() == b"b''"
        child.stdout.close()
        for end in (*ready, *go):
            os.close(end)
        assert len(house.records("caller.gone")) == 1

    def test_gone_while_waiting(self, new_house):
        """Whoever ends while its issue waits for the first report gets no proof, however its socket lives on."""
        house = new_house().start()
        script = textwrap.dedent(
            """
            import os, socket, sys
            path, go, issue, uid = sys.argv[1:]
            if os.getuid() == 0:
                os.setgroups([]); os.setgid(int(uid)); os.setuid(int(uid))
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(path)
            hello = b'{"jsonrpc":"2.0","id":1,"method":"callProof/hello"}\\n'
            sock.sendall(issue.encode() + b"\\n" + hello)
            assert b'"version"' in sock.recv(4096)  # so the issue before it has been read, and waits
            if os.fork():
                os._exit(0)
            os.read(int(go), 1)
            sock.sendall(hello)
            print(sock.recv(4096))
            """
        )
        issue = {"jsonrpc": "2.0", "id": 0, "method": "callProof/issue", "params": issue_params()}
        go = os.pipe()
        arguments = [str(house.config.agent_socket()), str(go[0]), json.dumps(issue), str(house.agent)]
        child = subprocess.Popen(
            [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, pass_fds=[go[0]]
        )
        assert child.wait(20) == 0
        house.report("filesystem")
        os.write(go[1], b"x")
        assert child.stdout.read().strip() == b"b''"
        child.stdout.close()
        for end in go:
            os.close(end)
        assert not house.records("issue.granted")

    @pytest.mark.req("CP-106")
    @pytest.mark.root
    def test_fake_authority(self, uid_block, short_dir):
        """A client that expects the authority's uid sends no byte to a socket that another uid listens on."""
        import socket

        from authorize.authority.house import on_thread

        short_dir.chmod(0o777)
        path = short_dir / "fake.sock"

        def listen():
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.bind(str(path))
            sock.listen()
            return sock

        with on_thread(listen, uid=uid_block[0]) as fake:
            with pytest.raises(NetworkError) as error:
                BlockingRpcClient(path, expected_uid=uid_block[4])
            assert error.value.code == "peer-uid"
            accepted, _ = fake.accept()
            with accepted:
                assert accepted.recv(1) == b""


class TestPaths:
    """Wrong owner, mode or link on a path: no start (call-proof.md 4.1)."""

    def refused(self, house: House) -> str:
        with pytest.raises(OnrecordError) as error:
            house.start()
        assert isinstance(error.value, ConfigurationError | UsageError)
        return error.value.code

    @pytest.mark.req("CP-105")
    def test_writable_socket_directory(self, idle_house):
        """Others may write the socket directory."""
        (idle_house.root / "run").chmod(0o777)
        assert self.refused(idle_house) == "path-mode"

    @pytest.mark.req("CP-105")
    def test_open_state(self, idle_house):
        """Others may read the state directory."""
        (idle_house.root / "state/authority").chmod(0o755)
        assert self.refused(idle_house) == "path-mode"

    @pytest.mark.req("CP-105")
    def test_open_marks(self, idle_house):
        """Others may change the high-water, which shows that a journal was put back to an older state."""
        marks = idle_house.config.marks("authority")
        marks.mkdir(parents=True, exist_ok=True)
        os.chown(marks, idle_house.authority_uid, -1)
        marks.chmod(0o777)
        assert self.refused(idle_house) == "path-mode"

    @pytest.mark.req("CP-105")
    def test_link_on_the_way(self, idle_house):
        """A symbolic link stands on the way to the sockets."""
        run = idle_house.root / "run"
        run.rename(idle_house.root / "real")
        run.symlink_to("real")
        assert self.refused(idle_house) == "path-symlink"

    @pytest.mark.req("CP-105")
    @pytest.mark.root
    def test_owner(self, idle_house):
        """The state directory belongs to somebody else."""
        os.chown(idle_house.root / "state/authority", idle_house.authority_uid + 1, 0)
        assert self.refused(idle_house) == "path-owner"

    @pytest.mark.req("CP-105")
    def test_file_in_the_socket_place(self, idle_house):
        """Something that is no socket of ours stands in the socket's place; it is left alone."""
        path = idle_house.config.agent_socket()
        path.write_text("precious")
        assert self.refused(idle_house) == "socket-path-taken"
        assert path.read_text() == "precious"

    def test_two_authorities(self, user_house):
        """A second authority of the same state does not start, and the first lives on."""
        second = House.__new__(House)
        second.__dict__.update(
            {k: v for k, v in user_house.__dict__.items() if k not in {"_thread", "_loop", "_end"}}
        )
        assert self.refused(second) == "already-running"
        with user_house.agent_wire() as agent:
            assert agent.result("callProof/hello")["version"] == "1"

    @pytest.mark.parametrize("what", ["bundle", "signature", "trust"])
    def test_policy_files(self, idle_house, what):
        """Policy, signature and trust anchor that others may write are not used: not_ready."""
        file = {
            "bundle": idle_house.bundle_file,
            "signature": idle_house.signature_file,
            "trust": idle_house.trust,
        }[what]
        file.chmod(0o666)
        idle_house.start()
        assert idle_house.authority.state.in_force is None
        assert idle_house.records("policy.refused")[0].data["detail"] == "path-mode"

    @pytest.mark.root
    def test_policy_owned_by_the_authority(self, new_house):
        """In system mode not even the authority may own its policy."""
        house = new_house("system")
        os.chown(house.bundle_file, house.authority_uid, 0)
        house.start()
        assert house.authority.state.in_force is None
        assert house.records("policy.refused")[0].data["detail"] == "path-owner"


def test_label_of_the_peer(house):
    """Without a label the session is the peer process; wait for nothing, trust nothing else."""
    with house.agent_wire() as agent:
        house.proof(agent)
        house.proof(agent, recordSession="mine")
    sessions = [record.data["session"] for record in house.records("issue.granted")]
    assert sessions[0].startswith(f"p{os.getpid()}-")
    assert sessions[1] == "mine"
