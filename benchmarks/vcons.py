"""Parse, check, sign and verify a vCon of 10,000 messages, and one of 10,000 tool events.

Beside each time stands the time of the standard library's strict parse of the same text, so that machines compare.
CPU time of one process, best of several runs, milliseconds. `--json` prints one document, `--quick` takes a tenth.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from onrecord.base.keys import PrivateKeySigner
from onrecord.record.checks.checker import check
from onrecord.record.forms import sign, verify
from onrecord.record.vcon.canonical_text import canonical_text
from onrecord.record.vcon.reader import read_json

UUID = "01a19b83-0f20-8b33-832a-bc92ac6830cd"
START = datetime(2026, 11, 2, 9, tzinfo=UTC)


def frame(**members):
    return {
        "uuid": UUID,
        "created_at": "2026-11-03T09:00:00Z",
        "updated_at": "2026-11-03T09:00:00Z",
        "parties": [{"name": "anonymous", "type": "person"}, {"name": "agent", "type": "bot"}],
        **members,
    }


def moment(number):
    return (START + timedelta(seconds=number, milliseconds=1 + number % 999)).isoformat(
        timespec="milliseconds"
    )[:-6] + "Z"


def messages(count):
    return frame(
        sessions=[{"start": "2026-11-02T09:00:00Z", "parties": [0, 1], "dialog": list(range(count))}],
        dialog=[
            {
                "type": "text",
                "start": moment(number),
                "parties": [number % 2, 1 - number % 2],
                "mediatype": "text/plain",
                "encoding": "none",
                "body": f"Some words in message number {number}, to fill the line.",
            }
            for number in range(count)
        ],
    )


def tool_events(count):
    events = []
    for number in range(0, count, 4):
        own = {"sessions": [0], "party": 1, "operation_id": f"op-{number}", "attempt": 1}
        target = {"server": "files", "tool": "read"}
        json_body = {"mediatype": "application/json", "encoding": "json"}
        decision = {"decision": "allowed", "policy_life": "once", "operation": "tool-invocation"}
        events += [
            {"type": "policy-decision", "time": moment(number), **own, **target, **decision},
            {"type": "tool-invocation", "time": moment(number + 1), **own, **target, **json_body,
             "body": {"path": f"reports/{number}.txt"}},
            {"type": "tool-progress", "time": moment(number + 2), **own, **json_body, "body": {"progress": 1}},
            {"type": "tool-result", "time": moment(number + 3), **own, **json_body,
             "body": {"content": [{"type": "text", "text": "Some words of a file."}]}},
        ]  # fmt: skip
    return frame(
        extensions=["tool-invocation"],
        sessions=[{"start": "2026-11-02T09:00:00Z", "parties": [0, 1]}],
        events=events,
    )


def certificate(key):
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "benchmark")])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )


def best(action, runs):
    times = []
    for _ in range(runs):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return round(min(times) * 1_000, 1)


def reference(text):
    def pairs(members):
        found = dict(members)
        if len(found) != len(members):
            raise ValueError
        return found

    json.loads(text, object_pairs_hook=pairs)


def measure(document, runs):
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = certificate(key)
    signer = PrivateKeySigner(key)
    text = canonical_text(document)
    signed = sign(text, signer=signer, chain=[leaf], uuid=UUID)
    assert check(text).findings == ()
    assert verify(signed, anchors=[leaf]).verdict == "verified"
    times = {
        "reference_parse": best(lambda: reference(text), runs),
        "parse": best(lambda: read_json(text), runs),
        "parse_and_check": best(lambda: check(text), runs),
        "sign": best(lambda: sign(text, signer=signer, chain=[leaf], uuid=UUID), runs),
        "verify": best(lambda: verify(signed, anchors=[leaf]), runs),
    }
    times["all_four"] = round(times["parse_and_check"] + times["sign"] + times["verify"], 1)
    return {"bytes": len(text), **times}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    count = 1_000 if options.quick else 10_000
    made = {"messages": messages, "tool_events": tool_events}
    results = {name: measure(make(count), 3 if options.quick else 7) for name, make in made.items()}
    if options.json:
        print(json.dumps({"count": count, "unit": "ms", "results": results}, indent=2))
        return
    for name, times in results.items():
        print(f"{count} {name}: " + ", ".join(f"{step} {value}" for step, value in times.items()))


if __name__ == "__main__":
    main()
