"""`onrecord record` in text."""

from pathlib import Path

from onrecord.cli.record import _print_sessions

SIGNED = {
    "id": "01a22e57-3f07-7974-adf5-1049904ecc53",
    "caller": "agent",
    "uid": 59010,
    "label": "p15853-471989-76b28117",
    "state": "signed",
    "entries": 1,
    "cause": "process-exit",
    "vcon": {"file": "2026/11/30/01a22e57-499c-712e-b39f-b56edac82608.vcon.json"},
    "check": {"errors": 2},
}


class TestSessions:
    def test_whole_ids_and_paths(self, capsys, monkeypatch):
        """However narrow the terminal, id, label and the whole path of the vCon can be copied."""
        monkeypatch.setenv("COLUMNS", "40")
        _print_sessions([SIGNED], records=Path("/records"))
        assert capsys.readouterr().out.splitlines() == [
            f"{SIGNED['id']}  signed (2 check errors), agent, 1 entry, closed: process-exit",
            "  label  p15853-471989-76b28117",
            "  vCon   /records/2026/11/30/01a22e57-499c-712e-b39f-b56edac82608.vcon.json",
        ]

    def test_open(self, capsys):
        """An open session has neither cause nor vCon; a caller that is not in the policy is its uid."""
        _print_sessions(
            [SIGNED | {"caller": None, "state": "open\x1b", "cause": None, "vcon": None, "check": None}],
            records=Path("/records"),
        )
        out = capsys.readouterr().out
        assert out.startswith(f"{SIGNED['id']}  open\\u{{1b}}, uid 59010, 1 entry\n")
        assert "vCon" not in out

    def test_none(self, capsys):
        """No sessions is said in words."""
        _print_sessions([], records=Path("/records"))
        assert capsys.readouterr().err == "no record sessions\n"
