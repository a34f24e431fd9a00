# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``report`` and the option ``--report``: write a run as an HTML file."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..control.page.report import report
from .control_client import get_state
from .options import control_options
from .output import fail, print_problem
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


def write_report(file: Path, run: Mapping[str, Any]) -> int:
    """Write the report of ``run``, which has ended, and print its path on stderr.

    Return the exit code, 2 if the file cannot be written.
    """
    text = report(run)
    try:
        write_whole(file, text)
    except OSError as error:
        print_problem(f"--report: cannot write {file}: {error.strerror}; {_keep(text)}")
        return 2
    # one write, because the thread that writes the log may write between two
    print(f"report {file}\n", end="", file=sys.stderr, flush=True)
    return 0


def _keep(text: str) -> str:
    """Write the report to a temporary file, because the run is over, and return where it is."""
    name = ""
    try:
        descriptor, name = tempfile.mkstemp(prefix="imds-simulator-report-", suffix=".html")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        return f"no temporary file either: {error.strerror}; the report is lost"
    return f"the report is in {name}"


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path``; an existing file stays as it is until the new one is complete.

    Raises:
        OSError: the folder or the disk does not take the file.
    """
    # a symbolic link stays, and what it names is replaced
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # a pipe or a terminal, such as /dev/stdout
        target.write_text(text, encoding="utf-8")
        return
    temporary = _temporary_file(target)
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def check_writable(path: Path) -> None:
    """Check that ``write_whole`` can probably write ``path``, without a change of the file.

    Raises:
        OSError: its folder does not exist or takes no file, or it is a folder itself.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if target.is_file() or not target.exists():
        # on Windows, tempfile repeats for ever in a folder that takes no file
        temporary = _temporary_file(target)
        temporary.touch(exist_ok=False)
        temporary.unlink()


def _temporary_file(target: Path) -> Path:
    return target.with_name(f".report-{secrets.token_hex(8)}.tmp")
