"""A place where a journal lives, with the ways to copy it, change it and look at it."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from dataclasses import dataclass, field
from pathlib import Path

from onrecord.base.dates import SYSTEM_CLOCK, Clock
from onrecord.base.keys import Signer
from onrecord.record.ledger import schema
from onrecord.record.ledger.journal import Journal
from onrecord.record.ledger.verify import verify_journal


def gate(journal):
    """Return a lock that, while held, keeps the writer from touching the file: a moment to copy it."""
    lock = threading.Lock()
    for name in ("commit", "sync", "purge_log"):
        original = getattr(journal._store, name)

        def guarded(*arguments, original=original):
            with lock:
                return original(*arguments)

        setattr(journal._store, name, guarded)
    return lock


@dataclass
class Place:
    """The directory of a journal and that of its high-water, under one parent."""

    base: Path
    signer: Signer
    clock: Clock = field(default_factory=lambda: SYSTEM_CLOCK)
    name: str = "host.example/authority"

    @property
    def directory(self):
        return self.base / "authority"

    @property
    def marks(self):
        return self.base / "marks"

    @property
    def file(self):
        return self.directory / "journal-1.db"

    @property
    def high_water(self):
        return self.marks / "high-water"

    @property
    def trusted(self):
        return {self.signer.kid: self.signer.public_key}

    @property
    def origin(self):
        return f"{self.name}/journal/1"

    def open(self, **options):
        options = {
            "signer": self.signer,
            "name": self.name,
            "marks": self.marks,
            "clock": self.clock,
        } | options
        return Journal.open(self.directory, **options)

    def fill(self, count, **options):
        """Write a journal with `count` more records and close it; return the last checkpoint before the close."""
        with self.open(**options) as journal:
            for number in range(count):
                journal.append("verify.valid", {"n": number})
            return journal.flush().note

    def verify(self, *checkpoints, trusted=...):
        keys = self.trusted if trusted is ... else trusted
        return verify_journal([self.file], checkpoints=checkpoints, trusted=keys)

    def copy(self, name):
        """Copy everything as a crash at this moment would leave it, without the index that SQLite rebuilds."""
        other = Place(self.base.with_name(name), self.signer, self.clock, self.name)
        shutil.copytree(self.base, other.base, ignore=shutil.ignore_patterns("*-shm", "journal.lock"))
        return other

    def tamper(self, *statements):
        """Change the file as somebody with write access would: triggers are dropped and put back."""
        connection = sqlite3.connect(self.file, isolation_level=None)
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            if isinstance(statement, str):
                connection.execute(statement)
            else:
                connection.execute(*statement)
        for _, sql in triggers:
            connection.execute(sql)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def rows(self, query, *parameters):
        connection = schema.open_reader(self.file)
        try:
            return connection.execute(query, parameters).fetchall()
        finally:
            connection.close()
