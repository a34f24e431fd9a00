# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The files of records: `maintenance.json`, which becomes `history/ID.json` when it is closed, and `state.json`.

They are JSON in ASCII, which also holds texts with surrogates: JSON of IMDS and file names may have these.
"""

from __future__ import annotations

import json
import os
import stat
from typing import NamedTuple, TypeVar

from azure_scheduled_events import durable_file
from hook_runner.maintenance.record import Maintenance, State
from hook_runner.maintenance.record_json import from_json, to_json
from hook_runner.permissions import trusted_owners

OPEN, STATE, HISTORY = "maintenance.json", "state.json", "history"
# a file of another version cannot be read
VERSION = 1

_Record = TypeVar("_Record", Maintenance, State)


class Stored(NamedTuple):
    """The content of the files.

    Attributes:
        maintenances: newest first, with the open one.
        state: the state beside them.
        unreadable: a sentence for each file or folder that cannot be read, by its name.
        open: the content of OPEN; a kill may leave one that is closed there.
    """

    maintenances: list[Maintenance]
    state: State
    unreadable: dict[str, str]
    open: Maintenance | None


def stored(directory: str, most: int | None = None) -> Stored:
    """Return the content of the files, also while a daemon writes them.

    ``most`` is the number of the newest maintenances to read, or None for all.

    Raises:
        FileNotFoundError: there is no such directory.
        OSError: it cannot be read.
    """
    os.listdir(directory)
    state, unreadable = State(), {}
    found: dict[str, Maintenance] = {}
    # in this order: a maintenance that is closed between two reads is found in the history
    names = [STATE, OPEN, HISTORY]
    for name in names:
        path = os.path.join(directory, name)
        try:
            if name == STATE:
                state = read(State, path)
            elif name == HISTORY:
                names += map(name_of, numbers(path)[::-1][:most])
            else:
                found[name] = read(Maintenance, path)
        except FileNotFoundError:
            pass  # there is none, or it was the oldest one
        except (OSError, ValueError) as error:
            unreadable[name] = f"{path} cannot be used: {error}"
    by_number = {each.number: each for each in found.values()}
    newest = [by_number[number] for number in sorted(by_number, reverse=True)]
    return Stored(newest[:most], state, unreadable, found.get(OPEN))


def name_of(number: int) -> str:
    """Return the name of a closed maintenance's file below the directory."""
    return f"{HISTORY}/{number}.json"


def numbers(path: str) -> list[int]:
    """Return the numbers of the maintenances in a folder, oldest first; none if it does not exist. Raises OSError."""
    try:
        stems = [name[: -len(".json")] for name in os.listdir(path) if name.endswith(".json")]
    except FileNotFoundError:
        return []
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def read(kind: type[_Record], path: str) -> _Record:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged, of another version, not a file, or does not belong to a trusted user.
    """
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is not a regular file")
    if found.st_uid not in trusted_owners():
        raise ValueError(f"it belongs to user {found.st_uid}")
    data = durable_file.read_json(path)
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    version = data.pop("version", None)
    if version != VERSION:
        raise ValueError(f"it has version {version!r}, and this program knows version {VERSION} only")
    return from_json(kind, data)


def write(path: str, record: Maintenance | State) -> None:
    """Replace a file as a whole; only this user may read it. Raises OSError."""
    durable_file.write(path, json.dumps({"version": VERSION, **to_json(record)}).encode("ascii"))
