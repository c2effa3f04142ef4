"""Amounts of money in minor units of an ISO 4217 currency.

    >>> normalize(12.5, currency="EUR")
    AmountFact(minor=1250, currency='EUR')
    >>> normalize(12.5, currency="JPY") is None
    True

Source: call-proof.md 8.3; ISO 4217 (active codes with a minor unit).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

import rfc8785

MAX_MINOR: Final = 2**53 - 1
"""Largest amount judged: beyond it a double no longer holds every integer."""

_TWO: Final = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD "
    "CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD "
    "GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA "
    "MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR "
    "RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD "
    "TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
)
_ZERO: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_THREE: Final = "BHD IQD JOD KWD LYD OMR TND"
_FOUR: Final = "CLF UYW"

DECIMALS: Final = {
    code: decimals
    for codes, decimals in ((_ZERO, 0), (_TWO, 2), (_THREE, 3), (_FOUR, 4))
    for code in codes.split()
}
"""Decimals of each currency."""


class AmountFact(NamedTuple):
    """A judged amount, in minor units."""

    minor: int
    currency: str


def normalize(value: float, *, currency: str) -> AmountFact | None:
    """Return the fact of one JSON number in major units, or None when it cannot be judged.

    The number is read in its RFC 8785 form, so 12.50 and 1.25e1 are one amount. `currency` is an ISO 4217 code in
    either case.
    """
    code = currency.upper() if currency.isascii() else ""
    decimals = DECIMALS.get(code)
    if decimals is None:
        return None
    amount = Decimal(value) if isinstance(value, int) else Decimal(rfc8785.dumps(value).decode())
    if amount < 0 or amount > MAX_MINOR:
        return None
    minor = amount.scaleb(decimals)
    if minor != minor.to_integral_value() or minor > MAX_MINOR:
        return None
    return AmountFact(int(minor), code)
