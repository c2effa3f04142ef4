"""record/hello and record/append: numbers, repeats, holes, bad entries, limits."""

from __future__ import annotations

import asyncio
import json
import os
import socket

import pytest

from onrecord.base.errors import NetworkError
from onrecord.base.wire import RpcError
from onrecord.record.recorder.recorded import Origin
from onrecord.record.recorder.settings import APPEND_BATCH, RECORD_LINE_BYTES
from support.journals import gate


def run(rig, scenario):
    async def main():
        async with rig:
            return await scenario(rig)

    return asyncio.run(main())


async def refused(rig, client, method, params):
    with pytest.raises(RpcError) as error:
        await rig.call(client, method, params)
    return error.value


def records(rig):
    with rig.open_journal() as journal:
        return journal.read()


class TestHello:
    def test_new_source_starts_at_zero(self, rig):
        """A source that the recorder has never seen is told through 0."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            return client.hello

        assert run(rig, scenario) == {"version": "1", "through": 0, "status": "degraded"}

    def test_through_survives_reconnect_and_restart(self, rig, entries):
        """`through` is the last number on disk, for the next connection and for the next recorder process."""

        async def scenario(rig):
            await rig.append(
                await rig.client("g-1", server="filesystem"), *entries.conversation()["guard"][:3]
            )
            return (await rig.client("g-1", server="filesystem")).hello["through"]

        assert run(rig, scenario) == 3

        async def again(rig):
            return (await rig.client("g-1", server="filesystem")).hello["through"]

        assert run(rig, again) == 3

    @pytest.mark.parametrize(
        ("params", "code", "reason"),
        [
            ({"versions": ["2"], "source": "g-1"}, -33009, "unsupported_version"),
            ({"source": "g-1"}, -33009, "unsupported_version"),
            ({"versions": ["1"]}, -32602, "invalid_params"),
            ({"versions": ["1"], "source": ""}, -32602, "invalid_params"),
            ({"versions": ["1"], "source": "a b"}, -32602, "invalid_params"),
            ({"versions": ["1"], "source": "x" * 65}, -32602, "invalid_params"),
            ({"versions": ["1"], "source": "g-1", "server": "UPPER"}, -32602, "invalid_params"),
            ({"versions": ["1"], "source": "g-1", "server": 5}, -32602, "invalid_params"),
        ],
    )
    def test_bad_hello(self, rig, params, code, reason):
        """A hello without a common version, a source, or with an impossible server is refused by name."""

        async def scenario(rig):
            return await refused(rig, await rig.client(), "record/hello", params)

        error = run(rig, scenario)
        assert (error.rpc_code, error.data["reason"]) == (code, reason)


class TestNumbers:
    def test_acknowledgement_names_the_commit(self, rig, entries):
        """The answer has through, seq and size of the commit, and the signed checkpoint of that size."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            return await rig.append(client, *entries.conversation()["guard"][:3])

        answer = run(rig, scenario)
        assert answer["through"] == 3
        assert answer["size"] == answer["seq"] + 1
        assert answer["note"].split("\n")[1] == str(answer["size"])

    def test_numbers_of_the_transcript(self, rig, entries):
        """journal.open is record 0; a connection opens no session; the first decision does."""

        async def scenario(rig):
            guard, authority = await rig.client("g-1", server="filesystem"), await rig.client("a-1")
            whole = entries.conversation()
            first = await rig.append(guard, whole["guard"][0])
            second = await rig.append(authority, whole["authority"][0])
            return first["seq"], second["seq"]

        assert run(rig, scenario) == (1, 3)
        assert [one.type for one in records(rig)][:4] == ["journal.open", "trace", "session.open", "trace"]

    def test_repeats_are_acknowledged_and_ignored(self, rig, entries):
        """Entries that came before are acknowledged again and stored once."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            batch = entries.conversation()["guard"][:4]
            await rig.append(client, *batch)
            again = await rig.append(client, *batch)
            mixed = await rig.append(client, *entries.conversation()["guard"][2:6])
            return again["through"], mixed["through"]

        assert run(rig, scenario) == (4, 6)
        numbers = [one.data["entry"]["n"] for one in records(rig) if one.type == "trace"]
        assert numbers == [1, 2, 3, 4, 5, 6]

    def test_same_numbers_of_another_source_are_other_entries(self, rig, entries):
        """(source, n) is the key, not n."""

        async def scenario(rig):
            one = await rig.append(
                await rig.client("g-1", server="filesystem"), *entries.conversation()["guard"][:2]
            )
            two = await rig.append(
                await rig.client("g-2", server="filesystem"), *entries.conversation()["guard"][:2]
            )
            return one["through"], two["through"]

        assert run(rig, scenario) == (2, 2)
        assert sum(one.type == "trace" for one in records(rig)) == 4

    def test_hole_is_refused(self, rig, entries):
        """A missing number refuses the whole batch with record_gap and names the last number that is here."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            guard = entries.conversation()["guard"]
            await rig.append(client, guard[0])
            error = await refused(rig, client, "record/append", {"entries": [guard[1], guard[3]]})
            return error, (await rig.client("g-1", server="filesystem")).hello["through"]

        error, through = run(rig, scenario)
        assert (error.rpc_code, error.data) == (-33201, {"reason": "record_gap", "through": 1})
        assert through == 1

    @pytest.mark.parametrize("gap_n", [2, 5])
    def test_hole_beside_a_gap_entry_is_accepted(self, rig, entries, gap_n):
        """A gap entry says that entries are lost: then a hole after it (or before it) is no fault."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            guard = entries.conversation()["guard"]
            gap = {"n": gap_n, "kind": "gap", **entries.at(5), "entries": 4, "cause": "spool-full"}
            await rig.append(client, guard[0], gap)
            return await rig.append(client, guard[5])

        assert run(rig, scenario)["through"] == 6

    def test_bad_gap_entry_excuses_nothing(self, rig, entries):
        """Something that calls itself a gap but is none does not open a hole."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            gap = {"n": 1, "kind": "gap", "time": "yesterday", "mono_ns": 1}
            batch = [gap, entries.conversation()["guard"][5]]
            return await refused(rig, client, "record/append", {"entries": batch})

        assert run(rig, scenario).data["reason"] == "record_gap"


class TestBadEntries:
    @pytest.mark.parametrize(
        ("change", "member"),
        [
            ({"kind": "nonsense"}, "kind"),
            ({"kind": 5}, "kind"),
            ({"time": "2026-11-30 10:00:00"}, "time"),
            ({"mono_ns": -1}, "mono_ns"),
            ({"mono_ns": True}, "mono_ns"),
            ({"call": ""}, "call"),
            ({"call": "a\nb"}, "call"),
            ({"session": None}, "session"),
            ({"session": {"uid": -1, "label": "x"}}, "uid"),
            ({"session": {"uid": 1, "label": "no spaces"}}, "label"),
            ({"tool": "x" * 1025}, "tool"),
            ({"actionDigest": "short"}, "actionDigest"),
            ({"proofRef": "short"}, "proofRef"),
            ({"admitted": "yes"}, "admitted"),
            ({"arguments": [1]}, "arguments"),
        ],
    )
    def test_bad_entry_is_kept_and_the_rest_goes_on(self, rig, entries, change, member):
        """A bad entry becomes trace.invalid, names its member, is acknowledged, and does not stop the next."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            guard = entries.conversation()["guard"]
            return await rig.append(client, guard[0], guard[1] | change, guard[2])

        assert run(rig, scenario)["through"] == 3
        found = [one for one in records(rig) if one.type.startswith("trace")]
        assert [one.type for one in found] == ["trace", "trace.invalid", "trace"]
        assert (found[1].data["n"], found[1].data["member"]) == (2, member)

    @pytest.mark.parametrize(
        "garbage", [None, 5, "text", [], {}, {"n": 0}, {"n": "2"}, {"n": 2.0}, {"n": True}]
    )
    def test_entry_without_number_stands_for_the_next_one(self, rig, entries, garbage):
        """Garbage in the middle of a batch takes the number that is missing there."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            guard = entries.conversation()["guard"]
            first = await rig.append(client, guard[0], garbage, guard[2])
            again = await rig.append(client, guard[0], garbage, guard[2])
            return first["through"], again["through"]

        assert run(rig, scenario) == (3, 3)
        assert sum(one.type == "trace.invalid" for one in records(rig)) == 1

    @pytest.mark.parametrize("count", [1, 2])
    def test_garbage_takes_no_number_of_an_entry(self, rig, entries, count):
        """A batch that begins with garbage and is sent again takes no number of the entries that follow."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            guard = entries.conversation()["guard"]
            shifted = [one | {"n": number} for number, one in enumerate(guard[:4], count + 1)]
            batch = [*[{"kind": "result"}] * count, *shifted[:2]]
            for _ in range(3):
                await rig.append(client, *batch)
            return (await rig.append(client, *shifted[2:]))["through"]

        assert run(rig, scenario) == 4 + count
        found = [one for one in records(rig) if one.type.startswith("trace")]
        assert [one.type for one in found] == ["trace.invalid"] * count + ["trace"] * 4
        assert [one.data["entry"]["n"] for one in found[count:]] == list(range(count + 1, count + 5))

    def test_garbage_in_front_of_the_first_entry(self, rig, entries):
        """Where no number is missing garbage has none, and every entry that has one is recorded."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            guard = entries.conversation()["guard"]
            return (await rig.append(client, {}, guard[0], "x", guard[1]))["through"]

        assert run(rig, scenario) == 2
        assert [one.type for one in records(rig) if one.type.startswith("trace")] == ["trace", "trace"]

    def test_arguments_of_a_bad_entry_are_not_kept(self, rig, entries):
        """Nobody can say whether a call with a bad entry was allowed, so its arguments and content stay out."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            bad = entries.conversation()["guard"][1] | {"call": "", "arguments": {"path": "canary-4491"}}
            bad |= {"content": "canary-4491"}
            await rig.append(client, entries.conversation()["guard"][0], bad)
            return rig.all_bytes()

        assert b"canary-4491" not in run(rig, scenario)
        (invalid,) = [one for one in records(rig) if one.type == "trace.invalid"]
        assert invalid.data["omitted"] == ["arguments", "content"]

    def test_odd_json_of_a_tool_is_recorded(self, rig, entries):
        """64-bit integers, deep nesting, unpaired surrogates and huge numbers in a result stop nothing."""
        deep = inner = []
        for _ in range(100):
            inner.append([])
            inner = inner[0]
        content = json.dumps({"content": [], "id": 2**63 - 1, "big": 10**30, "deep": deep, "s": "\ud800x"})

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            guard = entries.conversation()["guard"]
            await rig.append(client, guard[0], guard[1])
            params = {"entries": [guard[2] | {"content": 0}]}
            message = {"jsonrpc": "2.0", "id": 9, "method": "record/append", "params": params}
            line = json.dumps(message).replace('"content": 0', f'"content": {content}')
            reader, writer = await asyncio.open_unix_connection(str(rig.settings.socket))
            hello = {"versions": ["1"], "source": "g-1", "server": "filesystem"}
            message = {"jsonrpc": "2.0", "id": 1, "method": "record/hello", "params": hello}
            writer.write(json.dumps(message).encode() + b"\n" + line.encode() + b"\n")
            answers = [json.loads(await reader.readline()) for _ in range(2)]
            writer.close()
            await rig.close_all()
            return answers[1]

        assert run(rig, scenario)["result"]["through"] == 3
        (vcon,) = rig.vcons()
        body = next(event["body"] for event in vcon["events"] if event["type"] == "tool-result")
        assert (body["id"], body["big"], body["s"]) == (2**63 - 1, str(10**30), "\ufffdx")

    def test_boot_time_beyond_53_bits(self, rig, entries):
        """A machine that is up for 104 days and more sends mono_ns as a string of digits."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            return await rig.append(client, entries.conversation()["guard"][0] | {"mono_ns": str(2**60)})

        assert run(rig, scenario)["through"] == 1
        (trace,) = [one for one in records(rig) if one.type == "trace"]
        assert trace.data["entry"]["mono_ns"] == 2**60


class TestLimits:
    @pytest.mark.parametrize("count", [0, APPEND_BATCH + 1])
    def test_batch_size(self, rig, entries, count):
        """A batch has 1 to 64 entries."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            batch = [entries.connection(n + 1, 0.1) for n in range(count)]
            return await refused(rig, client, "record/append", {"entries": batch})

        assert run(rig, scenario).data == {"reason": "invalid_params", "detail": "entries"}

    def test_full_batch_is_one_group(self, rig, entries):
        """64 entries are taken, and the answer comes after all of them are on disk."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            batch = [entries.connection(n + 1, 0.1, connection=str(n)) for n in range(APPEND_BATCH)]
            answer = await rig.append(client, *batch)
            return answer, rig.journal.size

        answer, size = run(rig, scenario)
        assert answer["through"] == APPEND_BATCH
        assert size >= answer["size"] == APPEND_BATCH + 1

    def test_append_before_hello(self, rig, entries):
        """Without a hello nobody knows whose entries these are."""

        async def scenario(rig):
            client = await rig.client()
            return await refused(
                rig, client, "record/append", {"entries": entries.conversation()["guard"][:1]}
            )

        assert run(rig, scenario).data == {"reason": "invalid_request", "detail": "hello"}

    def test_unknown_method(self, rig):
        """An unknown method is answered by name."""

        async def scenario(rig):
            return await refused(rig, await rig.client(), "record/erase", {})

        assert run(rig, scenario).rpc_code == -32601

    def test_long_content_fits_and_longer_lines_close(self, rig, entries):
        """A line of 16 MiB passes; one beyond RECORD_LINE_BYTES is answered too_large and the connection closes."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            guard = entries.conversation()["guard"]
            big = guard[2] | {"content": {"content": [{"type": "text", "text": "x" * (16 << 20)}]}}
            first = await rig.append(client, guard[0], guard[1], big)
            with pytest.raises(NetworkError) as error:
                await rig.append(client, guard[3] | {"tool": "y" * RECORD_LINE_BYTES})
            return first["through"], error.value.code

        assert run(rig, scenario) == (3, "closed")

    def test_unanswered_requests_are_bounded(self, rig, entries):
        """Many pipelined requests are all answered, in spite of the limit of unanswered ones."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            calls = [rig.append(client, entries.connection(n + 1, 0.1)) for n in range(300)]
            answers = await asyncio.gather(*calls)
            return max(answer["through"] for answer in answers)

        assert run(rig, scenario) == 300


class TestUnavailable:
    def test_failing_journal_is_told_and_nothing_is_lost(self, rig, entries, monkeypatch):
        """While the journal cannot be written appends answer record_unavailable; afterwards all is there once."""

        async def scenario(rig):
            client = await rig.client("g-1", server="filesystem")
            guard = entries.conversation()["guard"]
            await rig.append(client, guard[0])
            store = rig.journal._store
            commit = store.commit
            from onrecord.record.ledger.store import unavailable

            def broken(_entries):
                raise unavailable("test")

            store.commit = broken
            errors = [await refused(rig, client, "record/append", {"entries": guard[1:3]})]
            errors.append(await refused(rig, client, "record/append", {"entries": guard[1:3]}))
            errors.append(await refused(rig, client, "record/append", {"entries": guard[1:4]}))
            through = (await rig.client("g-1", server="filesystem")).hello["through"]
            store.commit = commit
            while not rig.journal.available:
                await asyncio.sleep(0.01)
            answer = await rig.append(client, *guard[1:4])
            return errors, through, answer["through"]

        errors, through, after = run(rig, scenario)
        assert {(one.rpc_code, one.data["reason"]) for one in errors} == {(-33202, "record_unavailable")}
        assert (through, after) == (1, 4)
        numbers = [one.data["entry"]["n"] for one in records(rig) if one.type == "trace"]
        assert numbers == [1, 2, 3, 4]


def test_a_receipt_after_the_end_is_nobodys(rig, entries, caplog):
    """Entries that reach the disk while the recorder ends are kept, and nothing reports a fault."""

    async def scenario():
        await rig.start()
        recording = rig.recorder._recording
        source = recording.hello(Origin(os.geteuid(), "filesystem", "g-1"), pid=os.getpid())
        held = gate(rig.journal)
        held.acquire()
        assert recording.append(source, entries.conversation()["guard"][:3]) is not None
        await rig.recorder.stop()
        return held

    asyncio.run(scenario()).release()
    rig.journal.close()
    assert caplog.messages == []
    assert [one.data["entry"]["n"] for one in records(rig) if one.type == "trace"] == [1, 2, 3]


def test_socket_is_private(rig):
    """In user mode record.sock has mode 0600."""

    async def scenario(rig):
        return rig.settings.socket.stat().st_mode & 0o777

    assert run(rig, scenario) == 0o600
    assert not rig.settings.socket.exists()
    assert socket.AF_UNIX
