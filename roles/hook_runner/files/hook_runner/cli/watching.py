# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Shows an output again and again, until Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from typing import Any, Callable

from hook_runner.cli.output import encodable

# to the upper left corner; from there to the end of the line, and of the screen
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


def repeat(
    read: Callable[[], tuple[int, dict[str, Any], str]],
    interval: float,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Show an output until SIGINT; return its latest exit status.

    On a terminal each output replaces the one before. Elsewhere they follow each other, with a time
    above each. JSON objects follow each other, one in each line.

    Args:
        read: returns an exit status, data and text.
        interval: seconds between two outputs.
        as_json: whether to show the data.
        sleep: sleeps for some seconds.
    """
    status = 0
    # a shell that runs the command in the background has set SIGINT to be ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            status, data, text = read()
            sys.stdout.write(json.dumps(data) + "\n" if as_json else _framed(encodable(text), sys.stdout.isatty()))
            sys.stdout.flush()
            sleep(interval)
    return status


def _framed(text: str, is_terminal: bool) -> str:
    title = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    if not is_terminal:
        return f"{title}\n{text}\n\n"
    lines = [title, "", *text.splitlines()]
    return _HOME + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_BELOW
