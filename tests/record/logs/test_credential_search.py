"""Credentials in the objects of a vCon, found while they are written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.record.credentials import MEMBER_NAMES, find
from onrecord.record.logs.credential_search import CredentialSearch

SECRETS = [
    "Bearer abcdefghijklmnop0123",
    "BASIC dXNlcjpwYXNzd29yZA==",
    "AKIAABCDEFGHIJKLMNOP",
    "ASIAABCDEFGHIJKLMNOP",
    "ghp_" + "a" * 36,
    "github_pat_" + "a" * 50,
    "xoxb-1234567890",
    "sk-" + "a" * 20,
    "AIza" + "a" * 35,
    "eyJhbGciOiJub25lIn0.eyJhIjoxfQ.abc",
    "-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----",
    "https://u:p@example.com/",
]


def found(values):
    hits = []
    search = CredentialSearch(lambda number, hit: hits.append((number, hit)))
    for number, value in enumerate(values):
        search.look_at(number, f"/dialog/{number}", json.dumps(value, ensure_ascii=False).encode())
    search.finish()
    return hits


@pytest.mark.parametrize("secret", SECRETS)
def test_each_kind(secret):
    """Each kind is found in its object and in no other, and the hit does not carry it."""
    hits = found([{"a": "nothing"}, {"deep": [{"text": f"see {secret} there"}]}, {"a": "Bearer of news"}])
    assert [(number, hit.pointer) for number, hit in hits] == [(1, "/dialog/1/deep/0/text")]
    assert secret not in repr(hits)


@pytest.mark.parametrize("name", sorted(MEMBER_NAMES))
def test_each_member(name):
    """Members that are named like a credential are found, however their words are joined."""
    for written in (name, name.upper(), name.replace("_", "-"), name.replace("-", ""), name.title()):
        assert [hit.kind for _, hit in found([{"data": {written: "value"}}])] == ["member"], written


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["password", "a", "tokens", "key"]),
            st.sampled_from([*SECRETS, "x", "sk-short", "https://example.com/a@b"])
            | st.lists(st.sampled_from(SECRETS)),
        ),
        max_size=5,
    )
)
def test_as_the_slow_way(values):
    """The same is found as by searching each object."""
    slow = [(n, hit) for n, value in enumerate(values) for hit in find(value, pointer=f"/dialog/{n}")]
    assert sorted(found(values), key=repr) == sorted(slow, key=repr)


def test_many_batches():
    """Nothing is lost where one batch ends and the next begins."""
    values = [{"text": "x" * 20_000 + " " + (SECRETS[2] if n % 7 == 0 else "")} for n in range(100)]
    assert [number for number, _ in found(values)] == list(range(0, 100, 7))
