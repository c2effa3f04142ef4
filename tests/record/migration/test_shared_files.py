"""The working group's and other people's old files, and our own vectors of the migration."""

import json

import pytest

from onrecord.record.checks.checker import check
from onrecord.record.forms import open_form
from onrecord.record.migration import migrate
from onrecord.record.vcon.model import Vcon
from support.data import shared_data
from support.legacy import migrated, same, turned_back

ROOT = shared_data("vcon")
FILES = sorted(
    str(path.relative_to(ROOT))
    for folder in ("wg-core", "py-vcon", "go-vcon", "vcon-info", "vcon-server-invalid", "fake", "migrate")
    for path in (ROOT / folder).iterdir()
    if path.suffix in (".json", ".vcon")
    and "simple-vcon.vcon" not in path.name
    and "encrypted" not in path.name
)
PRESENT = sorted(path.name for path in ROOT.glob("*.json") if "sessions" in json.loads(path.read_bytes()))

DEMANDED = {
    ("created-at-missing", "/created_at"),
    ("required-missing", "/attachments/0"),
}
"""What older versions did without and 0.5.0 demands: when the vCon was made, which dialog an attachment belongs to.
Both cannot be known."""


@pytest.mark.parametrize("name", ["call", "chat"])
def test_vectors(name):
    """The inputs of record.md 1.4 become its outputs, and come back."""
    old = next(ROOT.glob(f"migrate/{name}-0.[04]*.json"))
    done = migrated(old.read_bytes())
    assert same(done.vcon.members, json.loads((ROOT / f"migrate/{name}-0.5.0.json").read_bytes()))
    assert done.report.is_reversible
    assert same(turned_back(done), json.loads(old.read_bytes()))


@pytest.mark.parametrize("name", FILES)
def test_old_files(name):
    """Each file migrates; the result has no error that the source has not, but for what 0.5.0 demands anew."""
    form = open_form((ROOT / name).read_bytes())
    source = Vcon.of_document(form.payload)
    done = migrate(source, new_instance=form.kind == "signed")
    text = done.to_bytes()
    before = {(item.code, item.pointer) for item in check(form.payload.raw).findings}
    after = {(item.code, item.pointer) for item in check(text).findings if item.severity == "error"}
    renamed = {(code, pointer.replace("mimetype", "mediatype")) for code, pointer in before}
    assert after <= before | renamed | DEMANDED
    assert migrate(Vcon.read(text)).to_bytes() == text
    if form.kind == "unsigned" and done.report.is_reversible:
        assert same(turned_back(done), source.members)


@pytest.mark.parametrize("name", PRESENT)
def test_present_files(name):
    """A vCon of 0.5.0 comes back byte for byte."""
    data = (ROOT / name).read_bytes()
    assert migrate(Vcon.read(data)).to_bytes() == data
