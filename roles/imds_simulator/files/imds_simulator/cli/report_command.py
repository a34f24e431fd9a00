# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``report``: writes the run of a running simulator as an HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..report.atomic_file import write_whole
from ..report.page import report
from .control_client import get_state
from .options import control_options
from .output import fail
from .parsing import Command, option, parse

DEFAULT_OUTPUT = "imds-simulator-report.html"
_COMMAND = Command(
    "report",
    "Write the run of a running simulator as one HTML file with a time line, and print its path.",
    [
        *control_options(),
        option("output", "FILE", f"the file to write (default {DEFAULT_OUTPUT})", default=DEFAULT_OUTPUT),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code, 2 when the file cannot be written."""
    options = parse(_COMMAND, arguments)
    text = report(get_state(options, "?after_line=0"))
    try:
        write_whole(Path(options.output), text)
    except OSError as error:
        fail(f"--output: cannot write {options.output}: {error.strerror}; name another file")
    print(options.output)
    return 0
