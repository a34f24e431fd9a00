# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Entry point for Salt's loader: the folders of the modules in the installed package."""

from __future__ import annotations

from pathlib import Path


def directories() -> dict[str, list[str]]:
    """Return the folder for each kind of module. Salt calls it through the entry point group ``salt.loader``."""
    here = Path(__file__).resolve().parent
    folders = {
        "beacons": "_beacons",
        "engines": "_engines",
        "grains": "_grains",
        "modules": "_modules",
        "runners": "_runners",
        "states": "_states",
    }
    return {kind: [str(here / folder)] for kind, folder in folders.items()}
