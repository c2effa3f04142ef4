"""Typed views of the objects that ai_agent adds. All of them may have further members, except File_Attribution's.

Source: record.md 3.2 to 3.5, D-33, D-36.
"""

from __future__ import annotations

from dataclasses import dataclass

from onrecord.record.vcon.members import View, index_of, objects_of, texts_of


@dataclass(frozen=True, slots=True)
class RecordingAgent(View):
    """The program that made the record."""

    @property
    def name(self) -> str | None:
        """Return the name."""
        return self.text("name")

    @property
    def version(self) -> str | None:
        """Return the version."""
        return self.text("version")


@dataclass(frozen=True, slots=True)
class AgentMeta(View):
    """What an agent runs on (Agent_Meta)."""

    @property
    def model_id(self) -> str | None:
        """Return the main model."""
        return self.text("model_id")

    @property
    def model_provider(self) -> str | None:
        """Return who provides the model."""
        return self.text("model_provider")

    @property
    def models(self) -> tuple[str, ...]:
        """Return all models that were used, if the model changed."""
        return texts_of(self.members.get("models"))

    @property
    def cli_name(self) -> str | None:
        """Return the program that the agent is."""
        return self.text("cli_name")

    @property
    def cli_version(self) -> str | None:
        """Return the version of that program."""
        return self.text("cli_version")


@dataclass(frozen=True, slots=True)
class TokenUsage(View):
    """Tokens that a message took (Token_Usage). No sum rule holds between the counts."""

    def count(self, name: str) -> int | None:
        """Return a count of tokens, for instance `input`; None if it is not known."""
        value = index_of(self.members.get(name))
        return value if value is not None and value >= 0 else None

    @property
    def input(self) -> int | None:
        """Return the tokens that were read."""
        return self.count("input")

    @property
    def output(self) -> int | None:
        """Return the tokens that were written."""
        return self.count("output")

    @property
    def cached(self) -> int | None:
        """Return the tokens that came from a cache."""
        return self.count("cached")

    @property
    def reasoning(self) -> int | None:
        """Return the tokens of reasoning."""
        return self.count("reasoning")

    @property
    def total(self) -> int | None:
        """Return the tokens in all, as stated."""
        return self.count("total")

    @property
    def cost(self) -> int | float | None:
        """Return the cost in US dollars."""
        return self.number("cost")


@dataclass(frozen=True, slots=True)
class VcsContext(View):
    """The state of a repository (VCS_Context)."""

    @property
    def type(self) -> str | None:
        """Return the kind of version control: git, jj, hg, svn or another."""
        return self.text("type")

    @property
    def revision(self) -> str | None:
        """Return the revision."""
        return self.text("revision")

    @property
    def branch(self) -> str | None:
        """Return the branch."""
        return self.text("branch")

    @property
    def repository(self) -> str | None:
        """Return where the repository lies."""
        return self.text("repository")


@dataclass(frozen=True, slots=True)
class Environment(View):
    """Where an agent worked."""

    @property
    def working_dir(self) -> str | None:
        """Return the working directory. Never a path to open."""
        return self.text("working_dir")

    @property
    def vcs(self) -> VcsContext | None:
        """Return the state of the repository it worked in."""
        value = self.inner("vcs")
        return None if value is None else VcsContext(0, value)

    @property
    def sandboxes(self) -> tuple[str, ...]:
        """Return what confined the agent."""
        return texts_of(self.members.get("sandboxes"))


@dataclass(frozen=True, slots=True)
class Contributor(View):
    """Who wrote lines of a file."""

    @property
    def type(self) -> str | None:
        """Return human, ai, mixed or unknown."""
        return self.text("type")

    @property
    def model_id(self) -> str | None:
        """Return the model, if it is one."""
        return self.text("model_id")


@dataclass(frozen=True, slots=True)
class Resource(View):
    """Something that a conversation about a file is related to."""

    @property
    def type(self) -> str | None:
        """Return the kind of relation."""
        return self.text("type")

    @property
    def url(self) -> str | None:
        """Return its URI, as written. It is never fetched."""
        return self.text("url")


@dataclass(frozen=True, slots=True)
class LineRange(View):
    """Lines of a file (Range)."""

    @property
    def start_line(self) -> int | None:
        """Return the first line, counted from 1."""
        return self.place("start_line")

    @property
    def end_line(self) -> int | None:
        """Return the last line."""
        return self.place("end_line")

    @property
    def content_hash(self) -> str | None:
        """Return the hash of the lines, which is no ContentHash (record.md D-36)."""
        return self.text("content_hash")

    @property
    def content_hash_alg(self) -> str | None:
        """Return the algorithm of that hash; sha-256 if there is a hash and nothing is said."""
        stated = self.text("content_hash_alg")
        return "sha-256" if stated is None and self.has("content_hash") else stated

    @property
    def contributor(self) -> Contributor | None:
        """Return who wrote these lines, where it is not who the conversation says."""
        value = self.inner("contributor")
        return None if value is None else Contributor(0, value)


@dataclass(frozen=True, slots=True)
class FileConversation(View):
    """A conversation that changed a file (File_Conversation)."""

    @property
    def url(self) -> str | None:
        """Return a link to the conversation, as written. It is never fetched."""
        return self.text("url")

    @property
    def contributor(self) -> Contributor | None:
        """Return who wrote the lines."""
        value = self.inner("contributor")
        return None if value is None else Contributor(0, value)

    @property
    def ranges(self) -> tuple[LineRange, ...]:
        """Return the lines."""
        return tuple(LineRange(index, item) for index, item in objects_of(self.members.get("ranges")))

    @property
    def related(self) -> tuple[Resource, ...]:
        """Return what it is related to."""
        return tuple(Resource(index, item) for index, item in objects_of(self.members.get("related")))


@dataclass(frozen=True, slots=True)
class AttributedFile(View):
    """A file and who wrote what of it (File)."""

    @property
    def path(self) -> str | None:
        """Return the path in the repository, as written. Never a path to open unchecked."""
        return self.text("path")

    @property
    def conversations(self) -> tuple[FileConversation, ...]:
        """Return the conversations that changed it."""
        found = objects_of(self.members.get("conversations"))
        return tuple(FileConversation(index, item) for index, item in found)


@dataclass(frozen=True, slots=True)
class FileAttribution(View):
    """Which lines of which files came out of a conversation (File_Attribution)."""

    @property
    def files(self) -> tuple[AttributedFile, ...]:
        """Return the files."""
        return tuple(AttributedFile(index, item) for index, item in objects_of(self.members.get("files")))
