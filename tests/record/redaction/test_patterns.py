"""Text patterns: what each finds and leaves, expressions of rule files, and the search for many words at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import UsageError
from onrecord.record.redaction.expressions import (
    BLOCK_CHARACTERS,
    MAX_MATCH_CHARACTERS,
    compile_expression,
)
from onrecord.record.redaction.folding import fold
from onrecord.record.redaction.needles import LONG_CHARACTERS, Needles
from onrecord.record.redaction.patterns import PATTERNS, mask, mask_with
from onrecord.record.redaction.words import word_finder

FOUND = {
    "credentials": ["AKIAABCDEFGHIJKLMNOP", "Bearer abcdefghijklmnopqrstuv"],
    "email": ["ana@example.com", "ana.b+c@mail.example.org", "ünal@example.com", "a_b@x-y.example"],
    "telephone": [
        "+1 555 010 4477",
        "+15550104477",
        "tel:+1-555-010-4477",
        "(030) 1234567",
        "555-010-4477",
        "030 12345678",
        "0049 30 123456",
        "089 55 01 04 47",
    ],
    "ip-address": ["192.0.2.17", "2001:db8::17", "fe80::1:2:3"],
    "payment-card": ["4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111"],
}
LEFT = {
    "email": ["a@b", "@example.com", "user@", "decorator @property.setter x", "a b@c"],
    "telephone": [
        "2026-11-02T10:00:05Z",
        "2026-11-02 10:00",
        "01a19bb8-c520-8a11-832a-bc92ac6830cd",
        "1730541605123",
        "version 1.2.3.4567890",
        "item 12345-678",
        "3.14159265358979",
        "sha512-0123 4567",
    ],
    "ip-address": ["1.2.3", "999.1.1.1", "1.2.3.4.5", "10:00:05", "::", "a::b::c"],
    "payment-card": ["4111 1111 1111 1112", "0000 0000 0000 0000", "1730541605123"],
    "home-path": ["/homework/x", "/srv/home/x", "home/ana"],
}


class TestBuiltIn:
    @pytest.mark.parametrize(
        ("pattern", "text"), [(pattern, text) for pattern, texts in FOUND.items() for text in texts]
    )
    @pytest.mark.req("AA-135")
    def test_found(self, pattern, text):
        """Each form is found whole inside of other text, and nothing of it is left."""
        for around in ("{}", "write to {}.", "<{}>", "a {}, b"):
            clean, count = mask(around.format(text), [pattern])
            assert count == 1
            assert clean.startswith(around.split("{}", maxsplit=1)[0] + "[")
            assert not any(part in clean for part in (text, text[1:-1]))

    @pytest.mark.parametrize(
        ("pattern", "text"), [(pattern, text) for pattern, texts in LEFT.items() for text in texts]
    )
    def test_left(self, pattern, text):
        """What only looks like it is left: dates, ids, versions, hashes."""
        assert mask(text, [pattern]) == (text, 0)

    def test_home_paths(self):
        """Of a home path the name of the user goes, the rest of the path stays."""
        text = r"/home/ana/x /Users/ben/y C:\Users\cleo\z file:///home/dan"
        clean, count = mask(text, ["home-path"])
        assert count == 4
        assert clean == (
            r"/home/[user removed]/x /Users/[user removed]/y C:\Users\[user removed]\z file:///home/[user removed]"
        )

    @given(st.text(st.sampled_from("a1@. +-/:()\\0home Users"), max_size=60))
    def test_any_text(self, text):
        """Every pattern takes any text; what it finds are parts of it in order, and the marks are not found again."""
        for name, finder in PATTERNS.items():
            for part in finder(text):
                assert 0 <= part.start < part.end <= len(text)
            clean, _ = mask(text, [name])
            assert mask(clean, [name])[0].count("[") >= clean.count("[")

    def test_overlapping(self):
        """Where two patterns overlap the text goes once, and no end of the longer one is left."""
        clean, count = mask("ftp ana@192.0.2.17.example.com x", ["ip-address", "email"])
        assert count >= 1
        assert clean.startswith("ftp [")
        assert clean.endswith("] x")


class TestExpressions:
    @pytest.mark.parametrize(
        "expression",
        [
            r"\b[A-Z]\w{1,20} [A-Z]\w{1,20}\b",
            r"(?:\d{1,3}\.){3}\d{1,3}",
            r"(?i)case[- ]\d+",
            r"HERON",
            r"(?<=id=)\w{3,40}",
            r"(?:red|green) \w{1,30}",
        ],
    )
    def test_taken(self, expression):
        """Names, numbers and words can be said, with bounds."""
        compile_expression(expression, label="x")

    @pytest.mark.parametrize(
        "expression",
        [r"(a+)+b", r"(a|aa)+$", r"(?:a?){20}b", r"\w+@\w+", r"(a)\1", r"(?:\w+\s?)*!", r"(.*)(.*)(.*)x"],
    )
    def test_slow(self, expression):
        """What can take long on some text is refused, with what to write instead."""
        with pytest.raises(UsageError) as refused:
            compile_expression(expression, label="x")
        assert refused.value.code == "redaction-pattern-slow"
        assert "bound" in refused.value.hint

    @pytest.mark.parametrize("expression", ["(", "a{1,99999999999}", "x*", "", "a" * 1001, "(?P<1>a)"])
    def test_invalid(self, expression):
        """What is no expression, or finds nothing everywhere, is refused."""
        with pytest.raises(UsageError) as refused:
            compile_expression(expression, label="x")
        assert refused.value.code == "redaction-pattern-invalid"

    @given(st.integers(0, 3 * BLOCK_CHARACTERS), st.integers(1, MAX_MATCH_CHARACTERS - 2))
    def test_blocks(self, before, length):
        """A match within the limit is found whole wherever it stands, also across the edges of blocks."""
        finder = compile_expression(r"<a{1,512}>", label="x")
        text = "-" * before + "<" + "a" * length + ">" + "-" * 700
        assert [(part.start, part.end) for part in finder(text)] == (
            [(before, before + length + 2)] if length <= 512 else []
        )

    def test_longer_than_a_block(self):
        """A match without an upper bound is replaced in pieces: nothing of it stays."""
        finder = compile_expression("k+", label="x")
        clean, _ = mask_with("a" + "k" * (3 * BLOCK_CHARACTERS) + "b", [finder])
        assert "k" not in clean
        assert (clean[0], clean[-1]) == ("a", "b")

    @given(st.text("()[]{}*+?|\\.^$ab1,-:=!<>P", max_size=15))
    def test_any_expression(self, text):
        """Any text is an expression that may be used, or refused by its code."""
        try:
            finder = compile_expression(text, label="x")
        except UsageError as error:
            assert error.code in ("redaction-pattern-invalid", "redaction-pattern-slow")
        else:
            list(finder("ab1 " * 50))


WORDS = st.text("abAB é", min_size=2, max_size=8)


class TestNeedles:
    @given(st.lists(WORDS, min_size=1, max_size=6), st.text("abAB é", max_size=60))
    def test_against_the_slow_way(self, words, text):
        """What is found is what a search for each word on its own finds."""
        found = {(hit.start, hit.text) for hit in Needles(words, shortest=2).find(text)}
        folded = fold(text)
        slow = {
            (start, word)
            for word in set(map(fold, words))
            for start in range(len(folded))
            if folded.startswith(word, start)
        }
        assert found == slow

    @pytest.mark.parametrize("length", [LONG_CHARACTERS - 1, LONG_CHARACTERS, LONG_CHARACTERS + 1, 5000])
    def test_long(self, length):
        """Long texts are found whole, and not by their beginning alone."""
        word = "x" * (length - 1) + "y"
        needles = Needles([word], shortest=8)
        assert [hit.text for hit in needles.find("- " + word.upper() + " -")] == [word]
        assert not list(needles.find("- " + word[:-1] + "z -"))

    def test_made_to_take_long(self, monkeypatch):
        """Texts that differ only at their ends cost no more than a bound; beyond it a long beginning counts."""
        monkeypatch.setattr("onrecord.record.redaction.needles.WORK_FACTOR", 1)
        words = ["a" * 200 + f"{number:06}" for number in range(400)]
        hits = list(Needles(words, shortest=8).find("a" * 2_000))
        assert hits
        assert not any(hit.is_whole for hit in hits)

    def test_characters_that_grow(self):
        """A letter whose lower case has two characters moves nothing."""
        assert len(fold("İstanbul X")) == len("İstanbul X")
        assert [hit.start for hit in Needles(["tanbul"], shortest=3).find("İsTANBUL")] == [2]


class TestWords:
    @pytest.mark.parametrize(
        ("text", "clean"),
        [
            ("Heron, HERON heron", "[x removed], [x removed] [x removed]"),
            ("herons or xheron", "herons or xheron"),
        ],
    )
    def test_alone(self, text, clean):
        """A short word is found in either case where it stands alone, and not inside of another."""
        assert mask_with(text, [word_finder(["heron"], label="x")])[0] == clean

    def test_inside(self):
        """A long word is found inside of a longer one."""
        assert mask_with("xhummingbirdx", [word_finder(["Hummingbird"], label="x")])[0] == "x[x removed]x"


class TestCost:
    @pytest.mark.parametrize(
        "expression",
        [
            r"\w{0,69}\w{0,69}!",
            r"\w{0,60}\w{0,60}\w{900}!",
            r"(?:a|a){11}!",
            r"(?:(?:(?:(?=a|$){1000}){1000}){1000})b",
            r"(?:(?:(?:(?:){1000}){1000}){1000})b",
            r"[^a]{0,80}A{0,80}!",
            r"(\w{1,9})\1",
        ],
    )
    def test_slow(self, expression):
        """Repeats in a row, long ends after them, and repeats of nothing are refused at once."""
        with pytest.raises(UsageError) as refused:
            compile_expression(expression, label="x")
        assert refused.value.code == "redaction-pattern-slow"

    @pytest.mark.parametrize(
        ("expression", "text"),
        [
            (r"\w{1,900}@\w{1,900}\.com", "ana@example.com"),
            (r"(?:\w{1,20} ){1,3}\w!", "to be or b!"),
            (r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}", "DE00 1234 5678 9012"),
            (r"(?:[0-9a-f]{4}-){7}[0-9a-f]{4}", "-".join(["00ff"] * 8)),
        ],
    )
    def test_quick(self, expression, text):
        """A character that a repeat cannot match ends it, so such expressions are taken."""
        assert [(part.start, part.end) for part in compile_expression(expression, label="x")(text)] == [
            (0, len(text))
        ]
