"""What fuzzing calls, one function of bytes per parser. Each allows errors of our own and states what must hold.

`make fuzz` drives them by coverage, `tests/record/test_fuzz.py` with mutated files.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import rfc8785

from onrecord.base.decryption_keys import PrivateKeyDecrypter
from onrecord.base.errors import MalformedError, OnrecordError
from onrecord.record.checks.catalogue import CATALOGUE
from onrecord.record.checks.checker import check
from onrecord.record.forms import SIGNED, decrypt, open_form, verify
from onrecord.record.vcon.canonical_text import canonical_text, is_canonical
from onrecord.record.vcon.reader import read_json
from support.hostile import READER
from support.log_seeds import LINES
from support.vcons import NOW, pki

CODE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def allowed(error: OnrecordError) -> None:
    """An error of ours has a stable code, a message of one line, and a JSON form."""
    assert CODE.fullmatch(error.code), error.code
    assert "\n" not in str(error)
    json.dumps(error.to_json()).encode("ascii")


def _reference(data: bytes):
    """Read as the standard library does, without what record.md D-07 refuses."""

    def pairs(members):
        found = dict(members)
        if len(found) != len(members):
            raise ValueError("duplicate")
        return found

    def constant(_name):
        raise ValueError("constant")

    return json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)


def _same(one, other) -> bool:
    """Say whether two parsed values are equal, where 1, 1.0 and true are three different things."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def reader(data: bytes) -> None:
    """What the strict reader accepts is what the standard library reads; what it refuses, that refuses or bends."""
    try:
        document = read_json(data)
    except MalformedError as error:
        allowed(error)
        if error.code == "json-invalid" and not data.startswith(b"\xef\xbb\xbf"):
            try:
                _reference(data)
            except (ValueError, RecursionError):
                return
            raise AssertionError("a text that is JSON was refused") from error
        return
    assert document.raw == data
    if not document.notes:
        assert _same(document.value, _reference(data))


def canonical(data: bytes) -> None:
    """The canonical text is that of the reference implementation, and reading it gives the value back."""
    try:
        value = read_json(data).value
        text = canonical_text(value)
    except OnrecordError as error:
        allowed(error)
        return
    assert text == rfc8785.dumps(value)
    assert is_canonical(read_json(text).value, text)


def forms(data: bytes) -> None:
    """Any file is opened, or refused with a code of the catalogue."""
    try:
        form = open_form(data)
    except MalformedError as error:
        allowed(error)
        assert error.code in CATALOGUE
        return
    if form.envelope is not None:
        _judge(form.envelope.in_order(form.envelope_document))


def checks(data: bytes) -> None:
    """Any file is checked; findings are in the catalogue, in the order of the document and said once."""
    for options in ({}, {"strict": True}, {"profile": "0.5.0"}):
        try:
            result = check(data, **options)
        except OnrecordError as error:
            allowed(error)
            continue
        _judge(result.findings)
        json.dumps(result.to_json()).encode("ascii")
        assert not result.is_fatal or result.form is None


def _judge(findings) -> None:
    seen = set()
    for finding in findings:
        assert finding.code in CATALOGUE
        assert finding.pointer == "" or finding.pointer[0] == "/"
        identity = (finding.code, finding.layer, finding.pointer, json.dumps(finding.data, default=str))
        assert identity not in seen
        seen.add(identity)


def verification(data: bytes) -> None:
    """No file that our keys did not sign is verified."""
    try:
        report = verify(data, anchors=[pki().root], at=NOW)
    except OnrecordError as error:
        allowed(error)
        return
    assert report.verdict != "verified"
    assert report.payload is None
    json.dumps(report.to_json()).encode("ascii")


def decryption(data: bytes) -> None:
    """What is decrypted is a signed form or refused; nothing that our keys did not sign is verified after it."""
    key = PrivateKeyDecrypter(READER)
    try:
        done = decrypt(data, key=key)
    except OnrecordError as error:
        allowed(error)
        return
    _judge(done.findings)
    form = open_form(done.signed)
    assert form.kind == SIGNED
    verification(done.signed)


def _vcon(data: bytes):
    """Read the vCon of a file, or return None if there is none."""
    from onrecord.record.vcon.model import Vcon

    try:
        return Vcon.read(data)
    except OnrecordError as error:
        allowed(error)
        return None


def views(data: bytes) -> None:
    """Every property of every view has a value, whatever stands in the file, and the bytes stay as they are."""
    vcon = _vcon(data)
    if vcon is None:
        return
    _touch(vcon, 0)
    assert data.startswith(b"\x1f\x8b") or vcon.to_bytes() == data


def _touch(view, depth: int) -> None:
    for name in dir(type(view)):
        if isinstance(getattr(type(view), name), property) and not name.startswith("_"):
            value = getattr(view, name)
            for item in value[:50] if isinstance(value, tuple) else (value,):
                if depth < 3 and type(item).__module__.startswith("onrecord.record.vcon."):
                    _touch(item, depth + 1)


def migration(data: bytes) -> None:
    """What is migrated is read again, and is not changed by a second migration."""
    from onrecord.record.migration import migrate

    vcon = _vcon(data)
    if vcon is None:
        return
    try:
        done = migrate(vcon)
        text = done.to_bytes()
        json.dumps(done.report.to_json()).encode("ascii")
    except OnrecordError as error:
        allowed(error)
        return
    again = _vcon(text)
    assert again is not None
    assert migrate(again).to_bytes() == text


def redaction(data: bytes) -> None:
    """What is redacted is read again, keeps its places, and holds nothing that was removed."""
    from onrecord.record.redaction import PROFILES, Rules, compare, redact

    vcon = _vcon(data)
    if vcon is None:
        return
    # One profile for each file, so that every one gets its share of a run and a kept file always gets the same.
    name = sorted(PROFILES)[sum(data) % len(PROFILES)]
    try:
        done = redact(vcon, rules=Rules.named(name))
        text = done.to_bytes()
    except OnrecordError as error:
        allowed(error)
        return
    json.dumps(done.report.to_json()).encode("ascii")
    made = _vcon(text)
    assert made is not None
    assert not [one for one in compare(vcon, made) if one.code == "redaction-index-shift"]


def amendment(data: bytes) -> None:
    """What is amended is read again and is another instance."""
    from onrecord.record.amendment import amend

    vcon = _vcon(data)
    if vcon is None:
        return
    try:
        made = amend(vcon)
        text = made.to_bytes()
    except OnrecordError as error:
        allowed(error)
        return
    assert _vcon(text) is not None
    assert made.uuid != vcon.uuid


def story(data: bytes) -> None:
    """The story of any vCon is told, as JSON and as lines without control characters."""
    import io

    from rich.console import Console

    from onrecord.record.story import render, tell

    vcon = _vcon(data)
    if vcon is None:
        return
    json.dumps(tell(vcon).to_json()).encode("ascii")
    out = io.StringIO()
    Console(file=out, width=100, force_terminal=False).print(render(vcon, everything=True))
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", out.getvalue()
    )


def importing(name: str) -> Callable[[bytes], None]:
    """Return the target of one format of native logs."""

    def target(data: bytes) -> None:
        """Any bytes are imported: every record has its fate, and no vCon has an error."""
        from onrecord.record.logs.importing import import_paths

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.jsonl"
            path.write_bytes(data)
            report = import_paths([path], to=Path(folder) / "vcons", format=name)
            (part,) = report.files
            assert not report.has_failed, part["findings"]
            account = part["accounting"]
            assert account["records"] == account["mapped"] + account["duplicates"] + account["reported"]
            json.dumps(report.to_json()).encode("ascii")
            for made in (Path(folder) / "vcons").glob("*.vcon"):
                result = check(made.read_bytes(), strict=True)
                assert result.is_valid, [one.code for one in result.findings if one.severity == "error"]

    return target


LOG_TARGETS: dict[str, Callable[[bytes], None]] = {f"import-{name}": importing(name) for name in LINES}
"""Targets that read native logs; they start from the logs of support.log_seeds."""

TARGETS: dict[str, Callable[[bytes], None]] = {
    "amend": amendment,
    "canonical": canonical,
    "check": checks,
    "decrypt": decryption,
    "forms": forms,
    "migrate": migration,
    "reader": reader,
    "redact": redaction,
    "story": story,
    "verify": verification,
    "views": views,
}
