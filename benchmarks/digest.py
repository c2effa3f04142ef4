"""Strict reading, canonical form and Action Digest, against the reference canonicalizer `rfc8785`.

Each round times all variants in random order, on values that were parsed anew; the bytes must be identical.
"""

import base64
import hashlib
import random
import statistics
import time

import orjson
import rfc8785
from _measure import arguments, bar, bar_lines, machine, report, spread

from onrecord.authorize.digest import action_digest
from onrecord.base import strict_json
from onrecord.base.canonical import canonicalize

NAME = "post_comment"


def kilobyte():
    """Return arguments of about 1 KB as tools get them: text, numbers, a list, a nested object."""
    return {
        "number": 17,
        "body": "Looks good. " * 50,
        "labels": ["delivery", "weight", "Größe", "reviewed"],
        "position": {"path": "repo/src/main.ts", "line": 42, "side": "right", "resolved": False},
        "attachments": [{"name": f"chart-{number}.png", "size": 1000 + number} for number in range(6)],
        "draft": None,
    }


def reference(value):
    """Digest by the book: rfc8785, SHA-256, base64url without padding."""
    call = {"method": "tools/call", "name": NAME, "arguments": value}
    return base64.urlsafe_b64encode(hashlib.sha256(rfc8785.dumps(call)).digest()).rstrip(b"=").decode()


def timed(function, *, calls):
    begin = time.perf_counter_ns()
    for _ in range(calls):
        function()
    return (time.perf_counter_ns() - begin) / calls / 1000


def read_and_digest(line):
    message, facts = strict_json.parse(line)
    params = message["params"]
    return action_digest("tools/call", params["name"], params["arguments"], facts=facts)


def variants():
    text = orjson.dumps(kilobyte())
    line = orjson.dumps(
        {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": NAME, "arguments": kilobyte()}}
    )
    value, facts = strict_json.parse(text)
    floats, float_facts = strict_json.parse(orjson.dumps(kilobyte() | {"share": 0.1}))
    wanted = reference(value)
    if not wanted == action_digest("tools/call", NAME, value, facts=facts) == read_and_digest(line):
        raise SystemExit("digest: the digests differ")
    if canonicalize(floats, float_facts) != rfc8785.dumps(floats):
        raise SystemExit("digest: the canonical bytes differ")
    return (
        len(text),
        len(line),
        {
            "rfc8785": lambda: reference(value),
            "onrecord, fast path": lambda: action_digest("tools/call", NAME, value, facts=facts),
            "onrecord, with a fraction": lambda: action_digest("tools/call", NAME, floats, facts=float_facts),
            "onrecord, strict reading and digest of the line": lambda: read_and_digest(line),
            "strict reading of the line": lambda: strict_json.parse(line),
            "orjson.loads of the line": lambda: orjson.loads(line),
        },
    )


def main():
    options = arguments(__doc__.split("\n", 1)[0]).parse_args()
    rounds, calls = (3, 200) if options.quick else (15, 2000)
    argument_bytes, line_bytes, functions = variants()
    taken = {name: [] for name in functions}
    for _ in range(rounds):
        for name in random.sample(list(functions), len(functions)):
            taken[name].append(timed(functions[name], calls=calls))
    middle = {name: statistics.median(values) for name, values in taken.items()}
    fast = middle["onrecord, fast path"]
    document = {
        "benchmark": "digest",
        "quick": options.quick,
        "settings": {
            "rounds": rounds,
            "calls": calls,
            "argument_bytes": argument_bytes,
            "line_bytes": line_bytes,
        },
        "machine": machine("."),
        "variants": [{"name": name, "us": spread(values)} for name, values in taken.items()],
        "bars": [
            bar("canonical form and digest of 1 KB", fast, 10, unit="us"),
            bar("the same, ratio to rfc8785", fast / middle["rfc8785"], 0.2),
            bar(
                "B7 strict reading and digest",
                middle["onrecord, strict reading and digest of the line"],
                20,
                unit="us",
            ),
        ],
    }
    report(document, as_json=options.json, lines=lines(document))


def lines(document):
    yield "Digest of one call (median of rounds; microseconds)"
    for variant in document["variants"]:
        us = variant["us"]
        yield f"  {variant['name']:<50} {us['median']:>7} ({us['lowest']} to {us['highest']})"
    yield "Promises"
    yield from bar_lines(document["bars"])
    yield f"Machine: {document['machine']}"


if __name__ == "__main__":
    main()
