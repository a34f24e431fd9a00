# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Exit codes and output of the command."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NamedTuple

from azure_scheduled_events.printable import printable

OK, PROBLEM, NOT_RUNNING, NO_SUCH_EVENT, NOT_PERMITTED, BAD_CONFIG = 0, 1, 3, 4, 77, 78


class Result(NamedTuple):
    """The result of a verb: the exit status, and the output as JSON values and as text."""

    status: int
    data: Any
    text: str


class CommandError(Exception):
    """The end of a verb without a result: the exit status, a sentence, and further members of the JSON output."""

    def __init__(self, status: int, text: str, **data: object) -> None:
        super().__init__(text)
        self.status, self.data = status, data


def print_result(result: Result, as_json: bool) -> int:
    """Print a result and return its status. Characters that the locale cannot encode are escaped.

    An output that cannot be written is a problem, unless its reader has ended.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"  # a caller may have closed it
    shown = json.dumps(result.data, indent=2) if as_json else result.text
    try:
        print(shown.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at its end
        if not isinstance(error, BrokenPipeError):
            print_error(f"the output cannot be written: {error.strerror}")
            return PROBLEM
    return result.status


def print_error(text: str) -> None:
    """Print a sentence to standard error."""
    print(f"azure-scheduled-events: {printable(text)}", file=sys.stderr)


def exit_with_error(status: int, as_json: bool, *sentences: str, **data: object) -> int:
    """Print why there is no result, as JSON also `data` with the text, or the error; return the status."""
    if as_json:
        text = "; ".join(sentences)
        print_result(Result(status, {**data, "text": text} if data else {"error": text}, ""), as_json)
    for sentence in sentences:
        print_error(sentence)
    return status
