"""Entry of the command line: imports only the module of the verb, turns every error into text and status."""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import typer

from onrecord import __version__
from onrecord.base.errors import OnrecordError, UsageError
from onrecord.cli.output import report_error

VERBS: Mapping[str, str] = MappingProxyType(
    {
        "demo": "the whole way of a tool call on this machine, on real parts",
        "init": "make a configuration with keys and a starter policy",
        "up": "run authority, recorder and guards",
        "doctor": "check isolation, keys, clocks and policy",
        "approvals": "see the calls that wait for a person, and decide them",
        "control": "steer a running authority",
        "wrap": "put onrecord into an MCP client's configuration, or take it out",
        "connect": "stand in an MCP client's configuration in place of a server",
        "guard": "run a tool server behind enforcement",
        "digest": "print the Action Digest of a call",
        "policy": "bind, check, sign, explain and test a policy",
        "record": "run the recorder, list and close record sessions",
        "import": "make vCons out of the logs that agents wrote themselves",
        "show": "tell the story of a vCon",
        "check": "find what is wrong with a vCon",
        "verify": "verify a signed vCon",
        "sign": "sign a vCon",
        "encrypt": "encrypt a signed vCon for those who may read it",
        "decrypt": "open an encrypted vCon and verify what is inside",
        "redact": "make a copy of a vCon without what must not leave",
        "upgrade": "make a vCon of the present version out of an older one",
        "journal": "verify a tamper-evident journal",
        "authority": "run the Call Authority alone",
    }
)
"""Verbs with what they do; each is the module `onrecord.cli.<verb>` with a `command` or an `app`."""

_MODULES: Mapping[str, str] = MappingProxyType({"import": "import_logs"})
"""Modules of verbs that are words of Python's."""

HIDDEN = frozenset({"authority"})

_CLICK_ERROR: type[Exception] = typer.BadParameter.__mro__[2]
"""The base of all parsing errors; typer carries its own copy of click and does not export this class."""


_LIST_TYPE = re.compile(r"\blist\[(\w+)\]")

USAGE = "Usage: onrecord [--version] [--help] COMMAND [ARGUMENTS]"


def verb_command(verb: str) -> Any:
    """Import the module of a verb, and only that, and return its command."""
    module = importlib.import_module(f"onrecord.cli.{_MODULES.get(verb, verb)}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name=verb)(module.command)
    command = typer.main.get_command(app)
    _name_types(command)
    return command


def _name_types(command: Any) -> None:
    """Let help call the type of arguments that may be several by the name of one: list[Path] is Python."""
    for part in (command, *getattr(command, "commands", {}).values()):
        for parameter in part.params:
            if parameter.param_type_name == "argument" and parameter.nargs == -1:
                shown = parameter.display_type
                parameter.display_type = lambda ctx, shown=shown: _LIST_TYPE.sub(
                    lambda found: found[1].lower(), shown(ctx)
                )


def overview() -> str:
    """Return the help of the whole command."""
    width = max(map(len, VERBS)) + 2
    rows = [f"  {verb:{width}}{does}" for verb, does in VERBS.items() if verb not in HIDDEN]
    intro = "onrecord puts AI agents' tool calls on the record."
    return "\n".join([USAGE, "", intro, "", "Commands:", *rows, "", "onrecord COMMAND --help says more."])


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        print(overview())
        return 0 if arguments else 2
    if arguments[0] == "--version":
        print(f"onrecord {__version__}")
        return 0
    verb = arguments[0]
    if verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, n=1)
        raise UsageError(
            f"there is no command {verb!r}",
            code="usage",
            hint=f"did you mean {near[0]}?" if near else "onrecord --help lists the commands",
        )
    try:
        status = verb_command(verb).main(
            args=arguments[1:], prog_name=f"onrecord {verb}", standalone_mode=False
        )
    except typer.Exit as stop:
        return int(stop.exit_code)
    except _CLICK_ERROR as error:
        # The framework's name for a refused value means nothing to who typed it.
        message = str(getattr(error, "format_message", lambda: "wrong usage")()).replace(
            ": Value error, ", ": "
        )
        command = getattr(getattr(error, "ctx", None), "command_path", f"onrecord {verb}")
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the whole help
            if "--json" not in arguments:
                print(message, file=sys.stderr)
                return UsageError.exit_code
            message = f"{command} needs a command"
        raise UsageError(
            message, code="usage", hint=f"{command} --help lists options and arguments"
        ) from error
    return status if isinstance(status, int) else 0


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit: 0 clean, 1 findings, 2 usage or input error, 3 could not evaluate."""
    arguments = sys.argv[1:] if argv is None else argv
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = "--json" in ours  # behind "--" stands another program's command line
    if not sys.warnoptions:  # libraries warn about what stands in files of others, with paths of this machine
        warnings.simplefilter("ignore")
    try:
        status = _run(arguments)
    except OnrecordError as error:
        report_error(error, as_json=as_json)
        status = error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        status = 130
    except BrokenPipeError:
        # Whoever read our output has gone; say nothing more, or the interpreter complains at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 1
    except Exception as error:  # no foreign exception and no traceback reaches a user
        wrapped = OnrecordError(
            f"internal error ({type(error).__name__})",
            code="internal-error",
            hint="set ONRECORD_DEBUG=1 to see where; please report it",
        )
        if os.environ.get("ONRECORD_DEBUG"):
            raise
        report_error(wrapped, as_json=as_json)
        status = 3
    sys.exit(status)
