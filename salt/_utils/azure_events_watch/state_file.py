# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What a watcher has seen, on disk, so that after a restart it can tell what is over. Standard library only.

One file for each beacon. It is replaced as a whole or not at all, and belongs to one endpoint and
one VM: a disk that was copied to another VM brings nothing along.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from typing import Any

_VERSION = 1
_PREFIX = "seen-"


def folder(cachedir: str) -> str:
    """Where the files are, below the minion's own cache."""
    return os.path.join(cachedir, "azure_events")


@functools.lru_cache(maxsize=16)
def state_path(cachedir: str, beacon: str) -> str:
    """The file of the beacon of that name."""
    return os.path.join(folder(cachedir), "{}{}.json".format(_PREFIX, re.sub(r"[^\w-]", "_", beacon)))


def read(path: str) -> dict[str, Any] | None:
    """What was written, or None where there is no file. Raises ValueError for what cannot be read or is something else."""
    data = load(path)
    if data is not None and not isinstance(data.get("entries"), list):
        raise ValueError(f"{path} is not what this version writes")
    return data


def load(path: str) -> dict[str, Any] | None:
    """The mapping in a file of this version, or None where there is no file. Raises ValueError."""
    try:
        with open(path, encoding="ascii") as file:
            data = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(data, dict) or data.get("version") != _VERSION:
        raise ValueError(f"{path} is not what this version writes")
    return data


def read_all(cachedir: str) -> dict[str, dict[str, Any]]:
    """What every beacon has seen, by its name. Files that cannot be read are left out."""
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
            except ValueError:
                continue
            if data is not None:
                found[str(data.get("beacon"))] = dict(data, path=path)
    return found


def ensure_directory(cachedir: str) -> str:
    """The folder, which is there now and private, whoever made it first. Raises OSError."""
    where = folder(cachedir)
    os.makedirs(where, mode=0o700, exist_ok=True)
    if os.stat(where).st_mode & 0o077:
        os.chmod(where, 0o700)
    return where


def write(path: str, data: dict[str, Any]) -> None:
    """Replace the file; it survives a crash of the machine. Raises OSError."""
    ensure_directory(os.path.dirname(os.path.dirname(path)))
    replace(path, data)


def replace(path: str, data: dict[str, Any]) -> None:
    """Replace the file by one that only its owner can read; it survives a crash of the machine. Raises OSError."""
    draft = path + ".draft"
    # a draft that a killed process has left may have another mode
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        json.dump(dict(data, version=_VERSION), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
