# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Verbs and options that were removed, each with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping

REMOVED_VERBS: Mapping[str, str] = {
    "compare": "this verb was removed; read the recording, which is text, beside docs/reference/scheduled-events.md",
}

# options of serving and of exec
REMOVED_OPTIONS: Mapping[str, str] = {
    f"--notify-{name}": f"this option was removed; set {key} below the key notify of the scenario"
    for name, key in {
        "url": "url",
        "schema": "schema",
        "token": "token",
        "header": "headers",
        "duplicates": "duplicates",
        "disorder": "disorder",
        "seed": "seed",
        "attempts": "attempts",
        "validate": "validate",
    }.items()
}
