"""`onrecord wrap` and its undo (running.md 5.3)."""

import json
import os
import stat
import struct
import sys
import threading

import pytest

from onrecord.authorize.guard.environment import read_env_file
from onrecord.authorize.wrap import wrapping
from onrecord.authorize.wrap.backups import Backups
from onrecord.authorize.wrap.kept_file import KeptFile
from onrecord.base.errors import ConfigurationError, MalformedError, OnrecordError, StorageError, UsageError

SECRET = "tok-3141592653589793"


def server(command=sys.executable, **more):
    return {"command": command, "args": ["-m", "server"], **more}


def ids(report):
    return {one.entry.name: one.id for one in report.wrapped}


CLIENTS = {
    "mcpServers": (
        "claude_desktop_config.json",
        f'{{"globalShortcut": "x",\n "mcpServers": {{"git": {{"command": "uvx", "env": {{"T": "{SECRET}"}}}}}}}}',
    ),
    "projects": (
        ".claude.json",
        (
            '{"numStartups": 7, "projects": {"/home/ada/p": {"allowedTools": [], "mcpServers":'
            f' {{"git": {{"type": "stdio", "command": "uvx", "args": [], "env": {{"T": "{SECRET}"}}}}}}}}}}}}'
        ),
    ),
    "servers": (
        ".vscode/mcp.json",
        (
            f'{{\n  // mine\n  "inputs": [],\n  "servers": {{\n    "git": {{\n      "type": "stdio",\n'
            f'      "command": "uvx", // run\n      "env": {{\n        "T": "{SECRET}",\n      }},\n'
            "    },\n  },\n}\n"
        ),
    ),
    "mcp_servers": (
        ".codex/config.toml",
        f'model = "m" # best\n\n[mcp_servers.git]\ncommand = "uvx"\nenv = {{ "T" = "{SECRET}" }}\n\n[tui]\nx = 1\n',
    ),
}


class TestWrap:
    @pytest.mark.parametrize("client", CLIENTS)
    def test_clients(self, house, client):
        """In every client's form the server is replaced, its secret leaves the file, and undo gives the same bytes."""
        name, content = CLIENTS[client]
        file = house.client(content, name)
        before = house.toml.read_bytes()
        report = house.wrap(file, options=("--config", "/x"))
        assert ids(report) == {"git": "git"}
        text = file.read_text()
        assert SECRET not in text
        assert '"connect", "git", "--config", "/x"]' in text
        made = house.configuration.servers["git"]
        assert made.command == "uvx"
        assert read_env_file(made.env_file, owner=os.geteuid()) == {"T": SECRET}
        assert house.toml.read_bytes().startswith(before)
        assert house.undo(file).removed == ("git",)
        assert file.read_text() == content
        assert house.toml.read_bytes() == before
        assert house.env_files() == {}
        assert Backups.of(house.configuration).all() == ()

    def test_modes(self, house):
        """Env file and backup are private; the client's file keeps its mode; no directory is open to others."""
        file = house.client({"mcpServers": {"a": server(env={"T": SECRET})}})
        file.chmod(0o640)
        report = house.wrap(file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        for path in (house.configuration.servers["a"].env_file, report.backup):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert report.backup.parent == house.directory / "state/wrap"
        for path in house.directory.iterdir():
            if path.is_file():
                assert SECRET.encode() not in path.read_bytes()

    def test_twice(self, house):
        """A second run changes nothing and says so."""
        file = house.client({"mcpServers": {"a": server(), "b": server(env={"T": SECRET})}})
        house.wrap(file)
        before = house.state_files()
        report = house.wrap(file)
        assert (report.wrapped, [one.name for one in report.already]) == ((), ["a", "b"])
        assert house.state_files() == before

    def test_later_server(self, house):
        """A server that is added later is wrapped by a later run, and undo takes both back."""
        content = {"mcpServers": {"a": server(env={"T": SECRET})}}
        file = house.client(content)
        house.wrap(file)
        document = json.loads(file.read_text())
        document["mcpServers"]["b"] = server("/usr/bin/b", env={"U": "2"})
        file.write_text(json.dumps(document))
        assert ids(house.wrap(file)) == {"b": "b"}
        house.undo(file)
        assert json.loads(file.read_text()) == {
            "mcpServers": content["mcpServers"] | {"b": server("/usr/bin/b", env={"U": "2"})}
        }
        assert house.configuration.servers == {}

    def test_dry_run(self, house):
        """A dry run gives the same report and writes nothing."""
        file = house.client({"mcpServers": {"a": server(env={"T": SECRET})}})
        before = house.state_files()
        report = house.wrap(file, is_dry=True)
        assert (ids(report), report.backup) == ({"a": "a"}, None)
        assert house.state_files() == before

    def test_only(self, house):
        """Named servers are wrapped, others stay; a name that is not there is an error."""
        file = house.client({"mcpServers": {"a": server(), "b": server()}})
        assert ids(house.wrap(file, only=["b"])) == {"b": "b"}
        assert json.loads(file.read_text())["mcpServers"]["a"] == server()
        with pytest.raises(UsageError) as e:
            house.wrap(file, only=["b", "d", "c"])
        assert e.value.code == "client-server-unknown"
        assert str(e.value) == "not in the file: c, d"

    def test_clash(self, house):
        """Two names that give one id, for different servers, get different ids (running.md 5.3)."""
        file = house.client(
            {
                "mcpServers": {
                    "My Git": server("/usr/bin/a"),
                    "my-git": server("/usr/bin/b"),
                    "MY GIT": server("/usr/bin/c"),
                }
            }
        )
        assert ids(house.wrap(file)) == {"My Git": "my-git", "my-git": "my-git-2", "MY GIT": "my-git-3"}
        assert house.configuration.servers["my-git-2"].command == "/usr/bin/b"

    def test_shared(self, house):
        """The same server in two clients is one server with one id; it stays until the last file is undone."""
        one = house.client({"mcpServers": {"git": server(env={"T": SECRET})}}, "one.json")
        two = house.client({"servers": {"git": server(env={"T": SECRET})}}, "two.json")
        assert ids(house.wrap(one)) == ids(house.wrap(two)) == {"git": "git"}
        assert list(house.env_files()) == ["git.env"]
        report = house.undo(one)
        assert (report.removed, report.kept) == ((), ("git",))
        assert house.env_files() == {"git.env": f"T={SECRET}\n"}
        house.undo(two)

    def test_other_secret_is_another_server(self, house):
        """With another value in env it is another server: one id never gets two identities."""
        one = house.client({"mcpServers": {"git": server(env={"T": "1"})}}, "one.json")
        two = house.client({"mcpServers": {"git": server(env={"T": "2"})}}, "two.json")
        house.wrap(one)
        assert ids(house.wrap(two)) == {"git": "git-2"}
        assert house.env_files() == {"git.env": "T=1\n", "git-2.env": "T=2\n"}

    def test_configured_by_hand(self, house):
        """A server that stands in onrecord.toml already is used, and stays there after an undo."""
        with house.toml.open("a") as toml:
            toml.write(f'[servers.git]\ncommand = "{sys.executable}"\nargs = ["-m", "server"]')
        file = house.client({"mcpServers": {"git": server()}})
        before = house.toml.read_bytes()
        assert ids(house.wrap(file)) == {"git": "git"}
        house.undo(file)
        assert house.toml.read_bytes() == before

    def test_strange_names(self, house):
        """Names with quotes, newlines and dots come through unharmed."""
        names = ['a"b', "a\nb", "a.b", "]", "a\\b", "'", "日本"]
        file = house.client({"mcpServers": {name: server(f"/bin/{i}") for i, name in enumerate(names)}})
        made = ids(house.wrap(file))
        assert [house.configuration.servers[made[name]].command for name in names] == [
            f"/bin/{i}" for i in range(len(names))
        ]

    def test_strange_values(self, house):
        """Arguments and variables reach the server exactly as the client's file had them."""
        args = ['"', "\\", "'''", "a\nb", "\x7f\x01", "é", "", "#", "${"[:1], "日本\u202e"]
        env = {"A": ' "quoted" # x ', "B": "", "C": "a=b", "D": "日本\u202e", "E": "'"}
        file = house.client({"mcpServers": {"a": {"command": "/x", "args": args, "env": env}}})
        house.wrap(file)
        made = house.configuration.servers["a"]
        assert list(made.args) == args
        assert read_env_file(made.env_file, owner=os.geteuid()) == env

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            (
                "mcp.json",
                f'{{"mcpServers": {{"\\ud800": {json.dumps(server())}, "b": {json.dumps(server())}}}}}',
            ),
            (
                ".claude.json",
                r'{"projects": {"/\udc00": {"mcpServers": {"a": {"command": "x"}}}}, "mcpServers": {}}',
            ),
            (os.fsdecode(b"d\xff/.mcp.json"), f'{{"mcpServers": {{"a": {json.dumps(server())}}}}}'),
        ],
        ids=["server", "project", "directory"],
    )
    def test_names_that_are_no_unicode(self, house, name, content):
        """A name that UTF-8 cannot hold is left alone with a reason, and the others are wrapped."""
        report = house.wrap(house.client(content, name))
        assert [one.reason for one in report.left_alone] == ["text"]
        assert {one.entry.name for one in report.wrapped} <= {"b"}

    def test_paths_that_the_configuration_refuses(self, house):
        """An entry that onrecord.toml could not hold is left alone, and the others are wrapped."""
        file = house.client({"mcpServers": {"a": server("/x/../y"), "b": server()}})
        report = house.wrap(file)
        assert (ids(report), [one.reason for one in report.left_alone]) == ({"b": "b"}, ["unusable"])

    def test_servers_in_another_form(self, house):
        """Where onrecord.toml cannot take a table, nothing is touched."""
        house.toml.write_text("servers = {}\n" + house.toml.read_text())
        file = house.client({"mcpServers": {"a": server(env={"T": SECRET})}})
        before = house.state_files()
        assert [one.reason for one in house.wrap(file).left_alone] == ["unusable"]
        assert house.state_files() == before

    def test_form_that_cannot_be_edited(self, house):
        """An entry with dotted keys is left alone; its neighbour is wrapped."""
        text = '[mcp_servers]\ns.command = "/s"\ns.env.A = "b"\n[mcp_servers.t]\ncommand = "/t"\n'
        file = house.client(text, "config.toml")
        report = house.wrap(file)
        assert [one.reason for one in report.left_alone] == ["form"]

    def test_passed_names(self, house):
        """Names that Codex hands on reach the server through env_pass."""
        file = house.client('[mcp_servers.s]\ncommand = "/s"\nenv_vars = ["A", "B"]\n', "config.toml")
        house.wrap(file)
        assert house.configuration.servers["s"].env_pass == ("A", "B")
        assert 'env_vars = ["A", "B"]' in file.read_text()

    def test_byte_order_mark(self, house):
        """A byte order mark stays."""
        file = house.client(b'\xef\xbb\xbf{"mcpServers": {"a": {"command": "/x"}}}')
        house.wrap(file)
        assert file.read_bytes().startswith(b'\xef\xbb\xbf{"mcpServers"')

    def test_comments_of_the_configuration(self, house):
        """The operator's comments and order in onrecord.toml stay."""
        before = house.toml.read_bytes()
        house.wrap(house.client({"mcpServers": {"a": server()}}))
        assert house.toml.read_bytes().startswith(before)


class TestRefused:
    @pytest.mark.parametrize(
        ("content", "code"),
        [
            ("{", "client-file-malformed"),
            (b'{"a": "\xff"}', "client-file-malformed"),
            ("{}", "client-file-unknown"),
            ('{"mcpServers": []}', "client-file-unknown"),
            ('{"projects": {"/p": {}}}', "client-file-unknown"),
        ],
    )
    def test_content(self, house, content, code):
        """A file that cannot be understood is refused, and nothing is written."""
        file = house.client(content)
        before = house.state_files()
        with pytest.raises(OnrecordError) as e:
            house.wrap(file)
        assert e.value.code == code
        assert house.state_files() == before

    def test_own_configuration(self, house):
        """onrecord.toml has servers too, and is no client's file."""
        with house.toml.open("a") as toml:
            toml.write('[servers.git]\ncommand = "/bin/x"\n')
        before = house.state_files()
        with pytest.raises(UsageError) as e:
            house.wrap(house.toml)
        assert e.value.code == "client-file-unknown"
        assert house.state_files() == before

    def test_missing(self, house):
        """A file that is not there, a directory and a pipe are refused; nobody waits for a writer."""
        os.mkfifo(house.directory / "pipe.json")
        for name in ("none.json", "config", "pipe.json"):
            with pytest.raises(UsageError) as e:
                house.wrap(house.directory / name)
            assert e.value.code == "client-file-missing"

    def test_writable_by_everybody(self, house):
        """Whoever can write the file decides what is started, so such a file is not taken over."""
        file = house.client({"mcpServers": {"a": server()}})
        file.chmod(0o666)
        with pytest.raises(UsageError) as e:
            house.wrap(file)
        assert e.value.code == "client-file-mode"

    def test_second_name(self, house):
        """A file with a second name would keep its secrets under that one."""
        file = house.client({"mcpServers": {"a": server()}})
        os.link(file, house.directory / "second")
        with pytest.raises(UsageError) as e:
            house.wrap(file)
        assert e.value.code == "client-file-link"

    def test_user_in_user_mode(self, house):
        """In user mode there is one uid."""
        with pytest.raises(UsageError) as e:
            house.wrap(house.client({"mcpServers": {"a": server()}}), user=7)
        assert e.value.code == "wrap-user"

    def test_too_large(self, house, monkeypatch):
        """A file beyond the limit is not read."""
        monkeypatch.setattr("onrecord.authorize.wrap.kept_file.MAX_BYTES", 10)
        with pytest.raises(UsageError) as e:
            KeptFile.read(house.client({"mcpServers": {}}))
        assert e.value.code == "client-file-missing"

    def test_no_secret_in_any_error(self, house):
        """No error, and no representation of a report, holds a value of env."""
        for content in (f'{{"mcpServers": {{"a": {{"env": {{"T": "{SECRET}"', f"T = {SECRET}"):
            with pytest.raises(OnrecordError) as e:
                house.wrap(house.client(content))
            assert SECRET not in f"{e.value.to_json()}{e.value.__cause__}"
        report = house.wrap(house.client({"mcpServers": {"a": server(env={"T": SECRET})}}))
        assert SECRET not in repr(report)
        assert SECRET not in json.dumps(report.to_json())
        assert SECRET not in repr(Backups.of(house.configuration).all())


class TestFaults:
    @pytest.mark.parametrize("step", ["env", "toml", "copy", "record", "client"])
    def test_any_step_fails(self, house, monkeypatch, step):
        """When a step fails, everything is as it was before, and the next run works."""
        file = house.client({"mcpServers": {"a": server(env={"T": SECRET}), "b": server(env={"U": "2"})}})
        before = house.state_files()

        def fail(*arguments, **more):
            raise StorageError("no", code="client-file-unwritable")

        with monkeypatch.context() as patch:
            if step == "env":
                write, calls = wrapping.files.replace, []

                def second_fails(*arguments, **more):
                    calls.append(arguments)
                    return fail() if len(calls) == 2 else write(*arguments, **more)

                patch.setattr(wrapping.files, "replace", second_fails)
            elif step == "copy":
                patch.setattr(Backups, "add_copy", fail)
            elif step == "record":
                write_record, records = Backups.write, []

                def first_fails(*arguments):
                    records.append(arguments)
                    return fail() if len(records) == 1 else write_record(*arguments)

                patch.setattr(Backups, "write", first_fails)
            else:
                replace = KeptFile.replace
                wanted = house.toml if step == "toml" else file

                def replaces(kept, data):
                    return (
                        fail()
                        if kept.path == wanted and kept.data != data and replaced.add(wanted)
                        else replace(kept, data)
                    )

                replaced = _Once()
                patch.setattr(KeptFile, "replace", replaces)
            with pytest.raises(StorageError):
                house.wrap(file)
        after = {name: data for name, data in house.state_files().items() if not name.endswith(".backup")}
        assert after == before
        assert ids(house.wrap(file)) == {"a": "a", "b": "b"}
        house.undo(file)
        assert {n: d for n, d in house.state_files().items() if not n.endswith(".backup")} == before

    def test_killed_before_the_last_step(self, house, monkeypatch):
        """A run that is killed before the client's file is written is continued by the next one, with the same ids."""
        content = {"mcpServers": {"a": server(env={"T": SECRET})}}
        file = house.client(content)

        class KilledError(BaseException):
            pass

        def killed(*arguments):
            raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr("contextlib.ExitStack.__exit__", lambda *arguments: None)
            patch.setattr(
                KeptFile, "replace", lambda kept, data: killed() if kept.path == file else REPLACE(kept, data)
            )
            with pytest.raises(KilledError):
                house.wrap(file)
        assert list(house.configuration.servers) == ["a"]
        assert ids(house.wrap(file)) == {"a": "a"}
        assert house.undo(file).removed == ("a",)
        assert json.loads(file.read_text()) == content
        assert house.env_files() == {}

    def test_client_writes_meanwhile(self, house):
        """A client that writes its file in between loses nothing: our edit is refused, and all is taken back."""
        file = house.client({"mcpServers": {"a": server(env={"T": SECRET})}})
        kept = KeptFile.read(file)
        for change in (lambda: file.write_text("{}"), file.unlink, lambda: os.symlink("/etc/hostname", file)):
            change()
            with pytest.raises(StorageError) as e:
                kept.replace(b"x")
            assert e.value.code == "client-file-changed"
        assert os.readlink(file) == "/etc/hostname"
        assert [path.name for path in house.directory.iterdir() if path.name.startswith(".")] == []

    def test_same_bytes_again(self, house):
        """A client that replaced its file by the same bytes has another file now; that is noticed too."""
        file = house.client({"mcpServers": {}})
        kept = KeptFile.read(file)
        data = file.read_bytes()
        other = house.directory / "other"
        other.write_bytes(data)
        os.rename(other, file)
        with pytest.raises(StorageError):
            kept.replace(b"x")

    def test_runs_in_parallel(self, house):
        """Runs for several clients at once wait for each other: no table and no id is lost."""
        clients = [
            house.client({"mcpServers": {"git": server(f"/bin/{i}", env={"T": str(i)})}}, f"{i}.json")
            for i in range(8)
        ]
        reports = []
        threads = [threading.Thread(target=lambda f=f: reports.append(house.wrap(f))) for f in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({one.id for report in reports for one in report.wrapped}) == 8
        assert len(house.configuration.servers) == len(house.env_files()) == 8

    def test_record_that_cannot_be_read(self, house):
        """A spoiled record is named, and the client's file stays as it is."""
        file = house.client({"mcpServers": {"a": server()}})
        house.wrap(file)
        Backups.of(house.configuration).path(file).write_text("{")
        before = file.read_bytes()
        with pytest.raises(StorageError) as e:
            house.undo(file)
        assert e.value.code == "wrap-backup"
        assert file.read_bytes() == before


REPLACE = KeptFile.replace


class _Once(set):
    """`add` is true the first time only."""

    def add(self, item):
        new = item not in self
        super().add(item)
        return new


class TestUndo:
    def test_never_wrapped(self, house):
        """A file that was not wrapped is not touched."""
        file = house.client({"mcpServers": {"a": server()}})
        with pytest.raises(UsageError) as e:
            house.undo(file)
        assert e.value.code == "not-wrapped"

    def test_other_changes_stay(self, house):
        """What the client or the user has changed elsewhere in the file since stays."""
        file = house.client({"numStartups": 1, "mcpServers": {"a": server(env={"T": SECRET}, cwd="/srv")}})
        house.wrap(file)
        document = json.loads(file.read_text())
        document["numStartups"] = 2
        document["mcpServers"]["a"]["disabled"] = True
        file.write_text(json.dumps(document))
        house.undo(file)
        assert json.loads(file.read_text()) == {
            "numStartups": 2,
            "mcpServers": {"a": server(env={"T": SECRET}, cwd="/srv") | {"disabled": True}},
        }

    def test_toml_changes_stay(self, house):
        """The same for TOML, with a table of variables."""
        text = '[mcp_servers.s]\ncommand = "/s"\n\n[mcp_servers.s.env]\nA = "b"\n'
        file = house.client(text, "config.toml")
        house.wrap(file)
        file.write_text("# new\n" + file.read_text())
        house.undo(file)
        assert file.read_text().startswith("# new\n")
        import tomllib

        assert tomllib.loads(file.read_text()) == tomllib.loads(text)

    @pytest.mark.parametrize(
        ("change", "difference"),
        [
            (lambda servers: servers["a"].update(command="/other"), "command of mcpServers/a differs"),
            (lambda servers: servers["a"].update(args=[]), "args of mcpServers/a differs"),
            (lambda servers: servers["a"].update(env={"X": "tok-271828"}), "env of mcpServers/a differs"),
            (lambda servers: servers.pop("a"), "mcpServers/a is not there any more"),
            (lambda servers: servers.update(a=7), "mcpServers/a is not there any more"),
        ],
    )
    def test_changed_entry(self, house, change, difference):
        """An entry that is not as it was written is named, without values, and nothing is changed at all."""
        file = house.client({"mcpServers": {"a": server(env={"T": SECRET}), "b": server("/b")}})
        house.wrap(file)
        document = json.loads(file.read_text())
        change(document["mcpServers"])
        file.write_text(json.dumps(document))
        before = house.state_files()
        with pytest.raises(OnrecordError) as e:
            house.undo(file)
        assert (e.value.code, e.value.exit_code) == ("wrap-changed", 1)
        assert difference in str(e.value)
        assert "tok-" not in str(e.value)
        assert house.state_files() == before

    def test_changed_table(self, house):
        """A table or an env file that was changed by hand since stays."""
        file = house.client(
            {"mcpServers": {"a": server(env={"T": SECRET}), "b": server("/b", env={"U": "2"})}}
        )
        house.wrap(file)
        house.toml.write_text(house.toml.read_text().replace("[servers.a]", "[servers.a] # mine"))
        (house.directory / "config/env/b.env").write_text("U=3\n")
        report = house.undo(file)
        assert (report.removed, report.kept) == (("b",), ("a",))
        assert house.env_files() == {"a.env": f"T={SECRET}\n", "b.env": "U=3\n"}

    def test_configuration_cannot_be_written(self, house, monkeypatch):
        """When the configuration cannot be changed, the client's file is as it was before the undo."""
        file = house.client({"mcpServers": {"a": server(env={"T": SECRET})}})
        house.wrap(file)
        before = house.state_files()

        def fails(kept, data):
            if kept.path == house.toml:
                raise StorageError("no", code="client-file-unwritable")
            return REPLACE(kept, data)

        monkeypatch.setattr(KeptFile, "replace", fails)
        with pytest.raises(StorageError):
            house.undo(file)
        assert house.state_files() == before


class TestLinks:
    def test_own_link_is_kept(self, house, ordinary_uid):
        """A link to a file of ours stays a link; its target is edited."""
        if os.geteuid() == 0:
            pytest.skip("root follows no link")
        target = house.client({"mcpServers": {"a": server()}}, "dotfiles/mcp.json")
        link = house.directory / "mcp.json"
        link.symlink_to(target)
        house.wrap(link)
        assert link.is_symlink()
        assert '"connect"' in target.read_text()
        house.undo(link)

    @pytest.mark.root
    def test_root_follows_no_link(self, house):
        """As root, a link on the way is refused: its owner could have it lead anywhere."""
        real = house.client({"mcpServers": {"a": server()}}, "real/mcp.json")
        (house.directory / "link").symlink_to(real.parent)
        (house.directory / "mcp.json").symlink_to(real)
        for path in (house.directory / "link/mcp.json", house.directory / "mcp.json"):
            with pytest.raises(UsageError) as e:
                house.wrap(path)
            assert e.value.code == "client-file-link"

    @pytest.mark.root
    def test_root_acts_as_the_owner(self, house, uid_block):
        """Root edits a user's file with that user's rights: the file stays his, and foreign directories stay shut."""
        uid = uid_block[0]
        house.directory.chmod(0o711)
        file = house.client({"mcpServers": {"a": server(env={"T": SECRET})}}, "home/mcp.json")
        os.chown(file, uid, uid)
        os.chown(file.parent, uid, uid)
        kept = KeptFile.read(file)
        kept.replace(b"{}")
        assert (file.stat().st_uid, file.stat().st_gid, os.geteuid()) == (uid, uid, 0)
        assert [path.name for path in file.parent.iterdir()] == ["mcp.json"]
        os.chown(file.parent, 0, 0)
        file.parent.chmod(0o755)
        with pytest.raises(StorageError) as e:
            KeptFile.read(file).replace(b"x")
        assert e.value.code == "client-file-unwritable"
        file.parent.chmod(0o700)
        with pytest.raises(UsageError):
            KeptFile.read(file)
        assert os.geteuid() == 0

    @pytest.mark.root
    def test_access_list_of_another_group(self, house, uid_block):
        """Where the owner cannot give the file its group, no other group gets what an access list gave to that one."""
        uid, group = uid_block[:2]
        house.directory.chmod(0o711)
        file = house.client({"mcpServers": {}}, "home/mcp.json")
        os.chown(file, uid, group)
        os.chown(file.parent, uid, uid)
        entries = [(1, 6, -1), (2, 4, group), (4, 4, -1), (16, 4, -1), (32, 0, -1)]
        access_list = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
        try:
            os.setxattr(file, "system.posix_acl_access", access_list)
        except OSError:
            pytest.skip("the file system has no access lists")
        KeptFile.read(file).replace(b"{}")
        assert file.stat().st_gid == uid
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    @pytest.mark.root
    def test_foreign_file(self, house, uid_block):
        """An ordinary user does not edit another user's file, even where he could."""
        import subprocess

        file = house.client({"mcpServers": {}}, "open/mcp.json")
        house.directory.chmod(0o711)
        file.chmod(0o664)
        os.chown(file, uid_block[0], uid_block[1])
        code = (
            "import sys; from pathlib import Path; from onrecord.authorize.wrap.kept_file import KeptFile\n"
            "try: KeptFile.read(Path(sys.argv[1]))\nexcept Exception as error: print(error.code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(file)],
            capture_output=True,
            text=True,
            user=uid_block[1],
            group=uid_block[1],
            extra_groups=[],
            env={},
        )
        assert done.stdout.strip() == "client-file-owner", done.stderr


def test_errors_have_hints(house):
    """Each refusal says what to do next."""
    for call in (
        lambda: house.wrap(house.directory / "none"),
        lambda: house.wrap(house.client("{}")),
        lambda: house.undo(house.client("{}")),
    ):
        with pytest.raises((UsageError, MalformedError, ConfigurationError)) as e:
            call()
        assert e.value.hint
