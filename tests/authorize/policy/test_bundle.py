"""Bundles: signature, strict reading, succession (call-proof.md 8.1, 8.2, acceptance item 47)."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.policy import LoadedVersion, PolicyLintError, load_bundle, read_bundle, signatures
from onrecord.authorize.policy.source import compose
from onrecord.base.errors import OnrecordError, PolicyError
from onrecord.base.keys import PrivateKeySigner, generate_private_key
from support.data import shared_data
from support.policies import example_document

EXAMPLE = compose(example_document())


@pytest.fixture
def write(tmp_path, signer):
    """Return a function that writes a document and its signature and returns the path."""

    def do(document, *, sig=None):
        data = document if isinstance(document, bytes) else compose(document)
        path = tmp_path / "policy.bundle.json"
        path.write_bytes(data)
        (tmp_path / "policy.bundle.json.sig").write_text(
            signatures.sign(data, signer=signer) if sig is None else sig
        )
        return path

    return do


def refused(path, trusted, **more):
    with pytest.raises(PolicyError) as e:
        load_bundle(path, trusted, **more)
    return e.value.code


def test_loads(write, document, trusted):
    """A signed bundle loads, with all its members under their names."""
    bundle = load_bundle(write(document), trusted)
    assert (bundle.version, bundle.proof_seconds, bundle.limits.issue_burst) == (3, 15, 40)
    assert bundle.limits.tombstones == 100_000
    assert bundle.caller_by_uid(2001).id == "code-review"
    assert bundle.server_by_uid(2102).id == "git"
    assert bundle.servers["filesystem"].ti_server == "example-files"
    assert bundle.servers["filesystem"].refuse_methods == ("resources/read", "prompts/get")
    assert bundle.approver_by_uid(3001).id == "ada"
    assert bundle.control_roles_of(3001) == {"auditor", "operator"}
    assert bundle.control_roles_of(2001) == frozenset()
    assert bundle.user_mode.caller == "code-review"
    assert bundle.retention.journal_days == 400
    assert [person.id for person in bundle.approvers_of("operators")] == ["ada", "grace"]


def test_nobody_has_a_role(write, document, trusted):
    """Unknown uids, root and the overflow uid are no caller, server, approver or controller."""
    bundle = load_bundle(write(document), trusted)
    for uid in (0, 65534, 4711):
        assert bundle.caller_by_uid(uid) is None
        assert bundle.server_by_uid(uid) is None
        assert bundle.approver_by_uid(uid) is None
        assert bundle.control_roles_of(uid) == frozenset()


@pytest.mark.req("CP-119")
class TestSignature:
    """A bundle without a good signature by a trusted key is refused."""

    def test_missing_bundle(self, tmp_path, trusted):
        """No bundle at all is an error of its own, since it is not an attack."""
        assert refused(tmp_path / "policy.bundle.json", trusted) == "policy-missing"

    def test_unsigned(self, write, document, trusted):
        """A bundle without a signature file is refused."""
        path = write(document)
        path.with_name(path.name + ".sig").unlink()
        assert refused(path, trusted) == "policy-unsigned"

    def test_tampered(self, write, document, trusted):
        """One changed byte is refused."""
        path = write(document)
        path.write_bytes(path.read_bytes().replace(b'"version": 3', b'"version": 4'))
        assert refused(path, trusted) == "policy-signature"

    def test_unknown_key(self, write, document, trusted):
        """A good signature by a key that is not trusted is none."""
        other = PrivateKeySigner(generate_private_key("ed25519"))
        path = write(document, sig=signatures.sign(compose(document), signer=other))
        assert refused(path, trusted) == "policy-key-unknown"
        assert refused(path, {}) == "policy-key-unknown"

    def test_other_context(self, write, document, trusted, signer):
        """A signature over the bare file, without the format name in front, is refused."""
        data = compose(document)
        from onrecord.base.hashes import b64url

        line = f"{signer.kid} {b64url(signer.sign(data, alg='Ed25519'))}\n"
        assert refused(write(data, sig=line), trusted) == "policy-signature"

    def test_bad_line_of_a_known_key(self, write, document, trusted, signer):
        """A good line does not help beside a bad one of a known key."""
        line = signatures.sign(compose(document), signer=signer)
        bad = f"{signer.kid} {'A' * 86}\n"
        assert refused(write(document, sig=line + bad), trusted) == "policy-signature"
        assert refused(write(document, sig=bad + line), trusted) == "policy-signature"

    @pytest.mark.parametrize("text", ["", "\n", "x", "kid\n", "\u00e9", "  \n \n"])
    def test_not_a_signature_file(self, write, document, trusted, text):
        """A file without a good line refuses the bundle."""
        assert refused(write(document, sig=text), trusted) in ("policy-key-unknown", "policy-signature")

    def test_padded_signature(self, write, document, trusted, signer):
        """Only canonical base64url counts."""
        line = signatures.sign(compose(document), signer=signer).strip()
        assert refused(write(document, sig=line + "==\n"), trusted) == "policy-signature"

    def test_unknown_lines_are_passed_over(self, write, document, trusted, signer):
        """Lines of other keys do not matter, so keys can be changed one by one."""
        line = signatures.sign(compose(document), signer=signer)
        assert load_bundle(write(document, sig=f"0123456789abcdef AAAA\n\n{line}"), trusted).version == 3

    def test_symbolic_link(self, write, document, trusted, tmp_path):
        """A link is not followed on the way to the policy."""
        path = write(document)
        path.rename(tmp_path / "real")
        path.symlink_to(tmp_path / "real")
        assert refused(path, trusted) == "policy-unreadable"

    def test_not_a_file(self, tmp_path, trusted):
        """A pipe in place of the bundle is refused and does not hang."""
        os.mkfifo(tmp_path / "policy.bundle.json")
        assert refused(tmp_path / "policy.bundle.json", trusted) == "policy-unreadable"

    def test_wrong_kind_of_key(self):
        """Only Ed25519 keys sign policy."""
        with pytest.raises(OnrecordError) as e:
            signatures.sign(b"x", signer=PrivateKeySigner(generate_private_key("p256")))
        assert e.value.code == "key-alg"


@pytest.mark.req("CP-119")
class TestSuccession:
    """A version that was in force is never followed by an older one."""

    def test_older(self, write, document, trusted):
        """A lower version is refused."""
        assert refused(write(document), trusted, previous=LoadedVersion(4, "0" * 64)) == "policy-rollback"

    def test_equal_but_different(self, write, document, trusted):
        """The same version with other bytes is refused."""
        assert refused(write(document), trusted, previous=LoadedVersion(3, "0" * 64)) == "policy-rollback"

    def test_same(self, write, document, trusted):
        """The same bytes again are fine, so a restart works."""
        bundle = load_bundle(write(document), trusted)
        assert load_bundle(write(document), trusted, previous=bundle.loaded_version) == bundle

    def test_higher(self, write, document, trusted):
        """A higher version is accepted."""
        assert load_bundle(write(document), trusted, previous=LoadedVersion(2, "0" * 64)).version == 3


class TestStrictReading:
    """Every member is known and of its type; nothing is guessed."""

    def test_lint_errors_refuse(self, write, document, trusted):
        """A signed bundle with an error is refused, and the error names all of them."""
        document["callers"][0]["uid"] = 0
        with pytest.raises(PolicyLintError) as e:
            load_bundle(write(document), trusted)
        assert e.value.code == "policy-lint"
        assert [item.code for item in e.value.findings] == ["uid-refused"]
        assert e.value.to_json()["error"]["findings"][0]["pointer"] == "/callers/0/uid"

    def test_duplicate_member(self, write, document, trusted):
        """A member that occurs twice is refused, since readers disagree about it."""
        data = compose(document).replace(b'"version": 3', b'"version": 2, "version": 3')
        assert refused(write(data), trusted) == "policy-lint"

    @pytest.mark.parametrize(
        ("change", "pointer"),
        [
            (lambda d: d.update(extra=1), ""),
            (lambda d: d.pop("limits"), ""),
            (lambda d: d.update(format="onrecord-policy-2"), "/format"),
            (lambda d: d.update(version=0), "/version"),
            (lambda d: d.update(version=1.0), "/version"),
            (lambda d: d.update(version=True), "/version"),
            (lambda d: d.update(version="3"), "/version"),
            (lambda d: d.update(proofSeconds=31), "/proofSeconds"),
            (lambda d: d.update(proofSeconds=0), "/proofSeconds"),
            (lambda d: d.update(callers=[]), "/callers"),
            (lambda d: d["callers"][0].update(role="toolServer"), "/callers/0/role"),
            (lambda d: d["callers"][0].update(id="a b"), "/callers/0/id"),
            (lambda d: d["callers"][0].update(uid="2001"), "/callers/0/uid"),
            (lambda d: d["callers"][0].update(uid=-1), "/callers/0/uid"),
            (lambda d: d["callers"][0].update(uid=2**32 - 1), "/callers/0/uid"),
            (lambda d: d["callers"][0]["hints"].update(pid=[]), "/callers/0/hints"),
            (lambda d: d["servers"][0].update(id="Files"), "/servers/0/id"),
            (lambda d: d["servers"][0].update(id="a/b"), "/servers/0/id"),
            (lambda d: d["servers"][0].update(id="files\n"), "/servers/0/id"),
            (lambda d: d["servers"][0].update(enforce="optional"), "/servers/0/enforce"),
            (lambda d: d["servers"][0].pop("refuse_methods"), "/servers/0"),
            (lambda d: d["servers"][0]["tools"][0].update(impact=5), "/servers/0/tools/0/impact"),
            (lambda d: d["servers"][0]["tools"][0].update(op="look"), "/servers/0/tools/0/op"),
            (
                lambda d: d["servers"][0]["tools"][0]["arguments"]["path"].update(fact="file"),
                "/servers/0/tools/0/arguments",
            ),
            (
                lambda d: d["servers"][0]["tools"][0]["arguments"]["path"].update(fatc="path"),
                "/servers/0/tools/0/arguments",
            ),
            (lambda d: d["approvers"][0].update(channels=[]), "/approvers/0/channels"),
            (lambda d: d["controlRoles"][0].update(roles=["root"]), "/controlRoles/0/roles/0"),
            (lambda d: d["unknown"].update(effect="permit"), "/unknown/effect"),
            (lambda d: d["unknown"].update(approval=1), "/unknown"),
            (lambda d: d["limits"].update(issuesPerSecond=1), "/limits"),
            (lambda d: d["limits"].update(issueBurst=0), "/limits/issueBurst"),
            (lambda d: d["limits"].update(proofBytes=8192), "/limits/proofBytes"),
            (lambda d: d["entities"].append({"uid": {"type": "Agent", "id": "x"}}), "/entities/0/uid/type"),
            (
                lambda d: d["entities"].append({"uid": {"__entity": {"type": "Group", "id": "x"}}}),
                "/entities/0/uid",
            ),
            (
                lambda d: d["entities"].append({"uid": {"type": "Group", "id": "x"}, "attrs": {"a": 1}}),
                "/entities/0/attrs",
            ),
        ],
    )
    def test_malformed(self, document, change, pointer):
        """An unknown member, a missing one and a wrong type are refused with their place."""
        change(document)
        bundle, (finding,) = read_bundle(compose(document))
        assert bundle is None
        assert (finding.code, finding.pointer) == ("bundle-malformed", pointer)

    @given(st.data())
    def test_mutated_bytes(self, data):
        """Whatever the bytes are, reading ends with a bundle or with findings, never with a foreign exception."""
        start = data.draw(st.integers(0, len(EXAMPLE) - 1))
        new = data.draw(st.binary(max_size=4))
        bundle, findings = read_bundle(
            EXAMPLE[:start] + new + EXAMPLE[start + data.draw(st.integers(0, 4)) :]
        )
        assert (bundle is None) == bool(findings)

    @pytest.mark.parametrize("value", [[], None, 1, "x", {"format": []}, {"callers": {}}])
    def test_other_json(self, value):
        """JSON of another form is refused."""
        assert read_bundle(json.dumps(value).encode())[1][0].code == "bundle-malformed"


def test_shared_bundle_is_refused_unsigned(tmp_path, trusted):
    """The example bundle has no signature, so an authority refuses it, while reading and lint accept it."""
    path = shared_data("running/policy.bundle.json")
    assert refused(path, trusted) == "policy-unsigned"
    assert read_bundle(path.read_bytes())[1] == ()
