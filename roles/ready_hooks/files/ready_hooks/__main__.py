# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Run a ready hook: python3 ready_hooks NAME VERB [OPTION...]."""

from __future__ import annotations

import os
import sys


def run() -> int:
    """Run the command line, and return the exit status."""
    # Python has put this folder on the path; imports need the one above it
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    from ready_hooks.cli import main

    return main(sys.argv[1:])


sys.exit(run())
