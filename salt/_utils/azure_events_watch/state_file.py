# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The state file of a watcher, by which it notices events that end during a restart.

Each beacon has one. It is replaced as a whole, and is valid for one endpoint and one VM only: the
state on a disk that was copied to another VM is not used. On Linux only the minion's user may read
it; on Windows it has the access control list of the minion's cachedir.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from typing import Any

from . import durable_file

_VERSION = 1
_PREFIX = "seen-"


def folder(cachedir: str) -> str:
    """Return the folder of the files below the minion's cachedir."""
    return os.path.join(cachedir, "azure_events")


@functools.lru_cache(maxsize=16)
def state_path(cachedir: str, beacon: str) -> str:
    """Return the path of the state file of the beacon of that name."""
    return os.path.join(folder(cachedir), "{}{}.json".format(_PREFIX, re.sub(r"[^\w-]", "_", beacon)))


def read(path: str) -> dict[str, Any] | None:
    """Return the content of a state file, or None if there is none.

    The function raises OSError if the file cannot be read now, and ValueError if it is not a state file.
    """
    data = load(path)
    if data is not None and not isinstance(data.get("entries"), list):
        raise ValueError(f"{path}: not a file of this version")
    return data


def load(path: str) -> dict[str, Any] | None:
    """Return the mapping in a JSON file of this version, or None if there is no file.

    Raises:
        OSError: the file cannot be read now.
        ValueError: it is not JSON, or is of another version.
    """
    try:
        data = durable_file.read_json(path)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict) or data.get("version") != _VERSION:
        raise ValueError(f"{path}: not a file of this version")
    return data


def read_all(cachedir: str) -> dict[str, dict[str, Any]]:
    """Return the state of each beacon by its name, without files that cannot be read."""
    found: dict[str, dict[str, Any]] = {}
    try:
        names = sorted(os.listdir(folder(cachedir)))
    except OSError:
        return found
    for name in names:
        if name.startswith(_PREFIX) and name.endswith(".json"):
            path = os.path.join(folder(cachedir), name)
            try:
                data = read(path)
            except (OSError, ValueError):
                continue
            if data is not None:
                found[str(data.get("beacon"))] = dict(data, path=path)
    return found


def ensure_directory(cachedir: str) -> str:
    """Create the folder if necessary and return it; on Linux make it private (0700)."""
    where = folder(cachedir)
    os.makedirs(where, mode=0o700, exist_ok=True)
    if sys.platform != "win32" and os.stat(where).st_mode & 0o077:
        os.chmod(where, 0o700)
    return where


def write(path: str, data: dict[str, Any]) -> None:
    """Replace a file below the cachedir by one that survives a crash of the machine, on Linux with mode 0600."""
    ensure_directory(os.path.dirname(os.path.dirname(path)))
    durable_file.write(path, json.dumps(dict(data, version=_VERSION)).encode("ascii"))
