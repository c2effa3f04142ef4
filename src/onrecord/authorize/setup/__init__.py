"""Making an installation: `onrecord init`, its renewal, and the table of directories."""

from onrecord.authorize.setup.accounts import People
from onrecord.authorize.setup.initialize import (
    Initialized,
    ca_certificate_path,
    ca_key_path,
    initialize,
    plan,
)
from onrecord.authorize.setup.places import (
    Directory,
    check_directory,
    directories,
    make_directories,
    runtime_directories,
)
from onrecord.authorize.setup.renewal import Renewed, renew

__all__ = [
    "Directory",
    "Initialized",
    "People",
    "Renewed",
    "ca_certificate_path",
    "ca_key_path",
    "check_directory",
    "directories",
    "initialize",
    "make_directories",
    "plan",
    "renew",
    "runtime_directories",
]
