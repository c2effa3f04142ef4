"""The example policy as a plain document, for tests of everything that needs one."""

from __future__ import annotations

import json
from pathlib import Path

POLICY_DATA = Path(__file__).parent.parent / "authorize" / "policy" / "data"
POLICY_SOURCE = POLICY_DATA / "policy"


def example_document():
    """Return the bundle of the examples as a fresh document, to be changed and composed."""
    document = json.loads((POLICY_SOURCE / "bundle.json").read_text())
    document["created"] = "2026-11-30T09:00:00Z"
    document["policies"] = "".join(
        p.read_text() for p in sorted((POLICY_SOURCE / "policies").glob("*.cedar"))
    )
    document["schema"] = (POLICY_SOURCE / "schema.cedar").read_text()
    for server in document["servers"]:
        server["tools"] = json.loads((POLICY_SOURCE / server.pop("bindings")).read_text())
    return document
