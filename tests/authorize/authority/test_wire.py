"""Framing, ids, hello: the transport of callProof version "1"."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from authorize.authority.house import issue_params


class TestFraming:
    @pytest.mark.req("CP-103")
    @pytest.mark.parametrize(
        ("line", "code", "reason"),
        [
            (b"no json", -32700, "parse_error"),
            (b"\xef\xbb\xbf{}", -32700, "parse_error"),
            (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, "parse_error"),
            (b'[{"jsonrpc":"2.0","id":1,"method":"callProof/hello"}]', -32600, "invalid_request"),
            (b'{"jsonrpc":"2.0","id":null,"method":"callProof/hello"}', -32600, "invalid_request"),
            (b'{"jsonrpc":"2.0","id":true,"method":"callProof/hello"}', -32600, "invalid_request"),
            (b'{"jsonrpc":"2.0","id":1.0,"method":"callProof/hello"}', -32600, "invalid_request"),
            (b'{"jsonrpc":"1.0","id":1,"method":"callProof/hello"}', -32600, "invalid_request"),
            (b'{"jsonrpc":"2.0","id":1,"method":"callProof/hello","params":[]}', -32602, "invalid_params"),
        ],
    )
    def test_broken_lines_are_answered(self, user_house, line, code, reason):
        """Every broken line is answered and the connection stays open."""
        with user_house.agent_wire() as agent:
            agent.send_bytes(line)
            error = agent.line()["error"]
            assert (error["code"], error["data"]["reason"]) == (code, reason)
            assert agent.result("callProof/hello")["version"] == "1"

    @pytest.mark.req("CP-103")
    def test_carriage_return(self, user_house):
        """One CR before LF is ignored."""
        with user_house.agent_wire() as agent:
            agent.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"callProof/hello"}', end=b"\r\n")
            assert agent.line()["result"]["version"] == "1"

    @pytest.mark.req("CP-103")
    def test_oversize(self, user_house):
        """A line over 1 MiB with its LF is answered too_large, then the connection closes; one less is read."""
        head = b'{"jsonrpc":"2.0","id":1,"method":"callProof/hello","params":{"x":"'
        tail = b'"}}'
        with user_house.agent_wire() as agent:
            agent.send_bytes(head + b"x" * (1_048_575 - len(head) - len(tail)) + tail)
            assert agent.line()["result"]["version"] == "1"
        with user_house.agent_wire() as agent:
            agent.send_bytes(head + b"x" * (1_048_576 - len(head) - len(tail)) + tail)
            error = agent.line()["error"]
            assert (error["code"], error["data"]["reason"]) == (-32600, "too_large")
            assert agent.line() is None

    def test_depth(self, user_house):
        """64 levels of arguments pass the gate of the authority, 65 are invalid_arguments."""
        with user_house.agent_wire() as agent:
            for levels, reason in ((64, "issued"), (65, "invalid_arguments")):
                where = {}
                for _ in range(levels - 2):
                    where = {"a": where}
                params = issue_params(name="get_pull_request", arguments={"where": where})
                answer = agent.call("callProof/issue", params)
                assert answer.get("error", {"data": {"reason": "issued"}})["data"]["reason"] == reason

    def test_unknown_method_and_notification(self, user_house):
        """Unknown methods are refused by name; a notification is ignored."""
        with user_house.agent_wire() as agent:
            assert agent.reason("callProof/forget") == (-32601, "unknown_method")
            agent.send_bytes(b'{"jsonrpc":"2.0","method":"callProof/issue","params":{}}')
            assert agent.result("callProof/hello")["version"] == "1"
        assert not user_house.records("issue.refused")

    @pytest.mark.req("CP-104")
    def test_pipelined(self, house):
        """Requests may be pipelined; each answer carries its own id, strings and integers alike."""
        with house.agent_wire() as agent:
            ids = [1, "one", 2**53 - 1, "", -5, "\u00e9"]
            for id_ in ids:
                path = "~/x" if id_ == "one" else "repo/a"
                agent.send("callProof/issue", issue_params(path), id_=id_)
            answers = {json.dumps(answer["id"]): answer for answer in (agent.line() for _ in ids)}
        assert set(answers) == {json.dumps(id_) for id_ in ids}
        assert "error" in answers['"one"']
        assert all("result" in answer for id_, answer in answers.items() if id_ != '"one"')

    def test_split_and_joined_bytes(self, user_house):
        """Lines count, not packets: one line in many pieces, and many lines in one piece."""
        line = b'{"jsonrpc":"2.0","id":1,"method":"callProof/hello"}\n'
        with user_house.agent_wire() as agent:
            for byte in line:
                agent.sock.sendall(bytes([byte]))
            assert agent.line()["id"] == 1
            agent.sock.sendall(line * 20)
            assert [agent.line()["id"] for _ in range(20)] == [1] * 20


class TestHello:
    @pytest.mark.req("CP-107")
    def test_result(self, house):
        """The answer names version, types, methods, features, limits and the state."""
        with house.agent_wire() as agent:
            result = agent.result("callProof/hello", {"versions": ["0", "1"], "more": 1})
        assert result == {
            "version": "1",
            "evidenceTypes": ["dev.onrecord/handle"],
            "methods": ["tools/call"],
            "features": ["inputDigest", "peerUid"],
            "maxMessageBytes": 1_048_576,
            "maxProofSeconds": 15,
            "status": "degraded",
        }

    @pytest.mark.req("CP-107", "CP-112")
    def test_versions(self, user_house):
        """Without a common version: unsupported_version with what is supported; without the member "1" applies."""
        with user_house.agent_wire() as agent:
            error = agent.error("callProof/hello", {"versions": ["2"]})
            assert (error["code"], error["data"]) == (
                -33009,
                {"reason": "unsupported_version", "supported": ["1"]},
            )
            assert agent.reason("callProof/hello", {"versions": "1"}) == (-32602, "invalid_params")
            assert agent.result("callProof/hello")["version"] == "1"

    def test_status(self, house):
        """It is degraded while the recorder does not answer; in user mode always; ok in system mode with a recorder."""
        with house.agent_wire() as agent:
            assert agent.result("callProof/hello")["status"] == "degraded"
            house.inside(lambda authority: setattr(authority.state.feed, "is_connected", True))
            expected = "ok" if house.mode == "system" else "degraded"
            assert agent.result("callProof/hello")["status"] == expected


class TestSocket:
    @pytest.mark.req("CP-102", "CP-053")
    def test_no_tcp(self, house):
        """The authority listens on Unix sockets with a path and nowhere else."""
        own = {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_link(name)}
        inodes = {link[8:-1] for link in own if link.startswith("socket:[")}
        for table in ("tcp", "tcp6", "udp", "udp6"):
            rows = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
            assert not [row for row in rows if row.split()[9] in inodes and row.split()[3] == "0A"]
        for server in house.authority._servers:
            assert server.path.is_socket()

    @pytest.mark.req("CP-105")
    def test_modes(self, house):
        """Sockets have mode 0660 with their group in system mode, 0600 in user mode."""
        for server in house.authority._servers:
            status = server.path.stat()
            assert status.st_mode & 0o777 == (0o660 if house.mode == "system" else 0o600)
            assert status.st_uid == house.authority_uid
        if house.mode == "system":
            assert house.config.agent_socket().stat().st_gid == house.call_gid
            assert house.config.control_socket().stat().st_gid == house.control_gid

    @pytest.mark.req("CP-105")
    def test_removed_at_the_end(self, user_house):
        """A clean stop takes the sockets away and journals it."""
        path = user_house.config.agent_socket()
        user_house.stop()
        assert not path.exists()

    @pytest.mark.req("CP-105")
    def test_stale_socket(self, new_house):
        """A socket that an authority of this uid left behind is replaced; a live one, or a file, is not."""
        house = new_house()
        path = house.config.agent_socket()
        _leave_behind(house, path)
        house.start()
        with house.agent_wire() as agent:
            assert agent.result("callProof/hello")["version"] == "1"


def _leave_behind(house, path) -> None:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(str(path))
    sock.close()
    os.chown(path, house.authority_uid, house.authority_uid)


def _is_link(name: str) -> bool:
    try:
        os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return False
    return True
