"""Hosts of URLs and host names, as facts for policy. Names are judged, addresses are never looked up.

    >>> normalize("https://API.Example.com./v1")
    HostFact(name='api.example.com', kind='name', port=443, scheme='https', local=False)
    >>> normalize("http://0177.0.0.1/") is None
    True

Every form that two URL parsers read differently is unknown (None). A bare `host` or `host:port` has scheme "" and
port 0 unless it names one.

Source: call-proof.md 8.3.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple

MAX_HOST_TEXT: Final = 8192
"""Longest URL judged: longer ones are refused by most servers."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_REFUSED = re.compile(
    "[\x00-\x20\x7f-\x9f\\\\\u00a0\u061c\u200b-\u200f\u2028-\u202f\u2060-\u2069\u3000\ud800-\udfff\ufeff]"
)
_URL = re.compile(r"(?i:(https?))://([^/?#]*)(.*)", re.DOTALL)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([1-9][0-9]{0,4}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_DOTTED = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_SCHEMES: Final = frozenset(
    {
        "http",
        "https",
        "ftp",
        "ftps",
        "file",
        "ws",
        "wss",
        "data",
        "javascript",
        "mailto",
        "ssh",
        "git",
        "gopher",
    }
)
_LOCAL_NETWORKS: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4", "::/127", "fe80::/10", "fec0::/10",
        "fc00::/7", "ff00::/8",
    )
)  # fmt: skip
_EMBEDDED: Final = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))


class HostFact(NamedTuple):
    """A judged host: lower-case name, kind name, ipv4 or ipv6, port, scheme, and whether it is a local one."""

    name: str
    kind: str
    port: int
    scheme: str
    local: bool


def normalize(text: str) -> HostFact | None:
    """Return the fact of one http(s) URL or bare host, or None when it cannot be judged."""
    if not text or len(text) > MAX_HOST_TEXT or _REFUSED.search(text) is not None:
        return None
    match = _URL.fullmatch(text)
    if match is None:
        scheme, authority = "", text
    else:
        scheme, authority, rest = match[1].lower(), match[2], match[3]
        if rest[:1] in ("?", "#") and "@" in rest.split("/", 1)[0]:
            return None
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        return None
    port = int(parts[2]) if parts[2] else _DEFAULT_PORTS.get(scheme, 0)
    if port > 65_535:
        return None
    host = parts[1].lower()
    if not scheme and host in _SCHEMES:
        return None
    if host[0] == "[":
        return _ipv6(host[1:-1], port, scheme)
    return _name_or_ipv4(host, port, scheme)


def _name_or_ipv4(host: str, port: int, scheme: str) -> HostFact | None:
    host = host.removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    if _NUMERIC.fullmatch(labels[-1]):
        if not _DOTTED.fullmatch(host) or any(int(label) > 255 for label in labels):
            return None
        return HostFact(host, "ipv4", port, scheme, _is_local(ipaddress.IPv4Address(host)))
    local = labels[-1] in ("local", "localhost")
    return HostFact(host, "name", port, scheme, local)


def _ipv6(text: str, port: int, scheme: str) -> HostFact | None:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped
    if mapped is not None:
        # The kernel connects to the IPv4 address, so that is the host that is judged.
        return HostFact(str(mapped), "ipv4", port, scheme, _is_local(mapped))
    return HostFact(address.compressed, "ipv6", port, scheme, _is_local(address))


def _is_local(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if any(address in network for network in _LOCAL_NETWORKS):
        return True
    if isinstance(address, ipaddress.IPv6Address):
        low = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if any(address in network for network in _EMBEDDED):
            return _is_local(low)
        if address.sixtofour is not None:
            return _is_local(address.sixtofour)
    return False
