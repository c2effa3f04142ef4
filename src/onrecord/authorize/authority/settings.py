"""Settings that are specified and not built yet.

Source: running.md 13; call-proof.md 15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onrecord.base.errors import ConfigurationError, Where

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration


def refuse_unbuilt(config: Configuration) -> None:
    """Refuse settings that this version does not have, by name (running.md 13).

    Raises `ConfigurationError` with code "not-built-yet".
    """
    asked = []
    if config.authority.digest_key:
        asked.append("authority.digest_key")
    if config.authority.require_sink:
        asked.append("authority.require_sink")
    if asked:
        raise ConfigurationError(
            f"{asked[0]} is not part of this version yet",
            code="not-built-yet",
            hint="remove the setting, or set it to its default",
            where=Where(file=str(config.file)),
        )
