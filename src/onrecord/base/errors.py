"""Errors that onrecord raises on purpose. Programs branch on `code`, people read the message and the hint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Where:
    """The place an error is about: a file, a line counted from 1, a JSON pointer (RFC 6901)."""

    file: str | None = None
    line: int | None = None
    pointer: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members that are known."""
        members = {"file": self.file, "line": self.line, "pointer": self.pointer}
        return {name: value for name, value in members.items() if value is not None}

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
        if self.pointer is not None:
            place += f" at {self.pointer or 'the top'}"
        return place.strip()


class OnrecordError(Exception):
    """Every error that onrecord raises on purpose.

    `code` is stable kebab-case, programs branch on it. `hint` tells a person what to do next; an error without one
    gets the `usual_hint` of its kind when it is printed. `where` names the file, line or JSON pointer. `exit_code` is
    the status a command ends with (DESIGN.md, command line).
    """

    exit_code = 3
    usual_hint = "onrecord doctor checks this installation"

    def __init__(
        self, message: str, *, code: str, hint: str | None = None, where: Where | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.where = where

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of DESIGN.md: {"error": {"code", "message", "where"?, "hint"}}."""
        body: dict[str, Any] = {"code": self.code, "message": str(self)}
        if self.where is not None:
            body["where"] = self.where.to_json()
        body["hint"] = self.hint or self.usual_hint
        return {"error": body}


class UsageError(OnrecordError):
    """The caller asked for something that cannot be: a bad option, an unknown name, an unreadable input."""

    exit_code = 2
    usual_hint = "correct what is named; onrecord COMMAND --help says how a command is used"


class ConfigurationError(UsageError):
    """The configuration, or a file that it names, is not as it must be."""

    usual_hint = "correct the file that is named; onrecord doctor checks the whole configuration"


class PolicyError(OnrecordError):
    """A policy bundle or source cannot be used."""

    exit_code = 2
    usual_hint = "onrecord policy check names what is wrong with a policy"


class KeyAccessError(OnrecordError):
    """A key is missing, unreadable, too open, or of the wrong kind."""

    usual_hint = (
        "look at the path, the owner and the mode of the key that is named here or in the configuration"
    )


class StorageError(OnrecordError):
    """Something could not be stored or read back."""

    usual_hint = "look at the free space and the permissions of what is named"


class NetworkError(OnrecordError):
    """A peer cannot be reached, is not the one expected, or answered in a way that cannot be read."""

    usual_hint = "is `onrecord up` running? may you use this socket?"


class VerificationError(OnrecordError):
    """A check on foreign data failed."""

    exit_code = 1
    usual_hint = "get the file again from where it was made, and say there what was found"


class MalformedError(VerificationError):
    """Foreign data is not of the form it must have."""

    exit_code = 2


class SignatureError(VerificationError):
    """A signature does not verify, or is of a kind that is refused."""


class CertificateError(VerificationError):
    """A certificate or its chain is not acceptable."""


class LogError(VerificationError):
    """A log contradicts itself or what is known of it."""


class BindingError(VerificationError):
    """Two things that must belong together do not."""
