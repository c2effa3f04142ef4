"""Fixtures that all tests share."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from onrecord.base import configuration
from support.checkout import is_closed_to_others
from support.runtime import make_short_dir
from support.system import UserModeSystem
from support.uids import reservation, uid_block_or_skip

settings.register_profile(
    "onrecord", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "onrecord"))


def pytest_configure():
    """As root, tests run parts of themselves under other uids, which must be able to read them."""
    if os.geteuid() == 0 and is_closed_to_others():
        pytest.exit(
            "other uids cannot read this checkout; make test runs the tests in an open copy", returncode=3
        )


def pytest_sessionstart(session):
    """As root, take the uids of this process before any test or demonstration looks for some."""
    is_controller = getattr(session.config.option, "numprocesses", None) and not hasattr(
        session.config, "workerinput"
    )
    if os.geteuid() == 0 and not is_controller:
        reservation()


def pytest_sessionfinish():
    """Give the uids back."""
    if reservation.cache_info().currsize:
        reservation().release()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Skip tests that need root when we are not; pytest prints the reason.

    Tests that look for uids by themselves, as a demonstration that root has started does, stay on one worker.
    """
    skip = pytest.mark.skip(reason="needs root, because it uses several uids")
    for item in items:
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(skip)
        if item.path.name.startswith("test_demo"):
            item.add_marker(pytest.mark.xdist_group("demonstration"))


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """No test reaches beyond this machine: only Unix sockets and loopback addresses can be connected to."""
    connect = socket.socket.connect

    def local_only(self, address):
        if self.family != socket.AF_UNIX and not ipaddress.ip_address(address[0]).is_loopback:
            raise AssertionError("a test tried to reach the network")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local_only)


@pytest.fixture(autouse=True)
def own_configuration_is_not_read(monkeypatch):
    """The tester's own onrecord.toml, the one of the machine and the runtime directory play no part."""
    monkeypatch.setattr(configuration, "SYSTEM_FILE", Path("/nonexistent/onrecord.toml"))
    for name in (
        "ONRECORD_CONFIG",
        "ONRECORD_RECORD_SESSION",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def short_dir():
    """A private directory whose path is short enough for sockets."""
    path = make_short_dir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def uid_block():
    """16 unused uids; skips when not root."""
    return uid_block_or_skip()


@pytest.fixture
def ordinary_uid():
    """A uid that is not root: the own one, or the first unused one; the test drops to it in a child."""
    return os.getuid() or uid_block_or_skip()[0]


@pytest.fixture
def home(monkeypatch, short_dir) -> Path:
    """A fresh home directory that HOME names."""
    path = short_dir / "home"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(path))
    return path


@pytest.fixture
def user_mode(short_dir, ordinary_uid):
    """A factory of installations in user mode: `user_mode(values=…, servers=…)`; nothing is started yet."""
    made = []

    def make(**more) -> UserModeSystem:
        directory = short_dir / f"s{len(made)}"
        directory.mkdir(mode=0o700)
        short_dir.chmod(0o711)
        made.append(UserModeSystem(directory, uid=ordinary_uid, **more))
        return made[-1]

    yield make
    for one in made:
        one.kill()


@pytest.fixture
def user_mode_system(user_mode):
    """An initialized user-mode system with a real recorder and a real authority running."""
    system = user_mode().start_all()
    yield system
    system.stop()


@pytest.fixture
def echo_deployment(user_mode):
    """A factory of whole deployments around one watched server: `echo_deployment(enforce=…, values=…)`."""
    from support.deployment import EchoDeployment

    made = []

    def make(**more):
        made.append(EchoDeployment(user_mode, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()
        one.system.stop()
