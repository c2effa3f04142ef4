"""The secret filter: what it must find, what it must leave, and that finding and replacing agree."""

import copy
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.record.credential_patterns import FOLDED_BYTES
from onrecord.record.credentials import (
    MEMBER_NAMES,
    PATTERNS,
    active_patterns,
    find,
    replace,
    replace_in_text,
    spans,
)

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIBVgIBADANBg\n-----END RSA PRIVATE KEY-----"
MUST_FIRE = {
    "bearer": "Bearer abcdefghijklmnopqrstuv",
    "basic": "Basic dXNlcjpwYXNzd29yZA==",
    "aws-key-id": "AKIAABCDEFGHIJKLMNOP",
    "aws-session-key-id": "ASIAABCDEFGHIJKLMNOP",
    "github-token": "ghp_" + "a1" * 18,
    "github-pat": "github_pat_" + "a1" * 25,
    "slack-token": "xoxb-1234567890",
    "api-key-sk": "sk-ant-" + "a" * 20,
    "google-api-key": "AIza" + "a" * 35,
    "jwt": JWT,
    "private-key": PEM,
}
MUST_NOT_FIRE = [
    "toolu_01",
    "op-1",
    "01a19c21-7200-8c44-832a-bc92ac6830cd",
    "sha512-" + "A" * 86,
    "a" * 64,
    "risk-assessment",
    "The bearer of this letter",
    "basic English",
    "AKIA is not a key",
    "https://example.com/a:b@c",
    "see http://example.com:8080/x",
    "mailto:someone@example.com",
    "eyJ alone. And eyJ again.",
    "a.eyJb.c",
    "-----BEGIN CERTIFICATE-----",
    "Gh_" * 20,
]
VALUES = st.recursive(
    st.none()
    | st.integers()
    | st.booleans()
    | st.text(max_size=10)
    | st.sampled_from([*MUST_FIRE.values(), "https://u:p@h.example.com/", "string", "[credential removed]"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=4)
            | st.sampled_from(["password", "Api_Key", "type", "credentials", "AKIAABCDEFGHIJKLMNOP"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


class TestPatterns:
    @pytest.mark.parametrize(("name", "secret"), MUST_FIRE.items())
    @pytest.mark.req("TI-207")
    def test_found_and_replaced(self, name, secret):
        """Each known form is found inside of other text, and nothing of it is left after replacing."""
        for text in (secret, f"use {secret}", f'"{secret}"', f"x={secret}\n"):
            assert [hit.pattern for hit in find(text)] == [name]
            clean, count = replace_in_text(text)
            assert count == 1
            assert secret not in clean
            assert f"[credential replaced: {name}]" in clean

    def test_every_pattern_is_tried(self):
        """No pattern is without a sample here."""
        assert {pattern.name for pattern in PATTERNS} == {*MUST_FIRE, "url-userinfo"}

    @pytest.mark.parametrize("text", MUST_NOT_FIRE)
    def test_left_alone(self, text):
        """Ids, hashes, addresses and ordinary words stay."""
        assert find(text) == []
        assert replace_in_text(text) == (text, 0)

    @pytest.mark.parametrize("scheme", ["https", "postgresql", "git+ssh"])
    def test_userinfo(self, scheme):
        """User and password of a URL go, the rest of it stays."""
        clean, _ = replace_in_text(f"at {scheme}://user:pa55@db.example.com/x")
        assert clean == f"at {scheme}://[credential replaced: url-userinfo]@db.example.com/x"

    def test_cut_off_key(self):
        """A private key without its end is taken to the end of the text."""
        clean, _ = replace_in_text("k: -----BEGIN PRIVATE KEY-----\nMIIabc")
        assert clean == "k: [credential replaced: private-key]"

    @pytest.mark.parametrize(
        "unit",
        ["eyJ-", "a.eyJ", ".eyJ", "eyJa.eyJb.", "://", "a:b@", "https://a:", "bearer ", "bearer", "sk-",
         "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "AKIA", "A", "gh", "xoxb-"],
    )  # fmt: skip
    def test_hostile_repetition(self, unit):
        """Half a million characters made to confuse a pattern are one pass, no more."""
        replace_in_text(unit * (500_000 // len(unit)))


class TestMembers:
    @pytest.mark.parametrize("name", sorted(MEMBER_NAMES))
    def test_by_name(self, name):
        """A member of such a name loses its value in any case of its letters, and keeps its name."""
        for spelled in (name, name.upper(), name.title()):
            clean, count = replace({spelled: "hunter2"})
            assert clean == {spelled: f"[credential replaced: {name}]"}
            assert count == 1

    @pytest.mark.parametrize(
        "name", ["token_usage", "max_tokens", "public_key", "x5c", "signature", "pinned"]
    )
    def test_other_names(self, name):
        """Names that only look alike are left."""
        assert replace({name: "x"}) == ({name: "x"}, 0)

    @pytest.mark.parametrize("value", ["", None, True, [], {}, "[credential replaced: pin]"])
    def test_nothing_to_replace(self, value):
        """Empty, null and replaced values are no credentials."""
        assert replace({"pin": value}) == ({"pin": value}, 0)

    def test_inside(self):
        """Arrays and objects under such a name lose every text and number, however deep."""
        clean, count = replace({"credentials": {"user": "bob", "n": [1, {"x": "y"}], "ok": True}})
        mark = "[credential replaced: credentials]"
        assert clean == {"credentials": {"user": mark, "n": [mark, {"x": mark}], "ok": True}}
        assert count == 3

    def test_schema(self):
        """A JSON schema that describes a password holds none."""
        schema = {"type": "object", "properties": {"password": {"type": "string", "minLength": 8}}}
        assert replace(schema) == (schema, 0)

    @pytest.mark.parametrize("name", ["value", "default", "const", "x-example"])
    def test_typed_value_is_no_schema(self, name):
        """An object that has a value beside its type holds a secret, whatever it looks like."""
        clean, _ = replace({"password": {"type": "string", "sensitive": True, name: "hunter2"}})
        assert "hunter2" not in repr(clean)

    @pytest.mark.parametrize("secret", [*MUST_FIRE.values(), "https://u:hunter2@h.example.com/"])
    def test_credential_as_member_name(self, secret):
        """A credential that is itself a member name is replaced and found there; the member keeps its value."""
        value = {"scopes": {secret: ["read"], "other": 1}}
        clean, count = replace(value)
        assert count == 1
        assert secret not in repr(clean)
        assert sorted(map(repr, clean["scopes"].values())) == ["1", "['read']"]
        (hit,) = find(value)
        assert hit.pointer == "/scopes"

    def test_no_member_takes_the_place_of_another(self):
        """Members whose names become equal marks all stay."""
        mark = "[credential replaced: aws-key-id]"
        value = {f"AKIA{number:016d}": number for number in range(3)} | {mark: 3, f"{mark} 2": 4}
        clean, _ = replace(value)
        assert sorted(clean.values()) == [0, 1, 2, 3, 4]
        assert (clean[mark], clean[f"{mark} 2"]) == (3, 4)

    def test_pointer(self):
        """A hit names its place, escaped, after the given beginning."""
        assert [hit.pointer for hit in find({"a/b": [{"pin": 1234}]}, pointer="/events/0/body")] == [
            "/events/0/body/a~1b/0/pin"
        ]

    def test_no_text_in_a_hit(self):
        """What is handed on about a credential is place and pattern."""
        assert "hunter2" not in repr(find({"password": "hunter2"}))

    def test_deep_values(self):
        """A value nested deeper than any reader allows is replaced whole, not followed into a crash."""
        value = "x"
        for _ in range(5_000):
            value = [value]
        assert "nested too deep" in repr(replace(value)[0])


class TestAgreement:
    @given(VALUES)
    def test_after_replacing_nothing_is_found(self, value):
        """What one finds the other replaces: afterwards nothing is left, and the input is untouched."""
        before = copy.deepcopy(value)
        clean, count = replace(value)
        assert repr(value) == repr(before)
        assert find(clean) == []
        assert (count > 0) == bool(find(value))
        assert replace(clean) == (clean, 0)

    @given(st.text(max_size=40), st.sampled_from(list(MUST_FIRE.values())), st.text(max_size=40))
    def test_spans_are_apart(self, before, secret, after):
        """Spans are in order and do not overlap."""
        found = spans(before + secret + after)
        for one, other in itertools.pairwise(found):
            assert one.end <= other.start

    @pytest.mark.parametrize(
        "place", [0, FOLDED_BYTES - 3, FOLDED_BYTES, FOLDED_BYTES + 3, 2 * FOLDED_BYTES - 1]
    )
    def test_prefilter_at_the_seams(self, place):
        """A text is folded in parts; what lies across a seam is seen."""
        raw = b'"' + b" " * place + b'BEARER abcdefghijklmnopqrstuv"'
        assert "bearer" in {pattern.name for pattern in active_patterns(raw)}

    @given(VALUES)
    def test_prefilter(self, value):
        """Patterns that the text of a file rules out cannot occur in its values."""
        import json

        raw = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        kept = {pattern.name for pattern in active_patterns(raw)}
        assert {hit.pattern for hit in find(value) if hit.kind != "member"} <= kept
