"""Walking the paths of an import: order, links, circles, what is passed by, and hostile names."""

import os

import pytest

from onrecord.record.logs.folders import Walk, files_of, shown, stamp_of_folder


def walk(*paths, **options):
    how = {"store_of": lambda _folder, _names: None, "is_side_file": lambda _path: False, **options}
    there = Walk(**how)
    return there, list(there.over(paths))


def make(top, *names):
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("x")


class TestWalk:
    def test_order(self, tmp_path):
        """The files of a folder come before its folders, both by name, and what is given twice comes once."""
        make(tmp_path, "b.jsonl", "a/z.jsonl", "a/b/c.jsonl", "a.jsonl", "c/d.json")
        _, found = walk(tmp_path, tmp_path / "a", tmp_path / "b.jsonl")
        names = [str(one.path.relative_to(tmp_path)) for one in found]
        assert names == ["a.jsonl", "b.jsonl", "a/z.jsonl", "a/b/c.jsonl", "c/d.json"]
        assert not any(one.is_named for one in found)

    def test_links(self, tmp_path):
        """R-21: links in a folder are counted and not followed, those that leave it and those that lead round alike."""
        make(tmp_path, "in/a.jsonl", "out/secret.jsonl")
        (tmp_path / "in/out").symlink_to(tmp_path / "out")
        (tmp_path / "in/loop").symlink_to(tmp_path / "in")
        (tmp_path / "in/self").symlink_to("self")
        (tmp_path / "in/s.jsonl").symlink_to(tmp_path / "out/secret.jsonl")
        there, found = walk(tmp_path / "in")
        assert [one.path.name for one in found] == ["a.jsonl"]
        assert there.passed.links == 4

    def test_named_link(self, tmp_path):
        """A link that a person names is followed; a circle of links is told as a fault."""
        make(tmp_path, "a.jsonl")
        (tmp_path / "l").symlink_to("a.jsonl")
        (tmp_path / "self").symlink_to("self")
        _, found = walk(tmp_path / "l", tmp_path / "self", tmp_path / "absent")
        assert [(one.path.name, one.fault is None, one.is_named) for one in found] == [
            ("l", True, True),
            ("self", False, True),
            ("absent", False, True),
        ]

    def test_passed_by(self, tmp_path):
        """What is no log by its name or kind, folders of other programs and our own files are not opened."""
        make(
            tmp_path,
            "a.jsonl",
            "README.MD",
            ".git/objects/aa",
            "node_modules/x.json",
            "vcons/1.json",
            "vcons/00000000-0000-8000-8000-000000000001.vcon",
            "vcons/.onrecord-import.state",
            "p.png",
        )
        os.mkfifo(tmp_path / "pipe")
        there, found = walk(tmp_path, target=tmp_path / "vcons")
        assert [one.path.name for one in found] == ["a.jsonl", "1.json"]
        assert there.passed.to_json() == {"files": 3, "folders": 2, "links": 0}

    def test_side_files(self, tmp_path):
        """Files that are read with others are set aside with their stamps."""
        make(tmp_path, "a.jsonl", "a.meta.json")
        there, found = walk(tmp_path, is_side_file=lambda path: path.name.endswith(".meta.json"))
        assert [one.path.name for one in found] == ["a.jsonl"]
        assert {path.name: stamp.size for path, stamp in there.side_files.items()} == {"a.meta.json": 1}

    def test_store(self, tmp_path):
        """A folder that is one store is one thing; its stamp changes with any file in it."""
        make(tmp_path, "store/message/a.json", "store/part/b.json", "b.jsonl")
        _, found = walk(tmp_path, store_of=lambda _folder, names: "s" if "message" in names else None)
        assert [(one.path.name, one.format) for one in found] == [("b.jsonl", None), ("store", "s")]
        before = stamp_of_folder(tmp_path / "store")
        make(tmp_path, "store/part/c.json")
        assert stamp_of_folder(tmp_path / "store") != before
        assert [path.name for path, _ in files_of(tmp_path / "store")] == ["a.json", "b.json", "c.json"]

    def test_names(self, tmp_path):
        """Names with line breaks, escapes and bytes that are no UTF-8 are walked like others."""
        names = [b"a\nb.jsonl", b"\x1b[31m.jsonl", b"\xff\xfe.jsonl"]
        for name in names:
            with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
                file.write(b"x")
        _, found = walk(tmp_path)
        assert {os.fsencode(one.path.name) for one in found} == set(names)
        assert shown(found[-1].path).endswith("\ufffd\ufffd.jsonl")

    def test_unreadable_folder(self, tmp_path, monkeypatch):
        """A folder that cannot be listed is told with the reason, and the walk goes on."""
        make(tmp_path, "a/x.jsonl", "b.jsonl")
        real = os.scandir

        def refuse(path):
            if str(path).endswith("/a"):
                raise PermissionError(13, "Permission denied")
            return real(path)

        monkeypatch.setattr(os, "scandir", refuse)
        _, found = walk(tmp_path)
        assert [(one.path.name, one.fault) for one in found] == [
            ("b.jsonl", None),
            ("a", "Permission denied"),
        ]

    @pytest.mark.parametrize("name", ["\0", "a\0b"])
    def test_impossible_names(self, tmp_path, name):
        """A path that cannot exist is a fault, not an exception."""
        _, found = walk(tmp_path / name)
        assert found[0].fault == "not a file name"
