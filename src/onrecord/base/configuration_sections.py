"""The tables of `onrecord.toml` as frozen objects; `configuration.py` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

Durability = Literal["durable", "relaxed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Base directories."""

    config: Path
    state: Path
    runtime: Path
    records: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Sockets:
    """The four sockets of authority and recorder; in user mode their names are fixed."""

    authority: Path
    approval: Path
    control: Path
    record: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Principals:
    """Users and groups of system mode, as written: a name or a number."""

    authority: str | int
    recorder: str | int
    call_group: str | int
    approval_group: str | int
    control_group: str | int
    record_group: str | int
    readers_group: str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Key URIs, one per purpose; `policy` is None where the key is off the machine."""

    proof: str
    authority_journal: str
    recorder_journal: str
    record: str
    record_chain: Path
    policy: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Files and the directory of public keys and certificates."""

    policy: Path
    journal: Path
    vcon: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFiles:
    """The signed bundle and the directory that it is made from."""

    bundle: Path
    source: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthoritySettings:
    """Settings of the authority."""

    durability: Durability
    evidence: tuple[str, ...]
    digest_key: str
    require_sink: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSettings:
    """Settings of the recorder."""

    domain: str
    idle_seconds: int
    max_age_seconds: int
    checkpoint_seconds: int
    keep_bodies: Literal["until-closed", "always"]
    required: bool
    max_content_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSettings:
    """How long the connector lets a call wait for an approval."""

    approval_wait_seconds: int
    approval_wait_progress_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressedFinding:
    """Findings that `onrecord check` counts and does not report: a code, and a JSON pointer at or below which."""

    code: str
    pointer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """Settings of `onrecord check`."""

    suppress: tuple[SuppressedFinding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLimits:
    """Limits of this machine; all other limits are in the signed bundle."""

    spool_bytes: int
    call_line_bytes: int
    other_line_bytes: int
    stop_grace_seconds: int
    hello_timeout_ms: int
    issue_timeout_ms: int
    verify_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One real tool server. `command` is an absolute path or a name to be looked up in PATH; `cwd` None: home.

    `canaries` and `secret_names` are for `onrecord doctor`; None: nobody has said any, an empty tuple: there are none.
    """

    id: str
    command: str
    args: tuple[str, ...]
    cwd: Path | None
    env_file: Path | None
    env_pass: tuple[str, ...]
    user: str | int | None
    hook: bool
    ti_server: str
    canaries: tuple[str, ...] | None
    secret_names: tuple[str, ...] | None
    sandbox: None
