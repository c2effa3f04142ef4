"""Names that vCon core had for a member before its present one (record.md 1.3)."""

from __future__ import annotations

from typing import Final

CONTENT_ALIASES: Final = {"mimetype": "mediatype", "alg": "content_hash", "signature": "content_hash"}
"""Members of content in version 0.0.1. `alg` and `signature` stand for one content hash together."""

SHA512_ALG: Final = "SHA-512"
"""The one value of `alg` whose `signature` is a hash. LMOTS is a signature."""

TRANSFER_ALIASES: Final = {"transfer-target": "transfer_target", "target-dialog": "target_dialog"}
"""Members of transfer dialogs in versions 0.0.x."""

OLD_TRANSFER_NAMES: Final = {new: old for old, new in TRANSFER_ALIASES.items()}
"""Members of transfer dialogs, each with its name in versions 0.0.x."""

VCON_ALIASES: Final = {
    "redacted": "redacted_from",
    "amended": "amended_from",
    "appended": "amended_from",
    "must_support": "critical",
}
"""Members of the vCon Object before 0.5.0."""

KEY_EVENT_ALIASES: Final = {"dtmfdown": "keydown", "dtmfup": "keyup"}
"""Values of `event` in a Party_History of core-01, whose member `dtmf` is now `button`."""
