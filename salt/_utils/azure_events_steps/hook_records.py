# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Finds preparations of ready hooks that no step of this minion would undo."""

from __future__ import annotations

import glob
import json
import os
from typing import Container, Iterator

# the ready hooks keep their records here; one with the option state_directory keeps them elsewhere
FOLDER = "/var/lib/azure-scheduled-events/ready-hooks"
# the records of these have nothing that recover undoes
_REPORTING = ("log", "notify")


def unclaimed(folder: str, recovering: Container[tuple[str, str]]) -> Iterator[str]:
    """Yield a sentence for each record in the folder without a step that undoes it.

    The folder need not exist. ``recovering`` has name and kind of the ready hooks that run in a recovery.
    """
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.json"))):
        name = os.path.basename(path)[: -len(".json")]
        try:
            with open(path, encoding="utf-8") as file:
                use = json.load(file)["use"]
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError) as error:
            yield f"{path}: the record of a preparation cannot be read: {error}"
            continue
        if use not in _REPORTING and (name, use) not in recovering:
            yield (
                f"{path}: the ready hook {use} has prepared this minion, and no step undoes that; put the step {name}"
                " back until the event is over, or undo the preparation by hand, which removes this file"
            )
