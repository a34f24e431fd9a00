# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` that finds preparations of ready hooks which no recover hook would undo."""

from __future__ import annotations

import glob
import json
import os
from typing import Iterator, Sequence

from hook_runner.hooks.discovery import Hook
from hook_runner.preflight.hooks import without_number
from hook_runner.preflight.report import ERROR, WARNING, Finding

# the ready hooks keep their records here; one with the option state_directory keeps them elsewhere
FOLDER = "/var/lib/azure-scheduled-events/ready-hooks"
# the records of these have nothing that recover undoes
REPORTING = ("log", "notify")
# bytes of a hook that are read; the list of its options may be long
_MOST_BYTES = 256 * 1024


def check_hook_records(folder: str, recover_hooks: Sequence[Hook]) -> Iterator[Finding]:
    """Report each record whose ready hook is not among the recover hooks: its preparation would stay.

    The folder of the records need not exist.
    """
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.json"))):
        name = os.path.basename(path)[: -len(".json")]
        try:
            with open(path, encoding="utf-8") as file:
                use = json.load(file)["use"]
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError) as error:
            yield Finding(WARNING, "hooks", path, f"the record of a preparation cannot be read: {error}")
            continue
        if use not in REPORTING and not any(_undoes(hook, name, use) for hook in recover_hooks):
            text = (
                f"the ready hook {use} has prepared this host, and no recover hook undoes that; put the entry {name}"
                " back until the event is over, or undo the preparation by hand, which removes this file"
            )
            yield Finding(ERROR, "hooks", path, text)


def _undoes(hook: Hook, name: str, use: str) -> bool:
    """Return True if the file has the name of the record, and calls the ready hook of its kind."""
    if without_number(hook.name) != name:
        return False
    try:
        with open(hook.path, "rb") as file:
            return f'/{use}" '.encode() in file.read(_MOST_BYTES)
    except OSError:
        return False
