"""TOML is edited key by key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.wrap.toml_text import TomlText
from onrecord.base.errors import MalformedError, OnrecordError

EDIT = {"command": "/o", "args": ["connect", "s"], "cwd": None, "env": None}

EDITED = {
    "table": (
        (
            '# top\nmodel = "x"  # m\n\n[mcp_servers.s] # s\ncommand = "a" # c\n'
            'args = [\n  "b", # 1\n]\nenv = { A = "b" }\nx = 1\n\n[z]\n'
        ),
        '# top\nmodel = "x"  # m\n\n[mcp_servers.s] # s\ncommand = "/o" # c\nargs = ["connect", "s"]\nx = 1\n\n[z]\n',
    ),
    "env as a table": (
        '[mcp_servers.s]\ncommand = "a"\nargs = []\n\n[mcp_servers.s.env]\nA = "b"\nB = "c"\n[z]\ny = 1 # y\n',
        '[mcp_servers.s]\ncommand = "/o"\nargs = ["connect", "s"]\n\n[z]\ny = 1 # y\n',
    ),
    "env as a table, comments": (
        '[mcp_servers.s]\ncommand = "a"\nargs = []\n[mcp_servers.s.env]\nA = "b"\n\n# about z\n[z]\n',
        '[mcp_servers.s]\ncommand = "/o"\nargs = ["connect", "s"]\n[mcp_servers.s.env]\n\n# about z\n[z]\n',
    ),
    "env as a table, a blank line behind it": (
        '[mcp_servers.s]\ncommand = "a"\nargs = []\n[mcp_servers.s.env]\nA = "b"\n\nB = "c"\n\n\n[z]\ny = 1\n',
        '[mcp_servers.s]\ncommand = "/o"\nargs = ["connect", "s"]\n\n\n[z]\ny = 1\n',
    ),
    "env as a table, blank lines on both sides": (
        '[mcp_servers.s]\ncommand = "a"\nargs = []\n\n[mcp_servers.s.env]\nA = "b"\n\n[mcp_servers.s.tools]\nx = 1\n',
        '[mcp_servers.s]\ncommand = "/o"\nargs = ["connect", "s"]\n\n\n[mcp_servers.s.tools]\nx = 1\n',
    ),
    "env as a table, a key to be added": (
        '[mcp_servers.s]\ncommand = "a"\n[mcp_servers.s.env]\nA = "b"\n\n[z]\n',
        '[mcp_servers.s]\ncommand = "/o"\nargs = ["connect", "s"]\n\n[z]\n',
    ),
    "env as a table, a blank line as in Windows": (
        '[mcp_servers.s]\r\ncommand = "a"\r\nargs = []\r\n[mcp_servers.s.env]\r\nA = "b"\r\n\r\n[z]\r\n',
        '[mcp_servers.s]\r\ncommand = "/o"\r\nargs = ["connect", "s"]\r\n\r\n[z]\r\n',
    ),
    "env with a table of its own": (
        (
            '[mcp_servers.s]\ncommand = "a"\nargs = []\n'
            '[mcp_servers.s.env]\nA = "b"\n[mcp_servers.s.env.x]\ny = 1\n\n[z]\n'
        ),
        '[mcp_servers.s]\ncommand = "/o"\nargs = ["connect", "s"]\n\n[z]\n',
    ),
    "inline": (
        '[mcp_servers]\ns = { command = "a", args = ["x"], env = { A = "b" }, x = 1 } # s\n',
        '[mcp_servers]\ns = { command = "/o", args = ["connect", "s"],  x = 1 } # s\n',
    ),
    "lines end as in Windows": (
        '[mcp_servers.s]\r\ncommand = "a" # c\r\nargs = []\r\n',
        '[mcp_servers.s]\r\ncommand = "/o" # c\r\nargs = ["connect", "s"]\r\n',
    ),
    "a new line ends as in Windows": (
        '[mcp_servers.s]\r\ncommand = "a"\r\n\r\n[z]\r\n',
        '[mcp_servers.s]\r\ncommand = "/o"\r\nargs = ["connect", "s"]\r\n\r\n[z]\r\n',
    ),
    "tables in between": (
        '[mcp_servers.s]\ncommand = "a"\nargs = []\n[z]\n[mcp_servers.t]\ncommand = "t"\n',
        '[mcp_servers.s]\ncommand = "/o"\nargs = ["connect", "s"]\n[z]\n[mcp_servers.t]\ncommand = "t"\n',
    ),
}


@pytest.mark.parametrize("case", EDITED)
def test_bytes(case):
    """Only the four keys change; every other byte stays, comments too."""
    before, after = EDITED[case]
    assert TomlText.read(before).edited(("mcp_servers", "s"), EDIT).text == after


def test_dotted_keys():
    """Where the library that keeps the layout cannot edit, nothing is edited."""
    text = '[mcp_servers]\ns.command = "a"\ns.args = []\ns.env.A = "b"\nt.command = "t"\n'
    with pytest.raises(MalformedError) as e:
        TomlText.read(text).edited(("mcp_servers", "s"), EDIT)
    assert e.value.code == "client-file-malformed"


@pytest.mark.parametrize("text", ["a", "a = 1\na = 2", "[a", "a = " + "[" * 100_000, 'a = "\x00"'])
def test_refused(text):
    """What is no TOML is refused with a code."""
    with pytest.raises(MalformedError) as e:
        TomlText.read(text)
    assert e.value.code == "client-file-malformed"


def test_added_keys():
    """A key that is not there is added to its table, before the tables below it."""
    text = '[mcp_servers.s]\ncommand = "a"\n\n[mcp_servers.s.tools.x]\ny = 1\n'
    data = TomlText.read(text).edited(("mcp_servers", "s"), EDIT | {"env": {"A": 'b"\\'}}).data
    assert data["mcp_servers"]["s"] == {
        "command": "/o",
        "args": ["connect", "s"],
        "env": {"A": 'b"\\'},
        "tools": {"x": {"y": 1}},
    }


@given(st.text(alphabet="[]{}=.\"'#\n ab,1", max_size=50))
def test_any_text(text):
    """Whatever stands in a file, the edit is exact or refused."""
    try:
        whole = TomlText.read(f'{text}\n[mcp_servers.s]\ncommand = "a"\nenv = {{ A = "b" }}\n')
        edited = whole.edited(("mcp_servers", "s"), EDIT)
    except OnrecordError as error:
        assert error.code == "client-file-malformed"
    else:
        assert edited.data == whole.data | {
            "mcp_servers": whole.data["mcp_servers"] | {"s": {"command": "/o", "args": ["connect", "s"]}}
        }
