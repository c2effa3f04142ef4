"""Parse, check, sign and verify a vCon of 10,000 messages, and one of 10,000 tool events.

Beside our times stand those of the PyPI library `vcon` on the same file and of the standard library's strict parse, in
one run, so that machines compare. CPU time of one process, best of several runs, milliseconds; keys are RSA 2048, the
ones that the peer can use. Then the memory of a fresh process, in times of the file, and the time for each element up
to a million of them. `--json` prints one document, `--quick` takes a tenth.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from _measure import PEERS, arguments, bar, bar_lines, machine, report, say
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from peers import is_present, program

from onrecord.base.keys import PrivateKeySigner
from onrecord.record.checks.checker import check
from onrecord.record.forms import sign, verify
from onrecord.record.vcon.canonical_text import canonical_text
from onrecord.record.vcon.reader import read_json

BUDGET_MS = 120
"""All four steps on 10,000 elements (DESIGN.md, budgets)."""

MEMORY_BUDGET = 6
"""Memory of any step, in times of the file (issue 4)."""

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


def signer_and_leaf():
    key = rsa.generate_private_key(65537, 2048)
    return PrivateKeySigner(key), certificate(key)


def measure(text, runs):
    """Return the times of our steps."""
    signer, leaf = signer_and_leaf()
    signed = sign(text, signer=signer, chain=[leaf], uuid=UUID)
    assert check(text).findings == ()
    assert verify(signed, anchors=[leaf]).verdict == "verified"
    times = {
        "strict_reference": best(lambda: reference(text), runs),
        "json_loads": best(lambda: json.loads(text), runs),
        "parse": best(lambda: read_json(text), runs),
        "parse_and_check": best(lambda: check(text), runs),
        "sign": best(lambda: sign(text, signer=signer, chain=[leaf], uuid=UUID), runs),
        "verify": best(lambda: verify(signed, anchors=[leaf]), runs),
    }
    times["all_four"] = round(times["parse_and_check"] + times["sign"] + times["verify"], 1)
    return times


def measure_peer(path, runs):
    """Return the times of the PyPI library, or None if it is not installed here."""
    if not is_present("vcon"):
        return None
    command = [program("vcon", "python"), "-W", "ignore", str(PEERS / "vcon_steps.py"), str(path), str(runs)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    found["all_four"] = round(sum(found[step] for step in ("parse", "check", "sign", "verify")), 1)
    return found


IN_A_FRESH_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
from vcons import UUID, check, sign, signer_and_leaf, verify
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
signer, leaf = signer_and_leaf()
small = b'{"parties":[{}],"uuid":"%b"}' % UUID.encode()
check(small), verify(sign(small, signer=signer, chain=[leaf], uuid=UUID), anchors=[leaf])
text = open(sys.argv[2], "rb").read()
if sys.argv[3] == "verify":
    text = sign(text, signer=signer, chain=[leaf], uuid=UUID)
    open("/proc/self/clear_refs", "w").write("5")
before = peak()
if sys.argv[3] == "check":
    result = check(text)
elif sys.argv[3] == "sign":
    result = sign(text, signer=signer, chain=[leaf], uuid=UUID)
else:
    result = verify(text, anchors=[leaf])
print((peak() - before) / len(text))
"""
"""Prints how much memory a step takes, in times of its file. The file itself is not counted."""


def measure_memory(path):
    """Return the memory of each step."""
    here = str(Path(__file__).resolve().parent)
    found = {}
    for step in ("check", "sign", "verify"):
        command = [sys.executable, "-c", IN_A_FRESH_PROCESS, here, str(path), step]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[step] = round(float(done.stdout), 1)
    return found


def measure_growth(make, counts):
    """Return the microseconds of checking each element, by the number of elements."""
    found = {}
    for count in counts:
        text = canonical_text(make(count))
        found[str(count)] = round(
            best(lambda text=text: check(text), 2 if count < 500_000 else 1) * 1_000 / count, 1
        )
    return found


def main():
    options = arguments(__doc__).parse_args()
    count = 1_000 if options.quick else 10_000
    runs = 3 if options.quick else 15
    results = {}
    with tempfile.TemporaryDirectory(prefix="onrecord-bench-") as directory:
        for name, make in {"messages": messages, "tool_events": tool_events}.items():
            say(f"vcons: {name}")
            text = canonical_text(make(count))
            path = Path(directory) / f"{name}.vcon"
            path.write_bytes(text)
            results[name] = {
                "bytes": len(text),
                "ms": measure(text, runs),
                "peer_ms": measure_peer(path, min(runs, 3)),
                "memory": measure_memory(path),
                "us_each": measure_growth(
                    make, [100, 1_000] if options.quick else [10_000, 100_000, 1_000_000]
                ),
            }
    bars = []
    for name, result in results.items():
        if not options.quick:
            bars.append(bar(f"{name}: all four", result["ms"]["all_four"], BUDGET_MS, unit="ms"))
        bars.append(bar(f"{name}: memory", max(result["memory"].values()), MEMORY_BUDGET, unit="x"))
        each = list(result["us_each"].values())
        bars.append(bar(f"{name}: time for each of most, to that of fewest", each[-1] / each[0], 2))
    document = {"count": count, "machine": machine("."), "results": results, "bars": bars}
    report(document, as_json=options.json, lines=list(lines(document)))


def lines(document):
    for name, result in document["results"].items():
        yield f"{document['count']} {name}, {result['bytes']} bytes, CPU ms"
        peer = result["peer_ms"] or {}
        for step, own in result["ms"].items():
            other = peer.get({"parse_and_check": "check"}.get(step, step))
            yield f"  {step:<18} {own:>8}" + (f"   vcon 0.10 {other:>8}" if other is not None else "")
        if not peer:
            yield "  vcon 0.10: absent"
        elif not peer["verified"]:
            yield "  vcon 0.10: its verify FAILED on the file that it signed itself"
        yield f"  memory, times the file: {result['memory']}"
        yield f"  check, microseconds each: {result['us_each']}"
    yield from bar_lines(document["bars"])


if __name__ == "__main__":
    main()
