"""The agent host of the demonstration: a process of its own, and a script instead of a model.

It does what an agent with an injected instruction would do: it reads a pull request, and then it obeys what the
pull request says. It holds no key and no secret; all it can do is ask for proofs and send calls.

The driver sends one JSON line per step, `{"name": "1"}`, and gets one line back, `{"outcomes": [...]}`. Proofs
stay in this process. Closing standard input ends the host.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp
import mcp_types as types
from mcp.client import ClientRequestContext, advertise

from onrecord.authorize.client import CallProofClient, Proof
from onrecord.authorize.mcp_tasks import CallTasks
from onrecord.authorize.proven_calls import proven_call
from onrecord.base.configuration import Configuration
from onrecord.base.dates import boottime_ns
from onrecord.base.namespaces import CALL_PROOF_EXTENSION, RECORD_SESSION_META
from onrecord.examples.demo.outcomes import Outcome
from onrecord.examples.demo.tree import REVIEWER

CREDENTIALS: Final = {"path": "~/.aws/credentials"}
README: Final = {"path": "repo/README.md"}
MAIN: Final = {"path": "repo/src/main.ts"}
GUIDE: Final = {"path": "repo/GUIDE.md"}
COMMENT: Final = {"number": 17, "body": "Please add a test for a parcel without a weight."}
REPOSITORY: Final = {"repo_path": "repo"}

STALE_AFTER_NS: Final = 2_500_000_000
"""Longer than the two seconds for which a proof of this demonstration counts."""


class Host:
    """Connections to the servers, made when a step needs them and kept until the end."""

    def __init__(self, configuration: Configuration, stack: AsyncExitStack) -> None:
        self._configuration = configuration
        self._stack = stack
        self._clients: dict[tuple[str, bool], mcp.Client] = {}
        self._proofs: CallProofClient | None = None
        self._kept: dict[str, Proof] = {}

    async def step(self, name: str, *, seconds: float | None = None) -> list[Outcome]:
        """Do one step and say what came of each of its calls; `seconds` is how long a call may wait for a person."""
        match name:
            case "1":
                return [await self.call(README)]
            case "2":
                read = await self.call({"number": 17}, tool="get_pull_request")
                return [read, await self.call(CREDENTIALS)]
            case "3":
                return [await self.send(CREDENTIALS, None)]
            case "4":
                return [await self.send(CREDENTIALS, await self.prove(README))]
            case "5":
                proof = await self.prove(MAIN)
                return [await self.send(MAIN, proof), await self.send(MAIN, proof)]
            case "6":
                proof = await self.prove(README)
                await _sleep_boottime(STALE_AFTER_NS)
                return [await self.send(README, proof)]
            case "7":
                await (await self.client("archive", pipe=True)).list_tools()
                return [await self.send(GUIDE, await self.prove(GUIDE, server="archive"))]
            case "8":
                return [await self.call(COMMENT, tool="post_comment", seconds=seconds)]
            case "9":
                log = await self.call(REPOSITORY | {"max_count": 5}, tool="git_log", server="git")
                return [log, await self.call(REPOSITORY, tool="git_reset", server="git")]
            case "9b":
                return [await self.request_review()]
            case "10a-get":
                self._kept = {"P": await self.prove(README), "Q": await self.prove(README)}
                return []
            case "10a":
                return [await self.send(README, self._kept["P"])]
            case "10b":
                stale = await self.send(README, self._kept["Q"])
                return [stale, await self.call(README)]
            case _:
                raise ValueError(f"there is no step {name}")

    async def client(self, server: str, *, pipe: bool) -> mcp.Client:
        """Return the connection through `onrecord connect SERVER`, with or without --pipe."""
        key = (server, pipe)
        if key not in self._clients:
            arguments = ["-m", "onrecord", "connect", server, "--config", str(self._configuration.file)]
            command = mcp.StdioServerParameters(
                command=sys.executable, args=[*arguments, "--pipe"] if pipe else arguments
            )
            # Behind a pipe the client itself must know call proofs; behind the connector it need not.
            extensions = [advertise(CALL_PROOF_EXTENSION), CallTasks()] if pipe else None
            client = mcp.Client(
                command,
                mode="auto",
                extensions=extensions,
                elicitation_callback=_answer_question if pipe else None,
            )
            self._clients[key] = await self._stack.enter_async_context(client)
        return self._clients[key]

    async def prove(self, arguments: Mapping[str, Any], *, server: str = "filesystem") -> Proof:
        """Ask the authority for a proof of read_file with these arguments."""
        if self._proofs is not None and self._proofs.closed:
            self._proofs = None  # the authority has been away
        proofs = await self.proofs()
        return await proofs.issue(server, "read_file", arguments)

    async def proofs(self) -> CallProofClient:
        """Return the connection to the authority, also when it has ended: it still knows its record session."""
        if self._proofs is None:
            self._proofs = await CallProofClient.connect(self._configuration)
        return self._proofs

    async def call(
        self,
        arguments: Mapping[str, Any],
        *,
        tool: str = "read_file",
        server: str = "filesystem",
        seconds: float | None = None,
    ) -> Outcome:
        """Call through the ordinary connector, which gets the proof by itself.

        With `seconds` the call asks for progress, which tells the connector that it may wait for a person for longer.
        """
        client = await self.client(server, pipe=False)
        return await _outcome(client, tool, arguments, None, seconds=seconds)

    async def send(self, arguments: Mapping[str, Any], proof: Proof | None) -> Outcome:
        """Call read_file of "filesystem" through the pipe, with this proof or without any."""
        client = await self.client("filesystem", pipe=True)
        proofs = await self.proofs()
        # Without a proof the call still says which record session it belongs to.
        unproven = {RECORD_SESSION_META: proofs.record_session}
        meta = unproven if proof is None else proofs.proof_meta(proof)
        return await _outcome(client, "read_file", arguments, meta)

    async def request_review(self) -> Outcome:
        """Call the tool that asks back, through the pipe, with a fresh proof for each round."""
        client = await self.client("archive", pipe=True)
        try:
            call = proven_call(client, await self.proofs(), "archive", "request_review", {"number": 17})
            return _of_result(await call)
        except mcp.MCPError as error:
            return _of_error(error)


async def _answer_question(
    context: ClientRequestContext,  # noqa: ARG001 - the SDK gives both by name
    params: types.ElicitRequestParams,  # noqa: ARG001
) -> types.ElicitResult:
    """Say what the user of the host would: the reviewer."""
    return types.ElicitResult(action="accept", content={"reviewer": REVIEWER})


async def _outcome(
    client: mcp.Client,
    tool: str,
    arguments: Mapping[str, Any],
    meta: dict[str, Any] | None,
    *,
    seconds: float | None = None,
) -> Outcome:
    try:
        result = await client.call_tool(
            tool,
            dict(arguments),
            meta=meta,  # type: ignore[arg-type]
            read_timeout_seconds=seconds,
            progress_callback=None if seconds is None else _ignore_progress,
        )
    except mcp.MCPError as error:
        return _of_error(error)
    return _of_result(result)


def _of_error(error: mcp.MCPError) -> Outcome:
    data = error.data if isinstance(error.data, dict) else {}
    return Outcome("error", code=error.code, reason=str(data.get("reason", "")))


def _of_result(result: types.CallToolResult) -> Outcome:
    text = "".join(block.text for block in result.content if block.type == "text")
    return Outcome("failure" if result.is_error else "result", text=text)


async def _ignore_progress(progress: float, total: float | None, message: str | None) -> None:
    """Take the notes of a call that waits: asking for them is what makes the wait longer."""


async def _sleep_boottime(duration_ns: int) -> None:
    """Wait by the clock that the authority uses, which runs on in suspend."""
    end = boottime_ns() + duration_ns
    while (rest := end - boottime_ns()) > 0:
        await anyio.sleep(rest / 1e9)


async def _serve(configuration: Configuration) -> None:
    async with AsyncExitStack() as stack:
        host = Host(configuration, stack)
        while line := await anyio.to_thread.run_sync(sys.stdin.buffer.readline):
            try:
                outcomes = await host.step(**json.loads(line))
                answer: dict[str, Any] = {"outcomes": [outcome.to_json() for outcome in outcomes]}
            except Exception as fault:
                answer = {"fault": f"{type(fault).__name__}: {getattr(fault, 'code', '')}".rstrip(": ")}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def main() -> None:
    """Run the host until standard input ends."""
    parser = argparse.ArgumentParser(prog="onrecord.examples.demo.agent")
    parser.add_argument("--config", type=Path, required=True)
    options = parser.parse_args()
    anyio.run(_serve, Configuration.load(options.config))


if __name__ == "__main__":
    main()
