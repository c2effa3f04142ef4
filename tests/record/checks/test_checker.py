"""The check as a whole: versions, forms, fatal findings, relations between parts, and hostile input."""

import copy
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import UsageError
from onrecord.record.checks import context, indexes
from onrecord.record.checks.checker import check
from onrecord.record.checks.collector import MAX_FINDINGS
from onrecord.record.checks.suppression import Suppressions
from onrecord.record.vcon.versions import KNOWN, profile_of
from support.vcons import UUID, answer, decision, faults, findings, invocation, places, text, vcon

OLD = [
    ({"vcon": "0.0.1"}, "0.0.1"),
    ({"vcon": "0.0.3"}, "0.3.0"),
    ({"vcon": "0.4.0", "sessions": [{}]}, "0.4.0"),
    ({"critical": []}, "0.4.0"),
    ({"dialog": [{"type": "text", "mimetype": "text/plain"}]}, "0.0.1"),
    ({"must_support": []}, "0.3.0"),
    ({"dialog": [{"type": "text"}]}, "0.4.0"),
]
NEW = [
    ({}, "0.5.0"),
    ({"vcon": "0.5.0"}, "0.5.0"),
    ({"vcon": "9.9", "events": []}, "0.5.0"),
    ({"amended_from": {}}, "0.5.0"),
    ({"vcon": 5}, "0.5.0"),
]


class TestVersions:
    @pytest.mark.parametrize(("members", "version"), OLD + NEW)
    def test_profile(self, members, version):
        """The first rule that fits tells the version."""
        assert profile_of(members) == version

    @pytest.mark.parametrize(("members", "version"), OLD + NEW)
    def test_is_checked_by_it(self, members, version):
        """A file is held to the version that it is of."""
        result = check(text({"uuid": UUID, "created_at": "2026-11-02T12:00:00Z", **members}))
        assert (result.form, result.version) == ("unsigned", version)

    @pytest.mark.parametrize("version", KNOWN)
    def test_asked_for(self, version):
        """The caller's version wins over the file's."""
        for members in ({}, {"vcon": "0.0.1"}, {"sessions": []}):
            assert check(text({"uuid": UUID, **members}), profile=version).version == version

    def test_no_such_version(self):
        """A version that does not exist is a usage error, before the file is looked at."""
        with pytest.raises(UsageError) as caught:
            check(b"{}", profile="0.6.0")
        assert caught.value.code == "profile-unknown"


class TestForms:
    def test_encrypted(self):
        """Of an encrypted file the envelope is checked; it has no version, and nothing is known of the inside."""
        result = check(b'{"ciphertext":"x","recipients":[{}]}')
        assert (result.form, result.version, result.extensions) == ("encrypted", None, ())
        assert result.findings
        assert {finding.layer for finding in result.findings} == {"envelope"}
        assert not result.is_fatal
        assert result.to_json()["version"] is None

    def test_suppressed(self):
        """What the caller does not want is counted, in the envelope and in the vCon, and decides nothing."""
        chosen = Suppressions.of([("uuid-missing", ""), ("created-at-missing", "/created_at")])
        result = check(b'{"parties":[{}],"extensions":["x"]}', suppress=chosen)
        assert [finding.code for finding in result.findings] == ["extension-unknown"]
        assert (result.suppressed, result.is_valid) == (2, True)


class TestFatal:
    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (b"", "json-invalid"),
            (b"[]", "form-unknown"),
            (b'{"a":1}', "form-unknown"),
            (b'{"uuid":1,"uuid":1}', "json-duplicate-member"),
            (b"[" * 200 + b"]" * 200, "json-depth"),
            (gzip.compress(b'{"uuid":1}', mtime=0)[:-4], "gzip-invalid"),
            (gzip.compress(b'{"uuid":1}', mtime=0) + b"x", "gzip-invalid"),
            (gzip.compress(b"\0" * 2_000_000, mtime=0), "gzip-limit"),
            (b"\x1f\x8bxx", "gzip-invalid"),
        ],
    )
    def test_fatal(self, data, code):
        """Reading stops: form is null and there is exactly that finding, marked fatal."""
        result = check(data)
        assert (result.form, [finding.code for finding in result.findings]) == (None, [code])
        assert result.is_fatal
        assert result.to_json()["findings"][0]["fatal"] is True

    def test_size_limit(self):
        """Input above the limit is refused before anything is parsed."""
        assert check(b" " * 11, max_bytes=10).findings[0].code == "size-limit"

    def test_gzip_is_read(self):
        """A compressed file is checked like a plain one."""
        assert check(gzip.compress(text(vcon(invocation(), decision())))).form == "unsigned"

    @pytest.mark.parametrize("name", ["critical", "must_support"])
    def test_critical_unsupported(self, name):
        """An unsupported name in critical ends the check: nothing else is judged."""
        result = check(text(vcon({"bad": 1}, **{name: ["ai_agent", "x"], "uuid": None})), profile="0.5.0")
        assert [(one.code, one.pointer) for one in result.findings if one.severity == "error"] == [
            ("critical-unsupported", f"/{name}/1")
        ]
        assert result.form is None

    def test_compact_form(self):
        """A compact JWS is an error by name, quoted or not."""
        for data in (b'"eyJh.eyJi.c2ln"', b"eyJh.eyJi.c2ln\n"):
            assert [finding.code for finding in check(data).findings] == ["form-compact"]


class TestRelations:
    def test_cap(self):
        """Ten thousand findings are kept, the rest is counted and still decides."""
        made = vcon(*[{"type": "tool-timeout"}] * (MAX_FINDINGS // 2))
        result = check(text(made))
        assert len(result.findings) == MAX_FINDINGS
        assert sum(result.left_out.values()) > 0
        assert result.reaches("error")
        assert result.to_json()["findingsLeftOut"]["error"] > 0

    def test_strict(self):
        """--strict raises legacy and lenient forms, not facts."""
        made = vcon(created_at="2026-11-02T12:00:00.000Z", extensions=["ai_agent"])
        made["events"] = [{"type": "tool-result", "time": "2026-11-02T12:00:01Z", "session": 0, "party": 0,
                           "output": 1, "call_id": "x"}]  # fmt: skip
        assert faults(made, strict=True) == [
            ("date-not-normal", "error", "/created_at"),
            ("call-id-dangling", "warning", "/events/0/call_id"),
        ]

    def test_session_cycles(self):
        """Child references that lead back are errors on the edges of the cycle only; peers may loop."""
        made = vcon(extensions=None, events=None)
        made["sessions"] = [
            {"start": "2026-11-02T12:00:00Z", "parties": [0], "sessions": [{"session": target, "type": kind}]}
            for target, kind in ((1, "child"), (2, "child"), (1, "child"), (3, "peer"), (0, "peer"))
        ]
        assert [entry[2] for entry in faults(made) if entry[0] == "session-cycle"] == [
            "/sessions/1/sessions/0",
            "/sessions/2/sessions/0",
            "/sessions/3/sessions/0",
        ]

    def test_long_chains_are_no_recursion(self):
        """Chains as long as the file, of sessions and of entries, are walked without recursion."""
        count = 5_000
        made = vcon(extensions=["ai_agent"])
        made["sessions"] = [
            {"sessions": [{"session": index + 1, "type": "child"}]} for index in range(count)
        ] + [{}]
        made["events"] = [
            {"type": "reasoning", "time": "2026-11-02T12:00:01Z", "session": 0, "party": 0, "content": "x",
             "entry_id": str(index), "parent_id": str((index + 1) % count)}
            for index in range(count)
        ]  # fmt: skip
        codes = {entry[0] for entry in faults(made)}
        assert "parent-id-cycle" in codes
        assert "session-cycle" not in codes

    def test_transfer(self):
        """A later event of one transfer names the same consultation session."""
        common = {"sessions": 0, "party": 0, "transferee": 0, "transfer_target": 0}
        made = vcon(
            {"type": "consultation-start", "time": "2026-11-02T12:00:01Z", "consultation": 1, **common},
            {"type": "transfer-abandoned", "time": "2026-11-02T12:00:02Z", "consultation": 0, **common},
            extensions=None,
        )
        made["sessions"].append({})
        assert faults(made) == [("transfer-consultation-mismatch", "warning", "/events/1")]

    @pytest.mark.req("TI-013")
    def test_tool_as_party(self):
        """A party that is named like a tool and takes part in nothing stands for a tool."""
        made = vcon(invocation(), answer("tool-result"))
        made["parties"].append({"name": "now"})
        assert faults(made) == [("tool-as-party", "warning", "/parties/1")]

    def test_placeholders(self):
        """{} needs a redacted reference, except for parties and sessions; null is never a placeholder."""
        made = vcon({}, dialog=[{}], parties=[{"name": "a"}, {}], attachments=[{}], analysis=[{}])
        assert {entry[0] for entry in faults(made)} == {"placeholder-not-redacted"}
        made["redacted_from"] = {"type": "x", "uuid": UUID}
        assert faults(made) == []
        made["parties"] = [None]
        assert ("type-mismatch", "error", "/parties/0") in faults(made)

    def test_linear_in_hostile_shapes(self):
        """Every element of another shape, deep values and long names are checked all the same."""
        made = vcon(*[{"type": "x.y", f"m{index}": [[{"k": index}]]} for index in range(3_000)])
        assert len(findings(made)) > 2_000

    @pytest.mark.parametrize("is_shared", [True, False])
    def test_large_recording_set_is_read_once(self, monkeypatch, is_shared):
        """A long list that all recordings of a set refer to is read a few times, not once for each of them."""
        count, read = 500, 0
        original = context.indices

        def counted(value):
            nonlocal read
            read += len(value) if isinstance(value, list) else 1
            return original(value)

        monkeypatch.setattr(context, "indices", counted)
        monkeypatch.setattr(indexes, "indices", counted)
        members = list(range(1, count + 1))
        if is_shared:
            recordings = [{"type": "recording", "recording_set": 0}] * count
        else:
            members, recordings = [1] * count, [{"type": "recording", "recording_set": [0] * count}]
        findings(vcon(dialog=[{"type": "recording-set", "recordings": members}, *recordings]))
        assert read < 30 * count


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FULL = vcon(
    decision(),
    invocation(mediatype="application/json", encoding="json", body={"a": 1}),
    answer("tool-result", attachment=0),
    {"type": "tool-call", "time": "2026-11-02T12:00:01Z", "session": 0, "party": 0, "tool_name": "x",
     "input": {}, "call_id": "a", "entry_id": "e", "parent_id": "f"},
    {"type": "join", "time": "2026-11-02T12:00:01Z", "sessions": [0], "party": 0},
    extensions=["ai_agent", "tool-invocation"],
    critical=["ai_agent"],
    recording_agent={"name": "x"},
    vcs={"type": "git"},
    file_attribution={"files": [{"path": "a", "conversations": [{"ranges": [{"start_line": 1, "end_line": 1}]}]}]},
    dialog=[{"type": "text", "parties": [0], "start": "2026-11-02T12:00:01Z", "body": "x", "encoding": "none",
             "mediatype": "text/plain", "token_usage": {"input": 1}}],
    attachments=[{"start": "2026-11-02T12:00:01Z", "party": 0, "dialog": 0}],
    analysis=[{"type": "summary", "vendor": "x", "dialog": [0]}],
    redacted_from={"type": "x", "url": "https://example.com/x"},
    amended_from={"uuid": "x"},
)  # fmt: skip


OLD_NAMES = {
    "vcon": "0.0.1",
    "uuid": UUID,
    "must_support": ["ai_agent"],
    "appended": {"body": {}, "url": "https://example.com/x", "alg": "SHA-512", "signature": "x"},
    "redacted": {"type": "x", "signature": "x"},
    "group": [{}],
    "parties": [{"role": "x"}],
    "dialog": [
        {"type": "recording", "start": "2026-11-02T12:00:01Z", "parties": [0, None], "mimetype": "audio/x-wav",
         "url": "https://example.com/x", "alg": "SHA-512", "signature": "x", "session_id": ["a", "b"]},
        {"type": "transfer", "start": "2026-11-02T12:00:01Z", "transferee": [0], "original": [0, -1],
         "target-dialog": -1, "transfer-target": 0},
        {"type": "text", "mediatype": "text/plain", "mimetype": "text/plain", "session_id": {"local": "x"},
         "party_history": [{"party": 0, "event": "dtmfdown", "dtmf": "1"}, {"event": "keyup"}]},
    ],
    "attachments": [{"mimetype": "text/plain", "body": "{}", "encoding": "json"}],
    "analysis": [{"type": "x", "alg": "SHA-512"}],
}  # fmt: skip


def put(document, path, value):
    """Put a value at a path, if the path still leads somewhere."""
    place = document
    try:
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
    except (KeyError, IndexError, TypeError):
        pass


DOCUMENTS = (FULL, OLD_NAMES)
PLACES = [(number, path) for number, document in enumerate(DOCUMENTS) for path in places(document)]
MANY = 20_000
PROFILES = st.sampled_from([None, *KNOWN])


class TestHostile:
    @given(
        st.sampled_from(range(len(DOCUMENTS))),
        st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3),
        PROFILES,
    )
    def test_mutated(self, number, changes, profile):
        """Any value in any place gives findings in every version, never an exception, and the same ones twice."""
        document = copy.deepcopy(DOCUMENTS[number])
        for (_, path), value in changes:
            put(document, path, value)
        data = json.dumps(document).encode("utf-8")
        result = check(data, profile=profile)
        again = check(data, profile=profile)
        assert [one.to_json() for one in result.findings] == [one.to_json() for one in again.findings]

    @pytest.mark.parametrize("profile", ["0.0.1", "0.3.0", "0.4.0"])
    def test_each_place_once(self, profile):
        """Each value of a vCon in old names is replaced by each kind of JSON value, and all of it is checked."""
        for path in places(OLD_NAMES):
            for value in (None, -1, "", [], {}, [[{}]]):
                document = copy.deepcopy(OLD_NAMES)
                put(document, path, value)
                assert check(text(document), profile=profile).form in ("unsigned", None)

    @given(st.binary(max_size=300), PROFILES)
    def test_bytes(self, data, profile):
        """Arbitrary bytes are fatal or checked."""
        result = check(data, profile=profile)
        assert result.is_fatal == (result.form is None)

    @given(st.data(), PROFILES)
    def test_damaged_text(self, data, profile):
        """A vCon with damaged bytes is fatal or checked."""
        damaged = bytearray(text(FULL))
        for _ in range(data.draw(st.integers(1, 4))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        result = check(bytes(damaged), profile=profile)
        assert result.is_fatal == (result.form is None)

    @pytest.mark.parametrize(
        ("severity", "members"),
        [
            ("info", {"parties": [{f"a{index}": None for index in range(MANY)}]}),
            ("warning", {"extensions": [f"x{i}" for i in range(MANY)], "critical": ["ai_agent"] * MANY}),
            ("info", {"vcon": "0.4.0", "dialog": [{"type": "transfer", "original": [-1] * MANY}]}),
            ("error", {"vcon": "0.4.0", "dialog": [{"type": "text", "session_id": [["x"]] * MANY}]}),
            ("warning", {"dialog": [{"type": "text", "party_history": [{"event": "dtmfup"}] * MANY}]}),
            ("error", {"dialog": [{"type": "text", "url": "x", "content_hash": ["sha256-a", "x"] * MANY}]}),
            ("error", {"parties": [{"civicaddress": {f"A{index}": 1 for index in range(MANY)}}]}),
            ("error", {"critical": [f"x{index}" for index in range(MANY)]}),
        ],
        ids=lambda value: value if isinstance(value, str) else "-".join(value),
    )
    def test_wide(self, severity, members):
        """Wide objects and long lists have a finding for each member: nothing is compared with all of the others."""
        result = check(text({"uuid": UUID, **members}))
        kept = sum(one.severity == severity for one in result.findings)
        assert kept + result.left_out.get(severity, 0) >= MANY
