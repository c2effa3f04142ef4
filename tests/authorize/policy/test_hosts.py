"""Hosts as facts (call-proof.md 8.3, acceptance item 52)."""

import ipaddress
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.policy.hosts import MAX_HOST_TEXT, normalize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://api.example.com/v1?q=1#x", ("api.example.com", "name", 443, "https", False)),
        ("HTTP://API.Example.COM.:8080", ("api.example.com", "name", 8080, "http", False)),
        ("http://example.com", ("example.com", "name", 80, "http", False)),
        ("http://127.0.0.1:9/", ("127.0.0.1", "ipv4", 9, "http", True)),
        ("http://10.1.2.3/", ("10.1.2.3", "ipv4", 80, "http", True)),
        ("http://192.0.2.7/", ("192.0.2.7", "ipv4", 80, "http", False)),
        ("http://169.254.169.254/latest", ("169.254.169.254", "ipv4", 80, "http", True)),
        ("http://[::1]/", ("::1", "ipv6", 80, "http", True)),
        ("http://[2001:DB8:0:0::1]:81/", ("2001:db8::1", "ipv6", 81, "http", False)),
        ("http://[fe80::1]/", ("fe80::1", "ipv6", 80, "http", True)),
        ("http://[::ffff:127.0.0.1]/", ("127.0.0.1", "ipv4", 80, "http", True)),
        ("http://[::ffff:c000:207]/", ("192.0.2.7", "ipv4", 80, "http", False)),
        ("http://[64:ff9b::7f00:1]/", ("64:ff9b::7f00:1", "ipv6", 80, "http", True)),
        ("http://[2002:7f00:1::]/", ("2002:7f00:1::", "ipv6", 80, "http", True)),
        ("http://printer.local/", ("printer.local", "name", 80, "http", True)),
        ("http://localhost/", ("localhost", "name", 80, "http", True)),
        ("https://xn--bcher-kva.example/", ("xn--bcher-kva.example", "name", 443, "https", False)),
        ("https://example.com/caf\u00e9", ("example.com", "name", 443, "https", False)),
        ("Example.com", ("example.com", "name", 0, "", False)),
        ("example.com:22", ("example.com", "name", 22, "", False)),
        ("[::1]:22", ("::1", "ipv6", 22, "", True)),
    ],
)
def test_judged(text, expected):
    """A URL or bare host becomes a lower-case name with kind, port, scheme and whether it is local."""
    assert tuple(normalize(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://user@example.com/",
        "http://user:secret@example.com/",
        "http://good.example#@evil.example/",
        "http://good.example?@evil.example/",
        "http:\\\\example.com",
        "http://good.example\\@evil.example/",
        "http://good.example/ x",
        "http://exa mple.com/",
        "http://b\u00fccher.example/",
        "http://example\u3002com/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1.5/",
        "http://256.0.0.1/",
        "http://1.2.3.08/",
        "http://example.0x7/",
        "http://127.0.0.1../",
        "http://example..com/",
        "http://.example.com/",
        "http://-x.example/",
        "http://ex%61mple.com/",
        "http://[::1%25eth0]/",
        "http://[::1",
        "http://[::g]/",
        "http://example.com:0/",
        "http://example.com:080/",
        "http://example.com:65536/",
        "http://example.com:/",
        "http:///example.com",
        "http:example.com",
        "http:/example.com",
        "http:80",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:1",
        "gopher://example.com/",
        "//example.com/",
        "example.com/path",
        "http://exam\tple.com/",
        "http://example.com/\nHost: evil.example",
        "http://example.com/\u202e",
        "a" * 64 + ".example",
        "https://example.com/" + "x" * MAX_HOST_TEXT,
    ],
)
def test_unknown(text):
    """What URL parsers read differently, other schemes and odd numbers cannot be judged."""
    assert normalize(text) is None


hosts = st.one_of(
    st.from_regex(r"[A-Za-z0-9.\-_]{1,20}", fullmatch=True),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda a: f"[{a}]"),
)
urls = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "https", "HTTP", "ftp"]),
    hosts,
    st.sampled_from(["", ":80", ":8443", ":0", ":99999"]),
    st.text(alphabet="/?#@:ab\\ ", max_size=8),
)


@given(st.one_of(urls, st.text(max_size=60), hosts))
def test_agrees_with_another_parser(text):
    """Where we judge a URL, the standard library sees the same host and port."""
    found = normalize(text)
    if found is None or not found.scheme:
        return
    other = urlsplit(text)
    assert other.username is None
    assert found.scheme == other.scheme
    name = (other.hostname or "").removesuffix(".")
    if found.kind == "name":
        assert found.name == name
    else:
        address = ipaddress.ip_address(name)
        mapped = getattr(address, "ipv4_mapped", None)
        assert ipaddress.ip_address(found.name) == (mapped or address)
    assert found.port == (other.port or {"http": 80, "https": 443}[found.scheme])


@given(st.ip_addresses())
def test_local_addresses(address):
    """Every address that the standard library calls private, loopback or link-local is local."""
    text = f"http://[{address}]/" if address.version == 6 else f"http://{address}/"
    found = normalize(text)
    if (
        address.is_loopback
        or address.is_link_local
        or address
        in (ipaddress.ip_network("10.0.0.0/8") if address.version == 4 else ipaddress.ip_network("fc00::/7"))
    ):
        assert found.local
