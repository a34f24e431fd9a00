# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Connection strings of libpq, which other users can read in the list of processes."""

from __future__ import annotations

import re

from ready_hooks.core.arguments import text

_PASSWORD = re.compile(r"(?:^|[\s?&])(?:ssl)?password\s*=")
_PASSWORD_OF_URI = re.compile(r"^postgres(?:ql)?://[^/@]*:[^/@]*@")


def has_password(value: str) -> bool:
    """Return True if the connection string contains a password."""
    return bool(_PASSWORD.search(value) or _PASSWORD_OF_URI.search(value))


def is_uri(value: str) -> bool:
    """Return True if the connection string is a URI rather than keywords and values."""
    return value.startswith(("postgres://", "postgresql://"))


def conninfo(value: object) -> str:
    """Return a connection string without a password, such as "host=db2 user=postgres". Raises ValueError."""
    given = text(value)
    if not is_uri(given) and "=" not in given:
        raise ValueError(f'expected a connection string such as "host={given}", not {given!r}')
    if has_password(given):
        raise ValueError("expected a connection string without a password; use password_file or pgpass")
    if "\n" in given:
        raise ValueError("expected one line")
    return given


def replication(value: str) -> str:
    """Return the connection string that a standby makes of its primary_conninfo; passwords are looked up by it."""
    if is_uri(value):
        return value + ("&" if "?" in value else "?") + "dbname=replication&replication=true"
    return value + " dbname=replication replication=true"


def quoted(value: str) -> str:
    """Return the text as a literal of SQL."""
    return "'" + value.replace("'", "''") + "'" if "\\" not in value else "E'" + _escaped(value) + "'"


def identifier(name: str) -> str:
    """Return the name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")
