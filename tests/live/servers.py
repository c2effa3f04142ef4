"""Where the real tool servers are; a test without its server is skipped and says so."""

import shutil

import pytest

from support.checkout import installed_servers

_SCRIPTS = {"mcp-server-commands": "build/index.js"}


def python_server(name):
    """Return the command of a server that pip installs, or skip."""
    program = installed_servers() / "venv" / "bin" / name
    if not program.exists():
        pytest.skip(f"{name} is not installed; `make setup` makes .test-servers")
    return [str(program)]


def node_server(package):
    """Return the command of a server that npm installs, or skip."""
    script = installed_servers() / "node" / "node_modules" / package / _SCRIPTS.get(package, "dist/index.js")
    node = shutil.which("node")
    if node is None or not script.exists():
        pytest.skip(f"{package} is not installed; `make setup` makes .test-servers when there is node")
    return [node, str(script)]


def fastmcp_python():
    """Return the interpreter of the environment with FastMCP, or skip."""
    program = installed_servers() / "fastmcp" / "bin" / "python"
    if not program.exists():
        pytest.skip("fastmcp is not installed; `make setup` makes .test-servers")
    return str(program)
