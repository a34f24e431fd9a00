# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The name of the running program."""

from __future__ import annotations

import os
import sys

from ..printable_text import printable

_CONSOLE_SCRIPT = "imds-simulator"


def program_name() -> str:
    """Return ``imds-simulator`` if the program was started as the console script, else ``imds_simulator``."""
    return _CONSOLE_SCRIPT if os.path.basename(sys.argv[0]) == _CONSOLE_SCRIPT else "imds_simulator"


def print_problem(text: str) -> None:
    """Print ``text``, which may have names of a scenario, as a line on stderr after the name of the program."""
    print(f"{program_name()}: {printable(text)}", file=sys.stderr, flush=True)
