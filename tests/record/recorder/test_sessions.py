"""When record sessions open and end, and which entries belong to them (running.md 7)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from onrecord.base.hashes import ProofRef
from onrecord.base.sockets import process_label
from onrecord.base.wire import RpcError
from onrecord.record.recorder.hosts import ProcessHosts


def run(rig, scenario):
    async def main():
        async with rig:
            return await scenario(rig)

    return asyncio.run(main())


def closes(rig):
    with rig.open_journal() as journal:
        return [record.data for record in journal.read() if record.type == "session.close"]


def causes(rig):
    return [data["cause"] for data in closes(rig)]


async def both(rig):
    return await rig.client("a-1"), await rig.client("g-1", server="filesystem")


async def one_call(rig, entries, *, label=None, uid=2001, close=True):
    """Record one allowed call, with its connection closed."""
    authority, guard = await both(rig)
    label = label or entries.LABEL
    allowed = entries.decision(1, 1.0, entries.READ, operation=entries.operation(1), proofRef=entries.PROOF)
    allowed["session"] |= {"label": label, "uid": uid}
    await rig.append(authority, allowed)
    batch = [
        entries.connection(1, 0.5, label=label, uid=uid),
        entries.invocation(2, 1.1, entries.READ, call="1.1", label=label, uid=uid, proofRef=entries.PROOF),
        entries.response(3, 1.2, "result", call="1.1", content=entries.text("ok")),
    ]
    await rig.append(guard, *batch, *([entries.connection(4, 1.3, "close")] if close else []))
    return authority, guard


class TestEnds:
    def test_process_exit(self, rig, entries):
        """A session ends when its process has exited, no connection is open and the grace time is over."""

        class Host:
            is_gone = False

            def exited(self):
                return self.is_gone

            def close(self):
                pass

        async def scenario(rig):
            host = rig.hosts.known[2001, entries.LABEL] = Host()
            _, guard = await one_call(rig, entries, close=False)
            await rig.pass_time(10)
            host.is_gone = True
            await rig.pass_time(10)
            before = len(rig.recorder._recording.table)
            await rig.append(guard, entries.connection(4, 1.3, "close"))
            await rig.pass_time(0.1)
            await rig.pass_time(1.0)
            during = len(rig.recorder._recording.table)
            await rig.pass_time(3)
            return before, during, len(rig.recorder._recording.table)

        assert run(rig, scenario) == (1, 1, 0)
        assert causes(rig) == ["process-exit"]
        assert len(rig.files()) == 1

    def test_real_process_exit(self, rig, entries):
        """The process of a default label is found by pid, start time, boot and owner, and its exit is seen."""
        hosts = ProcessHosts()
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            label = process_label(child.pid)
            host = hosts.find(label, uid=os.getuid())
            assert host is not None
            assert not host.exited()
            assert hosts.find(label, uid=os.getuid() + 1) is None
            pid, start, boot = label.split("-")
            assert hosts.find(f"{pid}-{int(start) + 1}-{boot}", uid=os.getuid()) is None
            assert hosts.find(f"{pid}-{start}-00000000", uid=os.getuid()) is None
            assert hosts.find("review-42", uid=os.getuid()) is None
        finally:
            child.communicate(b"\n")
        assert host.exited()
        assert hosts.find(label, uid=os.getuid()) is None
        host.close()

    @pytest.mark.req("AA-149")
    def test_idle(self, make_rig, entries):
        """Without entries and connections a session ends after idle_seconds, and nothing is signed before."""
        rig = make_rig(idle_seconds=60)

        async def scenario(rig):
            await one_call(rig, entries)
            await rig.pass_time(55)
            before = len(rig.recorder._recording.table), len(rig.vcons())
            await rig.pass_time(6)
            await rig.pass_time(3)
            return before, (len(rig.recorder._recording.table), len(rig.vcons()))

        assert run(rig, scenario) == ((1, 0), (0, 1))
        assert causes(rig) == ["idle"]

    def test_open_connection_keeps_a_session(self, make_rig, entries):
        """A silent session with an open connection is not idle."""
        rig = make_rig(idle_seconds=60)

        async def scenario(rig):
            await one_call(rig, entries, close=False)
            for _ in range(5):
                await rig.pass_time(100)
            return len(rig.recorder._recording.table)

        assert run(rig, scenario) == 1

    def test_entry_during_the_grace_of_an_idle_session_keeps_it(self, make_rig, entries):
        """A session that was about to end for silence goes on when something comes."""
        rig = make_rig(idle_seconds=60)

        async def scenario(rig):
            authority, _ = await one_call(rig, entries)
            await rig.pass_time(61)
            more = entries.decision(2, 62, entries.SECRET, "disallowed", operation=entries.operation(2))
            await rig.append(authority, more)
            await rig.pass_time(5)
            return len(rig.recorder._recording.table)

        assert run(rig, scenario) == 1

    def test_max_age_ends_even_a_busy_session(self, make_rig, entries):
        """After max_age_seconds a session ends although a connection is open and entries keep coming."""
        rig = make_rig(max_age_seconds=100)

        async def scenario(rig):
            authority, _ = await one_call(rig, entries, close=False)
            for n in range(2, 20):
                await rig.pass_time(9)
                await rig.append(
                    authority, entries.decision(n, n * 9, entries.POST, operation=entries.operation(n))
                )

        run(rig, scenario)
        assert causes(rig)[0] == "max-age"

    def test_operator_closes_by_label(self, rig, entries):
        """record/close answers when the vCon is signed."""

        async def scenario(rig):
            await one_call(rig, entries, close=False)
            operator = await rig.client()
            request = asyncio.create_task(rig.call(operator, "record/close", {"session": entries.LABEL}))
            while not any(one.is_closing for one in rig.recorder._recording.table):
                await asyncio.sleep(0.01)
            await rig.pass_time(3)
            return await request

        (closed,) = run(rig, scenario)["sessions"]
        assert (closed["state"], closed["cause"]) == ("signed", "requested")
        assert (rig.records / closed["vcon"]["file"]).exists()

    def test_operator_names_no_session(self, rig):
        """An unknown name is refused."""

        async def scenario(rig):
            with pytest.raises(RpcError) as error:
                await rig.call(await rig.client(), "record/close", {"session": "nobody"})
            return error.value.data["reason"]

        assert run(rig, scenario) == "unknown_session"

    def test_session_without_events_gives_no_vcon(self, rig, entries):
        """A proof alone is no event: the session is closed and leaves no file."""

        async def scenario(rig):
            authority, _ = await both(rig)
            await rig.append(authority, entries.conversation()["authority"][0])
            await rig.close_all()
            table = rig.recorder._recording.table
            assert len(table) == 0
            late = entries.conversation()["authority"][3] | {"n": 2, "operationId": entries.operation(1)}
            await rig.append(authority, late)
            await rig.close_all()
            return [one["state"] for one in rig.recorder._sessions()]

        assert run(rig, scenario) == ["signed", "empty"]
        assert len(rig.files()) == 1

    def test_guard_that_was_killed_counts_as_disconnected(self, make_rig, entries):
        """Connections of a guard whose connection to the recorder is gone for long count as closed."""
        rig = make_rig(idle_seconds=10, source_lost_ms=30_000)

        async def scenario(rig):
            _, guard = await one_call(rig, entries, close=False)
            guard.close()
            await asyncio.sleep(0.05)
            await rig.pass_time(20)
            before = len(rig.recorder._recording.table)
            await rig.pass_time(11)
            await rig.pass_time(3)
            return before, len(rig.recorder._recording.table)

        assert run(rig, scenario) == (1, 0)


class TestAuthorityCursor:
    def test_close_waits_for_an_authority_that_is_away(self, make_rig, entries):
        """A session ends only when the authority's entries have passed its end, or it stays away too long."""
        rig = make_rig(authority_wait_ms=30_000)

        async def scenario(rig):
            guard = await rig.client("g-1", server="filesystem")
            await rig.append(guard, *entries.conversation()["guard"])
            (session,) = rig.recorder._recording.table
            rig.recorder._recording.ask_to_close(session)
            session.cause = "process-exit"
            await rig.pass_time(10)
            before = len(rig.recorder._recording.table)
            authority = await rig.client("a-1")
            await rig.append(authority, *entries.conversation()["authority"])
            await rig.pass_time(3)
            return before, len(rig.recorder._recording.table)

        assert run(rig, scenario) == (1, 0)
        (vcon,) = rig.vcons()
        assert sum(event["type"] == "policy-decision" for event in vcon["events"]) == 3

    def test_authority_that_never_comes(self, make_rig, entries):
        """After the wait the record is made without decisions: a doubt keeps the events."""
        rig = make_rig(authority_wait_ms=30_000)

        async def scenario(rig):
            guard = await rig.client("g-1", server="filesystem")
            await rig.append(guard, *entries.conversation()["guard"])
            (session,) = rig.recorder._recording.table
            rig.recorder._recording.ask_to_close(session)
            session.cause = "process-exit"
            await rig.pass_time(31)

        run(rig, scenario)
        (vcon,) = rig.vcons()
        ids = {event["operation_id"] for event in vcon["events"] if event["type"] == "tool-invocation"}
        assert len(ids) == 3
        assert not any(event["type"] == "policy-decision" for event in vcon["events"])


class TestKeys:
    def test_labels_and_uids_make_sessions(self, rig, entries):
        """A session is the pair of uid and label; a label never reaches across uids."""

        async def scenario(rig):
            authority, _ = await both(rig)
            for n, (uid, label) in enumerate([(2001, "a"), (2001, "b"), (2002, "a"), (2001, "a")], start=1):
                digest = entries.READ
                await rig.append(
                    authority,
                    entries.decision(n, n, digest, operation=entries.operation(n), label=label, uid=uid),
                )
            return sorted(session.key for session in rig.recorder._recording.table)

        assert run(rig, scenario) == [(2001, "a"), (2001, "b"), (2002, "a")]

    def test_an_agent_that_invents_labels(self, make_rig, entries):
        """Beyond LABELS_PER_UID open labels a uid's calls go to its default label; another uid is not touched."""
        rig = make_rig(labels_per_uid=3)

        async def scenario(rig):
            authority, _ = await both(rig)
            for n in range(1, 7):
                await rig.append(
                    authority,
                    entries.decision(n, n, entries.READ, operation=entries.operation(n), label=f"l{n}"),
                )
            await rig.append(
                authority,
                entries.decision(7, 7, entries.READ, operation=entries.operation(7), label="l9", uid=2002),
            )
            return sorted(session.key for session in rig.recorder._recording.table)

        assert run(rig, scenario) == [
            (2001, "default"),
            (2001, "l1"),
            (2001, "l2"),
            (2001, "l3"),
            (2002, "l9"),
        ]

    def test_open_sessions_limit_closes_the_longest_idle(self, make_rig, entries):
        """One session too many closes the one that has been silent longest."""
        rig = make_rig(open_sessions=3)

        async def scenario(rig):
            authority, _ = await both(rig)
            for n, label in enumerate(["a", "b", "c", "a", "d"], start=1):
                rig.clock.advance(1)
                await rig.append(
                    authority,
                    entries.decision(n, n, entries.READ, operation=entries.operation(n), label=label),
                )
            await rig.pass_time(0)
            return sorted(session.key.label for session in rig.recorder._recording.table)

        assert run(rig, scenario) == ["a", "c", "d"]
        assert causes(rig)[0] == "limit"

    @pytest.mark.parametrize("first", ["authority", "guard"])
    def test_session_of_the_decision_wins(self, rig, entries, first):
        """A call that the guard saw under another label belongs to the session of its decision, in either order."""

        async def scenario(rig):
            authority, guard = await both(rig)
            allowed = entries.decision(
                1, 1.0, entries.READ, operation=entries.operation(1), proofRef=entries.PROOF, label="agent"
            )
            seen = [
                entries.connection(1, 0.5, label="guard"),
                entries.invocation(2, 1.1, entries.READ, call="1.1", label="guard", proofRef=entries.PROOF),
                entries.response(3, 1.2, "result", call="1.1", content=entries.text("ok")),
            ]
            if first == "authority":
                await rig.append(authority, allowed)
                await rig.append(guard, *seen)
            else:
                await rig.append(guard, *seen[:2])
                await rig.append(authority, allowed)
                await rig.append(guard, seen[2])
            await rig.close_all()

        run(rig, scenario)
        (vcon,) = rig.vcons()
        assert [event["type"] for event in vcon["events"]] == [
            "policy-decision",
            "tool-invocation",
            "tool-result",
        ]
        assert {event["operation_id"] for event in vcon["events"]} == {entries.operation(1)}

    def test_proof_of_another_action_moves_nothing(self, rig, entries):
        """A proofRef counts only with its own uid, server and action digest."""

        async def scenario(rig):
            authority, guard = await both(rig)
            await rig.append(
                authority,
                entries.decision(
                    1,
                    1.0,
                    entries.READ,
                    operation=entries.operation(1),
                    proofRef=entries.PROOF,
                    label="agent",
                ),
            )
            await rig.append(
                guard,
                entries.invocation(1, 1.1, entries.POST, call="1.1", label="guard", proofRef=entries.PROOF),
            )
            await rig.close_all()

        run(rig, scenario)
        assert sorted(len(vcon["events"]) for vcon in rig.vcons()) == [1, 1]

    @pytest.mark.parametrize("call", ["READ", "POST"])
    @pytest.mark.parametrize("order", ["decision-call-end", "call-decision-end", "call-end-decision"])
    def test_ended_calls_are_forgotten(self, rig, entries, order, call):
        """Connections stay open for weeks: whatever came first, and whether the proof fits, no ended call stays."""

        async def scenario(rig):
            clients = dict(zip(("authority", "guard"), await both(rig), strict=True))
            await rig.append(clients["guard"], entries.connection(1, 0.5))
            number = {"authority": 0, "guard": 1}
            for count in range(1, 4):
                proof = {"proofRef": str(ProofRef.of(b"%d" % count))}
                for what in order.split("-"):
                    who = "authority" if what == "decision" else "guard"
                    number[who] += 1
                    at = number[who], float(count)
                    entry = {
                        "decision": lambda at=at, proof=proof, count=count: entries.decision(
                            *at, entries.READ, operation=entries.operation(count), **proof
                        ),
                        "call": lambda at=at, proof=proof, count=count: entries.invocation(
                            *at, getattr(entries, call), call=f"1.{count}", **proof
                        ),
                        "end": lambda at=at, count=count: entries.response(
                            *at, "result", call=f"1.{count}", content=entries.text("ok")
                        ),
                    }[what]()
                    await rig.append(clients[who], entry)
            table = rig.recorder._recording.table
            left = len(table._calls), [len(one.calls) for one in table._connections.values()]
            await rig.close_all()
            return left

        assert run(rig, scenario) == (0, [0])
        (vcon,) = rig.vcons()
        assert len(vcon["events"]) == 9


class TestFollowing:
    def test_late_response_goes_to_a_following_session(self, rig, entries):
        """A result after the close is recorded in the next session of the key, with its operation and attempt."""

        async def scenario(rig):
            authority, guard = await both(rig)
            whole = entries.conversation()
            await rig.append(authority, *whole["authority"])
            await rig.append(guard, *whole["guard"][:6])
            await rig.close_all()
            await rig.append(guard, *whole["guard"][6:])
            await rig.close_all()

        run(rig, scenario)
        first, second = rig.vcons()
        assert [event["type"] for event in second["events"]] == ["tool-result"]
        (event,) = second["events"]
        assert (event["operation_id"], event["attempt"]) == (entries.operation(3), 1)
        assert first["sessions"][0]["agent_session_id"] != second["sessions"][0]["agent_session_id"]

    @pytest.mark.req("TI-071", "TI-072", "TI-074")
    def test_attempts_go_on_across_sessions_and_restarts(self, rig, entries):
        """A proof used again after the close is attempt 2 of the same operation, also after a restart."""

        async def before(rig):
            authority, guard = await both(rig)
            whole = entries.conversation()
            await rig.append(authority, whole["authority"][0])
            await rig.append(guard, *whole["guard"][:3])
            await rig.close_all()

        async def after(rig):
            guard = await rig.client("g-1", server="filesystem")
            await rig.append(
                guard,
                entries.invocation(4, 3.0, entries.READ, call="1.9", proofRef=entries.PROOF, admitted=False),
            )
            await rig.close_all()

        run(rig, before)
        run(rig, after)
        _, second = rig.vcons()
        (event,) = second["events"]
        assert (event["operation_id"], event["attempt"]) == (entries.operation(1), 2)

    def test_too_many_events_open_a_following_session(self, make_rig, entries):
        """A session with SESSION_EVENTS entries is closed at once, and the next entry opens another."""
        rig = make_rig(session_events=3)

        async def scenario(rig):
            authority, _ = await both(rig)
            for n in range(1, 8):
                await rig.append(
                    authority, entries.decision(n, n, entries.READ, operation=entries.operation(n))
                )
            await rig.pass_time(0)

        run(rig, scenario)
        assert causes(rig) == ["size", "size"]
        assert [len(vcon["events"]) for vcon in rig.vcons()] == [3, 3]

    def test_too_much_content_opens_a_following_session(self, make_rig, entries):
        """A session with SESSION_BYTES of content is closed at once."""
        rig = make_rig(session_bytes=1000)

        async def scenario(rig):
            _, guard = await both(rig)
            guard_entries = entries.conversation()["guard"]
            await rig.append(guard, *guard_entries[:2])
            await rig.append(guard, guard_entries[2] | {"content": entries.text("x" * 2000)})
            await rig.pass_time(0)

        run(rig, scenario)
        assert causes(rig) == ["size"]


class TestListing:
    def test_sessions_are_listed_with_state_and_file(self, rig, entries):
        """record/sessions shows open and closed sessions, the vCon's file and what our own check said."""

        async def scenario(rig):
            await one_call(rig, entries)
            operator = await rig.client()
            first = await rig.call(operator, "record/sessions", {})
            await rig.close_all()
            second = await rig.call(operator, "record/sessions", {})
            status = await rig.call(operator, "record/status", {})
            return first["sessions"], second["sessions"], status

        opened, closed, status = run(rig, scenario)
        assert [(one["state"], one["entries"], one["caller"]) for one in opened] == [
            ("open", 5, "code-review")
        ]
        assert closed[0]["state"] == "signed"
        assert closed[0]["check"]["errors"] == 0
        assert (rig.records / closed[0]["vcon"]["file"]).exists()
        assert status["status"] == status["isolation"] == "degraded"
        assert status["sessions"] == {"open": 0, "closed": 1, "unsealed": 0}

    def test_restart_keeps_the_list(self, rig, entries):
        """Closed sessions are listed by the next recorder too."""

        async def before(rig):
            await one_call(rig, entries)
            await rig.close_all()

        async def after(rig):
            return (await rig.call(await rig.client(), "record/sessions", {}))["sessions"]

        run(rig, before)
        (closed,) = run(rig, after)
        assert closed["state"] == "signed"
        assert len(rig.files()) == 1
