"""A recorder with a real journal and a real socket, and the entries of a small conversation."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID

from onrecord.base.dates import ManualClock, parse_date
from onrecord.base.hashes import b64url_decode_strict
from onrecord.base.keys import PrivateKeySigner
from onrecord.base.rpc_client import RpcClient
from onrecord.record.ledger.journal import Journal
from onrecord.record.recorder.daemon import make_recorder
from onrecord.record.recorder.settings import RecorderSettings
from onrecord.record.recorder.signing import SigningKey

LABEL = "p4711-182233-5b1f20c4"
READ = "kYDQcUpVz7E57-sIPwtHHXdp-lOn9_jaIxYRTVnR4CM"
SECRET = "Cj0gcJjzMZ8AlETWAqmXluFlju35YQe8n4oNQesdg0Y"
POST = "GmVaz33lcSdTPzLBO-gEEjpLnfvDf1KAj9z8WjXIOYM"
PROOF = "urfxbPnIWt8sLVej_XbvkJiFy_B72Dtx_sHFsNBG94A"
GRANTED = "qhdauhyFLLq8iu1da5FU_uLH40p49ql5jeovS3eRoaU"
START_NS = 9_120_000_000_000


def at(seconds: float) -> dict:
    """Return time and mono_ns of a moment after 10:00:00, as both clocks tell it."""
    ms = round(seconds * 1000)
    moment = datetime.datetime(2026, 11, 30, 10, tzinfo=datetime.UTC) + datetime.timedelta(milliseconds=ms)
    return {
        "time": moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z",
        "mono_ns": START_NS + ms * 1_000_000,
    }


def decision(
    n, seconds, digest, verdict="allowed", *, operation, tool="read_file", label=LABEL, uid=2001, **more
):
    entry = {"n": n, "kind": "decision", **at(seconds)}
    entry["session"] = {"uid": uid, "caller": "code-review", "label": label}
    entry |= {"server": "filesystem", "tool": tool, "actionDigest": digest, "decision": verdict}
    return entry | {"operationId": operation} | more


def invocation(n, seconds, digest, *, call, tool="read_file", label=LABEL, uid=2001, admitted=True, **more):
    entry = {"n": n, "kind": "invocation", **at(seconds), "connection": call.split(".")[0], "call": call}
    entry["session"] = {"uid": uid, "label": label}
    entry |= {"server": "filesystem", "tool": tool, "actionDigest": digest, "admitted": admitted}
    return entry | {"operationId": f"0193a1d0-4c04-7b00-8000-0000000{n:05x}"} | more


def response(n, seconds, kind, *, call, content=None):
    entry = {"n": n, "kind": kind, **at(seconds), "connection": call.split(".")[0], "call": call}
    return entry if content is None else entry | {"content": content}


def connection(n, seconds, state="open", *, label=LABEL, uid=2001, **more):
    entry = {"n": n, "kind": "connection", **at(seconds), "connection": "1", "state": state}
    if state == "open":
        entry |= {"protocol": "2025-11-25", "serverInfo": {"name": "example-files", "version": "1.0.0"}}
        entry |= {"peer": {"uid": uid, "pid": 4712}, "session": {"uid": uid, "label": label}}
    return entry | more


def operation(number: int) -> str:
    return f"0193a1d0-4c00-7a10-8000-{number:012d}"


def text(words: str, *, error: bool = False) -> dict:
    return {"content": [{"type": "text", "text": words}], "isError": error}


def conversation() -> dict[str, list[dict]]:
    """One allowed call, one denied call that is sent all the same, one approved call."""
    comment = {"number": 17, "body": "Please add a test for the empty file."}
    denied = {"code": -32021, "message": "Call proof rejected", "data": {"reason": "missing"}}
    return {
        "authority": [
            decision(1, 1.0, READ, operation=operation(1), proofRef=PROOF),
            decision(
                2,
                2.0,
                SECRET,
                "disallowed",
                operation=operation(2),
                ref="q7Zt0cXn4LmA",
                reason="call-proof: denied",
            ),
            decision(
                3,
                3.0,
                POST,
                "permission-required",
                operation=operation(3),
                tool="post_comment",
                approvalId="w1Jb7xk0",
            ),
            {"n": 4, "kind": "proof", **at(8.002), "operationId": operation(3), "actionDigest": POST}
            | {"server": "filesystem", "proofRef": GRANTED, "approvalId": "w1Jb7xk0"},
        ],
        "guard": [
            connection(1, 0.019),
            invocation(2, 1.004, READ, call="1.1", proofRef=PROOF, arguments={"path": "repo/README.md"}),
            response(3, 1.010, "result", call="1.1", content=text("# Sample project\n")),
            invocation(4, 2.1, SECRET, call="1.2", admitted=False),
            response(5, 2.101, "denied", call="1.2", content=denied),
            invocation(6, 8.01, POST, call="1.3", tool="post_comment", proofRef=GRANTED, arguments=comment),
            response(7, 8.018, "result", call="1.3", content=text("comment 1 on pull request 17")),
            connection(8, 9.0, "close", cause="client-eof"),
        ],
    }


def make_certificates(key: ec.EllipticCurvePrivateKey, *, days: int = 825):
    """Return leaf and CA for a record key."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "onrecord record CA test")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "onrecord recorder test")])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)

    def built(subject, public, *, is_ca, end):
        usage = dict.fromkeys(
            [
                "digital_signature",
                "content_commitment",
                "key_encipherment",
                "data_encipherment",
                "key_agreement",
                "key_cert_sign",
                "crl_sign",
                "encipher_only",
                "decipher_only",
            ],
            False,
        )
        usage["key_cert_sign" if is_ca else "digital_signature"] = True
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True)
            .add_extension(x509.KeyUsage(**usage), critical=True)
            .sign(ca_key, hashes.SHA256())
        )

    far = datetime.datetime(2060, 1, 1, tzinfo=datetime.UTC)
    end = far if days >= 0 else begin + datetime.timedelta(days=1)
    leaf = built(name, key.public_key(), is_ca=False, end=end)
    return leaf, built(ca_name, ca_key.public_key(), is_ca=True, end=far)


class FakeDirectory:
    """Who is who, as a test wants it."""

    def __init__(self):
        self.authority_uid = 900
        self.callers = {2001: "code-review"}
        self.ti_servers = {}
        self.agents = {}
        self.roles = {}
        self.servers = {}

    def caller_id(self, uid):
        return self.callers.get(uid)

    def ti_server(self, server_id):
        return self.ti_servers.get(server_id)

    def agent(self, caller):
        return self.agents.get(caller)

    def control_roles(self, uid):
        return frozenset(self.roles.get(uid, ()))

    def server_ids_of_uid(self, uid):
        return frozenset(self.servers.get(uid, ()))


class FakeHost:
    def __init__(self):
        self.is_gone = False

    def exited(self):
        return self.is_gone

    def close(self):
        pass


class FakeHosts:
    """Processes by label; none unless a test puts one here."""

    def __init__(self):
        self.known = {}

    def find(self, label, *, uid):
        host = self.known.get((uid, label))
        return host if host is not None and not host.is_gone else None


class FakeSigning:
    """A key in memory, which may go away."""

    def __init__(self):
        key = ec.generate_private_key(ec.SECP256R1())
        leaf, self.anchor = make_certificates(key)
        self.key = SigningKey(PrivateKeySigner(key), (leaf,))
        self.absent = None

    def now(self):
        return self.absent or self.key


class Rig:
    """One recorder over one directory; it may be stopped and started again."""

    def __init__(self, root: Path, **settings):
        self.root = root
        self.records = root / "records"
        self.records.mkdir(mode=0o700, exist_ok=True)
        self.directory = FakeDirectory()
        self.hosts = FakeHosts()
        self.signing = FakeSigning()
        self.clock = ManualClock("2026-11-30T10:00:00Z", boottime_ns=START_NS)
        self.journal_key = PrivateKeySigner(ed25519.Ed25519PrivateKey.generate())
        self.settings = RecorderSettings(
            socket=root / "record.sock",
            records=self.records,
            own_uid=os.geteuid(),
            authority_wait_ms=0,
            source_lost_ms=0,
            retry_ms=0,
        )
        self.settings = replace(self.settings, **settings)
        self.journal = None
        self.recorder = None
        self.clients = []

    def open_journal(self):
        return Journal.open(
            self.root / "recorder",
            signer=self.journal_key,
            name="test/recorder",
            marks=self.root / "marks",
            clock=self.clock,
        )

    async def start(self):
        self.journal = self.open_journal()
        self.recorder = make_recorder(
            self.settings,
            journal=self.journal,
            directory=self.directory,
            signing=self.signing,
            hosts=self.hosts,
            clock=self.clock,
        )
        await self.recorder.start()
        self.recorder._tasks[0].cancel()  # time passes when a test says so
        return self

    async def stop(self):
        for client in self.clients:
            client.close()
        self.clients = []
        await self.recorder.stop()
        self.journal.close()

    async def __aenter__(self):
        return await self.start()

    async def __aexit__(self, *exc):
        await self.stop()

    async def client(self, source=None, *, server=None):
        client = await RpcClient.connect(
            self.settings.socket, expected_uid=os.geteuid(), timeout_ms=20_000, max_line_bytes=1 << 25
        )
        self.clients.append(client)
        if source is not None:
            params = {"versions": ["1"], "source": source}
            client.hello = await self.call(
                client, "record/hello", params | ({"server": server} if server else {})
            )
        return client

    async def call(self, client, method, params):
        return await client.call(method, params, timeout_ms=20_000)

    async def append(self, client, *entries):
        return await self.call(client, "record/append", {"entries": list(entries)})

    async def pass_time(self, seconds):
        """Move the clock, look after sessions, and wait until what ended is sealed."""
        self.clock.advance(seconds)
        self.recorder.look()
        await self.recorder._sealing.join()
        await asyncio.sleep(0)

    async def close_all(self):
        for session in self.recorder._recording.table:
            self.recorder._recording.ask_to_close(session)
        await self.pass_time(20)

    def files(self):
        return sorted(path for path in self.records.glob("*/*/*/*.vcon.json"))

    def vcons(self):
        """Return the vCons inside of the signed files, oldest first."""
        found = [payload_of(path.read_bytes()) for path in self.files()]
        return sorted(found, key=lambda one: parse_date(one["created_at"]))

    def all_bytes(self):
        """Return everything that is on disk below the rig."""
        return b"".join(path.read_bytes() for path in self.root.rglob("*") if path.is_file())


def payload_of(data: bytes) -> dict:
    return json.loads(b64url_decode_strict(json.loads(data)["payload"]))


@pytest.fixture
def make_rig(short_dir):
    counter = iter(range(1_000_000))

    def make(**settings):
        root = short_dir / f"r{next(counter)}"
        root.mkdir(mode=0o700)
        return Rig(root, **settings)

    return make


@pytest.fixture
def rig(make_rig):
    return make_rig()


class Entries:
    """The builders of this module, for tests that cannot import it."""

    decision = staticmethod(decision)
    invocation = staticmethod(invocation)
    response = staticmethod(response)
    connection = staticmethod(connection)
    conversation = staticmethod(conversation)
    operation = staticmethod(operation)
    text = staticmethod(text)
    at = staticmethod(at)
    LABEL, READ, SECRET, POST, PROOF, GRANTED = LABEL, READ, SECRET, POST, PROOF, GRANTED


@pytest.fixture(scope="session")
def entries():
    return Entries


@pytest.fixture(scope="session")
def rig_class():
    return Rig


@pytest.fixture(scope="session")
def certificates_for():
    return make_certificates
