# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Exit codes and output of the command."""

from __future__ import annotations

import json
import sys
from typing import Any

from azure_scheduled_events.printable import printable

OK, PROBLEM, NOT_RUNNING, NO_SUCH_EVENT, NOT_PERMITTED, BAD_CONFIG = 0, 1, 3, 4, 77, 78


def print_error(status: int, text: str) -> int:
    """Print an error; return the status."""
    print(f"azure-scheduled-events: {printable(text)}", file=sys.stderr)
    return status


def exit_with_error(status: int, text: str, as_json: bool, **data: object) -> int:
    """Print why there is no answer, as JSON also `data` with the text, or the error; return the status."""
    if as_json:
        print_result({**data, "text": text} if data else {"error": text}, "", as_json)
        sys.stdout.flush()
    return print_error(status, text)


def print_result(data: Any, text: str, as_json: bool) -> None:
    """Print a result. Characters that the locale cannot encode are escaped."""
    encoding = sys.stdout.encoding or "ascii"
    shown = json.dumps(data, indent=2) if as_json else text
    print(shown.encode(encoding, "backslashreplace").decode(encoding))
