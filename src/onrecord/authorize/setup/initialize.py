"""`onrecord init`: a configuration with every key, keys, certificates, trust files and a starter policy.

Nothing that exists is overwritten, and `onrecord.toml` is written last, so a broken run never looks like a
finished one.

Source: running.md 3 (init), 4.5 and 9.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from cryptography.hazmat.primitives.asymmetric import ec

from onrecord.authorize.policy.signing import sign_source
from onrecord.authorize.policy.starter import write_source
from onrecord.authorize.setup.accounts import (
    People,
    identifier_of,
    initializing_uid,
    initializing_user,
    require_accounts,
    require_apart,
)
from onrecord.authorize.setup.certificates import make_ca, make_leaf, to_pem
from onrecord.authorize.setup.files import Owner, give, write_new
from onrecord.authorize.setup.places import Directory, check_directory, directories, make_directories
from onrecord.authorize.setup.template import configuration_text, draft_text
from onrecord.base.configuration import Configuration, user_gid, user_number
from onrecord.base.dates import utc_now
from onrecord.base.errors import ConfigurationError, UsageError, Where
from onrecord.base.keys import (
    ed25519_public_bytes,
    format_trusted_key,
    generate_key_file,
    write_private_key,
)

if TYPE_CHECKING:
    import datetime
    from collections.abc import Mapping

    from onrecord.authorize.setup.template import Value
    from onrecord.base.configuration_keys import Mode
    from onrecord.base.keys import Signer

CA_KEY_NAME: Final = "record-ca.pem"
"""File name of the CA's key below `keys`, and of its certificate below `trust/vcon`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialized:
    """What was made. `offline_keys` are the CA key and the policy key, which belong off the machine."""

    configuration: Configuration
    files: tuple[Path, ...]
    offline_keys: tuple[Path, ...]
    signed: bool


def plan(
    directory: Path | None,
    *,
    mode: Mode,
    values: Mapping[str, Value] | None = None,
    servers: Mapping[str, Mapping[str, Value]] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """Return the configuration that `initialize` would write, without touching the disk.

    With `directory` the file is `directory/onrecord.toml`, and config, state and runtime lie below it.

    Raises `ConfigurationError` as `Configuration.parse` does; "socket-path-long" hints at paths.runtime.
    """
    environ = os.environ if environ is None else environ
    chosen: dict[str, Value] = {}
    if directory is not None:
        root = Path(os.path.abspath(directory))
        chosen = {
            "paths.config": str(root / "config"),
            "paths.state": str(root / "state"),
            "paths.runtime": str(root / "run"),
        }
        file = root / "onrecord.toml"
    elif mode == "system":
        file = Path("/etc/onrecord/onrecord.toml")
    else:
        base = environ.get("XDG_CONFIG_HOME") or ""
        config = (
            Path(base) if os.path.isabs(base) else Path(environ.get("HOME") or "/nonexistent") / ".config"
        )
        file = config / "onrecord" / "onrecord.toml"
    chosen |= values or {}
    return Configuration.parse(draft_text(mode, chosen, servers or {}), file=file, environ=environ)


def initialize(
    directory: Path | None,
    *,
    mode: Mode,
    values: Mapping[str, Value] | None = None,
    servers: Mapping[str, Mapping[str, Value]] | None = None,
    starter: bool = True,
    people: People | None = None,
    host: str | None = None,
    now: datetime.datetime | None = None,
) -> Initialized:
    """Make a configuration and everything that it names.

    `values` sets keys by full name, for instance `{"principals.authority": 59000}`; system mode needs root and
    gives each file to its principal. `starter` writes the starter policy source; where `keys.policy` is set (as
    it is in user mode) it is signed too, so that `onrecord up` works at once. `people` is for system mode.

    Raises `ConfigurationError` with code "exists" if a file is there already, "user-unknown", "user-root" or
    "uids-shared" for people, "needs-root", as `check_directory` does for a directory that is there, or as `plan` does.
    """
    configuration = plan(directory, mode=mode, values=values, servers=servers)
    if mode == "system" and os.geteuid() != 0:
        raise UsageError(
            "system mode needs root: files belong to several users",
            code="needs-root",
            hint="run it as root, or use --mode user",
        )
    people = people or People()
    _refuse_existing(configuration, *(() if people.policy_key is None else (people.policy_key,)))
    require_accounts(configuration)
    require_apart(configuration, people)
    before = os.umask(0o077)
    try:
        maker = _Maker(
            configuration,
            people=people,
            host=host or socket.gethostname(),
            now=utc_now() if now is None else now,
        )
        return maker.run(starter=starter)
    finally:
        os.umask(before)


def ca_key_path(configuration: Configuration) -> Path:
    """Return where `init` puts the key of the CA."""
    return configuration.paths.config / "keys" / CA_KEY_NAME


def ca_certificate_path(configuration: Configuration) -> Path:
    """Return where `init` puts the certificate of the CA, an anchor of `onrecord verify`."""
    return configuration.trust.vcon / CA_KEY_NAME


def key_path(uri: str) -> Path:
    """Return the path of a `file:` key URI."""
    return Path(uri.removeprefix("file:"))


def _refuse_existing(configuration: Configuration, *more: Path) -> None:
    keys, trust = configuration.keys, configuration.trust
    uris = [keys.proof, keys.authority_journal, keys.recorder_journal, keys.record, keys.policy]
    for path in (
        configuration.file,
        *(key_path(uri) for uri in uris if uri is not None),
        keys.record_chain,
        ca_key_path(configuration),
        ca_certificate_path(configuration),
        trust.policy,
        trust.journal,
        configuration.policy.bundle,
        configuration.policy.source / "bundle.json",
        *more,
    ):
        if os.path.lexists(path):
            raise ConfigurationError(
                "the file exists already, and init never overwrites",
                code="exists",
                hint="use another directory, `onrecord init --renew` for a new certificate, or remove it yourself",
                where=Where(file=str(path)),
            )


class _Maker:
    """One run of `initialize`."""

    def __init__(
        self, configuration: Configuration, *, people: People, host: str, now: datetime.datetime
    ) -> None:
        self._configuration = configuration
        self._people = people
        self._host = host
        self._now = now
        self._files: list[Path] = []
        self._own = Owner.own()
        self._authority = self._principal(configuration.authority_uid)
        self._recorder = self._principal(configuration.recorder_uid)
        self._readable = 0o644 if configuration.mode == "system" else 0o600

    def _principal(self, uid: int) -> Owner:
        return Owner(uid, user_gid(uid)) if self._configuration.mode == "system" else self._own

    def run(self, *, starter: bool) -> Initialized:
        """Make everything; the configuration file comes last."""
        configuration = self._configuration
        file_mode = 0o755 if configuration.mode == "system" else 0o700
        home = Directory(
            path=configuration.file.parent, owner=self._own.uid, group=self._own.gid, mode=file_mode
        )
        places = directories(configuration)
        make_directories((home, *places))
        # Keys must not be put where somebody else can take them away, and `up` would refuse such a place later. In
        # user mode the directory of the file alone may be one for other things too, such as a project's.
        for directory in (home, *places) if configuration.mode == "system" else places:
            check_directory(directory)
        self._proof_and_journal_keys()
        ca_key = self._record_certificates()
        policy = self._policy_key()
        signed = False
        if starter:
            source = configuration.policy.source
            self._files.extend(self._write_source(source))
            wanted = configuration.mode == "user" or self._people.policy_key is not None
            if policy is not None and wanted:
                sign_source(source, bundle=configuration.policy.bundle, signer=policy)
                bundle = configuration.policy.bundle
                self._files += [bundle, bundle.with_name(bundle.name + ".sig")]
                signed = True
        text = configuration_text(configuration)
        self._write(configuration.file, text.encode(), mode=self._readable)
        policy_path = self._policy_path()
        return Initialized(
            configuration=configuration,
            files=tuple(self._files),
            offline_keys=(ca_key, *(() if policy_path is None else (policy_path,))),
            signed=signed,
        )

    def _write_source(self, source: Path) -> tuple[Path, ...]:
        configuration, people = self._configuration, self._people
        agent = None if people.agent is None else user_number(people.agent, file=configuration.file)
        uid, approver = initializing_uid(), initializing_user()
        if people.operator is not None:
            uid = user_number(people.operator, file=configuration.file)
            approver = identifier_of(str(people.operator), uid=uid)
        return write_source(source, mode=configuration.mode, uid=uid, approver=approver, agent_uid=agent)

    def _policy_path(self) -> Path | None:
        uri = self._configuration.keys.policy
        return self._people.policy_key or (None if uri is None else key_path(uri))

    def _write(self, path: Path, data: bytes, *, mode: int, owner: Owner | None = None) -> None:
        write_new(path, data, mode=mode, owner=owner)
        self._files.append(path)

    def _key(self, uri: str, owner: Owner, kind: Literal["ed25519", "p256"] = "ed25519") -> Signer:
        path = key_path(uri)
        signer = generate_key_file(path, kind)
        give(path, owner)
        self._files.append(path)
        return signer

    def _proof_and_journal_keys(self) -> None:
        keys = self._configuration.keys
        self._key(keys.proof, self._authority)
        lines = ["# Public keys of the two journals: kid base64url-public-key comment\n"]
        for uri, owner, name in (
            (keys.authority_journal, self._authority, "authority"),
            (keys.recorder_journal, self._recorder, "recorder"),
        ):
            public = ed25519_public_bytes(self._key(uri, owner))
            lines.append(format_trusted_key(public, f"{self._host}/{name}"))
        self._write(self._configuration.trust.journal, "".join(lines).encode(), mode=self._readable)

    def _record_certificates(self) -> Path:
        configuration = self._configuration
        ca_path = ca_key_path(configuration)
        ca_key = ec.generate_private_key(ec.SECP256R1())
        write_private_key(ca_path, ca_key)
        self._files.append(ca_path)
        ca = make_ca(ca_key, host=self._host, now=self._now)
        self._write(ca_certificate_path(configuration), to_pem(ca), mode=self._readable)
        record = self._key(configuration.keys.record, self._recorder, "p256").public_key
        assert isinstance(record, ec.EllipticCurvePublicKey)
        leaf = make_leaf(
            record, ca_key=ca_key, ca=ca, host=self._host, domain=configuration.recorder.domain, now=self._now
        )
        self._write(configuration.keys.record_chain, to_pem(leaf), mode=0o600, owner=self._recorder)
        return ca_path

    def _policy_key(self) -> Signer | None:
        path = self._policy_path()
        text = "# Who may sign the policy bundle: kid base64url-public-key comment\n"
        signer = None
        if path is not None:
            signer = self._key(f"file:{path}", self._own)
            text += format_trusted_key(ed25519_public_bytes(signer), f"{self._host} policy")
        self._write(self._configuration.trust.policy, text.encode(), mode=self._readable)
        return signer
