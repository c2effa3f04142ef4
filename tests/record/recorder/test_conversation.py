"""A whole conversation through a real socket and a real journal, in any order of the two sources."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.checks.checker import check
from onrecord.record.forms import verify
from support.data import shared_data
from support.runtime import make_short_dir

TURNS = st.lists(st.tuples(st.sampled_from(["authority", "guard"]), st.integers(1, 3)), max_size=12)


async def replay(rig, authority, guard, turns=()):
    """Send the entries of both sources; `turns` says whose turn it is, and how many entries go."""
    clients = {
        "authority": await rig.client("a-7d1c52aa9e004f61"),
        "guard": await rig.client("g-2f9b0c6611d84e07", server="filesystem"),
    }
    queues = {"authority": list(authority), "guard": list(guard)}
    for who, count in [*turns, ("authority", 64), ("guard", 64)]:
        batch, queues[who] = queues[who][:count], queues[who][count:]
        if batch:
            await rig.append(clients[who], *batch)


def run_whole(rig, authority, guard, turns=()):
    async def run():
        async with rig:
            await replay(rig, authority, guard, turns)
            await rig.close_all()

    asyncio.run(run())
    (vcon,) = rig.vcons()
    return vcon


def kinds(vcon):
    return Counter(event["type"] for event in vcon["events"])


def story(vcon):
    """Return what must not depend on the order of arrival."""
    return json.dumps([vcon["events"], vcon["parties"], vcon["sessions"][0]["duration"]], sort_keys=True)


class TestConversation:
    def test_documented_events(self, rig, entries):
        """One session, three decisions, three invocations (the second without content), two results, one denial."""
        whole = entries.conversation()
        vcon = run_whole(rig, whole["authority"], whole["guard"])
        assert len(vcon["sessions"]) == 1
        assert kinds(vcon) == {
            "policy-decision": 3,
            "tool-invocation": 3,
            "tool-result": 2,
            "tool-denied": 1,
        }
        decisions = [event["decision"] for event in vcon["events"] if event["type"] == "policy-decision"]
        assert decisions == ["allowed", "disallowed", "permission-required"]
        bodies = ["body" in event for event in vcon["events"] if event["type"] == "tool-invocation"]
        assert bodies == [True, False, True]

    def test_shared_transcript(self, rig):
        """The shared transcript gives the events, the one warning and the info that its README names."""
        sent = defaultdict(list)
        with shared_data("running", "transcript.jsonl").open(encoding="utf-8") as stream:
            for row in map(json.loads, stream):
                if row["socket"] == "record.sock" and row["message"].get("method") == "record/append":
                    sent[row["peer"]] += row["message"]["params"]["entries"]
        vcon = run_whole(rig, sent["authority"], sent["guard filesystem"])
        assert kinds(vcon) == {"policy-decision": 3, "tool-invocation": 3, "tool-result": 2, "tool-denied": 1}
        findings = check(rig.files()[0].read_bytes()).findings
        assert [one.code for one in findings if one.severity != "info"] == ["invocation-after-disallowed"]
        assert "permission-unobserved" in {one.code for one in findings}

    def test_signed_file_verifies(self, rig, entries):
        """The stored file is General JWS, style C, and verifies against the anchor of its CA."""
        whole = entries.conversation()
        run_whole(rig, whole["authority"], whole["guard"])
        data = rig.files()[0].read_bytes()
        report = verify(data, anchors=[rig.signing.anchor])
        assert report.verdict == "verified"
        (signature,) = json.loads(data)["signatures"]
        assert set(signature["header"]) == {"x5c", "uuid"}

    def test_file_and_statement(self, rig, entries):
        """The file lies below its date with mode 0600, and the journal states its SHA-256."""
        whole = entries.conversation()
        vcon = run_whole(rig, whole["authority"], whole["guard"])
        (path,) = rig.files()
        assert path.relative_to(rig.records).as_posix() == f"2026/11/30/{vcon['uuid']}.vcon.json"
        assert path.stat().st_mode & 0o777 == 0o600
        with rig.open_journal() as journal:
            (statement,) = [record for record in journal.read() if record.type == "statement"]
        assert statement.data["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert statement.data["check"]["errors"] == 0

    @settings(max_examples=25)
    @given(turns=TURNS)
    def test_order_of_arrival_is_irrelevant(self, turns, make_module_rig, entries):
        """However the two sources interleave, the same events come out, with the same ids, attempts and times."""
        whole = entries.conversation()
        rig = make_module_rig()
        try:
            vcon = run_whole(rig, whole["authority"], whole["guard"], turns)
        finally:
            shutil.rmtree(rig.root)
        assert len(story(vcon)) > 1000
        assert story(vcon) == make_module_rig.expected.setdefault("story", story(vcon))

    @pytest.mark.req("TI-016", "TI-017")
    def test_extensions_are_listed(self, rig, entries):
        """Both extensions stand in `extensions` by their literal names, and in nothing else."""
        whole = entries.conversation()
        vcon = run_whole(rig, whole["authority"], whole["guard"])
        assert vcon["extensions"] == ["ai_agent", "tool-invocation"]
        assert "critical" not in vcon

    @pytest.mark.req("TI-091", "TI-092", "TI-093")
    def test_every_event_names_session_agent_and_operation(self, rig, entries):
        """All events point to the session and the agent; decisions and invocations alone name server and tool."""
        whole = entries.conversation()
        vcon = run_whole(rig, whole["authority"], whole["guard"])
        for event in vcon["events"]:
            assert (event["sessions"], event["party"]) == ([0], 0)
            assert event["operation_id"]
            assert event["attempt"] >= 1
            names = {"server", "tool"} & set(event)
            expected = (
                {"server", "tool"} if event["type"] in ("policy-decision", "tool-invocation") else set()
            )
            assert names == expected
        assert vcon["parties"] == [{"type": "bot", "name": "code-review"}]
        assert vcon["sessions"][0]["parties"] == [0]

    @pytest.mark.req("TI-038", "TI-039", "TI-020", "TI-140")
    def test_decisions_come_first_and_once(self, rig, entries):
        """Each decision is one event, policy_life once, before its invocation, with the attempt it precedes."""
        whole = entries.conversation()
        vcon = run_whole(rig, whole["authority"], whole["guard"])
        seen = {}
        for index, event in enumerate(vcon["events"]):
            key = event["operation_id"], event["attempt"]
            if event["type"] == "policy-decision":
                assert event["policy_life"] == "once"
                assert event["operation"] == "tool-invocation"
                assert key not in seen
                seen[key] = index
            elif event["type"] == "tool-invocation":
                assert seen[key] < index
        assert len(seen) == 3

    @pytest.mark.req("TI-131", "TI-132", "TI-134", "TI-165")
    def test_operation_ids(self, rig, entries):
        """Events of an operation share the authority's id; ids differ between operations and from request ids."""
        whole = entries.conversation()
        vcon = run_whole(rig, whole["authority"], whole["guard"])
        first = [event["operation_id"] for event in vcon["events"] if event["type"] == "tool-invocation"]
        assert first == [entries.operation(1), entries.operation(2), entries.operation(3)]
        for event in vcon["events"]:
            assert event["operation_id"] in first
            assert event.get("tool", "read_file") in ("read_file", "post_comment")
        for event in vcon["events"]:
            assert event["operation_id"] not in ("1.1", "1.2", "1.3")


@pytest.fixture(scope="module")
def make_module_rig(rig_class):
    """Makes rigs for hypothesis, and remembers the first story that came out."""
    roots = []

    class Maker:
        def __init__(self):
            self.expected = {}

        def __call__(self):
            roots.append(make_short_dir())
            return rig_class(roots[-1])

    yield Maker()
    for root in roots:
        shutil.rmtree(root, ignore_errors=True)
