"""What a hook believes of its environment."""

import os

import pytest

from onrecord.authorize.guard.environment import hook_environment, server_environment
from onrecord.authorize.guard.relay_rules import ClientPeer
from onrecord.authorize.hook.surroundings import find
from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError, OnrecordError

PEER = ClientPeer(uid=2001, pid=os.getpid(), label="p1-1-5b1f20c4", verified_uid=None)


def written(directory, *, mode="user", hook="true"):
    file = directory / "onrecord.toml"
    user = "user = 4000\n" if mode == "system" else ""
    principals = "[principals]\nauthority = 4001\nrecorder = 4002\n" if mode == "system" else ""
    file.write_text(
        f'mode = "{mode}"\n[paths]\nruntime = "{directory}/run"\n{principals}'
        f'[servers.files]\ncommand = "/bin/true"\nhook = {hook}\n{user}'
    )
    return Configuration.load(file)


def guarded(configuration, **changes):
    environment = hook_environment(configuration, "files", peer=PEER, connection="3")
    for name, value in changes.items():
        environment.pop(name) if value is None else environment.update({name: value})
    return find(environ=environment, config=None, server_id=None)


def test_what_the_guard_writes_is_read(short_dir):
    """Server, peer, connection and configuration arrive; in user mode the uid says nothing to the authority."""
    found = guarded(written(short_dir))
    assert (found.server, found.connection, found.is_guarded) == ("files", "3", True)
    assert (found.peer.uid, found.peer.pid, found.peer.verified_uid) == (2001, os.getpid(), None)
    assert found.configuration.file == short_dir / "onrecord.toml"


def test_in_system_mode_the_uid_counts(short_dir):
    """The authority gets the uid of the guard's peer, which a hook on plain stdio could not know."""
    assert guarded(written(short_dir, mode="system")).peer.verified_uid == 2001


def test_a_guard_counts_more_than_arguments(short_dir):
    """One program may stand behind several deployments: the guard says which one this is."""
    configuration = written(short_dir)
    environment = hook_environment(configuration, "files", peer=PEER, connection="3")
    found = find(environ=environment, config=short_dir / "none.toml", server_id="another")
    assert (found.server, found.is_guarded) == ("files", True)


@pytest.mark.parametrize(
    "change",
    [
        {"ONRECORD_AUTHORITY": "unix:///tmp/another.sock"},
        {"ONRECORD_PEER_UID": "root"},
        {"ONRECORD_PEER_UID": None},
        {"ONRECORD_PEER_PID": "-1"},
        {"ONRECORD_CONNECTION": "1\n"},
        {"ONRECORD_CONNECTION": ""},
        {"ONRECORD_CONFIG": None},
    ],
)
def test_variables_that_no_guard_wrote(short_dir, change):
    """Variables that are incomplete or do not fit the configuration stop the server instead of being guessed at."""
    with pytest.raises(ConfigurationError) as error:
        guarded(written(short_dir), **change)
    assert error.value.code == "hook-environment"


def test_a_server_without_hook_in_the_configuration(short_dir):
    """Variables of a guard for a server whose calls the relay checks are refused: two checks spend a proof twice."""
    with pytest.raises(ConfigurationError) as error:
        guarded(written(short_dir, hook="false"))
    assert error.value.code == "hook-environment"


def test_explicit_arguments(short_dir):
    """Without a guard the arguments name the server; the peer is the process that started us."""
    found = find(environ={}, config=str(written(short_dir).file), server_id="files")
    assert (found.server, found.peer.pid, found.peer.verified_uid) == ("files", os.getppid(), None)
    assert not found.is_guarded
    assert find(environ={}, config=written(short_dir), server_id="files").server == "files"


def test_arguments_that_name_nothing(short_dir):
    """A configuration without a server, or an unknown server, is an error and not an unprotected server."""
    with pytest.raises(ConfigurationError) as error:
        find(environ={}, config=written(short_dir), server_id=None)
    assert error.value.code == "hook-server-id"
    with pytest.raises(OnrecordError) as unknown:
        find(environ={}, config=written(short_dir), server_id="another")
    assert unknown.value.code == "server-unknown"


def test_nothing_at_all():
    """No guard and no arguments: there is nothing to check calls with."""
    assert find(environ={}, config=None, server_id=None) is None


def test_an_env_file_cannot_speak_for_the_guard(short_dir):
    """The guard's own variables are written last, over those of env_file and env_pass."""
    configuration = written(short_dir)
    file = short_dir / "files.env"
    file.write_text("ONRECORD_SERVER=another\nTOKEN=x\n")
    file.chmod(0o600)
    plain = server_environment(uid=os.getuid(), own={}, env_file=file, env_pass=())
    merged = plain | hook_environment(configuration, "files", peer=PEER, connection="1")
    assert merged["ONRECORD_SERVER"] == "files"
