"""`onrecord control`: steer a running authority over its control socket."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from onrecord.base import strict_json
from onrecord.base.configuration import Configuration
from onrecord.base.daemon_clients import connect_to_authority
from onrecord.base.errors import NetworkError, OnrecordError, PolicyError, UsageError, Where
from onrecord.base.ids import uuid7
from onrecord.base.namespaces import PROTOCOL_VERSION
from onrecord.base.wire import RpcError
from onrecord.cli.output import ConfigOption, JsonOption, console, emit, exit_with, visible

if TYPE_CHECKING:
    from pathlib import Path

CONTROL_TIMEOUT_MS: Final = 30_000
"""A reload signs nothing but checks everything; an auditor's page may look at many records."""

MAX_BUNDLE_BYTES: Final = 16 * 1024 * 1024

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, no_args_is_help=True, help="Steer a running authority."
)

ReasonOption = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why; it is journaled. Default: the command's name."),
]


class ControlClient:
    """A connection to the control socket. Errors of the other side become ours, with what to do next."""

    def __init__(self, config: Configuration) -> None:
        self._path = config.control_socket()
        self._client = connect_to_authority(config, self._path, group="control_group")

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of one control.

        Raises `NetworkError` with code "authority-unreachable", or `OnrecordError` with the reason as its code.
        """
        try:
            result = self._client.call(method, params, timeout_ms=CONTROL_TIMEOUT_MS)
        except RpcError as error:
            raise _explain(error, method) from error
        except NetworkError as error:
            raise NetworkError(
                f"the authority did not answer: {error}",
                code="authority-unreachable",
                hint="is `onrecord up` still running?",
                where=Where(file=str(self._path)),
            ) from error
        if not isinstance(result, dict):
            raise NetworkError("the authority's answer cannot be read", code="answer-unreadable")
        return result


def _explain(error: RpcError, method: str) -> OnrecordError:
    detail = error.data.get("detail")
    text = f"{method}: {error}" + (f" ({detail})" if isinstance(detail, str) else "")
    hints = {
        "not_authorized": "your uid, or userMode, needs the control role for this in the signed policy",
        "unknown_caller": "your uid is in no list of the signed policy",
        "unavailable": "no policy is in force: see the authority's log, then run onrecord control reload",
        "conflict": "the policy file or the version in force changed meanwhile; look at it and try again",
        "policy_unavailable": "no policy is in force: see the authority's log",
        "audit_unavailable": "the authority cannot write its journal: is the disk full?",
    }
    word = error.reason or "failed"
    kind = UsageError if word in {"invalid_params", "unknown_server"} else OnrecordError
    return kind(text, code=word.replace("_", "-"), hint=hints.get(word))


@app.command(short_help="Show the state of the authority.")
def status(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show the state of the authority: policy, counters, latency, tool servers.

    Exit 0 when it answers, whatever its state; 3 when it does not.
    """
    client = ControlClient(Configuration.load(config))
    hello = client.call("callProof/hello", {"versions": [PROTOCOL_VERSION]})
    if hello.get("status") == "not_ready":
        document = _not_ready(client, hello)
    else:
        document = _document(hello, client.call("control/metrics", {}), client.call("control/tools", {}))
    if as_json:
        emit(document)
    else:
        _print_status(document)


def _not_ready(client: ControlClient, hello: dict[str, Any]) -> dict[str, Any]:
    """Without a policy nobody has a role, so there may be no more to show than the state itself."""
    try:
        return _document(hello, client.call("control/metrics", {}), client.call("control/tools", {}))
    except OnrecordError:
        return _document(hello, {}, {})


def _document(hello: dict[str, Any], metrics: dict[str, Any], tools: dict[str, Any]) -> dict[str, Any]:
    """Return the shape of DESIGN.md."""
    latency = metrics.get("latency", {})
    return {
        "status": hello.get("status"),
        "mode": metrics.get("mode"),
        "isolation": metrics.get("isolation"),
        "policy_version": metrics.get("policyVersion"),
        "since": metrics.get("since"),
        "durability": metrics.get("durability"),
        "pending_approvals": metrics.get("pendingApprovals"),
        "recorder": metrics.get("recorder"),
        "counters": metrics.get("counters", {}),
        "latency": {
            method: {"p50": None, "p99": None, **latency.get(method, {})} for method in ("issue", "verify")
        },
        "servers": [
            {
                "server": entry["server"],
                "enforce": entry.get("enforce"),
                "tools": len(entry["tools"]),
                "bound": entry["bound"],
                "changed": entry["changed"],
                "unbound": entry["unbound"],
                "reported": entry["reported"],
            }
            for entry in tools.get("servers", [])
        ],
    }


def _cell(text: str) -> str:
    """Return text for a table cell: nothing in it is an escape sequence or markup."""
    return escape(visible(text))


def _recorder(state: dict[str, Any] | None) -> str:
    if not state:
        return "unknown"
    waiting = f", {state['backlog']} entries wait" if state["backlog"] else ""
    return ("connected" if state["connected"] else "not connected") + waiting


def _print_status(document: dict[str, Any]) -> None:
    out = console()
    rows = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    rows.add_row("status", _cell(str(document["status"])))
    if document["mode"] is not None:
        rows.add_row("mode", _cell(f"{document['mode']}, isolation {document['isolation']}"))
        rows.add_row("policy", _cell(f"version {document['policy_version']}"))
        rows.add_row("since", _cell(str(document["since"])))
        rows.add_row("recorder", _recorder(document["recorder"]))
        if document["pending_approvals"]:
            rows.add_row("approvals", f"{document['pending_approvals']} wait: onrecord approvals")
    for method, latency in document["latency"].items():
        if latency["p50"] is not None:
            rows.add_row(method, f"p50 {latency['p50']:.3f} ms, p99 {latency['p99']:.3f} ms")
    out.print(rows)
    servers = Table("tool server", "tools", "bound", "changed", "unbound", box=None, pad_edge=False)
    silent = [entry["server"] for entry in document["servers"] if not entry["reported"]]
    for entry in document["servers"]:
        row = (entry["tools"], entry["bound"], entry["changed"], entry["unbound"])
        if entry["reported"]:
            servers.add_row(_cell(entry["server"]), *map(str, row))
    if servers.row_count:
        out.print()
        out.print(servers)
    audited = [entry["server"] for entry in document["servers"] if entry["enforce"] == "audit"]
    if audited:
        out.print()
        out.print(f"audit mode, calls without a proof are executed: {_cell(', '.join(audited))}")
    if silent:
        out.print()
        out.print(f"not used yet, so their tools are unknown: {_cell(', '.join(silent))}")
    counters = Table("outcome", "count", box=None, pad_edge=False)
    for reason, count in document["counters"].items():
        counters.add_row(_cell(reason), str(count))
    if document["counters"]:
        out.print()
        out.print(counters)


@app.command(short_help="Put the signed bundle in force.")
def reload(config: ConfigOption = None, reason: ReasonOption = None, as_json: JsonOption = False) -> None:
    """Put the signed bundle of the configuration in force. Proofs and pending approvals of the old one are void.

    Exit 0 when it is in force, 1 when the authority refused it, 3 when there is no answer.
    """
    configuration = Configuration.load(config)
    version, digest = _bundle_identity(configuration.policy.bundle)
    result = ControlClient(configuration).call(
        "control/policy-reload",
        {
            "version": version,
            "digest": digest,
            "idempotencyKey": uuid7(),
            "reason": reason or "onrecord control reload",
        },
    )
    if as_json:
        emit(result)
    elif result.get("state") == "effective":
        print(f"policy version {version} is in force")
    else:
        print(f"refused [{visible(str(result.get('detail')))}]; the old policy stays in force")
    if result.get("state") != "effective":
        exit_with(1)


def _bundle_identity(path: Path) -> tuple[int, str]:
    """Return version and SHA-256 of the bundle file; its signature and rules are the authority's to judge."""
    where = Where(file=str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BUNDLE_BYTES + 1)
    except OSError as error:
        raise PolicyError(
            f"the policy bundle cannot be read ({error.strerror})",
            code="policy-missing",
            where=where,
            hint="onrecord policy sign DIR makes it",
        ) from error
    try:
        value, _ = strict_json.parse(data, max_bytes=MAX_BUNDLE_BYTES)
    except strict_json.Refused as refused:
        raise PolicyError(
            f"the policy bundle is not strict JSON ({refused})", code="policy-lint", where=where
        ) from refused
    version = value.get("version") if isinstance(value, dict) else None
    if type(version) is not int:
        raise PolicyError("the policy bundle has no version", code="policy-lint", where=where)
    return version, hashlib.sha256(data).hexdigest()


@app.command()
def decisions(
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Caller id.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="Record-session label.")] = None,
    server: Annotated[str | None, typer.Option("--server", help="Tool server.")] = None,
    tool: Annotated[str | None, typer.Option("--tool", help="Tool name.")] = None,
    verdict: Annotated[str | None, typer.Option("--verdict", help="allow, deny or escalate.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Reason word.")] = None,
    digest: Annotated[str | None, typer.Option("--digest", help="Action Digest.")] = None,
    since: Annotated[str | None, typer.Option("--from", metavar="TIME", help="RFC 3339 time.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="RFC 3339 time.")] = None,
    cursor: Annotated[int | None, typer.Option("--cursor", help="Where the page before ended.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Entries, 1000 at most.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show entries of the decision journal. Exit 0 with a page, 3 when the authority does not answer."""
    asked = {
        "agent": agent,
        "session": session,
        "server": server,
        "tool": tool,
        "verdict": verdict,
        "reason": reason,
        "actionDigest": digest,
        "from": since,
        "until": until,
        "cursor": cursor,
        "limit": limit,
    }
    client = ControlClient(Configuration.load(config))
    page = client.call(
        "control/decision-logging", {name: value for name, value in asked.items() if value is not None}
    )
    if as_json:
        emit(page)
        return
    screen = console()
    columns = screen.width if screen.is_terminal else None
    header, *lines = decision_lines(page["entries"], columns=columns)
    screen.print(Text(header, style="bold"), soft_wrap=True)
    for line in lines:
        screen.print(Text(line), soft_wrap=True)
    if page.get("next") is not None:
        print(f"more: --cursor {page['next']}")


def decision_lines(entries: Iterable[Mapping[str, Any]], *, columns: int | None) -> Iterator[str]:
    """Yield a header and the rows of entries, with a call never broken where `columns` has room for it.

    What does not fit beside stands in a row below: first the reason, then the call too. None: rows of any length.
    """
    rows: list[tuple[str, ...]] = [("seq", "time", "type", "call", "reason")]
    day = None
    for entry in entries:
        date, _, clock = str(entry.get("time", "")).partition("T")
        if date != day:
            rows.append(("", visible(date), "", "", ""))
            day = date
        call = "/".join(str(entry[name]) for name in ("server", "name") if entry.get(name))
        who = entry.get("caller")
        cells = (
            entry.get("seq", ""),
            clock,
            entry.get("type", ""),
            f"{who} -> {call}" if who and call else call or who or "",
            entry.get("reason", "") or (f"by {entry['approver']}" if entry.get("approver") else ""),
        )
        rows.append(tuple(visible(str(cell)) for cell in cells))
    widths = [max(cell_len(row[column]) for row in rows) for column in range(4)]
    before = sum(widths[:3]) + 6
    has_room = columns is None or all(
        before + widths[3] + 2 + cell_len(row[4]) <= columns for row in rows if row[4]
    )
    for seq, time, type_, call, reason in rows:
        start = "  ".join(map(_padded, (seq, time, type_), widths))
        if has_room:
            yield f"{start}  {_padded(call, widths[3])}  {reason}".rstrip()
            continue
        assert columns is not None
        is_below = bool(call) and before + cell_len(call) > columns
        indent = " " * min(before, 4) if is_below else " " * before
        yield start.rstrip() if is_below else f"{start}  {call}".rstrip()
        if is_below:
            yield f"{indent}{call}"
        if reason and seq != "seq":
            yield f"{indent}{reason}"


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _not_built(command: str) -> NoReturn:
    raise UsageError(
        f"onrecord control {command} is not part of this version yet",
        code="not-built-yet",
        hint="stop the authority to stop all calls: guards then refuse every one of them",
    )


_ANY = {"ignore_unknown_options": True, "allow_extra_args": True}


@app.command(context_settings=_ANY)
def pause() -> None:
    """Pause an agent (not part of this version yet)."""
    _not_built("pause")


@app.command(context_settings=_ANY)
def resume() -> None:
    """Resume a paused agent (not part of this version yet)."""
    _not_built("resume")


@app.command(context_settings=_ANY)
def halt() -> None:
    """Halt an agent at once (not part of this version yet)."""
    _not_built("halt")


@app.command(context_settings=_ANY)
def restrict() -> None:
    """Restrict the scope of an agent (not part of this version yet)."""
    _not_built("restrict")
