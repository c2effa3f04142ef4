"""The guard's connection to the authority."""

import asyncio
import os

import pytest

from authorize.guard.fakes import FakeAuthority, serve
from onrecord.authorize.guard.authority_link import AuthorityLink, Tool
from onrecord.authorize.guard.log import GuardLog
from onrecord.base.rpc_client import RpcClient
from onrecord.base.wire import error_line

TOOLS = [Tool("echo", "sha-256:2VsAsnyiu74R77Trzz5O5NYQNsgBgxvMrIGzIa9nN-U")]


def question(value="none"):
    return {"actionDigest": "x" * 43, "server": "files", "evidence": {"type": "t", "value": value}}


class House:
    def __init__(self, directory, *, expected_uid=None, timeout_ms=2000):
        self.path = directory / "a.sock"
        self.authority = FakeAuthority()
        self.server = None
        self.expected_uid = os.getuid() if expected_uid is None else expected_uid
        self.log_path = directory / "guard.log"
        self.checkpoints = []
        self.link = AuthorityLink(
            connect=self.connect,
            server="files",
            hello_timeout_ms=timeout_ms,
            verify_timeout_ms=timeout_ms,
            log=GuardLog(self.log_path),
            on_checkpoint=self.checkpoints.append,
        )

    async def connect(self):
        return await RpcClient.connect(self.path, expected_uid=self.expected_uid)

    async def open(self):
        self.server = await serve(self.authority, self.path)

    async def shut(self):
        await self.server.stop()
        self.server = None

    async def verdict(self, params):
        done = asyncio.get_running_loop().create_future()
        self.link.verify(params, done.set_result)
        return await done

    async def report(self, tools=TOOLS):
        done = asyncio.Event()
        self.link.report(tools, done.set)
        await asyncio.wait_for(done.wait(), 20)

    async def close(self):
        await self.link.close()
        if self.server is not None:
            await self.server.stop()


def run(test, *args, **kwargs):
    async def inner():
        house = House(*args, **kwargs)
        try:
            await test(house)
        finally:
            await house.close()

    asyncio.run(inner())


def test_reports_come_before_everything_else(short_dir):
    """After a loss the tools are reported again before the first verify."""

    async def test(house):
        await house.open()
        house.link.start()
        await house.report()
        await house.shut()
        await house.open()
        while house.authority.connections == [] or len(house.authority.requests) < 4:
            await asyncio.sleep(0.01)
        await house.verdict(question())
        names = [name for name, _ in house.authority.requests]
        first, *others = names
        assert first == "callProof/hello"
        assert others == ["callProof/tools", "callProof/hello", "callProof/tools", "callProof/verify"]
        assert house.authority.tools == [{"name": "echo", "inputSchemaSha256": TOOLS[0].schema_hash}]

    run(test, short_dir)


@pytest.mark.req("CP-044")
def test_nobody_there_is_unreachable(short_dir):
    """A call ends, and does not wait for the authority to come back."""

    async def test(house):
        house.link.start()
        verdict = await asyncio.wait_for(house.verdict(question()), 20)
        assert verdict.reason == "authority_unreachable"

    run(test, short_dir)


@pytest.mark.req("CP-116")
@pytest.mark.parametrize(
    "answer",
    [
        error_line(1, -33007, "x", {"reason": "audit_unavailable"}),
        {"valid": "true"},
        {"valid": 1},
        {"valid": False},
        {"valid": False, "reason": "because"},
        {"valid": None, "reason": "mismatch"},
        [],
        None,
        b"no json\n",
    ],
)
def test_any_other_answer_is_unreachable(short_dir, answer):
    """An error, an unreadable line, an unknown reason: nothing but valid true is valid."""

    async def test(house):
        house.authority.answers["callProof/verify"] = [answer]
        await house.open()
        house.link.start()
        await house.report()
        real = house.authority.on_request

        def with_id(connection, request):
            line = real(connection, request)
            return line.replace(b'"id":1,', b'"id":%d,' % request.id) if line else line

        house.authority.on_request = with_id
        verdict = await house.verdict(question())
        assert verdict.reason == "authority_unreachable"

    run(test, short_dir)


@pytest.mark.req("CP-116")
def test_a_silent_authority_is_asked_once(short_dir):
    """After the time limit the call is refused, and the same verify is never sent again."""

    async def test(house):
        await house.open()
        house.link.start()
        await house.report()
        house.authority.silent.add("callProof/verify")
        verdict = await house.verdict(question())
        assert verdict.reason == "authority_unreachable"
        assert len(house.authority.asked("verify")) == 1

    run(test, short_dir, timeout_ms=200)


@pytest.mark.req("CP-116")
def test_a_connection_lost_after_the_question_is_not_repeated(short_dir):
    """The proof may be used: the answer is unreachable, and one verify was sent."""

    async def test(house):
        await house.open()
        house.link.start()
        await house.report()

        def drop(connection, request):
            house.authority.requests.append((request.method, request.params))
            if request.method == "callProof/verify":
                connection.close()
                return None
            return plain(connection, request)

        plain, house.authority.on_request = house.authority.on_request, drop
        verdict = await house.verdict(question())
        assert verdict.reason == "authority_unreachable"
        assert len(house.authority.asked("verify")) == 1

    run(test, short_dir)


@pytest.mark.req("CP-106")
def test_a_squatter_gets_no_byte(short_dir):
    """Acceptance 18: a socket of another uid is never used, and an alert is logged."""

    async def test(house):
        await house.open()
        house.link.start()
        verdict = await house.verdict(question())
        assert verdict.reason == "authority_unreachable"
        assert house.authority.requests == []
        assert "authority.unreachable code=peer-uid" in house.log_path.read_text()

    run(test, short_dir, expected_uid=os.getuid() + 1)


def test_the_newest_checkpoint_is_handed_out(short_dir):
    """Each valid answer may carry a note of the journal."""

    async def test(house):
        await house.open()
        house.link.start()
        house.authority.proofs["p"] = ["x" * 43, None, False]
        assert (await house.verdict(question("p"))).reason is None
        assert house.checkpoints[0]["size"] == 0

    run(test, short_dir)


def test_verdicts_fold_their_reasons(short_dir):
    """Case, "-" and space do not matter."""

    async def test(house):
        house.authority.answers["callProof/verify"] = [{"valid": False, "reason": "Unknown-Type"}]
        await house.open()
        house.link.start()
        assert (await house.verdict(question())).reason == "unknown_type"

    run(test, short_dir)
