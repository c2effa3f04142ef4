"""`onrecord doctor --server` on a real deployment with a uid for each part: whole, and each item broken singly."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from authorize.guard.processes import Client
from authorize.isolation.house import (
    OPERATOR_SECRET,
    SECRET,
    SECRET_NAME,
    SERVER,
    House,
    detail,
    items,
)
from onrecord.base.processes import Principal
from onrecord.base.sockets import has_exited
from support.runtime import child_environment, make_short_dir, onrecord, wait_for
from support.uids import uid_block_or_skip

pytestmark = pytest.mark.root

CAP_KILL, CAP_SETUID, CAP_SYS_PTRACE = 5, 7, 19
ALL = {f"I{number}" for number in range(1, 9)}


@pytest.fixture(scope="module")
def house():
    """One running deployment; each test leaves it as it was."""
    directory = make_short_dir()
    made = House(directory, uid_block_or_skip())
    yield made
    made.close()
    shutil.rmtree(directory)


@contextlib.contextmanager
def mode(path, bits):
    """Give something another mode for a while."""
    before = path.stat().st_mode & 0o7777
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)


@contextlib.contextmanager
def process(uids):
    """A sleeping process with these real, effective and saved uids."""
    code = (
        "import os, sys; u = [int(one) for one in sys.argv[1:]]; os.setgroups([]); os.setresgid(*[u[0]] * 3);"
        "os.setresuid(*u); print(flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-I", "-c", code, *map(str, uids)], stdin=pipe, stdout=pipe, cwd="/"
    ) as one:
        one.stdout.readline()
        yield one
        one.stdin.close()


def broken(document):
    """Return the items that did not pass, after making sure that the verdict says so."""
    found = {name for name, result in items(document).items() if result != "ok"}
    assert document["isolation"] == ("degraded" if found else "isolated")
    assert set(items(document)) == ALL
    return found


class TestWhole:
    @pytest.mark.req("CP-100", "CP-101")
    def test_isolated(self, house):
        """Item 21: the command, run as the agent's uid, tries everything, gets at nothing, and says isolated."""
        done = subprocess.run(
            [
                *onrecord("doctor", "--server", SERVER, "--json"),
                "--config",
                str(house.configuration.file),
            ],
            user=house.agent,
            group=house.agent,
            extra_groups=[house.groups["call"]],
            cwd="/",
            env=child_environment(),
            capture_output=True,
        )
        document = json.loads(done.stdout)
        assert (done.returncode, document["isolation"]) == (0, "isolated"), done.stdout.decode()
        assert set(items(document)) == ALL
        assert set(items(document).values()) == {"ok"}
        assert "the real server among them" in detail(document, "I2")

    def test_changes_nothing(self, house):
        """The attempts leave every process running and every file as it was."""
        root = house.directory / "inst/config"
        before = {path: path.lstat() for path in [*root.rglob("*"), house.canary, house.wrapper]}
        assert broken(house.doctor()) == set()
        after = {path: path.lstat() for path in before}
        assert {path: (one.st_mtime_ns, one.st_ctime_ns) for path, one in after.items()} == {
            path: (one.st_mtime_ns, one.st_ctime_ns) for path, one in before.items()
        }
        assert house.up.poll() is None

    def test_no_secret_is_shown(self, house):
        """Nothing that the doctor prints holds a secret, also when it found the place where one is."""
        with mode(house.env_file, 0o644):
            document = house.doctor(environment={SECRET_NAME: SECRET})
        assert broken(document) == {"I5", "I7"}
        assert SECRET not in json.dumps(document)


class TestOperator:
    def test_names_of_secrets(self, house):
        """Root is told which names of an environment file the agent's doctor cannot know; no value is shown."""
        whole = house.doctor(uids=(0, 0, 0))
        assert "secret-names" not in {check["name"] for check in whole["checks"]}
        file = house.variant("unsaid", (f'secret_names = ["{SECRET_NAME}"]', ""))
        document = house.doctor(uids=(0, 0, 0), file=file)
        (said,) = (check for check in document["checks"] if check["name"] == "secret-names")
        assert SECRET_NAME in said["hint"]
        assert SECRET not in json.dumps(document)


class TestWithoutSeparation:
    @pytest.mark.parametrize("who", ["server", "authority"])
    def test_shared_uid(self, house, who):
        """An agent with the uid of the server or of the authority is degraded, and the item of uids says why."""
        uid = getattr(house, who)
        document = house.doctor(uids=(uid, uid, uid))
        assert {"I1", "I4", "I5", "I8"} <= broken(document)
        assert "shared" in detail(document, "I1")
        assert document["status"] == 1

    def test_root(self, house):
        """Root is degraded and attacks nothing."""
        document = house.doctor(uids=(0, 0, 0))
        assert {"I1", "I2", "I3", "I4", "I5", "I6", "I8"} == broken(document)
        assert "not tried" in detail(document, "I2")

    def test_not_the_agent(self, house):
        """Who is no caller of the policy is not the agent, and its attempts prove nothing."""
        uid = house.person + 1
        document = house.doctor(uids=(uid, uid, uid))
        assert broken(document) == {"I1", "I2"}
        assert "no caller" in detail(document, "I1")
        assert "no real server" in detail(document, "I2")


class TestBrokenSingly:
    def test_i1_saved_uid(self, house):
        """I1: a process that can become the server's uid again shares it."""
        document = house.doctor(uids=(house.agent, house.agent, house.server))
        assert broken(document) == {"I1"}

    def test_i1_foreign_peer(self, house):
        """I1: a socket that another uid serves than the configured one."""
        file = house.variant("peer", (f"user = {house.server}", f"user = {house.person}"))
        document = house.doctor(file=file)
        assert broken(document) == {"I1"}
        assert f"configured is {house.person}" in detail(document, "I1")

    @pytest.mark.parametrize("who", ["server", "authority", "recorder"])
    def test_i2_signal(self, house, who):
        """I2: a process of another part that takes signals from the agent, because its saved uid is the agent's."""
        uid = getattr(house, who)
        with process((uid, uid, house.agent)) as one:
            document = house.doctor()
        assert broken(document) == {"I2"}
        assert f"process {one.pid}: signal 0" in detail(document, "I2")

    def test_i2_by_capabilities(self, house):
        """I2 and I3: with a capability, tracing, descriptors and signals go across uids, and the attempts notice."""
        document = house.doctor(capabilities=[CAP_SYS_PTRACE])
        assert broken(document) == {"I2", "I3"}
        assert "pidfd_getfd, ptrace" in detail(document, "I2")
        assert "signal" not in detail(document, "I2")
        document = house.doctor(capabilities=[CAP_KILL])
        assert broken(document) == {"I2", "I3"}
        assert "signal 0" in detail(document, "I2")
        assert broken(house.doctor()) == set()

    def test_i1_no_policy(self, house):
        """I1: without a good policy nobody knows who the agent is."""
        file = house.variant("policy", (str(house.configuration.trust.policy), str(house.canary)))
        document = house.doctor(file=file)
        assert "I1" in broken(document)
        assert "policy" in detail(document, "I1")

    def test_i2_no_real_server(self, house):
        """I2: while a part is not running, not everything was tried."""
        file = house.variant("silent", ("[servers.files]", "[servers.other]"))
        document = house.doctor(file=file, server="other")
        assert items(document)["I2"] == "warning"
        assert document["isolation"] == "degraded"

    def test_i3_capability(self, house):
        """I3: a capability that gives any uid."""
        document = house.doctor(capabilities=[CAP_SETUID])
        assert broken(document) == {"I3"}
        assert "CAP_SETUID" in detail(document, "I3")

    @pytest.mark.parametrize(("status", "expected"), [(0, {"I3"}), (1, set())])
    def test_i3_sudo(self, house, status, expected):
        """I3: sudo without a password; one that refuses passes."""
        directory = house.directory / f"sudo-{status}"
        directory.mkdir(mode=0o755, exist_ok=True)
        (directory / "sudo").write_text(f'#!/bin/sh\n[ "$*" = "-n true" ] || exit 7\nexit {status}\n')
        (directory / "sudo").chmod(0o755)
        path = f"{directory}:{os.environ['PATH']}"
        assert broken(house.doctor(environment={"PATH": path})) == expected

    def test_i3_container_engine(self, house):
        """I3: who may ask a container engine is root in all but name."""
        path = house.directory / "engine.sock"
        with socket.socket(socket.AF_UNIX) as engine:
            engine.bind(str(path))
            engine.listen()
            for bits, expected in ((0o660, set()), (0o666, {"I3"})):
                path.chmod(bits)
                assert broken(house.doctor(engines=[str(path)])) == expected

    def test_i4_writable_directory(self, house):
        """I4: a directory on the way to a socket that the agent can write."""
        directory = house.configuration.agent_socket().parent
        with mode(directory, 0o777):
            document = house.doctor()
        assert broken(document) == {"I4"}
        assert str(directory) in detail(document, "I4")

    @pytest.mark.parametrize("name", ["approval", "control", "record"])
    def test_i4_open_socket(self, house, name):
        """I4: a socket that is not for agents, and lets the agent connect."""
        path = getattr(house.configuration, f"{name}_socket")()
        with mode(path, 0o666):
            document = house.doctor()
        assert broken(document) == {"I4"}
        assert str(path) in detail(document, "I4")

    def test_i4_link(self, house):
        """I4: a symbolic link on the way to a socket."""
        link = house.directory / "link"
        link.symlink_to(house.configuration.agent_socket().parent)
        old = str(house.configuration.agent_socket())
        file = house.variant("link", (f'"{old}"', f'"{link}/authority.sock"'))
        try:
            document = house.doctor(file=file)
        finally:
            link.unlink()
        assert broken(document) == {"I4"}
        assert "symbolic link" in detail(document, "I4")

    @pytest.mark.parametrize(
        "what", ["bundle", "signature", "anchor", "program", "anchors", "source", "directory"]
    )
    def test_i5_writable(self, house, what):
        """I5: policy, anchors, programs and their directories that the agent can write."""
        configuration = house.configuration
        path = {
            "bundle": configuration.policy.bundle,
            "signature": configuration.policy.bundle.with_name(configuration.policy.bundle.name + ".sig"),
            "anchor": configuration.trust.policy,
            "program": house.wrapper,
            "anchors": configuration.trust.vcon,
            "source": configuration.policy.source,
            "directory": house.wrapper.parent,
        }[what]
        with mode(path, path.stat().st_mode & 0o7777 | 0o022):
            document = house.doctor()
        assert broken(document) == {"I5"}
        assert str(path) in detail(document, "I5")

    @pytest.mark.parametrize(
        "what", ["key", "journal", "recorder", "marks", "spool", "environment", "records"]
    )
    def test_i5_readable(self, house, what):
        """I5: keys, journals, counters, spools, records and environment files that the agent can get at."""
        configuration = house.configuration
        path = {
            "key": Path(configuration.keys.policy.removeprefix("file:")).parent,
            "journal": configuration.authority_state,
            "recorder": configuration.recorder_state,
            "marks": configuration.marks("authority"),
            "spool": configuration.guard_state(SERVER),
            "environment": house.env_file,
            "records": configuration.paths.records,
        }[what]
        key = Path(configuration.keys.policy.removeprefix("file:"))
        with mode(path, path.stat().st_mode & 0o7777 | 0o005), mode(key, 0o644):
            document = house.doctor()
        assert broken(document) == {"I5"}
        assert str(path) in detail(document, "I5")

    def test_i6_path(self, house):
        """I6: a canary that the agent can read; a closed directory above it is enough to shut it away."""
        with mode(house.canary, 0o644):
            assert broken(house.doctor()) == set()
            with mode(house.vault, 0o711):
                document = house.doctor()
        assert broken(document) == {"I6"}
        assert str(house.canary) in detail(document, "I6")

    def test_i6_network(self, house):
        """I6: a canary on the network that answers the agent, and the same one when nothing answers."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            place = f"127.0.0.1:{listener.getsockname()[1]}"
            file = house.variant("network", (f'"{house.canary}"', f'"{place}"'))
            document = house.doctor(file=file)
            listener.setblocking(False)
            visitor, _ = listener.accept()
            assert visitor.recv(1) == b""
            visitor.close()
        assert broken(document) == {"I6"}
        assert broken(house.doctor(file=file)) == set()

    def test_i6_nothing_there(self, house):
        """I6: a canary that is not there proves nothing."""
        file = house.variant("missing", (f'"{house.canary}"', f'"{house.directory}/nothing"'))
        document = house.doctor(file=file)
        assert broken(document) == {"I6"}
        assert "proves nothing" in detail(document, "I6")

    def test_i6_nobody_has_said(self, house):
        """I6: without canaries and without roots nothing was tried; an empty list is a decision, and passes."""
        row = f'canaries = ["{house.canary}"]'
        other = ("[servers.files]", "[servers.other]")
        document = house.doctor(file=house.variant("unsaid", (row, ""), other), server="other")
        assert "nobody has said" in detail(document, "I6")
        document = house.doctor(file=house.variant("none", (row, "canaries = []")))
        assert broken(document) == set()
        assert "canaries says" in detail(document, "I6")

    def test_i6_roots(self, house):
        """I6: without configured canaries the roots of the policy are tried."""
        row = f'canaries = ["{house.canary}"]'
        file = house.variant("roots", (row, ""))
        document = house.doctor(file=file)
        assert broken(document) == set()
        assert f"each a root of the policy: {house.vault} (EACCES)" in detail(document, "I6")
        with mode(house.vault, 0o755):
            assert broken(house.doctor(file=file)) == {"I6"}

    def test_i7_environment(self, house):
        """I7: a name of a secret in the agent's environment."""
        document = house.doctor(environment={SECRET_NAME: "x"})
        assert broken(document) == {"I7"}
        assert SECRET_NAME in detail(document, "I7")

    def test_i7_unknown_names(self, house):
        """I7: the agent cannot read the environment file, so without its names nothing was looked for."""
        file = house.variant("names", (f'secret_names = ["{SECRET_NAME}"]', ""))
        document = house.doctor(file=file)
        assert broken(document) == {"I7"}
        assert "secret_names" in json.dumps(document)

    @pytest.mark.parametrize("group", ["approval", "control", "record", "readers", "server"])
    def test_i8_groups(self, house, group):
        """I8: an agent in a group of another role, those that open a socket included."""
        gid = house.server if group == "server" else house.groups[group]
        document = house.doctor(groups=[house.groups["call"], gid])
        opened = {"readers": {"I5"}, "server": set()}
        assert broken(document) == {"I8"} | opened.get(group, {"I4"})

    def test_i8_not_in_the_call_group(self, house):
        """I8: an agent that is not in the call group reaches no socket, so nothing is proved."""
        document = house.doctor(groups=[])
        assert {"I1", "I2", "I8"} == broken(document)

    def test_i8_group_of_a_process(self, house):
        """I8: a group that a process of the server really has counts, whatever the configuration says."""
        gid = house.person + 2
        code = (
            "import os, sys; u, g = map(int, sys.argv[1:]); os.setgroups([g]); os.setgid(u); os.setuid(u);"
            "print(flush=True); sys.stdin.read()"
        )
        argv = [sys.executable, "-I", "-c", code, str(house.server), str(gid)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as one:
            one.stdout.readline()
            document = house.doctor(groups=[house.groups["call"], gid])
            one.stdin.close()
        assert broken(document) == {"I8"}


class TestWaysAround:
    """Deployments in which every single thing that the specification names is closed, and a way stays open."""

    def test_other_server_processes(self, house):
        """I2: the real server that was tried is one that the guard started for this doctor, not one of before."""
        assert broken(house.doctor()) == set()
        uid = house.person + 1
        assert "no real server" in detail(house.doctor(uids=(uid, uid, uid)), "I2")

    @pytest.mark.parametrize("where", ["state", "environment", "key", "canary"])
    def test_can_be_moved_away(self, house, where):
        """I5 and I6: what cannot be opened can still be renamed by who may write a directory on the way."""
        configuration = house.configuration
        path = {
            "state": configuration.paths.state,
            "environment": house.env_file.parent,
            "key": configuration.authority_state.parent,
            "canary": house.directory,
        }[where]
        with mode(path, 0o777):
            document = house.doctor()
        assert {"I6" if where == "canary" else "I5"} <= broken(document)
        assert str(path) in detail(document, "I6" if where == "canary" else "I5")

    @pytest.mark.parametrize("what", ["source", "anchors"])
    def test_file_below(self, house, what):
        """I5: one writable file in a closed directory; the person who signs would sign it."""
        configuration = house.configuration
        path = {
            "source": configuration.policy.source / "bundle.json",
            "anchors": next(configuration.trust.vcon.iterdir()),
        }[what]
        with mode(path, 0o666):
            document = house.doctor()
        assert broken(document) == {"I5"}
        assert str(path) in detail(document, "I5")

    @pytest.mark.parametrize("ending", ["~", ".bak", ".old"])
    def test_copy_of_a_secret(self, house, ending):
        """I5: a readable copy beside the environment file, in a directory that cannot be listed."""
        copy = house.env_file.with_name(house.env_file.name + ending)
        copy.write_text("x")
        copy.chmod(0o644)
        try:
            document = house.doctor()
        finally:
            copy.unlink()
        assert broken(document) == {"I5"}
        assert str(copy) in detail(document, "I5")

    def test_wrong_owner(self, house):
        """What has a wrong owner is not isolated, although this agent gets nothing by it."""
        path = house.configuration.policy.bundle
        os.chown(path, house.person, house.person)
        try:
            document = house.doctor()
        finally:
            os.chown(path, 0, 0)
        assert document["isolation"] == "degraded"
        assert set(items(document).values()) == {"ok"}

    def program(self, house, name):
        directory = house.directory / name
        directory.mkdir(mode=0o755)
        (directory / "main.py").write_text("import helper\n")
        (directory / "helper.py").write_text("")
        for path in directory.iterdir():
            path.chmod(0o644)
        return directory

    def command(self, house, name, command, args):
        return house.variant(
            name,
            (f'command = "{house.wrapper}"', f'command = "{command}"'),
            (f'args = ["--base", "{house.vault}"]', f"args = {json.dumps(args)}"),
            (f'cwd = "{house.vault}"', f'cwd = "{house.directory / name}"'),
        )

    @pytest.mark.parametrize(
        ("how", "what"),
        [("absolute", "main.py"), ("relative", "main.py"), ("module", "main.py"), ("absolute", "helper.py")],
    )
    def test_script(self, house, how, what):
        """I5: the script that an interpreter is given, and what lies beside it, are programs too."""
        directory = self.program(house, f"script-{what}-{how}")
        args = {
            "absolute": [str(directory / "main.py")],
            "relative": ["-u", "main.py"],
            "module": ["-m", "main"],
        }
        file = self.command(house, directory.name, sys.executable, args[how])
        (directory / what).chmod(0o666)
        document = house.doctor(file=file)
        assert broken(document) == {"I5"}
        assert str(directory / what) in detail(document, "I5")

    def test_environment_of_the_server(self, house):
        """I5: a writable module in the virtual environment that the server's program comes from."""
        directory = house.directory / "environment"
        (directory / "bin").mkdir(parents=True)
        packages = directory / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        packages.mkdir(parents=True)
        home = Path(os.path.realpath(sys.executable)).parent
        (directory / "pyvenv.cfg").write_text(f"home = {home}\n")
        (directory / "bin/python").symlink_to(os.path.realpath(sys.executable))
        (directory / "bin/server").write_text(f"#!{directory}/bin/python\nimport helper\n")
        (packages / "helper.py").write_text("")
        for path in (directory, *directory.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755)
        file = self.command(house, "environment", directory / "bin/server", [])
        assert broken(house.doctor(file=file)) == set()
        for path in (packages / "helper.py", directory / "pyvenv.cfg"):
            with mode(path, 0o666):
                document = house.doctor(file=file)
            assert broken(document) == {"I5"}
            assert str(path) in detail(document, "I5")

    def test_another_configuration(self, house):
        """I5: the configuration that the parts really run with counts, not only the one that the doctor reads."""
        file = house.variant("copy")
        with mode(house.configuration.file, 0o666):
            document = house.doctor(file=file)
        assert broken(document) == {"I5"}
        assert str(house.configuration.file) in detail(document, "I5")

    def test_setuid_program(self, house):
        """I3: a program that gives who executes it the server's uid."""
        program = house.wrapper.with_name("helper")
        shutil.copy("/bin/true", program)
        os.chown(program, house.server, house.server)
        for bits, expected in ((0o4755, {"I3"}), (0o2755, {"I3"}), (0o4750, set()), (0o755, set())):
            program.chmod(bits)
            assert broken(house.doctor()) == expected
        program.unlink()

    def test_sudo_for_one_account(self, house):
        """I3: sudo refuses root, and lists a command for the server's account that needs no password."""
        directory = house.directory / "sudo-listed"
        directory.mkdir(mode=0o755)
        (directory / "sudo").write_text(
            '#!/bin/sh\n[ "$*" = "-n -l" ] || exit 1\necho "    (files) NOPASSWD: /bin/cat"\n'
        )
        (directory / "sudo").chmod(0o755)
        path = f"{directory}:{os.environ['PATH']}"
        document = house.doctor(environment={"PATH": path})
        assert broken(document) == {"I3"}
        assert "without a password" in detail(document, "I3")

    @pytest.mark.parametrize("lent", ["server", "authority", "recorder"])
    def test_subordinate_uid(self, house, lent):
        """I1: a range in /etc/subuid lends the agent the uid of another role; other ranges are no danger."""
        file = house.directory / "subuid"
        for first, count, expected in ((getattr(house, lent), 1, {"I1"}), (house.person, 1, set())):
            file.write_text(f"somebody:1:65000\n{house.agent}:{first}:{count}\n")
            file.chmod(0o644)
            assert broken(house.doctor(subuid=file)) == expected

    def test_descriptor_left_open(self, house):
        """I5 and I6: who started the agent has left a secret open."""
        document = house.doctor(left_open=[house.env_file, house.canary])
        assert broken(document) == {"I5", "I6"}
        assert "descriptor" in detail(document, "I5")
        assert "descriptor" in detail(document, "I6")

    def test_bind_mount(self, house):
        """I6: another mount shows the canary below a directory that is open."""
        (house.directory / "shown").mkdir(mode=0o755)
        (house.directory / "shown" / house.canary.name).write_text("x")
        (house.directory / "shown" / house.canary.name).chmod(0o644)
        file = house.directory / "mountinfo"
        file.write_text(
            f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
            f"23 22 8:1 {house.vault} {house.directory}/shown rw - ext4 /dev/sda1 rw\n"
        )
        file.chmod(0o644)
        document = house.doctor(mounts=file)
        assert broken(document) == {"I6"}
        assert f"{house.directory}/shown/{house.canary.name}" in detail(document, "I6")

    def test_secret_in_other_letters(self, house):
        """I7: the name of a secret in small letters."""
        assert broken(house.doctor(environment={SECRET_NAME.lower(): "x"})) == {"I7"}

    def test_leaves_everybody_alone(self, house):
        """Attempts that succeed harm nobody: with every capability for them, the same processes run on untraced."""
        before = sorted(TestUp().children(house))
        document = house.doctor(capabilities=[CAP_KILL, CAP_SYS_PTRACE])
        assert "pidfd_getfd, signal 0, ptrace" in detail(document, "I2")
        children = TestUp().children(house)
        assert sorted(children) == before
        for _, status in children.values():
            assert status["TracerPid"] == ["0"]
            assert status["State"][0] in "SRD"


class TestSecrets:
    def client(self, house):
        environment = child_environment(HOME="/")
        argv = onrecord("connect", SERVER, "--config", str(house.configuration.file))
        principal = Principal(house.agent, house.agent, (house.groups["call"],))
        return Client(argv, principal=principal, env=environment)

    def real_server(self, house):
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and SECRET.encode() in (entry / "environ").read_bytes():
                    rows = (entry / "status").read_text()
                    if f"Uid:\t{house.server}\t" in rows and b"--base" in (entry / "cmdline").read_bytes():
                        return int(entry.name)
        return None

    @pytest.mark.req("CP-100", "CP-101")
    def test_agent_reads_nothing_of_the_server(self, house):
        """Item 22: the agent's uid cannot read the server's environment, trace it or open the protected file."""
        client = self.client(house)
        client.open()
        pid = self.real_server(house)
        assert pid is not None
        code = (
            "import ctypes, json, sys\n"
            "pid, path = sys.argv[1:]\n"
            "ended = []\n"
            "for name in (f'/proc/{pid}/environ', f'/proc/{pid}/mem', path):\n"
            "    try:\n"
            "        open(name, 'rb').close()\n"
            "        ended.append('opened')\n"
            "    except OSError as error:\n"
            "        ended.append(error.errno)\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "ended.append(ctypes.get_errno() if libc.ptrace(16, int(pid), 0, 0) else 'traced')\n"
            "print(json.dumps(ended))"
        )
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, str(pid), str(house.canary)],
            user=house.agent,
            group=house.agent,
            extra_groups=[house.groups["call"]],
            cwd="/",
            capture_output=True,
        )
        assert json.loads(done.stdout) == [13, 13, 13, 1]
        client.end()

    def test_secret_is_not_at_the_agent(self, house):
        """Item 23: the server's secret is in its own environment, and in no memory or environment of the connector."""
        client = self.client(house)
        client.open()
        client.call(1, name="read_file", path="canary.txt")
        assert self.real_server(house) is not None
        assert not holds(client.process.pid, SECRET.encode())
        assert holds(self.real_server(house), SECRET.encode())
        assert holds(client.process.pid, b"callProof/issue")
        client.end()

    def test_killed_connector(self, house):
        """Item 24: kill -9 of the connector ends the real server, which has another uid."""
        client = self.client(house)
        client.open()
        pidfd = os.pidfd_open(self.real_server(house))
        client.process.kill()
        client.process.communicate()
        wait_for(lambda: has_exited(pidfd), what="the real server ends")
        os.close(pidfd)


class TestUp:
    def children(self, house):
        """Return pid and rows of /proc/PID/status of the parts that `onrecord up` runs, by uid."""
        found = {}
        for pid in Path(f"/proc/{house.up.pid}/task/{house.up.pid}/children").read_text().split():
            with contextlib.suppress(OSError):  # it may have ended meanwhile
                rows = Path(f"/proc/{pid}/status").read_text().splitlines()
                status = {name: value.split() for name, _, value in (row.partition(":") for row in rows)}
                found[int(status["Uid"][0])] = int(pid), status
        return found

    @pytest.mark.req("CP-100")
    def test_principals(self, house):
        """Each part has one uid in all four places, the groups of its sockets, no capability, and gets nothing back."""
        group = house.groups
        wanted = {
            house.authority: {"call", "approval", "control", "record"},
            house.recorder: {"record", "readers"},
            house.server: {"call", "record"},
        }
        children = self.children(house)
        assert set(children) == set(wanted)
        for uid, names in wanted.items():
            _, status = children[uid]
            assert status["Uid"] == status["Gid"] == [str(uid)] * 4
            assert {int(one) for one in status["Groups"]} - {uid} == {group[name] for name in names}
            for capabilities in ("CapPrm", "CapEff", "CapAmb"):
                assert int(status[capabilities][0], 16) == 0
            assert status["NoNewPrivs"] == ["1"]

    def test_nothing_of_the_operator(self, house):
        """No part has the environment, the terminal or the directory of who started `up`; each leads a session."""
        assert OPERATOR_SECRET.encode() in Path(f"/proc/{house.up.pid}/environ").read_bytes()
        for pid, _ in self.children(house).values():
            assert OPERATOR_SECRET.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
            assert os.getsid(pid) == pid
            assert os.readlink(f"/proc/{pid}/cwd") == "/"

    def test_only_the_server_has_its_secret(self, house):
        """Neither authority nor recorder hold the secret of a tool server; its guard does, since it starts it."""
        children = self.children(house)
        held = {uid for uid, (pid, _) in children.items() if holds(pid, SECRET.encode())}
        assert held == {house.server}

    def test_killed_guard(self, house):
        """After kill -9 of the guard `up` starts it again under the same uid, and the doctor says isolated again."""
        pid, _ = self.children(house)[house.server]
        os.kill(pid, 9)

        def is_back():
            now = self.children(house).get(house.server)
            return now is not None and now[0] != pid and try_socket(house.configuration.mcp_socket(SERVER))

        def try_socket(path):
            with socket.socket(socket.AF_UNIX) as one, contextlib.suppress(OSError):
                one.connect(str(path))
                return True
            return False

        wait_for(is_back, what="the guard is started again")
        assert broken(house.doctor()) == set()


def holds(pid, wanted):
    """Say whether environment or memory of a process, read by root, hold some bytes."""
    if wanted in Path(f"/proc/{pid}/environ").read_bytes():
        return True
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for row in Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, rights, *_ = row.split()
            if rights[0] != "r" or "[v" in row:
                continue
            start, end = (int(one, 16) for one in place.split("-"))
            memory.seek(start)
            with contextlib.suppress(OSError):
                if wanted in memory.read(end - start):
                    return True
    return False
