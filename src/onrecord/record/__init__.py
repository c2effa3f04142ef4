"""The record room: vCons, their checks and forms, the journal, the recorder.

>>> from onrecord.record import Vcon, check
>>> check(Vcon.new(uuid="01a19b83-0f20-8b33-832a-bc92ac6830cd").to_bytes()).version
'0.5.0'

What a program needs for vCons stands here and is loaded when it is first used; everything else is in the modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onrecord.base.lazy_names import lazy_name

if TYPE_CHECKING:
    from onrecord.record.amendment import amend
    from onrecord.record.checks.checker import check
    from onrecord.record.forms import decrypt, encrypt, sign, verify
    from onrecord.record.migration import MigrationReport, migrate, revert
    from onrecord.record.redaction import Rules, redact
    from onrecord.record.vcon.contents import Content
    from onrecord.record.vcon.model import Vcon

__all__ = [
    "Content",
    "MigrationReport",
    "Rules",
    "Vcon",
    "amend",
    "check",
    "decrypt",
    "encrypt",
    "migrate",
    "redact",
    "revert",
    "sign",
    "verify",
]

_MODULES: Final = {
    "Content": "vcon.contents",
    "MigrationReport": "migration",
    "Rules": "redaction",
    "Vcon": "vcon.model",
    "amend": "amendment",
    "check": "checks.checker",
    "decrypt": "forms.decryption",
    "encrypt": "forms.encryption",
    "migrate": "migration",
    "redact": "redaction",
    "revert": "migration",
    "sign": "forms.signing",
    "verify": "forms.signatures",
}
"""Where each name is defined."""


def __getattr__(name: str) -> Any:
    value = globals()[name] = lazy_name(__name__, _MODULES, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
