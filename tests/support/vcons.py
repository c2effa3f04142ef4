"""vCons, keys and certificates that the tests of the record room make for themselves."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from onrecord.base.keys import PrivateKeySigner
from onrecord.record.checks.checker import check
from onrecord.record.vcon.model import Vcon

UUID = "01a19c21-7200-8c44-832a-bc92ac6830cd"
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HASH = "sha512-" + "A" * 86

TOOL_EVENT = {"sessions": [0], "party": 0, "operation_id": "a", "attempt": 1}
TEXT_CONTENT = {"mediatype": "text/plain", "encoding": "none", "body": "done"}


def invocation(second=1, **members):
    """A tool-invocation event without arguments."""
    return {
        "type": "tool-invocation",
        "time": f"2026-11-02T12:00:{second:02d}Z",
        **TOOL_EVENT,
        "server": "clock",
        "tool": "now",
        **members,
    }


def answer(kind, second=2, **members):
    """A tool event that answers it, with content."""
    return {
        "type": kind,
        "time": f"2026-11-02T12:00:{second:02d}Z",
        **TOOL_EVENT,
        **TEXT_CONTENT,
        **members,
    }


def decision(value="allowed", second=0, **members):
    """A once decision."""
    return {
        "type": "policy-decision",
        "time": f"2026-11-02T12:00:{second:02d}Z",
        **TOOL_EVENT,
        "decision": value,
        "policy_life": "once",
        "operation": "tool-invocation",
        "server": "clock",
        "tool": "now",
        **members,
    }


def standing(value="allowed", second=0, **members):
    """A standing decision for one tool; tool=None makes it one for the server."""
    event = decision(value, second, policy_life="standing")
    event.update(members)
    for name in ("operation_id", "attempt"):
        del event[name]
    if event["tool"] is None:
        del event["tool"]
    return event


def vcon(*events, **members):
    """A vCon around some events that has no finding of its own."""
    document = {
        "uuid": UUID,
        "created_at": "2026-11-02T12:00:00Z",
        "extensions": ["tool-invocation"],
        "parties": [{"type": "bot", "name": "Agent"}],
        "sessions": [{"start": "2026-11-02T12:00:00Z", "parties": [0]}],
        "events": list(copy.deepcopy(events)),
        **members,
    }
    return {name: value for name, value in document.items() if value is not None}


def answered():
    """A vCon with a call and its result, which most tests of forms sign."""
    return vcon(invocation(), answer("tool-result"), updated_at="2026-11-02T12:00:03Z")


def text(document):
    """The JSON text of a vCon."""
    return json.dumps(document).encode("utf-8")


def read(document):
    """A document, or the text of one, as a vCon, by way of the text."""
    return Vcon.read(document if isinstance(document, bytes) else text(document))


def places(value, path=()):
    """The paths of everything in a value."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in entries:
        yield (*path, key)
        yield from places(item, (*path, key))


def findings(document, **options):
    """The findings of a vCon as (code, severity, pointer)."""
    data = document if isinstance(document, bytes) else text(document)
    result = check(data, profile=options.pop("profile", "0.5.0"), **options)
    return [(finding.code, finding.severity, finding.pointer) for finding in result.findings]


def faults(document, **options):
    """The errors and warnings of a vCon."""
    return [entry for entry in findings(document, **options) if entry[1] != "info"]


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certify(
    subject,
    key,
    *,
    issuer=None,
    issuer_key=None,
    ca=False,
    path_length=None,
    start=NOW - timedelta(days=30),
    end=NOW + timedelta(days=365),
    dns=(),
    usage=True,
    digest=None,
    extensions=(),
):
    """Make a certificate; without issuer it signs itself."""
    signing = issuer_key or key
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(issuer.subject if issuer is not None else name(subject))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )
    if ca:
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=path_length), critical=True
        )
    if usage:
        builder = builder.add_extension(_usage(ca=ca), critical=True)
    if dns:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(value) for value in dns]), critical=False
        )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    if digest is None and not isinstance(signing, ed25519.Ed25519PrivateKey):
        digest = hashes.SHA256()
    return builder.sign(signing, digest)


def _usage(*, ca):
    flags = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(digital_signature=not ca, key_cert_sign=ca, crl_sign=ca, **flags)


class Pki:
    """A root, an intermediate and leaves by kind of key, made once."""

    def __init__(self):
        self.root_key = ec.generate_private_key(ec.SECP256R1())
        self.root = certify("Test Root", self.root_key, ca=True)
        self.middle_key = ec.generate_private_key(ec.SECP256R1())
        self.middle = certify(
            "Test Intermediate",
            self.middle_key,
            issuer=self.root,
            issuer_key=self.root_key,
            ca=True,
            path_length=0,
        )
        self.keys = {
            "p256": ec.generate_private_key(ec.SECP256R1()),
            "p384": ec.generate_private_key(ec.SECP384R1()),
            "ed25519": ed25519.Ed25519PrivateKey.generate(),
            "rsa": rsa.generate_private_key(65537, 2048),
        }

    def leaf(self, kind="p256", **options):
        """A certificate for the key of a kind, below the intermediate."""
        options.setdefault("issuer", self.middle)
        options.setdefault("issuer_key", self.middle_key)
        return certify("Test Leaf", self.keys[kind], **options)

    def chain(self, kind="p256", **options):
        """Leaf and intermediate."""
        return (self.leaf(kind, **options), self.middle)

    def signer(self, kind="p256"):
        return PrivateKeySigner(self.keys[kind])


@cache
def pki():
    """The keys and certificates that the tests of a process share. Nobody changes them."""
    return Pki()
