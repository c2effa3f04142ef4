"""`wrap` and `--undo` that are killed between any two changes of the disk, and what the next run makes of it."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from onrecord.base.errors import UsageError
from support.runtime import make_short_dir

SECRET = "tok-3141592653589793"
CONTENT = {
    "z": 1,
    "mcpServers": {
        "a": {"command": "/bin/a", "env": {"T": SECRET}},
        "b": {"command": "/bin/b", "env": {"U": f"{SECRET}2"}},
    },
}
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.chmod", "os.chown")


class KilledError(BaseException):
    """Stands for SIGKILL: nothing that would follow reaches the disk."""


class _Killer:
    """Lets a number of changes of the disk through. An audit hook cannot be taken away, so there is one for all."""

    def __init__(self):
        self.left = None
        sys.addaudithook(self._hook)

    def _hook(self, event, arguments):
        if self.left is None:
            return
        if event in CHANGES or (event == "open" and type(arguments[2]) is int and arguments[2] & os.O_CREAT):
            if self.left == 0:
                raise KilledError
            self.left -= 1

    def run(self, function, changes):
        """Say whether the function was killed after so many changes."""
        self.left = changes
        try:
            function()
        except KilledError:
            return True
        finally:
            self.left = None
        return False


KILLER = _Killer()


def plain(file):
    return json.loads(file.read_text())


def files(house):
    """What is there beside the client's file and the configuration."""
    known = ("onrecord.toml", "mcp.json", "lock")
    return [path for path in house.directory.rglob("*") if path.is_file() and path.name not in known]


@pytest.fixture
def houses():
    """Yields fresh houses, as many as are taken."""
    from authorize.wrap.conftest import House

    made = []

    def new():
        made.append(make_short_dir())
        return House(made[-1])

    yield new
    for directory in made:
        shutil.rmtree(directory)


def until_it_ends(houses, prepare, run):
    """Yield a house for each place at which a run can be killed; there are more than a few."""
    for changes in range(100):
        house = houses()
        file = house.client(CONTENT)
        before = house.toml.read_bytes()
        prepare(house, file)
        was_killed = KILLER.run(lambda house=house, file=file: run(house, file), changes)
        if not was_killed:
            assert changes > 10
            return
        house.configuration  # noqa: B018 - it can be read at any time
        yield house, file, before


def edit(file):
    """The client changes something of its own, so that the copy cannot simply be put back."""
    file.write_text(file.read_text().replace('"z": 1', '"z": 2'))


class TestKilledWrap:
    def test_again(self, houses):
        """The next run finds the same ids, and its undo leaves nothing behind, in particular no secret."""
        for house, file, before in until_it_ends(houses, lambda house, file: None, lambda h, f: h.wrap(f)):
            house.wrap(file)
            assert SECRET not in file.read_text()
            assert set(house.configuration.servers) == {"a", "b"}
            house.undo(file)
            assert (plain(file), house.toml.read_bytes(), files(house)) == (CONTENT, before, [])

    def test_undo(self, houses):
        """An undo in place of the next run takes back what was done so far."""
        for house, file, before in until_it_ends(houses, lambda house, file: None, lambda h, f: h.wrap(f)):
            try:
                assert house.undo(file).restored == ()
            except UsageError as error:
                assert error.code == "not-wrapped"
            assert (plain(file), house.toml.read_bytes(), files(house)) == (CONTENT, before, [])


class TestKilledUndo:
    @pytest.mark.parametrize("change", [lambda file: None, edit], ids=["same", "edited"])
    @pytest.mark.parametrize("again", [False, True], ids=["undo", "wrap"])
    def test_again(self, houses, change, again):
        """A second undo completes the first, and a wrap in between can be undone too; the client's change stays."""

        def prepare(house, file):
            house.wrap(file)
            change(file)

        for house, file, before in until_it_ends(houses, prepare, lambda h, f: h.undo(f)):
            wanted = {**CONTENT, "z": plain(file)["z"]}
            if again:
                house.wrap(file)
            try:
                house.undo(file)
            except UsageError as error:  # all was done but the end of the process
                assert error.code == "not-wrapped"
            assert (plain(file), house.toml.read_bytes(), files(house)) == (wanted, before, [])


def test_restored_by_hand(house):
    """An entry that somebody has put back by hand is no difference: undo takes the server out of the configuration."""
    file = house.client(CONTENT)
    house.wrap(file)
    document = plain(file)
    document["mcpServers"]["a"] = CONTENT["mcpServers"]["a"]
    file.write_text(json.dumps(document))
    assert house.undo(file).removed == ("a", "b")
    assert plain(file) == CONTENT


def test_only_our_temporary_files(house):
    """Other files whose names begin with a dot stay."""
    file = house.client(CONTENT)
    house.wrap(file)
    others = [house.directory / "config/env/.gitignore", house.directory / ".mcp.json.swp"]
    for other in others:
        other.touch()
    house.undo(file)
    assert all(other.exists() for other in others)


def test_env_file_in_use(house):
    """An env file that another table names stays, also when the table it was made for was given another name."""
    file = house.client(CONTENT)
    house.wrap(file)
    house.toml.write_text(house.toml.read_text().replace("[servers.a]", "[servers.mine]"))
    house.undo(file)
    assert list(house.env_files()) == ["a.env"]


@pytest.mark.parametrize("name", ["mcp[1].json", "m*p.json", os.fsdecode(b"m\xff.json")])
def test_file_names(house, name):
    """The copies of a file with an odd name go with the undo as well: they hold its secrets."""
    file = house.client(CONTENT, name)
    house.wrap(file)
    house.undo(file)
    assert [path for path in Path(house.directory / "state").rglob("*") if path.is_file()] == [
        house.directory / "state/wrap/lock"
    ]
