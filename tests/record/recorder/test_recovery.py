"""A recorder starts again: sources, open sessions, gaps (running.md 7.4)."""

from __future__ import annotations

import asyncio

import pytest

from onrecord.record.recorder import recovery


class Host:
    is_gone = False

    def exited(self):
        return self.is_gone

    def close(self):
        pass


def run(rig, *scenarios):
    """Run each scenario with a recorder of its own over the same directory."""

    async def main(scenario):
        async with rig:
            return await scenario(rig)

    return [asyncio.run(main(scenario)) for scenario in scenarios]


def system_events(vcon, kind="recording-gap"):
    return [event for event in vcon["events"] if event.get("event_type") == kind]


def tool_events(vcon):
    return [event for event in vcon["events"] if event["type"] != "system-event"]


def session_records(rig, kind):
    with rig.open_journal() as journal:
        return [record.data for record in journal.read() if record.type == kind]


def test_progress_is_told(rig, entries, monkeypatch):
    """The one who reads a long journal at the start tells after each page, so that nobody takes it for dead."""
    monkeypatch.setattr(recovery, "_PAGE", 2)

    async def before(rig):
        rig.hosts.known[2001, entries.LABEL] = Host()
        await rig.append(await rig.client("g-1", server="filesystem"), *entries.conversation()["guard"])

    run(rig, before)
    told = []
    with rig.open_journal() as journal:
        found = recovery.scan(journal, progress=lambda: told.append(journal.size))
        assert len(told) == (journal.size + 1) // 2
    assert found.seqs


class TestReopen:
    @pytest.fixture
    def split(self, entries):
        """Send the first part before, and the second after a restart."""

        def scenarios(cut_authority, cut_guard):
            whole = entries.conversation()

            async def before(rig):
                rig.hosts.known[2001, entries.LABEL] = Host()
                await rig.append(await rig.client("a-1"), *whole["authority"][:cut_authority])
                await rig.append(await rig.client("g-1", server="filesystem"), *whole["guard"][:cut_guard])

            async def after(rig):
                rig.clock.advance(5)
                authority = await rig.client("a-1")
                guard = await rig.client("g-1", server="filesystem")
                throughs = authority.hello["through"], guard.hello["through"]
                await rig.append(authority, *whole["authority"][1:])
                await rig.append(guard, *whole["guard"][1:])
                await rig.close_all()
                return throughs

            return before, after

        return scenarios

    @pytest.mark.parametrize(("cut_authority", "cut_guard"), [(1, 2), (2, 3), (3, 5), (4, 7)])
    def test_one_session_across_a_restart(self, rig, split, cut_authority, cut_guard):
        """A session whose process lives goes on under its id; nothing is lost or doubled, and the gap is filled."""
        _, throughs = run(rig, *split(cut_authority, cut_guard))
        assert throughs == (cut_authority, cut_guard)
        (vcon,) = rig.vcons()
        assert len(tool_events(vcon)) == 9
        (gap,) = system_events(vcon)
        assert gap["data"]["cause"] == "recorder-restart"
        assert gap["data"]["filled"] is True
        assert gap["data"]["from"] <= gap["data"]["to"]
        assert [data["cause"] for data in session_records(rig, "session.close")] == ["requested"]

    def test_gap_without_its_sources_is_not_filled(self, rig, entries):
        """A gap whose sources never came back does not claim to be filled."""

        async def before(rig):
            rig.hosts.known[2001, entries.LABEL] = Host()
            whole = entries.conversation()
            await rig.append(await rig.client("a-1"), *whole["authority"])
            await rig.append(await rig.client("g-1", server="filesystem"), *whole["guard"][:3])

        async def after(rig):
            await rig.client("a-1")
            await rig.close_all()

        run(rig, before, after)
        (gap,) = system_events(rig.vcons()[0])
        assert "filled" not in gap["data"]

    def test_two_restarts_are_two_gaps(self, rig, entries, split):
        """Every restart leaves its own mark."""

        async def between(rig):
            rig.clock.advance(1)

        before, after = split(2, 3)
        run(rig, before, between, after)
        assert len(system_events(rig.vcons()[0])) == 2

    def test_calls_keep_their_operations(self, rig, split):
        """Responses after the restart belong to the invocations before it."""
        run(rig, *split(4, 6))
        (vcon,) = rig.vcons()
        ends = {event["operation_id"] for event in tool_events(vcon) if event["type"] == "tool-result"}
        starts = {event["operation_id"] for event in tool_events(vcon) if event["type"] == "tool-invocation"}
        assert ends < starts


class TestRecovered:
    def test_process_that_is_gone(self, rig, entries):
        """A session whose process has gone is closed with cause recovered, after the entries that were on their way."""
        whole = entries.conversation()

        async def before(rig):
            await rig.append(await rig.client("a-1"), *whole["authority"])
            await rig.append(await rig.client("g-1", server="filesystem"), *whole["guard"][:6])

        async def after(rig):
            await rig.append(await rig.client("g-1", server="filesystem"), *whole["guard"][6:])
            await rig.client("a-1")
            await rig.pass_time(1)
            await rig.pass_time(3)

        run(rig, before, after)
        (vcon,) = rig.vcons()
        assert len(vcon["events"]) == 9
        assert [data["cause"] for data in session_records(rig, "session.close")] == ["recovered"]

    def test_waits_for_guards_that_may_still_ship(self, make_rig, entries):
        """After a restart a guard with an open connection is waited for, but not for ever."""
        rig = make_rig(source_lost_ms=30_000)
        whole = entries.conversation()

        async def before(rig):
            await rig.append(await rig.client("g-1", server="filesystem"), *whole["guard"][:6])

        async def after(rig):
            await rig.pass_time(10)
            open_before = len(rig.recorder._recording.table)
            await rig.pass_time(25)
            return open_before, len(rig.recorder._recording.table)

        assert run(rig, before, after)[1] == (1, 0)

    def test_stop_seals_what_was_ending(self, rig, entries):
        """A session that was about to end is sealed when the recorder stops; others wait for the next start."""
        whole = entries.conversation()

        async def scenario(rig):
            await rig.append(await rig.client("a-1"), *whole["authority"])
            other = entries.decision(5, 9, entries.READ, operation=entries.operation(9), label="other")
            await rig.append(await rig.client("a-1"), other)
            session = rig.recorder._recording.table.at((2001, entries.LABEL))
            rig.recorder._recording.ask_to_close(session)

        run(rig, scenario)
        assert len(rig.files()) == 1


class TestSourceGaps:
    def test_gap_of_a_source_stands_in_its_sessions(self, rig, entries):
        """A guard that lost entries says so, and the vCon of its open sessions shows it."""
        whole = entries.conversation()

        async def scenario(rig):
            await rig.append(await rig.client("a-1"), *whole["authority"])
            guard = await rig.client("g-1", server="filesystem")
            await rig.append(guard, *whole["guard"][:3])
            lost = {"n": 4, "kind": "gap", **entries.at(5), "entries": 3, "cause": "spool-full"}
            lost |= {"from": entries.at(4)["time"], "to": entries.at(5)["time"]}
            await rig.append(guard, lost, *whole["guard"][6:])
            await rig.close_all()

        run(rig, scenario)
        (vcon,) = rig.vcons()
        (gap,) = system_events(vcon)
        assert gap["data"] == {
            "from": entries.at(4)["time"],
            "to": entries.at(5)["time"],
            "cause": "spool-full",
            "entries": 3,
        }

    def test_response_without_invocation_is_kept(self, rig, entries):
        """A result whose invocation was lost is an event all the same, with an id of its own."""
        whole = entries.conversation()

        async def scenario(rig):
            await rig.append(await rig.client("a-1"), *whole["authority"])
            guard = await rig.client("g-1", server="filesystem")
            lost = {"n": 2, "kind": "gap", **entries.at(1), "entries": 1, "cause": "torn"}
            await rig.append(guard, whole["guard"][0], lost, whole["guard"][2])
            await rig.close_all()

        run(rig, scenario)
        (vcon,) = rig.vcons()
        (result,) = [event for event in vcon["events"] if event["type"] == "tool-result"]
        assert result["attempt"] == 1
        assert result["operation_id"] not in {entries.operation(n) for n in (1, 2, 3)}


class TestState:
    """The recorder notes its state now and then, so that a start does not read the whole journal."""

    def test_start_from_a_noted_state(self, make_rig, entries):
        """Whatever the point of restart, a recorder that noted its state goes on as one that reads everything."""
        whole = entries.conversation()
        steps = [("a-1", one) for one in whole["authority"]] + [("g-1", one) for one in whole["guard"]]
        steps.sort(key=lambda step: step[1]["mono_ns"])

        def step(source, entry):
            async def scenario(rig):
                rig.hosts.known.setdefault((2001, entries.LABEL), Host())
                client = await rig.client(source, server="filesystem" if source == "g-1" else None)
                assert client.hello["through"] == entry["n"] - 1
                await rig.append(client, entry)
                await rig.pass_time(0)

            return scenario

        async def finish(rig):
            await rig.close_all()
            await rig.pass_time(4000)

        stories = []
        for state_records in (1, 2, 5, 1_000_000):
            rig = make_rig(state_records=state_records)
            run(rig, *[step(*one) for one in steps], finish)
            (vcon,) = rig.vcons()
            stories.append(tool_events(vcon))
        assert len(stories[0]) == 9
        assert all(story == stories[0] for story in stories)

    def test_only_the_end_of_the_journal_is_read(self, make_rig, entries):
        """After a finished session, what came before the note is not read again, and numbers still count."""
        rig = make_rig(state_records=1)
        whole = entries.conversation()

        async def first(rig):
            await rig.append(await rig.client("a-1"), *whole["authority"])
            await rig.append(await rig.client("g-1", server="filesystem"), *whole["guard"])
            await rig.close_all()
            await rig.pass_time(4000)
            rig.journal.flush()
            await rig.pass_time(1)

        async def second(rig):
            state_seq = rig.recorder._recording._state_seq
            guard = await rig.client("g-1", server="filesystem")
            return state_seq, guard.hello["through"], len(rig.recorder._recording.closed)

        _, (state_seq, through, known) = run(rig, first, second)
        assert state_seq > 12
        assert (through, known) == (8, 0)
