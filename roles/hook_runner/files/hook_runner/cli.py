# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The command azure-scheduled-events.

Exit status: 0 good; 1 something is wrong that the output names; 2 wrong usage; 3 the service does not run;
4 no such event or hook, or several that the id may mean; 77 not permitted; 78 the configuration cannot be used.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from azure_scheduled_events.named_tuple import NamedTuple
from azure_scheduled_events.yaml_lines import Reader, locate

from hook_runner.configuration import DEFAULT_PATH, ConfigError, Settings, load_settings
from hook_runner.instance import AlreadyRunning
from hook_runner.logs import harmless

if TYPE_CHECKING:
    import argparse

GOOD, WRONG, NOT_RUNNING, NO_SUCH_EVENT, NOT_PERMITTED, BAD_CONFIG = 0, 1, 3, 4, 77, 78


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command; returns its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    options: Any = options_of_run(words) or other_options(words)
    as_json = getattr(options, "json", False)
    try:
        status: int = run_service(options) if isinstance(options, RunOptions) else options.verb(options)
        sys.stdout.flush()
        return status
    except ConfigError as error:
        return fail(BAD_CONFIG, str(error), as_json)
    except PermissionError as error:
        remedy = "this needs root, or the group of control_group, or for status and history that of status_group"
        return fail(NOT_PERMITTED, "%s; %s" % (error, remedy), as_json)
    except BrokenPipeError:
        # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return GOOD
    except (AlreadyRunning, OSError) as error:
        return fail(WRONG, str(error), as_json)


class RunOptions(NamedTuple):
    """What follows `run`."""

    config: str = DEFAULT_PATH
    dry_run: bool = False


def options_of_run(words: Sequence[str]) -> Optional[RunOptions]:
    """Read `run [--config FILE] [--dry-run]`; None for anything else.

    argparse and the other verbs would stay in the daemon's memory, 0.5 MiB for a line that is read once.
    """
    if not words or words[0] != "run":
        return None
    options, left = RunOptions(), list(words[1:])
    while left:
        word = left.pop(0)
        if word == "--dry-run":
            options = options._replace(dry_run=True)
        elif word == "--config" and left:
            options = options._replace(config=left.pop(0))
        else:
            return None  # argparse says what is wrong with it, or prints the help
    return options


def other_options(words: Sequence[str]) -> argparse.Namespace:
    """Read any other line; argparse ends the process where it is wrong."""
    from hook_runner.verbs import parser

    return parser().parse_args(words)


def complain(status: int, text: str) -> int:
    print("azure-scheduled-events: %s" % harmless(text), file=sys.stderr)
    return status


def fail(status: int, text: str, as_json: bool, **data: object) -> int:
    """Say why there is no answer; programs get an object all the same: `data` with the text, or the error."""
    if as_json:
        show({**data, "text": text} if data else {"error": text}, "", as_json)
        sys.stdout.flush()
    return complain(status, text)


def show(data: Any, text: str, as_json: bool) -> None:
    """Print what a verb found; names from IMDS may hold what a terminal or an old locale cannot take."""
    shown = json.dumps(data, indent=2) if as_json else text
    encoding = sys.stdout.encoding or "ascii"
    print(shown.encode(encoding, "backslashreplace").decode(encoding))


def settings_of(path: str, owners: Optional[frozenset[int]] = None, read: Reader = locate) -> Settings:
    """The settings of a file; the defaults where the usual one is not there. owners, read: as `load_settings` takes them."""
    if path != DEFAULT_PATH and not os.path.lexists(path):
        raise ConfigError("there is no configuration %s" % path)
    return load_settings(path, owners, read)


def run_service(options: Union[RunOptions, argparse.Namespace]) -> int:
    from hook_runner.apart import locate_apart
    from hook_runner.in_force import InForce
    from hook_runner.logs import Log
    from hook_runner.service import Service
    from hook_runner.trust import trusted_owners

    owners = trusted_owners()
    in_force = InForce(options.config, lambda read: settings_of(options.config, owners, read), locate_apart)
    Service(in_force, owners, Log(), options.dry_run).run()
    return GOOD
