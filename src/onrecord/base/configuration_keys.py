"""Every key of `onrecord.toml`: its type, its default in each mode, and one line of what it means.

The table is the only place that knows the keys. The reader (`configuration.py`) checks a file against it, and
`onrecord init` writes a file from it, so the two cannot drift apart.

Source: running.md 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode = Literal["user", "system"]
Default = str | int | bool | tuple[str, ...] | None

MODES: Final[tuple[Mode, ...]] = ("user", "system")


class Kind(Enum):
    """What a value must be; the value of a member is the word that an error message uses."""

    TEXT = "text"
    PATH = "an absolute path (text)"
    COMMAND = "an absolute path or a bare program name (text)"
    KEY = "a key URI such as file:/path/key.pem (text)"
    WHOLE = "a whole number"
    FLAG = "true or false"
    TEXTS = "a list of texts"
    NAMES = "a list of environment variable names"
    PRINCIPAL = "a user name (text) or a user number"
    GROUP = "a group name (text) or a group number"
    FINDINGS = 'a list of tables such as { code = "uuid-version", pointer = "/uuid" }'
    TABLE = "a table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key. A default of None means that the key has none; `{state}` and such name other paths."""

    name: str
    kind: Kind
    comment: str
    user: Default = None
    system: Default = None
    modes: tuple[Mode, ...] = MODES
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = 2**53 - 1

    def default(self, mode: Mode) -> Default:
        """Return the default in `mode`, as written in the table."""
        return self.user if mode == "user" else self.system


def _same(name: str, kind: Kind, default: Default, comment: str, **more: int | tuple[str, ...]) -> Key:
    return Key(name=name, kind=kind, user=default, system=default, comment=comment, **more)  # type: ignore[arg-type]


_SYSTEM: Final[tuple[Mode, ...]] = ("system",)

KEYS: Final[tuple[Key, ...]] = (
    Key(
        name="mode",
        kind=Kind.TEXT,
        comment="user: one uid, always degraded; system: one uid per role",
        choices=MODES,
    ),
    Key(
        name="paths.config",
        kind=Kind.PATH,
        user="{xdg_config}/onrecord",
        system="/etc/onrecord",
        comment="configuration, trust anchors, policy bundle",
    ),
    Key(
        name="paths.state",
        kind=Kind.PATH,
        user="{xdg_state}/onrecord",
        system="/var/lib/onrecord",
        comment="journals, high-water marks, spools",
    ),
    Key(
        name="paths.runtime",
        kind=Kind.PATH,
        user="{xdg_runtime}",
        system="/run/onrecord",
        comment="sockets; keep it short, a socket path has at most 107 bytes",
    ),
    Key(
        name="paths.records",
        kind=Kind.PATH,
        user="{state}/vcons",
        system="{state}/records",
        comment="finished vCons, sorted by year, month and day",
    ),
    Key(
        name="sockets.authority",
        kind=Kind.PATH,
        system="{runtime}/authority.sock",
        modes=_SYSTEM,
        comment="agents and tool servers",
    ),
    Key(
        name="sockets.approval",
        kind=Kind.PATH,
        system="{runtime}/approval.sock",
        modes=_SYSTEM,
        comment="people who approve calls",
    ),
    Key(
        name="sockets.control",
        kind=Kind.PATH,
        system="{runtime}/control.sock",
        modes=_SYSTEM,
        comment="operators: onrecord control",
    ),
    Key(
        name="sockets.record",
        kind=Kind.PATH,
        system="{runtime}-record/record.sock",
        modes=_SYSTEM,
        comment="the recorder; never for agents",
    ),
    Key(
        name="principals.authority",
        kind=Kind.PRINCIPAL,
        system="onrecord-authority",
        modes=_SYSTEM,
        comment="user name or number of the authority",
    ),
    Key(
        name="principals.recorder",
        kind=Kind.PRINCIPAL,
        system="onrecord-recorder",
        modes=_SYSTEM,
        comment="user name or number of the recorder",
    ),
    Key(
        name="principals.call_group",
        kind=Kind.GROUP,
        system="mcp-call",
        modes=_SYSTEM,
        comment="may reach the authority and the server sockets",
    ),
    Key(
        name="principals.approval_group",
        kind=Kind.GROUP,
        system="mcp-approve",
        modes=_SYSTEM,
        comment="may reach the approval socket",
    ),
    Key(
        name="principals.control_group",
        kind=Kind.GROUP,
        system="mcp-control",
        modes=_SYSTEM,
        comment="may reach the control socket",
    ),
    Key(
        name="principals.record_group",
        kind=Kind.GROUP,
        system="onrecord-record",
        modes=_SYSTEM,
        comment="may reach the recorder; no agent is in it",
    ),
    Key(
        name="principals.readers_group",
        kind=Kind.GROUP,
        system="onrecord-readers",
        modes=_SYSTEM,
        comment="may read finished vCons",
    ),
    Key(
        name="keys.proof",
        kind=Kind.KEY,
        user="file:{config}/keys/proof.pem",
        system="file:{state}/authority/keys/proof.pem",
        comment="the authority's key for call proofs",
    ),
    Key(
        name="keys.authority_journal",
        kind=Kind.KEY,
        user="file:{config}/keys/authority-journal.pem",
        system="file:{state}/authority/keys/journal.pem",
        comment="signs the checkpoints of the decision journal",
    ),
    Key(
        name="keys.recorder_journal",
        kind=Kind.KEY,
        user="file:{config}/keys/recorder-journal.pem",
        system="file:{state}/recorder/keys/journal.pem",
        comment="signs the checkpoints of the record journal",
    ),
    Key(
        name="keys.record",
        kind=Kind.KEY,
        user="file:{config}/keys/record.pem",
        system="file:{state}/recorder/keys/record.pem",
        comment="signs finished vCons",
    ),
    Key(
        name="keys.record_chain",
        kind=Kind.PATH,
        user="{config}/keys/record-chain.pem",
        system="{state}/recorder/keys/record-chain.pem",
        comment="PEM: certificate of keys.record, then intermediates",
    ),
    Key(
        name="keys.policy",
        kind=Kind.KEY,
        user="file:{config}/keys/policy.pem",
        comment="used by `onrecord policy sign` only; no daemon opens it",
    ),
    _same(
        "trust.policy",
        Kind.PATH,
        "{config}/trust/policy.keys",
        "who may sign the bundle: kid base64url-public-key comment",
    ),
    _same(
        "trust.journal",
        Kind.PATH,
        "{config}/trust/journal.keys",
        "public keys of the two journals, same form",
    ),
    _same("trust.vcon", Kind.PATH, "{config}/trust/vcon", "directory of PEM anchors for `onrecord verify`"),
    _same(
        "policy.bundle",
        Kind.PATH,
        "{config}/policy.bundle.json",
        "the signed bundle; its signature is FILE.sig",
    ),
    _same("policy.source", Kind.PATH, "{config}/policy", "the directory that the bundle is made from"),
    _same(
        "authority.durability",
        Kind.TEXT,
        "durable",
        "durable: answers wait for the disk; relaxed: they survive a crash of the process only",
        choices=("durable", "relaxed"),
    ),
    _same("authority.evidence", Kind.TEXTS, ("handle",), "enabled evidence types, best first"),
    _same("authority.digest_key", Kind.TEXT, "", "not built yet; leave it empty"),
    _same(
        "authority.require_sink",
        Kind.FLAG,
        False,
        "refuse calls while no checkpoint leaves the machine; not built yet",
    ),
    _same("recorder.domain", Kind.TEXT, "", "domain for the uuids of vCons; empty: uuids without a domain"),
    _same(
        "recorder.idle_seconds",
        Kind.WHOLE,
        1800,
        "a session without entries or connections ends after this time",
        minimum=1,
    ),
    _same(
        "recorder.max_age_seconds",
        Kind.WHOLE,
        86400,
        "a session ends after this time at the latest",
        minimum=1,
    ),
    _same("recorder.checkpoint_seconds", Kind.WHOLE, 0, "interim vCons; not built yet, leave it 0"),
    _same(
        "recorder.keep_bodies",
        Kind.TEXT,
        "until-closed",
        "content in the record journal after the vCon is signed: until-closed or always",
        choices=("until-closed", "always"),
    ),
    _same(
        "recorder.max_content_bytes",
        Kind.WHOLE,
        16777216,
        "larger content is replaced by its size and hash",
        minimum=1024,
    ),
    _same("recorder.required", Kind.FLAG, True, "refuse calls that cannot be recorded"),
    _same(
        "connector.approval_wait_seconds",
        Kind.WHOLE,
        50,
        "how long a call waits for an approval; clients allow about 60",
        maximum=86400,
    ),
    _same(
        "connector.approval_wait_progress_seconds",
        Kind.WHOLE,
        280,
        "the same for a client that takes progress messages",
        maximum=86400,
    ),
    _same(
        "check.suppress",
        Kind.FINDINGS,
        (),
        "onrecord check counts these findings and does not report them: { code, pointer }; no pointer: everywhere",
    ),
    _same("limits.spool_bytes", Kind.WHOLE, 268435456, "size of a guard's spool", minimum=1048576),
    _same("limits.call_line_bytes", Kind.WHOLE, 1048576, "longest line with a covered call", minimum=4096),
    _same("limits.other_line_bytes", Kind.WHOLE, 16777216, "longest other line", minimum=4096),
    _same(
        "limits.stop_grace_seconds", Kind.WHOLE, 5, "how long running calls may finish at a stop", maximum=600
    ),
    _same(
        "limits.hello_timeout_ms",
        Kind.WHOLE,
        1000,
        "connector and guard: wait for the first answer",
        minimum=1,
    ),
    _same("limits.issue_timeout_ms", Kind.WHOLE, 2000, "connector: wait for a proof", minimum=1),
    _same("limits.verify_timeout_ms", Kind.WHOLE, 2000, "guard: wait for a verification", minimum=1),
)
"""All keys but those of servers, in the order in which `init` writes them."""

SERVER_KEYS: Final[tuple[Key, ...]] = (
    Key(name="command", kind=Kind.COMMAND, comment="the real tool server; no shell"),
    _same("args", Kind.TEXTS, (), "passed as written; relative paths count from cwd"),
    Key(name="cwd", kind=Kind.PATH, comment="working directory; default: the home of the uid"),
    Key(name="env_file", kind=Kind.PATH, comment="lines NAME=value with the server's secrets, mode 0600"),
    _same("env_pass", Kind.NAMES, (), "names taken over from the guard's own environment"),
    Key(name="user", kind=Kind.PRINCIPAL, modes=_SYSTEM, comment="user name or number of guard and server"),
    _same("hook", Kind.FLAG, False, "the server itself checks by the SDK hook; the guard only starts it"),
    _same("tiServer", Kind.TEXT, "", "server name in records while no bundle names one"),
    Key(
        name="canaries",
        kind=Kind.TEXTS,
        comment="what only the server may reach, for onrecord doctor: paths, host:port; default: roots of the policy",
    ),
    Key(
        name="secret_names",
        kind=Kind.NAMES,
        comment="names of the variables in env_file, so that onrecord doctor can look for them at the agent",
    ),
    Key(name="sandbox", kind=Kind.TABLE, comment="confine the server; not built yet"),
)
"""The keys of one table `[servers.ID]`."""

KEYS_BY_NAME: Final[Mapping[str, Key]] = MappingProxyType({key.name: key for key in KEYS})
SERVER_KEYS_BY_NAME: Final[Mapping[str, Key]] = MappingProxyType({key.name: key for key in SERVER_KEYS})
SECTIONS: Final[tuple[str, ...]] = tuple(
    dict.fromkeys(key.name.split(".")[0] for key in KEYS if "." in key.name)
)
"""The table names, without `servers` and `sinks`."""

EVIDENCE_NAMES: Final = ("handle", "jws")
"""Evidence types that exist."""

LATER_EVIDENCE: Final = ("passkey", "otc", "otc-soft")
"""Evidence types that are specified and refused by name (running.md 13, call-proof.md 15)."""

LATER_KEY_SCHEMES: Final = ("pkcs11", "tpm2", "kms", "awskms", "gcpkms", "azurekms", "vault")
"""Key URI schemes that are specified and refused by name (call-proof.md 15)."""
