"""onrecord.toml: strict reading, defaults of both modes, principals, what is refused for now."""

from __future__ import annotations

import doctest
import os
import pwd
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import onrecord.base.configuration as module
from onrecord.base._toml_lines import line_of
from onrecord.base.configuration import Configuration, find, user_number
from onrecord.base.configuration_keys import KEYS, SERVER_KEYS
from onrecord.base.errors import ConfigurationError
from support.data import shared_data

FILE = Path("/example/onrecord.toml")
ENVIRON = {"HOME": "/home/ada", "XDG_RUNTIME_DIR": "/run/user/1000"}


def parse(text, environ=ENVIRON):
    return Configuration.parse(text, file=FILE, environ=environ)


def refused(text, environ=ENVIRON):
    with pytest.raises(ConfigurationError) as caught:
        parse(text, environ)
    return caught.value


class TestExamples:
    def test_shared_user_example(self):
        """The published user-mode example loads, with ~ and the runtime directory expanded."""
        found = parse(shared_data("running", "onrecord.user.toml").read_text())
        assert found.mode == "user"
        assert found.agent_socket() == Path("/run/user/1000/onrecord/agent.sock")
        assert found.server_socket("git") == Path("/run/user/1000/onrecord/server-git.sock")
        assert found.record_socket() == Path("/run/user/1000/onrecord/record.sock")
        assert found.paths.records == Path("/home/ada/.local/state/onrecord/vcons")
        assert found.keys.policy == "file:/home/ada/.config/onrecord/keys/policy.pem"
        assert found.servers["filesystem"].command == "/home/ada/bin/onrecord-example-files"
        assert found.servers["filesystem"].args == ("--base", ".")

    def test_shared_system_example(self):
        """The published system-mode example loads on a machine without its accounts."""
        found = parse(shared_data("running", "onrecord.system.toml").read_text())
        assert found.server_socket("git") == found.agent_socket() == Path("/run/onrecord/authority.sock")
        assert found.mcp_socket("git") == Path("/run/onrecord-srv/git/mcp.sock")
        assert found.record_socket() == Path("/run/onrecord-record/record.sock")
        assert found.recorder.domain == "records.example.com"
        assert found.keys.policy is None
        assert found.servers["git"].user == "onrecord-srv-git"

    def test_module_example(self):
        """The example in the module's docstring runs."""
        assert doctest.testmod(module).failed == 0


class TestDefaults:
    @pytest.mark.req("CP-131")
    def test_user_mode(self):
        """Only `mode` is required; every default is that of the table."""
        found = parse('mode = "user"')
        assert found.paths.config == Path("/home/ada/.config/onrecord")
        assert found.paths.state == Path("/home/ada/.local/state/onrecord")
        assert found.keys.proof == "file:/home/ada/.config/onrecord/keys/proof.pem"
        assert found.trust.vcon == Path("/home/ada/.config/onrecord/trust/vcon")
        assert found.authority.durability == "durable"
        assert found.authority.evidence == ("handle",)
        assert found.authority.require_sink is False
        assert found.recorder.idle_seconds == 1800
        assert found.recorder.max_age_seconds == 86400
        assert found.recorder.required is True
        assert found.recorder.keep_bodies == "until-closed"
        assert found.recorder.max_content_bytes == 16777216
        assert found.connector.approval_wait_seconds == 50
        assert found.limits.spool_bytes == 268435456
        assert found.limits.stop_grace_seconds == 5
        assert found.limits.hello_timeout_ms == 1000
        assert found.limits.issue_timeout_ms == found.limits.verify_timeout_ms == 2000
        assert found.servers == {}
        assert found.authority_uid == found.recorder_uid == os.getuid()
        assert found.call_gid is None

    def test_system_mode(self):
        """System mode has its own places and names accounts."""
        found = parse('mode = "system"')
        assert found.paths.records == Path("/var/lib/onrecord/records")
        assert found.keys.record_chain == Path("/var/lib/onrecord/recorder/keys/record-chain.pem")
        assert found.principals.authority == "onrecord-authority"
        assert found.marks("recorder") == Path("/var/lib/onrecord/marks/recorder")

    def test_defaults_follow_the_base_directories(self):
        """Keys and trust below paths.config move with it."""
        found = parse('mode = "user"\n[paths]\nconfig = "/srv/c"\nstate = "/srv/s"\nruntime = "/srv/r"')
        assert found.trust.policy == Path("/srv/c/trust/policy.keys")
        assert found.authority_state == Path("/srv/s/authority")
        assert found.paths.records == Path("/srv/s/vcons")

    def test_without_a_runtime_directory(self):
        """Where XDG_RUNTIME_DIR is not set, the sockets lie below the state, also if the file names the variable."""
        expected = Path("/home/ada/.local/state/onrecord/run/control.sock")
        assert parse('mode = "user"', {"HOME": "/home/ada"}).control_socket() == expected
        written = 'mode = "user"\n[paths]\nruntime = "$XDG_RUNTIME_DIR/onrecord"'
        assert parse(written, {"HOME": "/home/ada"}).control_socket() == expected

    def test_xdg_directories(self):
        """XDG_CONFIG_HOME and XDG_STATE_HOME move the user's directories."""
        found = parse('mode = "user"', ENVIRON | {"XDG_CONFIG_HOME": "/x/c", "XDG_STATE_HOME": "/x/s"})
        assert (found.paths.config, found.paths.state) == (Path("/x/c/onrecord"), Path("/x/s/onrecord"))


class TestUnknownKeys:
    @pytest.mark.parametrize(
        ("text", "pointer", "line", "near"),
        [
            (
                'mode = "user"\n\n[recorder]\nidle_second = 3',
                "/recorder/idle_second",
                4,
                "recorder.idle_seconds",
            ),
            ('mode = "user"\nidle_seconds = 3', "/idle_seconds", 2, "recorder.idle_seconds"),
            ('mode = "user"\n[path]\nstate = "/s"', "/path", 2, "paths"),
            ('mode = "user"\n[servers.a]\ncommand = "x"\ncomand = "y"', "/servers/a/comand", 4, "command"),
            ('mode = "user"\nlimits.spool_byte = 3', "/limits/spool_byte", 2, "limits.spool_bytes"),
            (
                'mode = "user"\n[servers."a.b"]\ncommand = "x"\ntiserver = "y"',
                "/servers/a.b/tiserver",
                4,
                "tiServer",
            ),
        ],
    )
    def test_names_the_nearest(self, text, pointer, line, near):
        """An unknown key is refused with file, line, pointer and the nearest known key."""
        error = refused(text)
        assert error.code == "configuration-key"
        assert error.exit_code == 2
        assert (error.where.file, error.where.line, error.where.pointer) == (str(FILE), line, pointer)
        assert near in error.hint

    def test_far_away_key_lists_the_known_ones(self):
        """Without anything near, the known keys of the table are listed."""
        assert "domain" in refused('mode = "user"\n[recorder]\nzzzz = 1').hint

    @pytest.mark.parametrize("text", ["", 'mod = "user"', "mode = 1", 'mode = "both"', "[mode]"])
    def test_mode_is_required(self, text):
        """Nothing is guessed: without a proper mode there is no configuration."""
        assert refused(text).code in {"configuration-key", "configuration-value"}

    @pytest.mark.parametrize("key", ["sockets.control", "principals.recorder"])
    def test_system_keys_in_user_mode(self, key):
        """Socket and principal keys are refused in user mode, where the names are fixed."""
        error = refused(f'mode = "user"\n{key} = "/x"')
        assert error.code == "configuration-key"
        assert "system mode" in str(error)

    def test_server_user(self):
        """servers.ID.user is required in system mode and refused in user mode."""
        assert "`user`" in str(refused('mode = "system"\n[servers.a]\ncommand = "x"'))
        assert "system mode" in str(refused('mode = "user"\n[servers.a]\ncommand = "x"\nuser = 2101'))


class TestWrongValues:
    @pytest.mark.parametrize(
        "row",
        [
            "recorder.idle_seconds = true",
            "recorder.idle_seconds = 0",
            "recorder.idle_seconds = 1.5",
            'recorder.idle_seconds = "1"',
            "recorder.required = 1",
            "recorder.domain = 3",
            'recorder.domain = "not a domain"',
            'recorder.keep_bodies = "never"',
            'authority.durability = "fast"',
            'authority.evidence = "handle"',
            "authority.evidence = []",
            'authority.evidence = ["handle", "handle"]',
            'authority.evidence = ["magic"]',
            "authority.evidence = [1]",
            "paths = 3",
            'paths.state = "relative/path"',
            'paths.state = "/a/../b"',
            'paths.state = ""',
            'paths.state = "/a\\u0000b"',
            'paths.state = "$HOME/x"',
            'keys.proof = "/no/scheme.pem"',
            'keys.proof = "file:"',
            'keys.proof = "file:relative.pem"',
            "limits.spool_bytes = -1",
            "servers = []",
            "servers.a = 1",
            'servers.A.command = "x"',
            'servers."a/b".command = "x"',
            "servers.a.command = 1",
            'servers.a.command = "./x"',
            'servers.a.command = ""',
            'servers.a = {command = "x", args = "--base"}',
            'servers.a = {command = "x", env_pass = ["A=B"]}',
            'servers.a = {command = "x", cwd = "here"}',
            "servers.a = {}",
            'sinks = [{kind = "file"}]',
            "recorder.idle_seconds = 2026-11-30",
        ],
    )
    def test_is_refused(self, row):
        """A wrong type or value is refused with the line of its key, and the value itself is not shown."""
        error = refused(f'mode = "user"\n{row}')
        assert error.exit_code == 2
        assert error.where.line == 2

    def test_not_toml(self):
        """Broken TOML is refused with its line."""
        error = refused('mode = "user"\n\na = [')
        assert (error.code, error.where.line) == ("configuration-syntax", 3)

    @pytest.mark.parametrize("number", [0, 65534, -1, 2**32 - 1, 2**40])
    def test_numbers_that_are_no_role(self, number):
        """Root, nobody and numbers outside of the range have no role (running R-02)."""
        assert refused(f'mode = "system"\nprincipals.authority = {number}').code == "configuration-value"

    def test_home_in_system_mode(self):
        """~ is another directory for each principal, so system mode refuses it."""
        assert "principal" in str(refused('mode = "system"\npaths.state = "~/state"'))

    def test_long_socket_path(self):
        """A socket path over 107 bytes is refused with the hint to set paths.runtime; 107 is fine."""
        room = 107 - len("/approval.sock") - 1
        assert parse(f'mode = "user"\npaths.runtime = "/{"x" * room}"').mode == "user"
        error = refused(f'mode = "user"\npaths.runtime = "/{"x" * (room + 1)}"')
        assert error.code == "socket-path-long"
        assert "paths.runtime" in error.hint


class TestNotBuiltYet:
    @pytest.mark.parametrize(
        "row",
        [
            'servers.a = {command = "x", sandbox = {kind = "landlock"}}',
            'sinks = [{kind = "file", path = "/x"}]',
            'authority.evidence = ["passkey"]',
            'authority.evidence = ["handle", "otc"]',
            "authority.require_sink = true",
            'authority.digest_key = "file:/x"',
            "recorder.checkpoint_seconds = 60",
            'keys.proof = "pkcs11:token"',
            'keys.record = "tpm2:0x81000001"',
        ],
    )
    def test_is_refused_by_name(self, row):
        """What is specified and not built is refused with a message that says so, never ignored."""
        error = refused(f'mode = "user"\n{row}')
        assert error.code == "not-built-yet"
        assert "not built yet" in str(error)

    def test_what_is_off_is_accepted(self):
        """The same keys with their values for now are fine, and so is what has been built since."""
        rows = (
            'servers.a = {command = "x", hook = true}',
            "sinks = []",
            "authority.require_sink = false",
            'authority.digest_key = ""',
        )
        for row in rows:
            assert parse(f'mode = "user"\n{row}').mode == "user"


class TestPrincipals:
    def test_numbers(self):
        """Numbers need no account."""
        found = parse(
            'mode = "system"\nprincipals.authority = 59000\nprincipals.call_group = 59008\n'
            '[servers.a]\ncommand = "x"\nuser = 59002'
        )
        assert found.authority_uid == 59000
        assert found.call_gid == 59008
        assert found.server_uid("a") == 59002

    def test_unknown_names(self):
        """A name without account is an error where it is used, with the file."""
        found = parse('mode = "system"\nprincipals.authority = "nobody-has-this-name"')
        with pytest.raises(ConfigurationError) as caught:
            _ = found.authority_uid
        assert caught.value.code == "user-unknown"

    def test_root_by_name(self):
        """The name root is refused as the number 0 is."""
        with pytest.raises(ConfigurationError) as caught:
            user_number("root", file=FILE)
        assert caught.value.code == "user-root"

    def test_nobody_by_name(self):
        """The name nobody is refused as the number 65534 is."""
        if not any(one.pw_uid == 65534 for one in pwd.getpwall()):
            pytest.skip("this machine has no user with uid 65534")
        name = pwd.getpwuid(65534).pw_name
        with pytest.raises(ConfigurationError) as caught:
            user_number(name, file=FILE)
        assert caught.value.code == "user-nobody"

    def test_unknown_server(self):
        """Asking for a server that is not configured lists those that are."""
        with pytest.raises(ConfigurationError) as caught:
            parse('mode = "user"\n[servers.a]\ncommand = "x"').server_socket("b")
        assert caught.value.code == "server-unknown"
        assert "a" in caught.value.hint


class TestFile:
    def test_search_order(self, tmp_path):
        """--config, then ONRECORD_CONFIG, then XDG_CONFIG_HOME; never the current directory."""
        named, variable = tmp_path / "named.toml", tmp_path / "variable.toml"
        users = tmp_path / "onrecord" / "onrecord.toml"
        users.parent.mkdir()
        for path in (named, variable, users):
            path.write_text('mode = "user"')
        environ = {"ONRECORD_CONFIG": str(variable), "XDG_CONFIG_HOME": str(tmp_path)}
        assert find(named, environ=environ) == named
        assert find(None, environ=environ) == variable
        assert find(None, environ={"XDG_CONFIG_HOME": str(tmp_path)}) == users

    def test_current_directory_is_not_searched(self, tmp_path, monkeypatch):
        """An onrecord.toml that lies about in the current directory is not read."""
        (tmp_path / "onrecord.toml").write_text('mode = "user"')
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(module, "SYSTEM_FILE", tmp_path / "none")
        with pytest.raises(ConfigurationError) as caught:
            Configuration.load(environ={"HOME": str(tmp_path / "home")})
        assert caught.value.code == "configuration-missing"
        assert "onrecord init" in caught.value.hint

    def test_named_file_is_missing(self, tmp_path):
        """A named file that is missing is an error; no other place is tried."""
        with pytest.raises(ConfigurationError) as caught:
            Configuration.load(tmp_path / "none.toml")
        assert caught.value.code == "configuration-missing"

    @pytest.mark.parametrize("mode", [0o666, 0o664, 0o622])
    def test_writable_by_others(self, tmp_path, mode):
        """Whoever can write the file decides which programs run: refused."""
        path = tmp_path / "onrecord.toml"
        path.write_text('mode = "user"')
        path.chmod(mode)
        with pytest.raises(ConfigurationError) as caught:
            Configuration.load(path)
        assert caught.value.code == "configuration-mode"

    @pytest.mark.root
    def test_foreign_owner(self, tmp_path, uid_block):
        """A file of another user is refused, also for root."""
        path = tmp_path / "onrecord.toml"
        path.write_text('mode = "user"')
        os.chown(path, uid_block[0], uid_block[0])
        with pytest.raises(ConfigurationError) as caught:
            Configuration.load(path)
        assert caught.value.code == "configuration-owner"

    @pytest.mark.parametrize("data", [b"\xff", b"#" * (1 << 20) + b"\n"])
    def test_not_text_or_too_long(self, tmp_path, data):
        """Bytes that are no text, and a file over 1 MiB, are refused."""
        path = tmp_path / "onrecord.toml"
        path.write_bytes(data)
        path.chmod(0o600)
        with pytest.raises(ConfigurationError) as caught:
            Configuration.load(path)
        assert caught.value.code == "configuration-syntax"

    def test_directory(self, tmp_path):
        """A directory in the place of the file is an error of ours, no traceback."""
        with pytest.raises(ConfigurationError):
            Configuration.load(tmp_path)


class TestProperties:
    @given(st.text(max_size=200))
    def test_any_text(self, text):
        """Whatever the text is, the answer is a configuration or a ConfigurationError."""
        try:
            parse(text)
        except ConfigurationError as error:
            assert error.code.startswith("configuration-")

    @given(
        st.sampled_from([key.name for key in KEYS] + [f"servers.a.{key.name}" for key in SERVER_KEYS]),
        st.one_of(
            st.integers(),
            st.booleans(),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20).map(
                lambda s: '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'
            ),
        ),
        st.sampled_from(["user", "system"]),
    )
    def test_any_value(self, name, value, mode):
        """Any value at any key is accepted or refused; nothing else escapes, and no key passes unread."""
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        head = "" if name == "mode" else f'mode = "{mode}"\n'
        try:
            parse(f"{head}{name} = {shown}")
        except ConfigurationError as error:
            assert error.exit_code == 2


class TestLines:
    @pytest.mark.parametrize(
        ("text", "path", "line"),
        [
            ("a = 1\n[b]\nc = 2", ("b", "c"), 3),
            ("a = 1\n[b]\nc = 2", ("b", "d"), 2),
            ("a = 1", ("z",), None),
            ('[a."b.c"]\nd = 1', ("a", "b.c", "d"), 2),
            ('x = """\n[b]\nc = 1\n"""\n[b]\nc = 2', ("b", "c"), 6),
            ("[[s]]\nk = 1\n[[s]]\nk = 2", ("s", "k"), 2),
            ("a.b.c = 1", ("a", "b", "c"), 1),
            ("a = {b = 1}", ("a", "b"), 1),
        ],
    )
    def test_line_of(self, text, path, line):
        """The line of a key is that of the key, else of the nearest table above it, else unknown."""
        assert line_of(text, path) == line
