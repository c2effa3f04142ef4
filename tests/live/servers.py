"""Where the real tool servers are; a test without its server is skipped and says so."""

import os
import shutil
from pathlib import Path

import pytest

from support.data import REPOSITORY


def directory():
    """Return the directory of installed servers: `$ONRECORD_TEST_SERVERS`, else `.test-servers` of the checkout."""
    return Path(os.environ.get("ONRECORD_TEST_SERVERS") or REPOSITORY / ".test-servers")


def python_server(name):
    """Return the command of a server that pip installs, or skip."""
    program = directory() / "venv" / "bin" / name
    if not program.exists():
        pytest.skip(f"{name} is not installed; `make setup` makes .test-servers")
    return [str(program)]


def node_server(package):
    """Return the command of a server that npm installs, or skip."""
    script = directory() / "node" / "node_modules" / package / "dist" / "index.js"
    node = shutil.which("node")
    if node is None or not script.exists():
        pytest.skip(f"{package} is not installed; `make setup` makes .test-servers when there is node")
    return [node, str(script)]


def fastmcp_python():
    """Return the interpreter of the environment with FastMCP, or skip."""
    program = directory() / "fastmcp" / "bin" / "python"
    if not program.exists():
        pytest.skip("fastmcp is not installed; `make setup` makes .test-servers")
    return str(program)
