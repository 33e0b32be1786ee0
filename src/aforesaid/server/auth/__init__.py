"""Authorisation: keys, browser sessions and credentials."""

from aforesaid.server.auth.credential import LINK, ROLES, Credential, Role
from aforesaid.server.auth.keys import (
    Key,
    Keys,
    KeyUse,
    Sessions,
    check_shared_keys,
    copy_command,
    keys_path,
    shared_keys,
)

__all__ = [
    "LINK",
    "ROLES",
    "Credential",
    "Key",
    "KeyUse",
    "Keys",
    "Role",
    "Sessions",
    "check_shared_keys",
    "copy_command",
    "keys_path",
    "shared_keys",
]
