"""A real authority for tests: signed bundle, real journal, real sockets, real uids where there are several.

The kernel keeps credentials per thread. So an authority runs on a thread of this process that has become its uid for
good, and a client connects on a thread that has become the caller's: the peer credentials are true ones.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import platform
import shutil
import socket
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import orjson

from onrecord.authorize.authority import Authority
from onrecord.authorize.policy import signatures
from onrecord.base.configuration import Configuration
from onrecord.base.dates import SYSTEM_CLOCK
from onrecord.base.hashes import SchemaHash
from onrecord.base.keys import ed25519_public_bytes, format_trusted_key, generate_key_file

_CALLS = {"x86_64": (116, 119, 117), "aarch64": (159, 149, 147)}
_LIBC = ctypes.CDLL(None, use_errno=True)

PIN = str(SchemaHash.of(b'{"type":"object"}'))
OTHER_PIN = str(SchemaHash.of(b'{"type":"array"}'))

TOOLS = ("read_file", "get_pull_request", "post_comment")

RULES = """
@id("read-within-roots")
permit(principal in Group::"agents", action == Action::"tools/call", resource)
when {
  context.op == "read" && context.impact <= 1 && context has path &&
  context.path.root != "outside" && !context.path.dotdot && !context.path.hidden
};

@id("read-without-target")
permit(principal in Group::"agents", action == Action::"tools/call", resource)
when { context.op == "read" && context.impact == 0 && !(context has path) && !(context has host) };

@id("outside-never")
forbid(principal, action == Action::"tools/call", resource)
when { context has path && context.path.root == "outside" };

@id("comment-possible")
permit(principal in Group::"agents", action == Action::"tools/call", resource == Tool::"filesystem/post_comment");

@id("comment-needs-approval")
@approval("1")
@approvers("reviewers")
forbid(principal, action == Action::"tools/call", resource == Tool::"filesystem/post_comment")
unless { context.approvals.contains("comment-needs-approval") };
"""


def become(uid: int, *, gid: int, groups=()) -> None:
    """Give this thread, and only this thread, another identity for good."""
    setgroups, setresgid, setresuid = _CALLS[platform.machine()]
    array = (ctypes.c_uint32 * len(groups))(*groups)
    for call in ((setgroups, len(groups), array), (setresgid, gid, gid, gid), (setresuid, uid, uid, uid)):
        if _LIBC.syscall(*call) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def on_thread(work, *, uid: int | None = None, gid: int | None = None, groups=()):
    """Run `work` on a thread of its own, as another uid if one is given, and return what it returns."""
    outcome: Future = Future()

    def run() -> None:
        try:
            if uid is not None and uid != os.geteuid():
                become(uid, gid=uid if gid is None else gid, groups=groups)
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return outcome.result()


class Wire:
    """A raw client: lines out, lines in."""

    def __init__(self, path: Path, *, uid: int | None = None, gid: int | None = None) -> None:
        self.sock = on_thread(lambda: self._connect(path), uid=uid, gid=gid)
        self.sock.settimeout(20)
        self._rest = b""
        self._next_id = 0

    @staticmethod
    def _connect(path: Path) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(str(path))
        return sock

    def send(self, method: str, params=None, *, id_=None) -> object:
        self._next_id += 1
        number = self._next_id if id_ is None else id_
        self.send_bytes(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}).encode()
        )
        return number

    def send_bytes(self, data: bytes, *, end: bytes = b"\n") -> None:
        self.sock.sendall(data + end)

    def line(self) -> dict | None:
        """Return the next line, None at the end."""
        while b"\n" not in self._rest:
            try:
                more = self.sock.recv(65536)
            except ConnectionResetError:
                return None
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return orjson.loads(line)

    def call(self, method: str, params=None) -> dict:
        """Send a request and return its whole answer."""
        number = self.send(method, params)
        answer = self.line()
        assert answer is not None, "the connection was closed"
        assert answer["id"] == number
        return answer

    def result(self, method: str, params=None) -> dict:
        answer = self.call(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, params=None) -> dict:
        answer = self.call(method, params)
        assert "error" in answer, answer
        return answer["error"]

    def reason(self, method: str, params=None) -> tuple[int, str]:
        error = self.error(method, params)
        return error["code"], error["data"]["reason"]

    def close(self) -> None:
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        self.close()


def issue_params(path: str = "repo/README.md", **more) -> dict:
    return {
        "method": "tools/call",
        "name": "read_file",
        "arguments": {"path": path},
        "server": "filesystem",
    } | more


class House:
    """Files of one installation below `root`, and its authority.

    `uids` are those of agent, other agent, two servers, authority, operator, a stranger and two approvers.
    """

    def __init__(
        self, root: Path, *, mode: str, uids=None, durability: str = "durable", evidence=("handle",)
    ) -> None:
        self.root = root
        self.mode = mode
        self.durability = durability
        self.evidence = evidence
        own = os.getuid()
        nine = tuple(uids)[:9] if mode == "system" else (uids[0] if uids else own,) * 9
        self.agent, self.other_agent, self.server, self.other_server = nine[:4]
        self.authority_uid, self.operator, self.stranger, self.approver, self.other_approver = nine[4:]
        self.recorder_uid = own if uids is None else uids[9]
        self.call_gid = None if uids is None else uids[15]
        self.control_gid = None if uids is None else uids[14]
        self.approval_gid = None if uids is None else uids[13]
        self.authority: Authority | None = None
        self._thread: threading.Thread | None = None
        for name in ("etc", "keys", "state", "state/authority", "state/marks", "run"):
            (root / name).mkdir(mode=0o755 if name in ("etc", "run") else 0o700, exist_ok=True)
        self.journal_key = generate_key_file(root / "keys/journal.pem")
        self.proof_key = generate_key_file(root / "keys/proof.pem")
        self.policy_key = generate_key_file(root / "keys/policy.pem")
        self.trust = root / "etc/policy.keys"
        self.trust.write_text(format_trusted_key(ed25519_public_bytes(self.policy_key), "test"))
        self.bundle_file = root / "etc/policy.bundle.json"
        self.limits = {"issuePerSecond": 100_000, "issueBurst": 100_000, "connectionsPerUid": 64}
        self.version = 1
        self.change = lambda bundle: None
        self.sign_bundle()
        self.own()

    def own(self) -> None:
        """Give every file to the one whose it is."""
        if os.getuid() != 0:
            if self.mode == "user":
                (self.root / "run").chmod(0o700)
            return
        self.root.chmod(0o755 if self.mode == "system" else 0o700)
        mine = ["keys", "state", "run"] + (["etc", "."] if self.mode == "user" else [])
        if self.mode == "user":
            (self.root / "run").chmod(0o700)
        for name in mine:
            top = self.root / name
            for path in [top, *(top.rglob("*") if name != "." else ())]:
                os.chown(path, self.authority_uid, self.authority_uid, follow_symlinks=False)

    # Policy ----------------------------------------------------------------------------------------------------

    def bundle(self) -> dict:
        """Return the bundle as an object."""
        schema = Path(signatures.__file__).with_name("data") / "schema.cedar"
        path_argument = {"json": "string", "fact": "path", "base": "review", "mode": "read"}
        tools = [
            {"tool": "read_file", "inputSchemaSha256": PIN, "op": "read", "impact": 1,
             "arguments": {"path": path_argument, "head": {"json": "integer"}}},
            {"tool": "get_pull_request", "inputSchemaSha256": PIN, "op": "read", "impact": 0,
             "arguments": {"number": {"json": "integer"}, "where": {"json": "object"}}},
            {"tool": "post_comment", "inputSchemaSha256": PIN, "op": "send", "impact": 2,
             "arguments": {"number": {"json": "integer"}, "body": {"json": "string"}}},
        ]  # fmt: skip
        base = {"roots": {"repo": "/srv/review/repo"}, "bases": {"review": "/srv/review"}}
        system = self.mode == "system"
        server_uids = (self.server, self.other_server) if system else (2101, 2102)
        servers = [
            {"id": name, "uid": uid, "enforce": "required", "refuse_methods": [], "discloseCaller": False,
             "tools": tools} | base
            for name, uid in zip(("filesystem", "archive"), server_uids, strict=True)
        ]  # fmt: skip
        callers = [
            {
                "id": "code-review",
                "uid": self.agent if system else 2001,
                "role": "agent",
                "groups": ["agents"],
            }
        ]
        if system:
            callers.append({"id": "second", "uid": self.other_agent, "role": "agent", "groups": ["agents"]})
        bundle = {
            "format": "onrecord-policy-1",
            "version": self.version,
            "created": "2026-11-30T09:00:00Z",
            "policies": RULES,
            "schema": schema.read_text(),
            "entities": [],
            "callers": callers,
            "servers": servers,
            "groups": {"callers": ["agents"], "approvers": ["reviewers"]},
            "approvers": [
                {"id": name, "uid": uid, "groups": ["reviewers"], "channels": ["terminal"], "credentials": []}
                for name, uid in (
                    ("ada", self.approver if system else 3001),
                    ("ben", self.other_approver if system else 3002),
                )
            ],
            "controlRoles": [{"uid": self.operator, "roles": ["auditor", "policy-admin"]}] if system else [],
            "proofSeconds": 15,
            "descriptions": "off",
            "unknown": {"effect": "forbid"},
            "userMode": {
                "caller": "code-review",
                "approver": "ada",
                "controlRoles": ["auditor", "operator", "supervisor", "policy-admin"],
            },
            "limits": self.limits,
            "retention": {"journalDays": 90, "bodyDays": 7},
        }
        self.change(bundle)
        return bundle

    def sign_bundle(self, *, key=None, data: bytes | None = None) -> bytes:
        """Write and sign a bundle; returns its bytes."""
        data = json.dumps(self.bundle(), indent=1).encode() if data is None else data
        for path, content in (
            (self.bundle_file, data),
            (self.signature_file, signatures.sign(data, signer=key or self.policy_key).encode()),
        ):
            path.write_bytes(content)
            path.chmod(0o644)
            if os.getuid() == 0 and self.mode == "user":
                os.chown(path, self.authority_uid, self.authority_uid)
        return data

    @property
    def signature_file(self) -> Path:
        return self.bundle_file.with_name(self.bundle_file.name + ".sig")

    # Configuration -----------------------------------------------------------------------------------------------

    @cached_property
    def config(self) -> Configuration:
        """Return the configuration."""
        root = self.root
        lines = [
            f'mode = "{self.mode}"',
            "[paths]",
            f'config = "{root}/etc"',
            f'state = "{root}/state"',
            f'runtime = "{root}/run"',
            f'records = "{root}/records"',
            "[keys]",
            f'proof = "file:{root}/keys/proof.pem"',
            f'authority_journal = "file:{root}/keys/journal.pem"',
            f'recorder_journal = "file:{root}/keys/recorder-journal.pem"',
            f'record = "file:{root}/keys/record.pem"',
            f'record_chain = "{root}/keys/record-chain.pem"',
            "[trust]",
            f'policy = "{self.trust}"',
            f'journal = "{root}/etc/journal.keys"',
            f'vcon = "{root}/etc/vcon"',
            "[policy]",
            f'bundle = "{self.bundle_file}"',
            f'source = "{root}/etc/policy"',
            "[authority]",
            f'durability = "{self.durability}"',
            f"evidence = {json.dumps(self.evidence)}",
        ]
        if self.mode == "system":
            lines += [
                "[sockets]",
                f'authority = "{root}/run/authority.sock"',
                f'approval = "{root}/run/approval.sock"',
                f'control = "{root}/run/control.sock"',
                f'record = "{root}/run/record.sock"',
                "[principals]",
                f"authority = {self.authority_uid}",
                f"recorder = {self.recorder_uid}",
                f"call_group = {self.call_gid}",
                f"approval_group = {self.approval_gid}",
                f"control_group = {self.control_gid}",
                f"record_group = {self.control_gid}",
                f"readers_group = {self.control_gid}",
            ]
        for name in ("filesystem", "archive"):
            lines += [f"[servers.{name}]", 'command = "/bin/true"']
            if self.mode == "system":
                lines.append(f"user = {self.server if name == 'filesystem' else self.other_server}")
        text = "\n".join(lines) + "\n"
        file = root / "etc/onrecord.toml"
        if not file.exists():
            file.write_text(text)
            file.chmod(0o644)
            if os.getuid() == 0 and self.mode == "user":
                os.chown(file, self.authority_uid, self.authority_uid)
        return Configuration.parse(text, file=file)

    # Running -----------------------------------------------------------------------------------------------------

    def start(self, *, clock=SYSTEM_CLOCK, **options) -> House:
        """Start the authority on a thread that is its principal."""
        started: Future = Future()
        self.config  # noqa: B018 - written before the thread drops

        def run() -> None:
            try:
                if os.geteuid() != self.authority_uid:
                    groups = (
                        () if self.call_gid is None else (self.call_gid, self.control_gid, self.approval_gid)
                    )
                    become(self.authority_uid, gid=self.authority_uid, groups=groups)
                asyncio.run(self._serve(started, clock, options))
            except BaseException as error:
                if not started.done():
                    started.set_exception(error)

        self._thread = threading.Thread(target=run)
        self._thread.start()
        try:
            started.result(30)
        except BaseException:
            self._thread.join()
            self._thread = None
            raise
        return self

    async def _serve(self, started: Future, clock, options) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self.authority = Authority(self.config, clock=clock, **options)
        await self.authority.start()
        started.set_result(None)
        await self._end.wait()
        await self.authority.stop()

    def stop(self) -> None:
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(30)
            assert not self._thread.is_alive()
            self._thread = None

    def inside(self, work):
        """Run a function on the authority's loop and return its result."""

        async def run():
            return work(self.authority)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(20)

    # Clients -----------------------------------------------------------------------------------------------------

    def agent_wire(self, uid: int | None = None) -> Wire:
        return self._wire(self.config.agent_socket(), self.agent if uid is None else uid, self.call_gid)

    def server_wire(self, server: str = "filesystem", uid: int | None = None) -> Wire:
        default = self.server if server == "filesystem" else self.other_server
        return self._wire(self.config.server_socket(server), default if uid is None else uid, self.call_gid)

    def control_wire(self, uid: int | None = None) -> Wire:
        return self._wire(
            self.config.control_socket(), self.operator if uid is None else uid, self.control_gid
        )

    def approver_wire(self, uid: int | None = None) -> Wire:
        return self._wire(
            self.config.approval_socket(), self.approver if uid is None else uid, self.approval_gid
        )

    def _wire(self, path: Path, uid: int, gid: int | None) -> Wire:
        return Wire(path, uid=uid, gid=uid if self.mode == "user" or gid is None else gid)

    def report(self, server: str = "filesystem", *, pin: str = PIN, names=TOOLS) -> None:
        """Send what the server advertises, as its guard does."""
        with self.server_wire(server) as wire:
            tools = [{"name": name, "inputSchemaSha256": pin} for name in names]
            assert wire.result("callProof/tools", {"server": server, "tools": tools}) == {
                "received": len(names)
            }

    def proof(self, wire: Wire, path: str = "repo/README.md", **more) -> dict:
        return wire.result("callProof/issue", issue_params(path, **more))

    def verify_params(self, issued: dict, **more) -> dict:
        params = {
            "actionDigest": issued["actionDigest"],
            "server": issued["server"],
            "evidence": issued["evidence"],
            "method": "tools/call",
            "name": "read_file",
        }
        if self.mode == "system":
            params["peerUid"] = self.agent
        return params | more

    def records(self, *types: str) -> list:
        """Return the records of the decision journal, of these types if any are named. For a running authority."""
        self.inside(lambda authority: authority.state.audit.journal.flush())
        records, seq = [], 0
        while page := self.authority.state.audit.journal.read(seq, 10_000):
            records += page
            seq = page[-1].seq + 1
        return [record for record in records if not types or record.type in types]

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)


@contextmanager
def reported(house: House):
    """The house with both servers reported."""
    house.report("filesystem")
    house.report("archive")
    yield house
