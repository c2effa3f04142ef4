"""Checks of what is on the disk: ownership, keys, certificates, policy, tool servers.

Source: running.md 2, 9; call-proof.md 1.5, 4.1, 8.
"""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from onrecord.authorize.doctor.results import Check
from onrecord.authorize.guard.environment import read_env_file
from onrecord.authorize.ownership import is_hidden, owned_objects, problem_of
from onrecord.authorize.policy import load_bundle
from onrecord.authorize.policy.bases import check_bases
from onrecord.authorize.setup import ca_certificate_path, ca_key_path
from onrecord.authorize.setup.renewal import read_certificates
from onrecord.base.errors import KeyAccessError, OnrecordError, Where
from onrecord.base.files import read_regular
from onrecord.base.key_uris import MAX_KEY_FILE_BYTES
from onrecord.base.keys import PublicKey, key_id, read_trusted_keys

if TYPE_CHECKING:
    from onrecord.authorize.policy import Bundle
    from onrecord.base.configuration import Configuration

WARN_DAYS: Final = 30
"""The end of a certificate is announced this many days before (running.md 9)."""


def check_ownership(configuration: Configuration) -> Iterator[Check]:
    """Say of every directory and file whether its owner and mode are right."""
    try:
        objects = tuple(owned_objects(configuration))
    except OnrecordError as error:
        yield Check.failed("ownership", error)
        return
    wrong = hidden = 0
    for owned in objects:
        problem = problem_of(owned)
        if (
            problem is not None
            and owned.what == "directory"
            and isinstance(problem.__cause__, FileNotFoundError)
        ):
            wrong += 1
            detail = f"{owned.path} is not there yet"
            yield Check("ownership", "warning", detail, "onrecord up makes it when it starts")
        elif problem is not None:
            wrong += 1
            yield Check.failed("ownership", problem)
        elif is_hidden(owned):
            hidden += 1
    if not wrong:
        unseen = f", {hidden} more cannot be seen by uid {os.geteuid()}" if hidden else ""
        yield Check(
            "ownership", "ok", f"{len(objects) - hidden} directories and files are as they should be{unseen}"
        )


def check_keys(configuration: Configuration) -> Iterator[Check]:
    """Say of every key whether it can be read by its owner, and whether each purpose has its own."""
    keys = configuration.keys
    purposes = {
        "proof": keys.proof,
        "authority_journal": keys.authority_journal,
        "recorder_journal": keys.recorder_journal,
        "record": keys.record,
        "policy": keys.policy,
        "record CA": f"file:{ca_key_path(configuration)}",
    }
    seen: dict[str, str] = {}
    unseen = []
    for purpose, uri in purposes.items():
        if uri is None:
            continue
        path = Path(uri.removeprefix("file:"))
        away = purpose in {"policy", "record CA"}
        try:
            kid = key_id(_public_key(path, purpose))
        except KeyAccessError as error:
            if error.code == "key-hidden":
                unseen.append(purpose)
            elif not (away and error.code == "key-missing"):
                yield Check.failed("keys", error)
            continue
        other = seen.setdefault(kid, purpose)
        if other != purpose:
            yield Check(
                "distinct-keys",
                "failed",
                f"the keys for {other} and {purpose} are one key",
                "make one key for each purpose",
            )
        elif away:
            yield Check(
                "offline-keys",
                "warning",
                f"the {purpose} key is on this machine: {path}",
                "keep it elsewhere; no daemon needs it",
            )
    if seen:
        yield Check("keys", "ok", f"readable, one per purpose: {', '.join(seen.values())}")
    if unseen:
        detail = f"uid {os.geteuid()} cannot read: {', '.join(unseen)}"
        yield Check("keys", "ok", detail)


def _public_key(path: Path, purpose: str) -> PublicKey:
    """Return the public half of a key file, for whoever may read it; its ownership is checked elsewhere."""
    where = Where(file=str(path))
    try:
        data = read_regular(path, limit_bytes=MAX_KEY_FILE_BYTES)
    except PermissionError:
        raise KeyAccessError("not readable for this uid", code="key-hidden", where=where) from None
    except OSError as error:
        raise KeyAccessError(
            f"the {purpose} key cannot be read ({error.strerror})", code="key-missing", where=where
        ) from error
    try:
        return serialization.load_pem_private_key(data, password=None).public_key()  # type: ignore[return-value]
    except (ValueError, TypeError):
        raise KeyAccessError(
            f"the {purpose} key is not a PEM key", code="key-malformed", where=where
        ) from None


def check_certificate(configuration: Configuration, *, now: datetime.datetime) -> Iterator[Check]:
    """Say whether the record certificate is valid, for the record key, and below the anchor of this machine."""
    chain_path = configuration.keys.record_chain
    try:
        leaf = read_certificates(chain_path)[0]
    except OnrecordError as error:
        if isinstance(error.__cause__, PermissionError):
            yield Check("certificate", "ok", f"uid {os.geteuid()} cannot read {chain_path}")
        else:
            yield Check.failed("certificate", error)
        return
    days = (leaf.not_valid_after_utc - now).days
    renewal = "onrecord init --renew"
    if not leaf.not_valid_before_utc <= now <= leaf.not_valid_after_utc:
        yield Check(
            "certificate", "failed", f"the record certificate is not valid now: {chain_path}", renewal
        )
    elif days < WARN_DAYS:
        yield Check("certificate", "warning", f"the record certificate ends in {days} days", renewal)
    else:
        yield Check("certificate", "ok", f"the record certificate is valid for {days} days")
    yield from _check_chain(configuration, leaf)


def _check_chain(configuration: Configuration, leaf: x509.Certificate) -> Iterator[Check]:
    anchor = ca_certificate_path(configuration)
    try:
        record = _public_key(Path(configuration.keys.record.removeprefix("file:")), "record")
        if record != leaf.public_key():
            yield Check(
                "certificate", "failed", "the record certificate is for another key", "onrecord init --renew"
            )
    except KeyAccessError:
        # said by check_keys
        pass
    try:
        leaf.verify_directly_issued_by(read_certificates(anchor)[0])
    except (InvalidSignature, ValueError, TypeError):
        yield Check(
            "anchor",
            "warning",
            f"the record certificate does not come from {anchor}",
            "put its root into trust.vcon, or onrecord verify needs --anchor",
        )
    except OnrecordError:
        yield Check(
            "anchor", "warning", f"no anchor of this machine at {anchor}", "onrecord verify needs --anchor"
        )


def check_policy(configuration: Configuration) -> tuple[Bundle | None, tuple[Check, ...]]:
    """Load the signed bundle as the authority does, without its rollback state."""
    try:
        bundle = load_bundle(
            configuration.policy.bundle,
            read_trusted_keys(configuration.trust.policy),
            mode=configuration.mode,
        )
    except OnrecordError as error:
        return None, (Check.failed("policy", error),)
    detail = f"version {bundle.version} of {bundle.created}, signed, {len(bundle.servers)} servers"
    return bundle, (Check("policy", "ok", f"{detail}, sha256 {bundle.sha256[:16]}"),)


def check_servers(configuration: Configuration, bundle: Bundle | None) -> Iterator[Check]:
    """Say of every tool server whether its program is there and whether the policy knows it."""
    for server in configuration.servers.values():
        if shutil.which(server.command) is None:
            yield Check(
                "server",
                "failed",
                f"{server.id}: {server.command} is not an executable program",
                f"correct servers.{server.id}.command",
            )
        elif bundle is not None and server.id not in bundle.servers:
            yield Check(
                "server",
                "warning",
                f"{server.id} is in no policy: all its calls are denied",
                f"onrecord policy bind {server.id}, then onrecord policy sign",
            )
        elif (
            bundle is not None
            and configuration.mode == "system"
            and bundle.servers[server.id].uid != _uid_of(configuration, server.id)
        ):
            yield Check(
                "server", "failed", f"{server.id} has another uid in the policy", "make both say the same uid"
            )
        else:
            yield Check("server", "ok", f"{server.id}: {server.command}")
    if not configuration.servers:
        yield Check("server", "warning", "no tool server is configured", "add a table [servers.ID]")


def check_relative_paths(configuration: Configuration, bundle: Bundle | None) -> Iterator[Check]:
    """Say of every tool server whether the policy counts relative paths from where the server runs."""
    for found in () if bundle is None else check_bases(bundle, configuration):
        hint = str((found.data or {})["hint"])
        if found.severity == "warning":
            yield Check(found.code, "warning", found.message, hint)
        else:
            yield Check(found.code, "ok", f"{found.message}; {hint}")


def check_secret_names(configuration: Configuration) -> Iterator[Check]:
    """Say which names of an environment file this uid can read, and an agent could not be asked about."""
    for server in configuration.servers.values():
        if server.env_file is None or configuration.mode == "user":
            continue
        try:
            names = read_env_file(server.env_file, owner=configuration.server_uid(server.id)).keys()
        except OnrecordError:
            continue  # not for this uid, or said by check_ownership
        unsaid = sorted(names - set(server.secret_names or ()))
        if unsaid:
            wanted = ", ".join(f'"{name}"' for name in sorted(names))
            yield Check(
                "secret-names",
                "warning",
                f"{server.id}: the agent's doctor cannot look for {', '.join(unsaid)}",
                f"servers.{server.id}.secret_names = [{wanted}]; leave out what is no secret",
            )


def _uid_of(configuration: Configuration, server: str) -> int | None:
    try:
        return configuration.server_uid(server)
    except OnrecordError:
        return None
