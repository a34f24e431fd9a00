# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Measure how long the beacons block one tick of a minion's loop. Runs in Salt's Python.

    python salt_tick.py MINION_CONFIG CALLS

Prints the seconds of each call as JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import time

import salt.beacons
import salt.config
import salt.loader


def main() -> None:
    # as a minion logs by default
    logging.getLogger().setLevel(logging.WARNING)
    opts = salt.config.minion_config(sys.argv[1])
    opts["grains"] = salt.loader.grains(opts)
    functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts))
    beacons = salt.beacons.Beacon(opts, functions)
    taken = []
    for _call in range(int(sys.argv[2])):
        began = time.perf_counter()
        beacons.process(opts["beacons"], opts["grains"])
        taken.append(time.perf_counter() - began)
        time.sleep(max(0.0, 1.0 - taken[-1]))
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
