"""The signed policy bundle as objects. Every member is known; any other is refused.

Source: running.md 4.1, 4.4.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

FORMAT: Final = "onrecord-policy-1"
"""The format name; also the first line of what is signed."""

NOBODY: Final = frozenset({0, 65534})
"""Uids that are nobody's: root, and the uid that stands for everybody whom the kernel cannot name."""

Uid = Annotated[int, msgspec.Meta(ge=0, le=4_294_967_294)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]
CallerId = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,256}\Z")]
ServerId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}\Z")]
PlainName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}\Z")]
ToolName = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
MethodName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9/_.-]{0,127}\Z")]

Op: TypeAlias = Literal["read", "write", "delete", "execute", "send", "pay", "admin"]
JsonType: TypeAlias = Literal["string", "integer", "number", "boolean", "object", "array", "null"]
FactKind: TypeAlias = Literal["path", "host", "amount", "command", "resource"]
ControlRole: TypeAlias = Literal["auditor", "operator", "supervisor", "policy-admin"]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all objects of a bundle."""


class Hints(Record, frozen=True, kw_only=True):
    """What is known of a caller's program; for the log only."""

    exe: tuple[str, ...] = ()
    cgroup: tuple[str, ...] = ()


class AgentModel(Record, frozen=True, kw_only=True, rename="camel"):
    """Model and provider of an agent, for its record."""

    model_id: Text
    model_provider: Text


class Caller(Record, frozen=True, kw_only=True):
    """An agent: the platform tells the uid, the bundle tells who that is."""

    id: CallerId
    uid: Uid
    role: Literal["agent"]
    groups: tuple[PlainName, ...]
    hints: Hints | None = None
    agent: AgentModel | None = None


class OfArgument(Record, frozen=True, kw_only=True):
    """A reference to another argument of the same call."""

    argument: Text


class OpTable(Record, frozen=True, kw_only=True):
    """Operation by the value of an argument."""

    argument: Text
    table: Annotated[dict[str, Op], msgspec.Meta(min_length=1)]


class Argument(Record, frozen=True, kw_only=True, rename="camel"):
    """What one argument of a tool must be, and which fact it gives."""

    json: JsonType | tuple[JsonType, ...]
    items: JsonType | None = None
    fact: FactKind | None = None
    base: str | OfArgument | None = None
    mode: Annotated[str, msgspec.Meta(pattern=r"^[a-z]{1,16}\Z")] | None = None
    currency: str | OfArgument | None = None
    forbid_prefix: tuple[Annotated[str, msgspec.Meta(min_length=1)], ...] = ()

    @property
    def types(self) -> tuple[JsonType, ...]:
        """Return the admitted JSON types."""
        return (self.json,) if isinstance(self.json, str) else self.json


class Binding(Record, frozen=True, kw_only=True):
    """How the arguments of one tool become facts, pinned to the tool's inputSchema."""

    tool: ToolName
    pin: str = msgspec.field(name="inputSchemaSha256")
    op: Op | OpTable
    impact: Annotated[int, msgspec.Meta(ge=0, le=4)]
    arguments: dict[str, Argument]
    effects: dict[str, Any] | None = None
    decide: tuple[str, ...] = ()


class ServerPolicy(Record, frozen=True, kw_only=True):
    """One tool server: who runs it, how strictly it is guarded, and its bindings."""

    id: ServerId
    uid: Uid
    ti_server: Text | None = msgspec.field(name="tiServer", default=None)
    enforce: Literal["required", "audit"]
    refuse_methods: tuple[MethodName, ...]
    disclose_caller: bool = msgspec.field(name="discloseCaller")
    roots: dict[PlainName, str]
    bases: dict[PlainName, str]
    bindings: tuple[Binding, ...] = msgspec.field(name="tools")


class Groups(Record, frozen=True, kw_only=True):
    """Every group name that occurs anywhere."""

    callers: tuple[PlainName, ...]
    approvers: tuple[PlainName, ...]


class Approver(Record, frozen=True, kw_only=True):
    """A person who may approve calls."""

    id: PlainName
    uid: Uid
    groups: tuple[PlainName, ...]
    channels: Annotated[tuple[Literal["terminal", "passkey"], ...], msgspec.Meta(min_length=1)]
    credentials: tuple[dict[str, Any], ...]


class ControlEntry(Record, frozen=True, kw_only=True):
    """Control roles of one uid."""

    uid: Uid
    roles: Annotated[tuple[ControlRole, ...], msgspec.Meta(min_length=1)]


class UnknownForbid(Record, frozen=True, kw_only=True, tag_field="effect", tag="forbid"):
    """Calls with unknown facts are denied."""


class UnknownApproval(Record, frozen=True, kw_only=True, tag_field="effect", tag="approval"):
    """Calls with unknown facts need this many approvals of this group."""

    approval: Annotated[int, msgspec.Meta(ge=1, le=9)]
    approvers: PlainName


class UserMode(Record, frozen=True, kw_only=True, rename="camel"):
    """Who is who when everything runs under one uid."""

    caller: CallerId
    approver: PlainName
    control_roles: tuple[ControlRole, ...]


class EntityUid(Record, frozen=True, kw_only=True):
    """Name of a group entity."""

    type: Literal["Group"]
    id: PlainName


class NoAttributes(Record, frozen=True, kw_only=True):
    """Groups have no attributes."""


class GroupEntity(Record, frozen=True, kw_only=True):
    """A group and the groups that it lies in, in Cedar's JSON form."""

    uid: EntityUid
    attrs: NoAttributes = NoAttributes()
    parents: tuple[EntityUid, ...] = ()


class Limits(Record, frozen=True, kw_only=True, rename="camel"):
    """Limits of the authority; the names are those of running.md 4.1."""

    issue_per_second: Positive = 20
    issue_burst: Positive = 40
    connections_per_uid: Positive = 16
    connections: Positive = 256
    unanswered_per_connection: Positive = 64
    idle_seconds: Positive = 60
    pending_approvals_per_caller: Positive = 5
    approval_requests_per_approver_minute: Positive = 6
    approval_seconds: Positive = 300
    rejection_hold_seconds: Positive = 300
    invalid_verify_per_second: Positive = 50
    proof_bytes: Annotated[int, msgspec.Meta(ge=64, le=4096)] = 4096
    outstanding_proofs_per_caller: Positive = 1000
    tombstone_seconds: Positive = 600
    tombstones: Positive = 100_000


class Retention(Record, frozen=True, kw_only=True, rename="camel"):
    """How long journal records and bodies are kept, in days."""

    journal_days: Positive
    body_days: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class Document(Record, frozen=True, kw_only=True, rename="camel"):
    """A whole bundle, member by member as in the file."""

    format: Literal["onrecord-policy-1"]
    version: Positive
    created: str
    policies: str
    schema: str
    entities: tuple[GroupEntity, ...]
    callers: Annotated[tuple[Caller, ...], msgspec.Meta(min_length=1)]
    servers: tuple[ServerPolicy, ...]
    groups: Groups
    approvers: tuple[Approver, ...]
    control_roles: tuple[ControlEntry, ...]
    proof_seconds: Annotated[int, msgspec.Meta(ge=1, le=30)]
    descriptions: Literal["off", "required"]
    unknown: UnknownForbid | UnknownApproval
    user_mode: UserMode | None = None
    limits: Limits
    retention: Retention


MEMBER_ORDER: Final = (
    "format", "version", "created", "policies", "schema", "entities", "callers", "servers", "groups", "approvers",
    "controlRoles", "proofSeconds", "descriptions", "unknown", "userMode", "limits", "retention",
)  # fmt: skip
"""Order in which `policy sign` writes the members."""


def decode(value: Any) -> Document:
    """Make a bundle document of a parsed JSON value.

    Raises `msgspec.ValidationError`, whose text ends with the place.
    """
    return msgspec.convert(value, Document, strict=True)
