"""Entries: ids, parents, times, pairs, flags and accounts, alike for every format."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.base.errors import OnrecordError
from onrecord.record.logs.runs import Options
from support.scripted_logs import import_scripted, lines

T = "2026-07-01T10:00:{:02d}Z"


def line(number, *do, **members):
    return {"id": f"e{number}", "time": T.format(number), "do": list(do), **members}


def objects(vcon):
    """Return all Dialogs and Events by entry id."""
    return {item["entry_id"]: item for item in (*vcon.get("dialog", ()), *vcon.get("events", ()))}


class TestIds:
    def test_blocks(self, tmp_path):
        """The first object has the native id, the others a number behind it and the first as parent (D-LOG-05)."""
        imported = import_scripted(
            tmp_path, lines(line(1, ["text", "a"], ["call", "Read", {}, "c1"], ["text", "b"]))
        )
        found = objects(imported.vcon)
        assert list(found) == ["e1", "e1#2", "e1#1"]
        assert [found[name].get("parent_id") for name in ("e1", "e1#1", "e1#2")] == [None, "e1", "e1"]
        assert [found[name]["onrecord"]["src"] for name in ("e1", "e1#1", "e1#2")] == [
            [0, 1, 0],
            [0, 1, 1],
            [0, 1, 2],
        ]

    def test_no_native_id(self, tmp_path):
        """Without a native id the record's number is it."""
        imported = import_scripted(
            tmp_path, lines({"time": T.format(1), "do": [["text", "a"], ["text", "b"]]})
        )
        assert list(objects(imported.vcon)) == ["L1", "L1#1"]

    def test_clash(self, tmp_path):
        """An id that is taken gets a number; the parent of what follows is the first one of that name."""
        log = lines(
            line(1, ["text", "a"]),
            line(2, ["text", "b"], id="e1"),
            line(3, ["text", "c"], id="e1"),
            line(4, ["text", "d"], parent="e1"),
        )
        found = objects(import_scripted(tmp_path, log).vcon)
        assert list(found) == ["e1", "e1~2", "e1~3", "e4"]
        assert found["e4"]["parent_id"] == "e1"

    def test_clash_with_number(self, tmp_path):
        """A native id that looks like one of ours is kept apart from it."""
        log = lines(
            {"id": "L2", "time": T.format(1), "do": [["text", "a"]]},
            {"time": T.format(2), "do": [["text", "b"]]},
        )
        assert list(objects(import_scripted(tmp_path, log).vcon)) == ["L2", "L2~2"]


class TestParents:
    def test_later_parent(self, tmp_path):
        """A parent that comes later is found."""
        log = lines(line(1, ["text", "a"], parent="e2"), line(2, ["text", "b"]))
        imported = import_scripted(tmp_path, log)
        assert objects(imported.vcon)["e1"]["parent_id"] == "e2"
        assert "dangling-parent" not in imported.codes()

    def test_dangling(self, tmp_path):
        """A parent that never comes stands in `onrecord.parent` alone."""
        imported = import_scripted(tmp_path, lines(line(1, ["text", "a"], parent="gone")))
        (dialog,) = imported.vcon["dialog"]
        assert ("parent_id" in dialog, dialog["onrecord"]["parent"]) == (False, "gone")
        assert imported.codes()["dangling-parent"] == 1

    def test_further_object(self, tmp_path):
        """An id that we made for a further object is nobody's parent, whatever a log says."""
        log = lines(
            line(1, ["text", "a"], ["text", "b"], parent="e1#1"),
            line(2, ["text", "c"], parent="e1#1"),
        )
        imported = import_scripted(tmp_path, log)
        found = objects(imported.vcon)
        assert [found[name].get("parent_id") for name in ("e1", "e1#1", "e2")] == [None, "e1", None]
        assert [found[name]["onrecord"]["parent"] for name in ("e1", "e2")] == ["e1#1", "e1#1"]
        assert imported.codes()["dangling-parent"] == 2

    def test_pictures_alone(self, tmp_path):
        """An entry of pictures alone can be a parent; one with a text needs no event for that."""
        log = lines(
            line(1, ["picture", "image/png", "AAAA"], ["text", "a"]),
            line(2, ["picture", "image/png", "AAAA"], parent="e1"),
            line(3, ["text", "b"], parent="e2"),
            line(4, ["picture", "image/png", "AAAA"], parent="e3"),
        )
        imported = import_scripted(tmp_path, log)
        found = objects(imported.vcon)
        assert {name: item.get("parent_id") for name, item in found.items()} == {
            "e1": None,
            "e3": "e2",
            "e2": "e1",
            "e4": "e3",
        }
        assert "dangling-parent" not in imported.codes()

    def test_other_session(self, tmp_path):
        """An entry of another session is no parent."""
        log = lines(line(1, ["text", "a"]), line(2, ["text", "b"], parent="e1", session="s2"))
        assert import_scripted(tmp_path, log).codes()["dangling-parent"] == 1

    @pytest.mark.parametrize("parents", [["e1"], ["e2", "e1"], ["e3", "e1", "e2"], ["e2", "e3", "e1"]])
    def test_cycle(self, tmp_path, parents):
        """The entry that closes a circle loses its parent, and says which it was."""
        log = lines(*(line(n, ["text", "a"], parent=parent) for n, parent in enumerate(parents, 1)))
        imported = import_scripted(tmp_path, log)
        found = objects(imported.vcon)
        assert imported.codes()["parent-cycle"] == 1
        last = found[f"e{len(parents)}"]
        assert ("parent_id" in last, last["onrecord"]["parent"]) == (False, parents[-1])
        assert all("parent_id" in found[f"e{n}"] for n in range(1, len(parents)))

    @given(st.lists(st.integers(0, 9), min_size=1, max_size=10))
    @settings(max_examples=50)
    def test_any_graph(self, tmp_path_factory, parents):
        """Whatever the parents are, each entry has one, or names the one that it lost; nothing goes round."""
        folder = tmp_path_factory.mktemp("graph")
        log = lines(*(line(n, ["text", "a"], parent=f"e{parent}") for n, parent in enumerate(parents)))
        found = objects(import_scripted(folder, log).vcon)
        for n, parent in enumerate(parents):
            item = found[f"e{n}"]
            assert item.get("parent_id", item["onrecord"].get("parent")) == f"e{parent}"
            assert ("parent_id" in item) <= (f"e{parent}" in found)
            seen = set()
            while "parent_id" in item:
                assert item["entry_id"] not in seen
                seen.add(item["entry_id"])
                item = found[item["parent_id"]]


class TestTimes:
    def test_previous_and_next(self, tmp_path):
        """What has no time gets the one before it, else the next one, and says so; times are never made up."""
        log = lines(
            {"id": "a", "do": [["text", "a"]]},
            line(5, ["text", "b"]),
            {"id": "c", "time": None, "do": [["event", "meta"]]},
        )
        imported = import_scripted(tmp_path, log)
        found = objects(imported.vcon)
        assert (found["a"]["start"], found["a"]["onrecord"]["time"]) == (T.format(5), "next")
        assert (found["c"]["time"], found["c"]["onrecord"]["time"]) == (T.format(5), "previous")
        assert "time" not in found["e5"]["onrecord"]
        assert imported.codes() == {"time-derived": 2, "time-missing": 1, "model-unknown": 1}

    @pytest.mark.parametrize("time", ["yesterday", 5, True, {"a": "2026"}, ["2026-07-01T10:00:00Z"]])
    def test_nonsense(self, tmp_path, time):
        """What is no time is kept in `rest`, and a time is derived."""
        imported = import_scripted(
            tmp_path, lines(line(1, ["text", "a"]), {"time": time, "do": [["text", "b"]]})
        )
        assert imported.vcon["dialog"][1]["onrecord"]["rest"] == {"time": time}
        assert imported.codes()["time-missing"] == 1

    def test_name(self, tmp_path):
        """A log without any time has the one in its name."""
        log = lines({"do": [["text", "a"]]})
        imported = import_scripted(tmp_path, log, names=["rollout-2026-07-17T09-00-00-x.jsonl"])
        (dialog,) = imported.vcon["dialog"]
        assert (dialog["start"], dialog["onrecord"]["time"]) == ("2026-07-17T09:00:00Z", "name")
        assert imported.vcon["sessions"][0]["start"] == "2026-07-17T09:00:00Z"

    def test_modified(self, tmp_path):
        """… or that of the file's last change, never that of the import."""
        import os

        path = tmp_path / "x.jsonl"
        path.touch()
        real = os.utime
        log = lines({"do": [["text", "a"]]})
        from onrecord.record.logs import trace as module

        class Old:
            st_mtime_ns = 1_700_000_000 * 10**9

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "os", type("os", (), {"stat": staticmethod(lambda _: Old)}))
            imported = import_scripted(tmp_path, log, names=["x.jsonl"])
        assert real is os.utime
        (dialog,) = imported.vcon["dialog"]
        assert (dialog["start"], dialog["onrecord"]["time"]) == ("2023-11-14T22:13:20Z", "mtime")

    def test_session_span(self, tmp_path):
        """A session lasts from its first to its last time, also when the file goes back in time (R-15, D-LOG-23)."""
        imported = import_scripted(
            tmp_path, lines(line(9, ["text", "a"]), line(2, ["text", "b"]), line(5, ["text", "c"]))
        )
        (session,) = imported.vcon["sessions"]
        assert (session["start"], session["duration"]) == (T.format(2), 7)
        assert imported.codes()["out-of-order"] == 1
        assert [dialog["body"] for dialog in imported.vcon["dialog"]] == ["a", "b", "c"]

    def test_borrowed_start(self, tmp_path):
        """A session without a time of its own begins when the record before it was written."""
        log = lines(line(3, ["text", "a"]), {"session": "s2", "do": [["text", "b"]]})
        other = import_scripted(tmp_path, log).vcons[1]
        assert (other["sessions"][0]["start"], other["sessions"][0]["duration"]) == (T.format(3), 0)

    def test_native_form(self, tmp_path):
        """An offset that the UTC form does not tell stays in `rest`."""
        imported = import_scripted(
            tmp_path, lines({"time": "2026-07-01T12:00:00+02:00", "do": [["text", "a"]]})
        )
        (dialog,) = imported.vcon["dialog"]
        assert dialog["start"] == "2026-07-01T10:00:00Z"
        assert dialog["onrecord"]["rest"] == {"time": "2026-07-01T12:00:00+02:00"}


class TestPairs:
    def test_findings(self, tmp_path):
        """Calls and results pair by id in any order; what stays alone or comes twice is kept and reported (R-18)."""
        log = lines(
            line(1, ["result", "early", "c1"]),
            line(2, ["call", "Read", {}, "c1"], ["call", "Read", {}, "c2"], ["call", "Read", {}, "c2"]),
            line(3, ["result", "x", "c9"], ["result", "again", "c1", "error"]),
        )
        imported = import_scripted(tmp_path, log)
        assert imported.codes() == {
            "duplicate-result": 1,
            "duplicate-call": 1,
            "call-without-result": 1,
            "result-without-call": 1,
            "model-unknown": 1,
        }
        kinds = [event["type"] for event in imported.vcon["events"]]
        assert kinds.count("tool-call") == 3
        assert kinds.count("tool-result") == 3

    def test_no_call_id(self, tmp_path):
        """A call and a result without an id belong to nothing, and both are counted."""
        codes = import_scripted(tmp_path, lines(line(1, ["call", "Read", {}], ["result", "x"]))).codes()
        assert (codes["call-without-result"], codes["result-without-call"]) == (1, 1)

    def test_status(self, tmp_path):
        """`is_error` stands beside the status "error" only (D-LOG-17)."""
        log = lines(
            line(
                1,
                *(["result", "x", f"c{n}", s] for n, s in enumerate((None, "success", "completed", "error"))),
            )
        )
        told = [(e.get("status"), e.get("is_error")) for e in import_scripted(tmp_path, log).vcon["events"]]
        assert told == [(None, None), ("success", None), ("completed", None), ("error", True)]

    def test_null(self, tmp_path):
        """A null where a vCon needs a value is an empty text, and `rest` says that it was null."""
        log = lines(line(1, ["call", "Read", None, "c1"], ["result", None, "c1"], ["reasoning", None]))
        events = import_scripted(tmp_path, log).vcon["events"]
        for event, name in zip(events, ("input", "output", "content"), strict=True):
            assert (event[name], event["onrecord"]["rest"]) == ("", {name: None})

    @pytest.mark.parametrize("name", [None, "", 5, {}])
    def test_nameless_call(self, tmp_path, name):
        """A call without a name is no tool-call: its name is not made up."""
        imported = import_scripted(tmp_path, lines(line(1, ["call", name, {"a": 1}, "c1"])))
        (event,) = imported.vcon["events"]
        assert (event["event_type"], event["data"]["input"]) == ("block/tool_use", {"a": 1})


class TestFates:
    def test_law(self, tmp_path):
        """Records read are mapped, duplicates or reported, each counted once (A-03)."""
        log = (
            lines(line(1, ["text", "a"]), line(2, ["event", "meta"]), {"duplicate": "replayed-entry"})
            + b"broken\n[1]\n"
        )
        (account,) = import_scripted(tmp_path, log).accounts
        assert account == {
            "records": 5,
            "mapped": 2,
            "of_mapped": {"conversation": 1, "system_event": 1},
            "duplicates": 1,
            "of_duplicates": {"replayed-entry": 1},
            "reported": 2,
        }

    def test_broken_law(self, tmp_path):
        """A record that an importer forgets is an internal error, never a warning."""
        with pytest.raises(OnrecordError) as caught:
            import_scripted(tmp_path, lines(line(1, ["text", "a"]), line(2)))
        assert caught.value.code == "accounting-broken"

    def test_unreadable_first(self, tmp_path):
        """What cannot be read stands in the vCon as unreadable-record, also before any session is known (D-LOG-27)."""
        imported = import_scripted(tmp_path, b"broken\n" + lines(line(1, ["text", "a"])))
        (event,) = imported.vcon["events"]
        assert event["event_type"] == "unreadable-record"
        assert (event["data"]["record"], event["data"]["bytes"], event["data"]["head"]) == (1, 6, "broken")

    def test_only_unreadable(self, tmp_path):
        """A log of which nothing can be read still gives a vCon that says so."""
        imported = import_scripted(tmp_path, b"broken\n", names=["only.jsonl"])
        assert imported.vcon["sessions"][0]["agent_session_id"] == "only.jsonl"


class TestMembers:
    def test_empty_text(self, tmp_path):
        """White space alone is no Dialog; it is told by an event (1.1)."""
        imported = import_scripted(tmp_path, lines(line(1, ["text", " \n"], ["text", ""])))
        assert "dialog" not in imported.vcon
        assert [event["event_type"] for event in imported.vcon["events"]] == ["empty-text", "empty-text"]

    def test_prompts_once(self, tmp_path):
        """A system prompt and tool definitions are told once, and then by their hash (D-LOG-06, D-LOG-30)."""
        log = lines(
            line(1, ["prompt", "be good"], ["tools", ["Read"]]),
            line(2, ["prompt", "be good"], ["tools", ["Read"]]),
        )
        first, tools, again, more = (event["data"] for event in import_scripted(tmp_path, log).vcon["events"])
        assert first == {"role": "system", "text": "be good", "sha256": again["sha256"]}
        assert again == {"role": "system", "sha256": first["sha256"], "bytes": 7}
        assert tools == {"names": ["Read"], "definitions": [{"name": "Read"}], "sha256": more["sha256"]}
        assert "definitions" not in more

    def test_rest(self, tmp_path):
        """Members without a home are kept; without `with_rest` they are left out and that is said (D-LOG-01)."""
        log = lines(line(1, ["kept", "a", {"odd": [1, None]}]))
        assert import_scripted(tmp_path, log).vcon["dialog"][0]["onrecord"]["rest"] == {"odd": [1, None]}
        less = import_scripted(tmp_path, log, options=Options(with_rest=False))
        assert "rest" not in less.vcon["dialog"][0]["onrecord"]
        assert less.codes()["rest-omitted"] == 1

    def test_numbers(self, tmp_path):
        """A number that no reader keeps is a string, and its place is told (D-LOG-24)."""
        log = b'{"time":"2026-07-01T10:00:00Z","do":[["call","Pay",{"amount":90071992547409931},"c1"]]}\n'
        (event,) = import_scripted(tmp_path, log).vcon["events"]
        assert event["input"] == {"amount": "90071992547409931"}
        assert event["onrecord"]["rest"]["numbers"] == ["/do/0/2/amount"]

    def test_flags(self, tmp_path):
        """A flag reaches all objects of an entry and no others, also late."""
        log = lines(
            line(1, ["text", "a"], ["call", "Read", {}, "c1"]),
            line(2, ["text", "b"]),
            line(3, ["flag", "e1", "superseded"]),
        )
        found = objects(import_scripted(tmp_path, log).vcon)
        flagged = [name for name, item in found.items() if "superseded" in item["onrecord"].get("flags", ())]
        assert flagged == ["e1", "e1#1"]

    def test_usage(self, tmp_path):
        """Usage stands on the text it belongs to, and is summed from responses before turns, never mixed (D-LOG-03)."""
        usage = {"input_tokens": 10, "output_tokens": 5, "cached_input_tokens": 4}
        log = lines(line(1, ["used", "a", usage], ["tokens", "turn", usage], ["tokens", "response", usage]))
        vcon = import_scripted(tmp_path, log).vcon
        assert vcon["dialog"][0]["token_usage"] == {
            "input": 10,
            "output": 5,
            "cached": 4,
            "total": 15,
            "native": usage,
        }

    def test_picture(self, tmp_path):
        """A picture belongs to the first text of its message, else to the last one before it (D-LOG-14)."""
        data = "iVBORw0KGgo="
        log = lines(
            line(1, ["text", "a"]),
            line(2, ["picture", "image/png", data], ["text", "b"]),
            line(3, ["picture", "image/png", data]),
        )
        vcon = import_scripted(tmp_path, log).vcon
        assert [item["dialog"] for item in vcon["attachments"]] == [1, 1]
        assert vcon["attachments"][0]["body"] == "iVBORw0KGgo"
        told = import_scripted(tmp_path, log, options=Options(media="hash"))
        assert "attachments" not in told.vcon
        assert told.codes()["media-omitted"] == 2

    def test_credentials(self, tmp_path):
        """Credentials are reported without their value and kept; with `redact` they are replaced (D-LOG-13)."""
        secret = "AKIAABCDEFGHIJKLMNOP"
        log = lines(line(1, ["text", f"use {secret}"], ["call", "Get", {"password": "hunter-2"}, "c1"]))
        imported = import_scripted(tmp_path, log)
        assert imported.codes()["credential-found"] == 2
        assert {finding.pointer for finding in imported.findings if finding.code == "credential-found"} == {
            "/dialog/0/body",
            "/events/0/input/password",
        }
        assert not any(secret in str(finding.to_json()) for finding in imported.findings)
        assert imported.vcon["dialog"][0]["body"] == f"use {secret}"
        redacted = import_scripted(tmp_path, log, options=Options(redact=True))
        assert redacted.vcon["dialog"][0]["body"] == "use [credential replaced: aws-key-id]"
        assert redacted.vcon["events"][0]["input"] == {"password": "[credential replaced: password]"}
        assert "credential-found" not in redacted.codes()
        assert redacted.codes()["credential-replaced"] == 2

    def test_credentials_around(self, tmp_path):
        """Credentials in what stands around the objects are reported and replaced as well."""
        secret = "AKIAABCDEFGHIJKLMNOP"
        log = lines(line(1, ["text", "a"], ["text", "b", f"agent {secret}"], model=f"model {secret}"))
        imported = import_scripted(tmp_path, log)
        assert {finding.pointer for finding in imported.findings if finding.code == "credential-found"} == {
            "/parties/1/agent_meta/model_id",
            "/parties/1/agent_meta/models/0",
            "/parties/2/name",
        }
        redacted = import_scripted(tmp_path, log, options=Options(redact=True)).vcon
        assert secret not in str(redacted)
        ids = lines(
            line(1, ["call", f"tool {secret}", {}, secret], id=secret),
            line(2, ["result", "x", secret], ["event", secret], ["reasoning", "", secret], parent=secret),
            line(
                3,
                ["call", "b", {}, secret.replace("A", "B", 1)],
                id=secret[:-1] + "X",
                parent=secret[:-1] + "Y",
            ),
        )
        told = import_scripted(tmp_path, ids, options=Options(redact=True)).vcon
        assert secret[:-1] not in str(told)
        assert told["events"][1]["parent_id"] == told["events"][0]["entry_id"]
        assert told["events"][1]["call_id"] == told["events"][0]["call_id"]
        assert len({event["entry_id"] for event in told["events"]}) == len(told["events"])
        assert redacted["uuid"] == imported.vcon["uuid"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["a", "b", "c", "", "é", "\ud800"])
DOINGS = st.one_of(
    st.tuples(st.just("text"), st.text(max_size=12), st.sampled_from(["user", "agent", "parent", "mate"])),
    st.tuples(st.just("call"), st.text(max_size=4), VALUES, VALUES),
    st.tuples(st.just("result"), VALUES, VALUES, st.sampled_from([None, "error", "success"])),
    st.tuples(st.just("reasoning"), VALUES, st.none() | st.text(max_size=3)),
    st.tuples(st.just("event"), VALUES, VALUES),
    st.tuples(st.just("begin"), st.dictionaries(st.text(max_size=3), VALUES, max_size=2)),
    st.tuples(st.just("prompt"), st.text(max_size=3)),
    st.tuples(st.just("picture"), VALUES, st.just("AAAA")),
)
LINES = st.fixed_dictionaries(
    {"do": st.lists(DOINGS, min_size=1, max_size=4), "session": NAMES},
    optional={
        "id": NAMES | VALUES,
        "parent": NAMES | VALUES,
        "time": VALUES | st.just(T.format(7)),
        "child_of": NAMES,
    },
)


@given(st.lists(LINES, max_size=6), st.booleans())
@settings(max_examples=100, deadline=None)
def test_any_log(tmp_path_factory, log, redact):
    """Whatever an importer writes, the vCons have no error under strict checks and the accounts add up."""
    imported = import_scripted(tmp_path_factory.mktemp("any"), lines(*log), options=Options(redact=redact))
    (account,) = imported.accounts
    assert account["records"] == account["mapped"] + account["reported"] == len(log)
