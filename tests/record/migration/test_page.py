"""The Python block of the page about upgrades runs."""

import re

from support.data import REPOSITORY


def test_python(tmp_path, monkeypatch, capsys):
    """On the vCon of the page it writes the new one, and undoes what it did."""
    page = (REPOSITORY / "docs" / "upgrade-vcons.md").read_text(encoding="utf-8")
    example = re.search(r"<<END\n(.*?)\$ END\n", page, re.DOTALL)[1]
    (tmp_path / "call.vcon").write_text(re.sub(r"^\$ ", "", example, flags=re.MULTILINE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {})
    totals, same = capsys.readouterr().out.splitlines()
    assert totals.startswith("{'converted': 1,")
    assert same == "True"
    assert (tmp_path / "new.vcon").read_bytes().startswith(b"{")
