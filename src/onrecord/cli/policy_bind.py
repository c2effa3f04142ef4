"""onrecord policy bind: write bindings for the tools of a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onrecord.base.configuration import Configuration
from onrecord.base.errors import UsageError
from onrecord.cli.output import ConfigOption, JsonOption, emit, exit_with, note, visible

if TYPE_CHECKING:
    from onrecord.authorize.policy.advertised import AdvertisedServer
    from onrecord.authorize.policy.pinning import BindReport

_MEANINGS: Mapping[str, str] = {
    "pinned": "pinned",
    "unchanged": "unchanged",
    "unbound": "advertised without a binding, and so denied",
    "missing": "bound, and not advertised",
    "changed": "advertised in another shape than bound, and so denied",
}


def bind(
    server: Annotated[str, typer.Argument(metavar="ID", help="Server id.")],
    *,
    pin: Annotated[
        bool, typer.Option("--pin", help="Write pins only; bindings come from source or catalogue.")
    ] = False,
    running: Annotated[
        bool,
        typer.Option("--running", help="Start and write nothing: compare with the last report of the guard."),
    ] = False,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Add the server to the source if it is new, with DIR as its only root.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy", metavar="DIR", help="Source directory; none: policy.source.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Ask a configured server for its tools and write bindings for them into the policy source.

    Without --pin each new tool gets a proposal, in which a person must decide the members listed in "decide".

    Exit 0 when done, 1 when pins differ (--running), 2 when a binding does not fit the tool, 3 when the server fails.
    """
    from onrecord.authorize.policy import editing, pinning

    if pin and running:
        raise UsageError("--pin and --running exclude each other", code="usage")
    configuration = Configuration.load(config)
    directory = policy or configuration.policy.source
    added = False
    version = None
    if running:
        source = pinning.ServerSource(directory, server)
        report = pinning.compare(source, _reported(configuration, server))
    else:
        if root is None:  # a server that the policy does not know is refused before it is started
            pinning.ServerSource(directory, server)
        advertised = _asked(configuration, server)  # and nothing is written when it cannot answer
        if root is not None:
            added = editing.add_server(
                directory,
                server,
                uid=configuration.server_uid(server),
                root=root,
                base=configuration.server_cwd(server),
            )
        source = pinning.ServerSource(directory, server)
        report = pinning.pin(source, advertised) if pin else pinning.bind(source, advertised)
        if added or report.pinned or report.proposed:
            version = editing.raise_version(directory, bundle=configuration.policy.bundle)
    if as_json:
        emit(report.to_json() | {"added": added, "version": version})
    else:
        if added:
            print(visible(f"{server}: added to {directory / 'bundle.json'}"))
            print(visible(f"{server}: {_base(configuration, server, root)}"))
        _print(report)
        if version is not None:
            print(f"the version in bundle.json is {version} now")
    exit_with(1 if running and (report.changed or report.missing) else 0)


def _reported(configuration: Configuration, server: str) -> dict[str, str]:
    from onrecord.cli.control import ControlClient

    result = ControlClient(configuration).call("control/tools", {"server": server})
    match result:
        case {"servers": [{"tools": [*tools]}]}:
            return {
                tool["name"]: tool["inputSchemaSha256"]
                for tool in tools
                if isinstance(tool, dict)
                and isinstance(tool.get("name"), str)
                and "inputSchemaSha256" in tool
            }
        case _:
            raise UsageError(
                "no guard has reported the tools of this server yet",
                code="server-unreported",
                hint="connect once to the server, then ask again",
            )


def _asked(configuration: Configuration, server: str) -> AdvertisedServer:
    """Start the server and ask it; what a failing server said is shown."""
    from onrecord.authorize.policy.advertised import ServerFailedError
    from onrecord.authorize.policy.asking import ask_server

    try:
        return ask_server(configuration, server)
    except ServerFailedError as error:
        if error.said:
            note("the server's standard error ended with:")
            for line in error.said:
                note(visible(f"  | {line}"))
        raise


def _base(configuration: Configuration, server: str, root: Path | None) -> str:
    """Say from where relative paths of a new server count, and what to change when that is not the root."""
    base = configuration.server_cwd(server).resolve()
    line = f"relative paths count from its working directory {base}"
    if root is None or base == root.expanduser().resolve():
        return line
    return f"{line}, not from --root; to change that, set servers.{server}.cwd and, in bundle.json, bases"


def _print(report: BindReport) -> None:
    if report.server_name:
        print(visible(f"{report.server}: the server calls itself {report.server_name}"))
    if report.proposals:
        print("proposed, to be decided by a person:")
        for proposal in report.proposals:
            print(visible(f"  {proposal['tool']}: {_proposal(proposal)}"))
    for name, meaning in _MEANINGS.items():
        tools: tuple[str, ...] = getattr(report, name)
        if tools:
            print(f"{meaning}:")
            for tool in tools:
                print(visible(f"  {tool}"))
    if report.proposals:
        print(visible(f"next: look at each tool in {report.file}: op, impact and what its arguments are;"))
        print('      correct it, and remove "decide" where you agree. Then onrecord policy check')
    elif report.pinned:
        print("next: onrecord policy sign")
    if report.in_catalogue:
        print("      or take the bindings that onrecord ships for this server: the same command with --pin")


def _proposal(proposal: Mapping[str, Any]) -> str:
    """Return a proposal in one line: operation, impact, facts, and what is open beside the first two."""
    facts = [
        f"{name} is a {argument['fact']}"
        for name, argument in proposal["arguments"].items()
        if "fact" in argument
    ]
    open_ = [question.removeprefix("arguments.") for question in proposal["decide"][2:]]
    parts = [f"{proposal['op']}, impact {proposal['impact']}", *facts]
    return "; ".join([*parts, *([f"open: {', '.join(open_)}"] if open_ else [])])
