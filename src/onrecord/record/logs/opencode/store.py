"""The importer of OpenCode: what it recognises, and which reader reads which layout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from onrecord.record.logs.inference import OPENCODE
from onrecord.record.logs.interface import Importer, register
from onrecord.record.logs.opencode import database, folder, recognition
from onrecord.record.logs.opencode.documents import read_text
from onrecord.record.logs.opencode.items import Store
from onrecord.record.logs.opencode.units import FORMAT, without_shares
from onrecord.record.logs.opencode.writing import write_all
from onrecord.record.logs.reading.sqlite import MAGIC


@register
class OpenCode(Importer):
    """Sessions of OpenCode: folder store, exports, glued objects, SQLite stores and event streams."""

    format: ClassVar[str] = FORMAT
    title: ClassVar[str] = "OpenCode sessions"
    agent_kind: ClassVar[str] = OPENCODE
    has_text_times: ClassVar[bool] = False
    carriers: ClassVar[frozenset[str]] = frozenset(["lines", "document", "values", "sqlite", "folder"])
    is_newest_first: ClassVar[bool] = True
    tables: ClassVar[frozenset[str]] = frozenset(["message", "part"])

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        """Say whether a record is decisive."""
        return recognition.is_decisive(value)

    @classmethod
    def recognises_document(cls, value: Any) -> bool:
        """Say whether a whole text is an export, or a list of messages."""
        if type(value) is dict:
            return recognition.is_decisive(value)
        return recognition.is_decisive_list(value)

    @classmethod
    def recognises_members(cls, names: frozenset[str]) -> bool:
        """Say whether a large object is an export."""
        return {"info", "messages"} <= names

    @classmethod
    def recognises_tables(cls, names: frozenset[str]) -> bool:
        """Say whether an SQLite file is a store of version 1.2 or later."""
        return database.is_store(names)

    @classmethod
    def recognises_folder(cls, folder_: Path, names: frozenset[str]) -> bool:
        """Say whether a folder is a store of version 1.1 or earlier."""
        return folder.is_store(folder_, names)

    @classmethod
    def without_hashed(cls, value: Any) -> Any:
        """Return a value without the secrets of shares, which are in no vCon (D-LOG-13)."""
        if type(value) is dict and type(value.get("secret")) is str and type(value.get("url")) is str:
            return None
        return without_shares(value)[0]

    @classmethod
    def is_side_file(cls, path: Path) -> bool:
        """Say whether a file of the program's own folder is no log."""
        return folder.is_no_log(path)

    @classmethod
    def hints_at(cls, path: Path) -> bool:
        """Say whether a file lies below a folder of OpenCode's name."""
        return any("opencode" in part.lower() for part in path.parts)

    def read(self) -> None:
        """Read the whole source, whatever its layout, and write its sessions."""
        with Store(self.trace) as store:
            if self.trace.path.is_dir():
                folder.read_folder(store)
            elif self.trace.file.head(len(MAGIC)) == MAGIC:
                database.read_database(store)
            else:
                read_text(store)
            write_all(store)
