"""Typed view of dialogs of every type and version.

Source: record.md 1.3, 2.6, 3.5.
"""

from __future__ import annotations

from dataclasses import dataclass

from onrecord.record.vcon.agent_views import TokenUsage
from onrecord.record.vcon.content_view import ContentView
from onrecord.record.vcon.event_views import HistoryEvent
from onrecord.record.vcon.members import indices_of, objects_of
from onrecord.record.vcon.names import OLD_TRANSFER_NAMES
from onrecord.record.vcon.session_ids import SessionId, read_session_ids


@dataclass(frozen=True, slots=True)
class Dialog(ContentView):
    """A recording, a message, a transfer or a call that came to nothing."""

    @property
    def type(self) -> str | None:
        """Return the kind of dialog."""
        return self.text("type")

    @property
    def start(self) -> str | None:
        """Return the date at which it began, as written."""
        return self.text("start")

    @property
    def duration(self) -> float | None:
        """Return its length in seconds."""
        return self.number("duration")

    @property
    def parties(self) -> tuple[int, ...]:
        """Return the indices of its parties, all channels in order; for a message the writer comes first."""
        return self.places("parties")

    @property
    def channels(self) -> tuple[tuple[int, ...], ...]:
        """Return the parties of each channel of a recording, () for a channel that is not used.

        If the parties are one index and no array, there is one channel.
        """
        value = self.members.get("parties")
        channels = value if type(value) is list else [] if value is None else [value]
        return tuple(tuple(index for index in indices_of(item) if index >= 0) for item in channels)

    @property
    def originator(self) -> int | None:
        """Return the index of the party that began it: the first one where nothing else is said."""
        stated = self.place("originator")
        return next(iter(self.parties), None) if stated is None else stated

    @property
    def recordings(self) -> tuple[int, ...]:
        """Return the indices of the dialogs of a recording-set."""
        return self.places("recordings")

    @property
    def recording_set(self) -> int | None:
        """Return the index of the recording-set that a recording is of."""
        return self.place("recording_set")

    @property
    def disposition(self) -> str | None:
        """Return why a call came to nothing."""
        return self.text("disposition")

    @property
    def session_ids(self) -> tuple[SessionId | None, ...]:
        """Return the session ids, all channels in order; None for a channel without one."""
        return read_session_ids(self.members.get("session_id"))

    @property
    def party_history(self) -> tuple[HistoryEvent, ...]:
        """Return the events that versions before 0.5.0 keep here."""
        return tuple(
            HistoryEvent(index, item) for index, item in objects_of(self.members.get("party_history"))
        )

    @property
    def transferee(self) -> tuple[int, ...]:
        """Return the indices of the parties that are transferred: one, in older versions several.

        () also if they are given as -1, which older versions wrote for "not known". So with all roles of a transfer.
        """
        return self._role("transferee")

    @property
    def transferor(self) -> tuple[int, ...]:
        """Return the indices of the parties that transfer."""
        return self._role("transferor")

    @property
    def transfer_target(self) -> tuple[int, ...]:
        """Return the indices of the parties that the transfer is to."""
        return self._role("transfer_target")

    @property
    def original(self) -> tuple[int, ...]:
        """Return the indices of the dialogs that were transferred."""
        return self._role("original")

    @property
    def consultation(self) -> tuple[int, ...]:
        """Return the indices of the dialogs in which the transferor asked the target. In an event it is a session."""
        return self._role("consultation")

    @property
    def target_dialog(self) -> tuple[int, ...]:
        """Return the indices of the dialogs that the transfer led into."""
        return self._role("target_dialog")

    def _role(self, name: str) -> tuple[int, ...]:
        return self.places(name if self.has(name) else OLD_TRANSFER_NAMES.get(name, name))

    @property
    def application(self) -> str | None:
        """Return the application or service through which it went."""
        return self.text("application")

    @property
    def message_id(self) -> str | None:
        """Return the id that the application gave it."""
        return self.text("message_id")

    @property
    def model_id(self) -> str | None:
        """Return the model that wrote a message."""
        return self.text("model_id")

    @property
    def token_usage(self) -> TokenUsage | None:
        """Return the tokens that a message took."""
        value = self.inner("token_usage")
        return None if value is None else TokenUsage(0, value)

    @property
    def entry_id(self) -> str | None:
        """Return the entry's id in its session."""
        return self.text("entry_id")

    @property
    def parent_id(self) -> str | None:
        """Return the id of the entry that it follows or answers."""
        return self.text("parent_id")
