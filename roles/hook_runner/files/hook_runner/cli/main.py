# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The command azure-scheduled-events.

Exit status: 0 success; 1 a problem, which the output names; 2 wrong usage; 3 the service does not
run; 4 no such event or hook, or several events that the id may mean; 77 not permitted; 78 the
configuration is not usable.
"""

from __future__ import annotations

import sys
from typing import Sequence

from hook_runner.cli.output import BAD_CONFIG, NOT_PERMITTED, OK, PROBLEM, CommandError, exit_with_error, print_result
from hook_runner.cli.verbs import parser
from hook_runner.config.settings import ConfigError
from hook_runner.service.run_directory import AlreadyRunning


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(words)
    as_json = getattr(options, "json", False)
    try:
        result = options.verb(options)
        return OK if result is None else print_result(result, as_json)
    except CommandError as error:
        return exit_with_error(error.status, as_json, str(error), **error.data)
    except ConfigError as error:
        return exit_with_error(BAD_CONFIG, as_json, *error.problems)
    except PermissionError as error:
        remedy = "this needs root, or the group of control_group, or for status and history that of status_group"
        subject = error.filename or " ".join(words[:1])
        return exit_with_error(NOT_PERMITTED, as_json, f"{subject}: {error.strerror or error}; {remedy}")
    except (AlreadyRunning, OSError) as error:
        return exit_with_error(PROBLEM, as_json, str(error))
