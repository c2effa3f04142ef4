"""What is signed, and what is not: the text as it is, the uuid, compression, a new signature around an old one."""

import base64
import gzip
import json
from datetime import timedelta
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.dates import ManualClock, parse_date
from onrecord.base.errors import BindingError, MalformedError, OnrecordError, SignatureError
from onrecord.record.forms import (
    compress,
    convert_compact,
    decompress,
    decrypt,
    open_form,
    resign,
    sign,
    verify,
)
from onrecord.record.forms.opening import MAX_NESTING
from onrecord.record.forms.updating import with_updated_at
from onrecord.record.vcon.canonical_text import canonical_text
from support.vcons import NOW, UUID, answered, certify, pki

DOCUMENT = answered()
PAYLOAD = canonical_text(DOCUMENT)


def signed(payload=PAYLOAD, kind="p256", **options):
    options.setdefault("chain", pki().chain(kind))
    return sign(payload, signer=pki().signer(kind), **options)


def result(data, **options):
    return verify(data, **{"anchors": [pki().root], "at": NOW, **options})


def codes(report, *severities):
    return [one.code for one in report.findings if one.severity in (severities or ("error", "warning"))]


def header(data):
    (one,) = json.loads(data)["signatures"]
    return {**json.loads(base64.urlsafe_b64decode(one["protected"] + "==")), **one["header"]}


class TestUuid:
    def test_read_from_the_text(self):
        """Without a uuid the one of the text is written into the header."""
        assert header(signed())["uuid"] == UUID
        loose = json.dumps(DOCUMENT, indent=1).encode()
        assert header(signed(loose))["uuid"] == UUID
        assert result(signed(loose)).payload == loose

    def test_same_as_given(self):
        """Reading it gives what naming it gives."""
        assert header(signed(chain=chain())) == header(signed(chain=chain(), uuid=UUID))

    @pytest.mark.parametrize("uuid", [None, 5, ["x"]])
    def test_none(self, uuid):
        """A vCon without a uuid cannot be signed for."""
        document = {**DOCUMENT, "uuid": uuid} if uuid else {k: v for k, v in DOCUMENT.items() if k != "uuid"}
        with pytest.raises(MalformedError) as caught:
            signed(json.dumps(document).encode())
        assert (caught.value.code, caught.value.where.pointer) == ("uuid-missing", "/uuid")

    def test_another_one_inside(self):
        """A uuid deeper in the text, or in a string, is not taken for the vCon's."""
        for document in (
            {"uuid": "a", "parties": [{"uuid": UUID}]},
            {"uuid": "a", "parties": [], "z": f'","uuid":"{UUID}'},
        ):
            with pytest.raises(BindingError) as caught:
                signed(json.dumps(document, separators=(",", ":")).encode(), uuid=UUID)
            assert caught.value.code == "uuid-mismatch"


class TestRefused:
    @pytest.mark.parametrize("text", ["\ud800", "\udfff x"])
    @pytest.mark.parametrize("uuid", [None, UUID])
    def test_lone_surrogate(self, text, uuid):
        """Half a surrogate pair is not signed, also where the text is not read for its uuid."""
        document = {"parties": [], "subject": text, "uuid": UUID}
        with pytest.raises(MalformedError) as caught:
            signed(json.dumps(document, separators=(",", ":")).encode(), uuid=uuid)
        assert (caught.value.code, caught.value.where.pointer) == ("json-lone-surrogate", "/subject")

    def test_other_forms(self):
        """Signed, encrypted, compact and compressed files are not signed as if they were vCons."""
        for data in (
            signed(),
            b'{"ciphertext":"x","recipients":[]}',
            b"eyJh.eyJi.c2ln",
            gzip.compress(PAYLOAD),
        ):
            with pytest.raises(MalformedError) as caught:
                signed(data)
            assert caught.value.code == "form-not-unsigned"

    @given(st.binary(max_size=60))
    def test_any_bytes(self, data):
        """Any bytes are refused with an error of ours."""
        with pytest.raises(OnrecordError):
            signed(data, chain=chain())

    def test_doubled_name(self):
        """A text in which a name occurs twice is not signed."""
        with pytest.raises(MalformedError) as caught:
            signed(b'{"uuid":"a","parties":[],"uuid":"b"}')
        assert caught.value.code == "json-duplicate-member"


@cache
def chain():
    return pki().chain()


class TestNumbers:
    def test_beyond_the_canonical_form(self):
        """A text with an integer beyond 2^53 is signed as it is; that it is not canonical is a note."""
        text = canonical_text(DOCUMENT)[:-1] + b',"z":12345678901234567890}'
        report = result(signed(text))
        assert (report.verdict, report.payload) == ("verified", text)
        assert "payload-not-canonical" in codes(report, "info")


class TestGzip:
    def test_round_trip(self):
        """With gzip the payload is compressed and named so; verifying hands out the text."""
        data = signed(gzip=True)
        assert header(data)["cty"] == "application/vcon+gzip"
        report = result(data)
        assert (report.verdict, report.payload, codes(report)) == ("verified", PAYLOAD, [])
        packed = base64.urlsafe_b64decode(json.loads(data)["payload"] + "==")
        assert (packed[:2], packed[4:8]) == (b"\x1f\x8b", bytes(4))

    def test_reproducible(self):
        """Compressing the same twice gives the same bytes."""
        assert compress(PAYLOAD) == compress(PAYLOAD)

    @pytest.mark.parametrize("size", [0, 1, 1_000, 5_000_000])
    def test_own_bombs(self, size):
        """Whatever is compressed here may be decompressed here, however small it became."""
        assert decompress(compress(b" " * size)) == b" " * size

    @given(st.binary(max_size=300))
    def test_any_bytes(self, data):
        """Any bytes survive compression; any bytes are decompressed or refused."""
        assert decompress(compress(data)) == data
        try:
            decompress(b"\x1f\x8b" + data)
        except MalformedError as error:
            assert error.code in ("gzip-invalid", "gzip-limit")

    @pytest.mark.parametrize(
        "data",
        [compress(PAYLOAD) + b"x", compress(PAYLOAD) * 2, compress(PAYLOAD)[:-1], compress(PAYLOAD)[:12]],
    )
    def test_one_whole_member(self, data):
        """Data after the one member, a second one, and a cut are refused."""
        with pytest.raises(MalformedError) as caught:
            decompress(data)
        assert caught.value.code == "gzip-invalid"

    def test_limits(self):
        """A member that grows beyond the limit in bytes or in ratio is refused before it is in memory."""
        for data, options in (
            (compress(bytes(5_000)), {"max_bytes": 4_999}),
            (gzip.compress(bytes(9_000_000)), {}),
        ):
            with pytest.raises(MalformedError) as caught:
                decompress(data, **options)
            assert caught.value.code == "gzip-limit"


class TestResign:
    def again(self, data, kind="p384", **options):
        options = {"anchors": [pki().root], "at": NOW, "chain": pki().chain(kind), **options}
        return resign(data, signer=pki().signer(kind), **options)

    def test_wraps(self):
        """The new signature stands around the old one, whose bytes are untouched."""
        inner = signed()
        data = self.again(inner)
        assert base64.urlsafe_b64decode(json.loads(data)["payload"] + "==") == inner
        assert header(data)["uuid"] == UUID
        report = result(data)
        assert (report.verdict, report.payload, report.axes["signature"].count) == ("verified", PAYLOAD, 2)

    def test_before_the_end(self):
        """A signature renewed in time holds when the inner certificate has expired."""
        end = NOW + timedelta(days=1)
        inner = signed(chain=pki().chain(end=end))
        data = self.again(inner)
        late = end + timedelta(days=9)
        assert result(inner, at=late).verdict == "failed"
        report = result(data, at=late)
        assert (report.verdict, "nested-inner-expired" in codes(report, "info")) == ("verified", True)

    def test_gzip(self):
        """The inner form may be compressed, and a file that is."""
        assert result(self.again(gzip.compress(signed()), gzip=True)).payload == PAYLOAD

    def test_unverified(self):
        """What does not verify, what is not signed, and what nobody vouches for is not signed anew."""
        broken = json.loads(signed())
        broken["signatures"][0]["signature"] = "AA"
        other = certify("Other", pki().keys["p384"], ca=True)
        for data, options in (
            (json.dumps(broken).encode(), {}),
            (PAYLOAD, {}),
            (signed(), {"anchors": ()}),
            (signed(), {"anchors": [other]}),
            (signed(), {"at": NOW + timedelta(days=9_000)}),
        ):
            with pytest.raises(SignatureError) as caught:
                self.again(data, **options)
            assert caught.value.code == "resign-unverified"

    def test_depth(self):
        """No envelope is added that readers would not open."""
        data = signed()
        for _ in range(MAX_NESTING - 1):
            data = self.again(data)
        assert result(data).verdict == "verified"
        with pytest.raises(SignatureError) as caught:
            self.again(data)
        assert caught.value.code == "resign-depth"


def compact_jws(payload=PAYLOAD, kind="p256", **protected):
    """A compact JWS as JOSE libraries write it."""
    from support.jwe import b64

    head = b64(json.dumps({"alg": "ES256", **protected}).encode())
    text = f"{head}.{b64(payload)}"
    return f"{text}.{b64(pki().signer(kind).sign(text.encode(), alg='ES256'))}".encode()


class TestCompact:
    def test_refused_and_converted(self):
        """A compact JWS is refused; converted, with its certificates added, it verifies."""
        data = compact_jws()
        assert codes(result(data)) == ["form-compact"]
        converted = convert_compact(data, chain=pki().chain())
        assert set(json.loads(converted)) == {"payload", "signatures"}
        report = result(converted)
        assert (report.verdict, report.payload, codes(report)) == ("verified", PAYLOAD, [])

    def test_own_certificates(self):
        """Certificates and uuid that the header has stay where they are."""
        data = compact_jws(x5c=header(signed())["x5c"], uuid=UUID)
        converted = convert_compact(data, chain=pki().chain("p384"))
        assert "header" not in json.loads(converted)["signatures"][0]
        report = result(converted)
        assert (report.verdict, codes(report)) == ("verified", ["jws-member-missing", "jws-x5c-protected"])

    def test_json_string(self):
        """It may stand in a JSON string, and be compressed."""
        for data in (b' "' + compact_jws() + b'"\n', gzip.compress(compact_jws())):
            assert result(convert_compact(data, chain=pki().chain())).verdict == "verified"

    def test_tampered(self):
        """Conversion mends nothing: what did not verify does not verify."""
        data = compact_jws().replace(b".ey", b".fy")
        with pytest.raises(MalformedError):
            convert_compact(data)
        short = compact_jws()[:-4]
        assert result(convert_compact(short, chain=pki().chain())).outcome == "jws-signature-invalid"

    def test_encrypted(self):
        """A compact JWE is opened as the same message in general form."""
        from cryptography.hazmat.primitives.asymmetric import rsa

        from support.jwe import jwe

        key = rsa.generate_private_key(65537, 2048)
        message = jwe(signed(), key)
        parts = (
            message["protected"],
            message["recipients"][0]["encrypted_key"],
            *(message[name] for name in ("iv", "ciphertext", "tag")),
        )
        data = ".".join(parts).encode()
        assert open_form(data).kind == "encrypted"
        assert decrypt(convert_compact(data), key=key).signed == signed_once(message, key)

    @pytest.mark.parametrize(
        "data",
        [b"", b"a", b"a.b", b"a.b.c", b"a.b.c.d", b"e30..", b"W10.e30.c", PAYLOAD, b"e30.!.c", b"e30.bm8.c"],
    )
    def test_refused(self, data):
        """What is no compact form, or holds nothing readable, is refused."""
        with pytest.raises(MalformedError):
            convert_compact(data)

    @given(st.lists(st.text("AZaz09-_", max_size=12), min_size=1, max_size=6).map(".".join))
    def test_any_parts(self, text):
        """Any parts are converted or refused, and what was converted is opened as a signed or encrypted file."""
        try:
            data = convert_compact(text.encode())
        except OnrecordError:
            return
        assert open_form(data).kind in ("signed", "encrypted")


def signed_once(message, key):
    return decrypt(json.dumps(message).encode(), key=key).signed


class TestUpdatedAt:
    CLOCK = ManualClock("2026-12-01T08:30:00.25Z")

    def test_set(self):
        """The time is set anew in canonical form, and nothing else changes."""
        text = with_updated_at(json.dumps(DOCUMENT, indent=1).encode(), clock=self.CLOCK)
        assert json.loads(text) == {**DOCUMENT, "updated_at": "2026-12-01T08:30:00.25Z"}
        assert text == canonical_text(json.loads(text))

    def test_now(self):
        """Without a clock it is the present."""
        moment = parse_date(json.loads(with_updated_at(PAYLOAD))["updated_at"])
        assert moment > parse_date("2026-01-01T00:00:00Z")

    def test_wide_integers(self):
        """Integers beyond 2^53 keep each digit."""
        text = with_updated_at(
            b'{"uuid":"u","parties":[],"z":12345678901234567890,"e":"\xc3\xa4"}', clock=self.CLOCK
        )
        assert text.startswith(b'{"e":"\xc3\xa4","parties":[]')
        assert b'"z":12345678901234567890' in text

    @pytest.mark.parametrize("number", ["0.1000000000000000055", "1e400", "1" * 500, "123456789012345678.5"])
    def test_lossy_numbers(self, number):
        """A number that writing would change is refused, not changed; signing the text as it is keeps it."""
        text = b'{"uuid":"u","parties":[],"z":%b}' % number.encode()
        with pytest.raises(MalformedError) as caught:
            with_updated_at(text)
        assert caught.value.code == "json-number-range"
        assert "--keep-updated-at" in caught.value.hint
        assert number not in str(caught.value)
        assert result(signed(text)).payload == text

    @given(
        st.dictionaries(
            st.text(max_size=4),
            st.integers(-(2**53), 2**53)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(max_size=4)
            | st.none(),
            max_size=4,
        )
    )
    def test_values_survive(self, members):
        """Whatever is written has the values that were read."""
        try:
            text = with_updated_at(json.dumps(members).encode(), clock=self.CLOCK)
        except MalformedError as error:
            assert error.code in ("json-number-range", "json-lone-surrogate")
            return
        # An integral double of many digits is written without exponent, and so read as an integer.
        written = json.loads(text, parse_int=float)
        assert written == {**members, "updated_at": "2026-12-01T08:30:00.25Z"}
