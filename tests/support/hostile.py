"""Hostile vCon files: seeds that use everything, a mutator that knows JSON, and bombs. Shared by tests and `make fuzz`.

Everything is made from a seeded `random.Random`, so that a file that broke something can be made again.
"""

from __future__ import annotations

import base64
import copy
import gzip
import json
import random
from functools import cache

from cryptography.hazmat.primitives.asymmetric import ec

from onrecord.record.checks.event_tables import EVENT
from onrecord.record.checks.tables import ANALYSIS, ATTACHMENT, DIALOG, PARTY, SESSION, VCON
from onrecord.record.forms import encrypt, sign
from support.vcons import (
    HASH,
    NOW,
    TEXT_CONTENT,
    UUID,
    Pki,
    answer,
    certify,
    decision,
    invocation,
    standing,
    vcon,
)

AGENT_META = {"model_id": "model-1", "model_provider": "example"}
AGENT = {"type": "bot", "name": "Agent", "agent_meta": AGENT_META}
PERSON = {"type": "person", "name": "Ann Example", "tel": "+1-555-0100", "mailto": "ann@example.com"}

TABLES = (VCON, PARTY, SESSION, DIALOG, ATTACHMENT, ANALYSIS, EVENT)
NAMES = sorted(
    {name for table in TABLES for name in (*table.kinds, *table.aliases)} | {"mimetype", "alg", "signature"}
)
"""Member names that mean something somewhere."""

ODD_VALUES = (
    None, True, False, 0, -1, 1, 1.0, 1.5, 2**53, -(2**63), 10**30, 1e308, 5e-324, "", " ", "a", "\x00", "\u202e",
    "\U0001f600", "0.0.1", "0.3.0", "0.5.0", "json", "none", "base64url", "tool-result", "2026-11-02T12:00:00Z",
    "2026-02-30T12:00:00Z", "9999-12-31T23:59:60.999999999-23:59", "https://u:p@example.com/", "password",
    "eyJ9.eyJ9.x", [], {}, [[]], [None], [{}], {"": ""}, {"a": {"a": {"a": []}}}, [0, 0, 0], [[0, [1]]],
    {"session": 0, "type": "child"},
)  # fmt: skip
"""Values that are wrong nearly everywhere and right somewhere."""


def tool_conversation():
    """Both state models: decisions, attempts, a late answer, a refused call."""
    return vcon(
        standing("allowed", 0, tool=None),
        decision("permission-required", 0),
        invocation(1),
        answer("tool-pending", 2),
        answer("tool-progress", 3),
        answer("tool-timeout", 4),
        answer("tool-result", 5),
        decision("disallowed", 6, operation_id="b"),
        extensions=["tool-invocation", "ai_agent"],
        parties=[AGENT, PERSON],
        sessions=[{"start": "2026-11-02T12:00:00Z", "duration": 9, "parties": [0, 1]}],
    )


def agent_conversation():
    """Messages and events of ai_agent, with an entry tree, a sub-agent and files."""
    message = {
        "type": "text",
        "start": "2026-11-02T12:00:00Z",
        "parties": [1, 0],
        "entry_id": "e1",
        **TEXT_CONTENT,
    }
    own = {"time": "2026-11-02T12:00:01Z", "session": 0, "party": 0, "parent_id": "e1"}
    return vcon(
        {"type": "reasoning", **own, "entry_id": "e2", "content": "why"},
        {"type": "tool-call", **own, "entry_id": "e3", "tool_name": "now", "input": {}, "call_id": "c1"},
        {
            "type": "tool-result",
            **own,
            "call_id": "c1",
            "output": {"x": [1, {"y": None}]},
            "status": "success",
        },
        {"type": "system-event", **own, "event_type": "recording-policy", "data": {}},
        extensions=["ai_agent"],
        parties=[AGENT, PERSON],
        sessions=[
            {
                "start": "2026-11-02T12:00:00Z",
                "parties": [0, 1],
                "dialog": [0],
                "environment": {"working_dir": "/srv/project"},
                "sessions": [{"session": 1, "type": "child"}],
            },
            {"start": "2026-11-02T12:00:01Z", "parties": [0]},
        ],
        dialog=[{**message, "token_usage": {"input": 1, "output": 2}}],
        recording_agent={"name": "onrecord", "version": "0"},
        file_attribution={
            "files": [{"path": "a.py", "conversations": [{"ranges": [{"start_line": 1, "end_line": 2}]}]}]
        },
    )


def call():
    """A recorded call with a set of recordings, a transfer, events, attachments and analyses."""
    start = {"start": "2026-11-02T12:00:00Z"}
    content = {"url": "https://example.com/a.wav", "content_hash": HASH, "mediatype": "audio/x-wav"}
    return vcon(
        {"type": "join", "time": "2026-11-02T12:00:00Z", "sessions": [0], "party": 0, "dialog": 1},
        {"type": "keydown", "time": "2026-11-02T12:00:01Z", "sessions": [0], "party": 1, "button": "5"},
        {"type": "consultation-start", "time": "2026-11-02T12:00:02Z", "sessions": [0], "party": 0, "transferee": 1,
         "transfer_target": 2, "consultation": 0},
        extensions=None,
        parties=[PERSON, {"sip": "sip:bob@example.org"}, {}],
        sessions=[{**start, "duration": 60, "parties": [0, 1, 2], "dialog": [0, 1, 2, 3]}],
        dialog=[
            {"type": "recording-set", **start, "recordings": [1], "parties": [0, 1]},
            {"type": "recording", **start, "parties": [0, None, [1, 2]], "recording_set": 0, "duration": 1.5,
             **content},
            {"type": "transfer", **start, "transferee": 1, "transferor": 0, "transfer_target": 2, "original": 1},
            {"type": "incomplete", **start, "parties": [0], "disposition": "busy",
             "session_id": [{"local": UUID, "remote": UUID}]},
        ],
        attachments=[{**start, "party": 0, "dialog": 1, "purpose": "notes", "mediatype": "application/json",
                      "encoding": "json", "body": {"a": [1, "b"]}}],
        analysis=[{"type": "transcript", "vendor": "example", "dialog": [1], **TEXT_CONTENT}],
    )  # fmt: skip


def redacted():
    """Placeholders and a reference to the less redacted vCon."""
    return {
        **tool_conversation(),
        "redacted_from": {"uuid": UUID, "type": "test"},
        "dialog": [{}],
        "attachments": [{}],
    }


def legacy():
    """The names of the first drafts."""
    return {
        "vcon": "0.0.1",
        "uuid": UUID,
        "created_at": "2023-01-01T00:00:00+01:00",
        "parties": [{"tel": "+1-555-0100", "role": "agent"}, {"name": "Ann Example"}],
        "dialog": [
            {"type": "text", "start": "2023-01-01T00:00:00Z", "parties": [0, 1], "mimetype": "text/plain",
             "body": "hello", "encoding": "none",
             "party_history": [{"party": 0, "time": "2023-01-01T00:00:00Z", "event": "join"}]},
            {"type": "recording", "start": "2023-01-01T00:00:01Z", "parties": 0, "url": "https://example.com/a.wav",
             "alg": "SHA-512", "signature": "A" * 86, "mimetype": "audio/x-wav", "session_id": "a;remote=b"},
            {"type": "transfer", "start": "2023-01-01T00:00:02Z", "parties": [0, 1], "transfer-target": [1],
             "target-dialog": [-1], "original": [1], "consultation": [0], "transferee": 0, "transferor": 1},
        ],
        "attachments": [{"body": "e30", "encoding": "base64url", "type": "tags"}],
        "analysis": [{"type": "summary", "vendor": "example", "dialog": 0, "body": '{"a":1}', "encoding": "json"}],
        "group": [],
        "appended": {},
        "must_support": [],
    }  # fmt: skip


SEEDS = {
    "tool": tool_conversation,
    "agent": agent_conversation,
    "call": call,
    "redacted": redacted,
    "legacy": legacy,
}
"""Makers of the vCons that mutation starts from."""


def enveloped(payload, header=None):
    """A signed form of the right structure and a signature that is none."""
    encoded = base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
    protected = base64.urlsafe_b64encode(b'{"alg":"ES256","cty":"application/vcon"}').rstrip(b"=").decode()
    entry = {
        "protected": protected,
        "header": header or {"uuid": UUID, "x5c": ["AAAA"]},
        "signature": "A" * 86,
    }
    return {"payload": encoded, "signatures": [entry]}


def encrypted():
    """An encrypted form of the right structure with nothing inside."""
    protected = base64.urlsafe_b64encode(b'{"alg":"RSA-OAEP","enc":"A256CBC-HS512"}').rstrip(b"=").decode()
    return {
        "protected": protected,
        "unprotected": {"cty": "application/vcon", "uuid": UUID},
        "recipients": [
            {"encrypted_key": "A" * 342},
            {"header": {"alg": "RSA-OAEP"}, "encrypted_key": "AAAA"},
        ],
        "iv": "A" * 22,
        "ciphertext": "A" * 64,
        "tag": "A" * 43,
    }


READER = ec.derive_private_key(20_261_102, ec.SECP256R1())
"""The key of whom seeds are encrypted for: always the same, so that kept files can be decrypted again."""


@cache
def sealed():
    """A file that the reader can decrypt, of a vCon that is signed with keys of this process."""
    pki = Pki()
    signed = sign(json.dumps(call()).encode(), signer=pki.signer(), chain=pki.chain())
    return encrypt(signed, recipients=[certify("Test Reader", READER, usage=False)], at=NOW)


def texts():
    """Every seed as a file, by name, in every form."""
    files = {name: json.dumps(make()).encode() for name, make in SEEDS.items()}
    plain = files["tool"]
    files["signed"] = json.dumps(enveloped(plain)).encode()
    files["signed-gzip"] = json.dumps(enveloped(gzip.compress(plain, mtime=0))).encode()
    files["nested"] = json.dumps(enveloped(files["signed"])).encode()
    files["sealed"] = sealed()
    files["encrypted"] = json.dumps(encrypted()).encode()
    files["gzip"] = gzip.compress(plain, mtime=0)
    files["compact"] = b"eyJhbGciOiJFUzI1NiJ9.e30.AAAA"
    return files


def mutated(document, source: random.Random, steps: int):
    """A copy of a JSON value after some random changes of values, names, places and sizes."""
    holder = [copy.deepcopy(document)]
    for _ in range(steps):
        places = list(_places(holder))
        container, key = source.choice(places)
        _change(container, key, source, holder, places)
    return holder[0]


def _places(holder, limit=5_000):
    work = [holder]
    count = 0
    while work and count < limit:
        container = work.pop()
        for key in list(container) if isinstance(container, dict) else range(len(container)):
            yield container, key
            count += 1
            if isinstance(container[key], dict | list):
                work.append(container[key])


def _change(container, key, source, holder, places):
    action = source.randrange(10)
    is_top = container is holder
    if action <= 1:
        container[key] = copy.deepcopy(source.choice(ODD_VALUES))
    elif action <= 4:
        _copy_over(container, key, source, places)
    elif action == 5 and not is_top:
        del container[key]
    elif action == 6 and isinstance(container, dict):
        container[source.choice(NAMES)] = container.pop(key)
    elif action == 7 and isinstance(container, list) and not is_top:
        container[key:key] = [copy.deepcopy(container[key])] * source.choice([1, 2, 30])
    elif action == 8 and isinstance(container[key], dict):
        container[key][source.choice(NAMES)] = copy.deepcopy(source.choice(ODD_VALUES))
    else:
        for _ in range(source.choice([1, 3, 140])):
            container[key] = [container[key]] if source.random() < 0.5 else {"a": container[key]}


def _copy_over(container, key, source, places):
    """Put another value of the same type here: ids and indices that meet are what relations are made of."""
    kind = type(container[key])
    others = [other for other, name in places if type(other[name]) is kind]
    names = [name for other, name in places if type(other[name]) is kind]
    choice = source.randrange(len(others))
    container[key] = copy.deepcopy(others[choice][names[choice]])


def spelled(document, source: random.Random):
    """The text of a JSON value, in one of the spellings that parsers differ over."""
    text = json.dumps(document, ensure_ascii=source.random() < 0.5, indent=source.choice([None, None, 1]))
    data = text.encode("utf-8", "surrogatepass")
    kind = source.randrange(10)
    if kind == 0:
        data = data.replace(b'"', b"\\u0022", 1) if source.random() < 0.3 else data.replace(b"1", b"1.0", 2)
    elif kind == 1:
        data = data.replace(b'"type"', b'"\\u0074ype"', 2)
    elif kind == 2:
        data = data.replace(b"0,", b"-0.0,", 1).replace(b"1,", b"1e400,", 1)
    elif kind == 3:
        data = data.replace(b'"a"', b'"\\ud800"', 2)
    elif kind == 4:
        place = source.randrange(len(data) + 1)
        data = data[:place] + bytes([source.randrange(256)]) + data[place + source.randrange(3) :]
    elif kind == 5:
        data = gzip.compress(data, mtime=0)
    return data


def wrapped(data, source: random.Random):
    """A file in some form that holds the bytes: unsigned, signed, nested."""
    for _ in range(source.choice([0, 0, 0, 1, 1, 2, 9])):
        data = json.dumps(enveloped(data)).encode()
    return data
