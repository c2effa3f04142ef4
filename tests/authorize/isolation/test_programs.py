"""What programs load, what accounts give, and other names of a file: each told from text or from a small tree."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.doctor import accounts, isolation, mounts, peers, programs
from onrecord.authorize.doctor.mounts import Mount, other_names, read_mounts
from onrecord.authorize.doctor.reaching import names_beside, writable_below
from onrecord.base.configuration import Configuration


class TestOwnInstallation:
    def test_files(self):
        """The settings of the environment and every library that is loaded are looked at."""
        found = programs.program_files()
        assert Path(sys.prefix) / "pyvenv.cfg" in found
        assert any("_ssl" in one.name or "libssl" in one.name for one in found)

    def test_trees(self):
        """Each directory that an isolated interpreter loads from is one of the trees or below one."""
        trees = programs.program_trees()
        for place in programs.module_path(sys.executable):
            assert any(place == tree or tree in place.parents for tree in trees)

    def test_silent_interpreter(self, tmp_path):
        """An interpreter that does not answer is said, not passed over."""
        (tmp_path / "python3").symlink_to("/bin/false")
        with pytest.raises(LookupError):
            programs.command_trees([str(tmp_path / "python3"), "-m", "server"])


class TestCommandFiles:
    def found(self, tmp_path, *command, cwd=None):
        return {str(one.relative_to(tmp_path)) for one in programs.command_files(command, cwd=cwd)}

    def test_words(self, tmp_path):
        """Paths, options with a path, and directories with code are found; data directories are not."""
        for name in ("program", "a.json"):
            (tmp_path / name).write_text("x")
        (tmp_path / "data").mkdir()
        (tmp_path / "project").mkdir()
        (tmp_path / "project/package.json").write_text("{}")
        words = ["program", f"--config={tmp_path}/a.json", f"{tmp_path}/data", f"{tmp_path}/project", "none"]
        command = [f"{tmp_path}/program", *words[1:]]
        assert self.found(tmp_path, *command) == {"program", "a.json", "project"}

    def test_relative(self, tmp_path):
        """Relative words and modules count from the working directory, if it is known."""
        (tmp_path / "server").mkdir()
        for name in ("program", "main.py", "server/__init__.py"):
            (tmp_path / name).write_text("x")
        command = (f"{tmp_path}/program", "main.py", "-m", "server.web")
        assert self.found(tmp_path, *command) == {"program"}
        found = self.found(tmp_path, *command, cwd=tmp_path)
        assert found == {"program", "main.py", "server/__init__.py"}

    @given(st.lists(st.text(max_size=12), max_size=4))
    def test_anything(self, words):
        """Any command line gives paths or none."""
        assert all(
            isinstance(one, Path) for one in programs.command_files(["/bin/sh", *words], cwd=Path("/"))
        )


class TestCommandTrees:
    def test_node(self, tmp_path):
        """A script of Node brings all packages around it, also through the link in .bin."""
        package = tmp_path / "node_modules/server"
        package.mkdir(parents=True)
        (package / "package.json").write_text("{}")
        (package / "index.js").write_text("#!/usr/bin/env node\n")
        (tmp_path / "node").write_bytes(b"\x7fELF")
        (tmp_path / "node").chmod(0o755)
        (tmp_path / "server").symlink_to("node_modules/server/index.js")
        for script in (package / "index.js", tmp_path / "server"):
            found = programs.command_trees([str(tmp_path / "node"), str(script)])
            assert found == (tmp_path / "node_modules",)

    def test_project_of_node(self, tmp_path):
        """Without node_modules around it the nearest package counts."""
        (tmp_path / "dist").mkdir()
        (tmp_path / "package.json").write_text("{}")
        (tmp_path / "dist/main.js").write_text("")
        assert programs.command_trees(["/usr/bin/node", f"{tmp_path}/dist/main.js"]) == (tmp_path,)

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ("#!/opt/x/bin/python -I", "/opt/x/bin/python"),
            ("#!/usr/bin/env node", "node"),
            ("#!/usr/bin/env -S A=1 node --x", "node"),
            ("#!", None),
            ("import x", None),
        ],
    )
    def test_first_line(self, tmp_path, row, said):
        """The interpreter of a script is read as the kernel and env read it."""
        (tmp_path / "x").write_text(row + "\n")
        assert programs._shebang(tmp_path / "x") == said

    @pytest.mark.parametrize(
        "command", [(), ("/nothing/there",), ("no-such-program-here",), ("/bin/sh", "-c", "x")]
    )
    def test_nothing_known(self, command):
        """Where the first words tell nothing there is no tree."""
        assert programs.command_trees(command) == ()

    @pytest.mark.root
    def test_python_of_somebody_else(self, short_dir, monkeypatch, uid_block):
        """A Python that another uid could have made is not executed: the one behind a link is asked, or nobody."""
        monkeypatch.setattr(programs, "module_path", lambda interpreter: (Path(interpreter).parent,))
        (short_dir / "bin").mkdir()
        python = short_dir / "bin/python3"
        python.symlink_to("/bin/true")
        (short_dir / "pyvenv.cfg").touch()
        os.chown(python, uid_block[0], uid_block[0], follow_symlinks=False)
        assert programs.command_trees([str(python)]) == (
            short_dir,
            Path(os.path.realpath("/bin/true")).parent,
        )
        python.unlink()
        python.write_bytes(b"\x7fELF")
        os.chown(python, uid_block[0], uid_block[0])
        with pytest.raises(LookupError, match="does not belong to root"):
            programs.command_trees([str(python)])

    def test_pipe(self, tmp_path):
        """A pipe in the place of a program is not waited for."""
        os.mkfifo(tmp_path / "server")
        assert programs.command_trees([str(tmp_path / "server")]) == ()


class TestTree:
    def test_link_leads_out(self, tmp_path, monkeypatch):
        """A module that is a link is what it leads to; here it belongs to this uid."""
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        (tmp_path / "tree").mkdir()
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside/module.py").write_text("")
        seen = []
        monkeypatch.setattr(
            "onrecord.authorize.doctor.reaching.writable", lambda path: seen.append(path) or None
        )
        (tmp_path / "tree/link").symlink_to(tmp_path / "outside")
        (tmp_path / "outside/loop").symlink_to(tmp_path / "tree")
        assert writable_below(tmp_path / "tree") is None
        assert seen == [tmp_path / "tree/link", tmp_path / "outside/loop"]


class TestCopies:
    def test_listed(self, tmp_path):
        """Copies as people and editors name them are found, other files with a like name are not."""
        copies = {"a.env~", "a.env.bak", "a.env.2026", "a.env-old", ".a.env.swp", "#a.env#"}
        for name in ("a.env", "a.environment", "b.env", "aa.env", *copies):
            (tmp_path / name).write_text("")
        assert {one.name for one in names_beside(tmp_path / "a.env")} == copies

    def test_guessed(self, tmp_path):
        """Where nothing can be listed the usual names are given."""
        names = {one.name for one in names_beside(tmp_path / "closed/a.env")}
        assert {"a.env~", "a.env.bak", ".a.env.swp"} <= names


class TestMounts:
    ROWS = (
        Mount("8:1", Path("/"), Path("/")),
        Mount("0:5", Path("/"), Path("/proc")),
        Mount("8:1", Path("/srv/vault"), Path("/mnt/open")),
        Mount("8:2", Path("/"), Path("/data")),
        Mount("8:2", Path("/"), Path("/again")),
    )

    @pytest.mark.parametrize(
        ("path", "others"),
        [
            ("/srv/vault/a", ["/mnt/open/a"]),
            ("/srv/vault", ["/mnt/open"]),
            ("/srv/vaults", []),
            ("/mnt/open/a", ["/srv/vault/a"]),
            ("/data/x/y", ["/again/x/y"]),
            ("/proc/x", []),
        ],
    )
    def test_names(self, path, others):
        """Each other mount of the same place gives a name, and only those."""
        assert other_names(Path(path), self.ROWS) == tuple(map(Path, others))

    def test_hidden_by_another(self):
        """A mount that another one covers shows nothing."""
        rows = (*self.ROWS, Mount("0:9", Path("/"), Path("/mnt")))
        assert other_names(Path("/srv/vault/a"), (*rows, Mount("0:9", Path("/"), Path("/mnt/open")))) == ()

    def test_text(self, tmp_path, monkeypatch):
        """Spaces are written in octal; rows that are too short are passed over."""
        (tmp_path / "rows").write_text("22 1 8:1 / /a\\040b rw - ext4 x rw\nbroken\n")
        monkeypatch.setattr(mounts, "MOUNTS", tmp_path / "rows")
        assert read_mounts() == (Mount("8:1", Path("/"), Path("/a b")),)
        monkeypatch.setattr(mounts, "MOUNTS", tmp_path / "none")
        assert read_mounts() == ()


class TestAccounts:
    def test_groups_of_the_account(self, monkeypatch):
        """I8: newgrp gives every group of the account, also one that this process does not have yet."""
        account = pwd.struct_passwd(("agent", "x", os.geteuid(), 7, "", "/", ""))
        monkeypatch.setattr(pwd, "getpwuid", lambda uid: account)
        monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [gid, 9])
        assert accounts.account_groups(os.geteuid()) == {7, 9}
        monkeypatch.setattr(isolation, "_closed_groups", lambda configuration, server: {9})
        monkeypatch.setattr(os, "getgroups", lambda: [5])
        text = 'mode = "system"\n[principals]\ncall_group = 5\n[servers.a]\ncommand = "x"\nuser = 3\n'
        check = isolation._i8(Configuration.parse(text, file=Path("/x.toml")), "a", ())
        assert (check.result, "newgrp" in check.detail) == ("failed", True)

    @pytest.mark.parametrize(
        ("rows", "lent"),
        [
            ("agent:100:10", (105,)),
            ("4711:105:1", (105,)),
            ("agent:106:10", ()),
            ("other:100:10", ()),
            ("agent:x:10\nagent:100\nagent\n\n", ()),
        ],
    )
    def test_lent(self, tmp_path, monkeypatch, rows, lent):
        """Ranges of the uid count by name and by number; broken rows are none."""
        monkeypatch.setattr(
            pwd, "getpwuid", lambda uid: pwd.struct_passwd(("agent", "x", uid, 1, "", "/", ""))
        )
        (tmp_path / "subuid").write_text(rows)
        assert accounts.subordinate_ids(4711, tmp_path / "subuid", {105}) == lent
        assert accounts.subordinate_ids(4711, tmp_path / "none", {105}) == ()


class TestPeers:
    def test_not_all(self, tmp_path, monkeypatch):
        """With more processes than are looked at, the visit says that it did not see all."""
        text = f'mode = "user"\n[paths]\nruntime = "{tmp_path}"\n[servers.a]\ncommand = "x"'
        configuration = Configuration.parse(text, file=Path("/x.toml"))
        for limit, are_all in ((1, False), (9, True)):
            monkeypatch.setattr(peers, "MAX_PROCESSES", limit)
            monkeypatch.setattr(
                peers, "_look", lambda seen, **_: seen.setdefault(1, peers.Process(1, os.dup(0), 0, {1}, {1}))
            )
            with peers.visit(configuration, "a") as found:
                assert found.are_all is are_all
