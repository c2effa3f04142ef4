"""The door `onrecord.record`: what it names, and what is said to who hands in something else than bytes or content."""

import traceback
from pathlib import Path

import pytest

import onrecord.record as door
from onrecord.base.errors import UsageError
from onrecord.record import (
    Content,
    MigrationReport,
    Vcon,
    check,
    decrypt,
    encrypt,
    migrate,
    revert,
    sign,
    verify,
)
from onrecord.record.forms import open_form
from support.vcons import NOW, UUID, certify, pki


def refused(run):
    with pytest.raises(UsageError) as caught:
        run()
    return caught.value


def reader():
    return certify("reader", pki().keys["p256"], usage=False)


TAKERS = {
    "read": Vcon.read,
    "check": check,
    "open_form": open_form,
    "verify": verify,
    "sign": lambda data: sign(data, signer=pki().signer(), chain=pki().chain(), uuid=UUID),
    "encrypt": lambda data: encrypt(data, recipients=[reader()], at=NOW),
    "decrypt": lambda data: decrypt(data, key=pki().keys["p256"]),
}


class TestDoor:
    def test_names(self):
        """Every name of the door is there, and is what its module has."""
        for name in door.__all__:
            assert getattr(door, name).__name__ == name

    def test_revert(self):
        """An upgrade can be turned back with what the door offers."""
        old = Vcon.read(b'{"vcon":"0.0.1","uuid":"%b","parties":[]}' % UUID.encode())
        migration = migrate(old)
        assert isinstance(migration.report, MigrationReport)
        assert revert(migration.vcon, migration.report).members == old.members


class TestBytes:
    @pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
    @pytest.mark.parametrize(
        ("given", "hint"),
        [
            ("{}", ".encode("),
            (Path("a.vcon"), "read_bytes"),
            (None, "read_bytes"),
            ({"uuid": UUID}, "read_bytes"),
        ],
        ids=["str", "Path", "None", "dict"],
    )
    def test_refused(self, take, given, hint):
        """A text, a path or an object is refused as what it is, with how to make bytes of it."""
        error = refused(lambda: take(given))
        assert error.code == "bytes-expected"
        assert str(error) == f"expected the bytes of a file, found {type(given).__name__}"
        assert hint in error.hint

    def test_what_is_like_bytes(self):
        """Bytes that a program may change are read as bytes are."""
        text = b'{"uuid":"%b","created_at":"2026-11-02T12:00:00Z","parties":[]}' % UUID.encode()
        assert check(bytearray(text)).findings == check(text).findings


class TestContent:
    @pytest.mark.parametrize("given", ["a text", b"bytes", {"body": "x"}])
    def test_refused(self, given):
        """Content that is none is refused with how it is made, and nothing is added."""
        vcon = Vcon.new()
        party = vcon.add_party()
        for add in (
            lambda: vcon.add_attachment(content=given, party=party, start="2026-11-02T12:00:00Z"),
            lambda: vcon.add_analysis("summary", vendor="example", content=given),
            lambda: vcon.add_dialog("text", content=given, start="2026-11-02T12:00:00Z", parties=[party]),
        ):
            error = refused(add)
            assert error.code == "content-expected"
            assert type(given).__name__ in str(error)
            assert "Content.text" in error.hint
        assert (vcon.attachments, vcon.analyses, vcon.dialogs, vcon.sessions) == ((), (), (), ())

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Content.binary("text", mediatype="text/plain"),
            lambda: Content.external("https://example.com/a", data="text"),
        ],
        ids=["binary", "external"],
    )
    def test_bytes(self, make):
        """Content of bytes is not made of a text."""
        assert refused(make).code == "bytes-expected"

    def test_traceback(self):
        """A traceback of what is not added shows the place inside and what to do."""
        vcon = Vcon.new()
        error = refused(lambda: vcon.add_message("x", start="yesterday", sender=vcon.add_party()))
        shown = "".join(traceback.format_exception(error)).splitlines()[-2:]
        assert shown == ["where: at /dialog/0/start", f"next: {error.hint}"]
