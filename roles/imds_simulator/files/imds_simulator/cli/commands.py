# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The command line: serving, ``exec`` and the other verbs, and how the first argument chooses one of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

from .. import __version__
from ..suggestions import suggestion
from .control_client import ControlError
from .control_commands import VERBS, run_control_command
from .options import (
    DEFAULT_CONTROL,
    DEFAULT_LISTEN,
    FREE_PORT,
    IMDS_OPTIONS,
    PRINTING_OPTIONS,
    REMOVED_IMDS_OPTIONS,
    serving_options,
)
from .output import fail, program_name
from .parsing import (
    CONTROL,
    ENDPOINT,
    ENDPOINTS,
    PREFIX,
    Command,
    parse,
    variables,
    warn_of_unknown_variables,
)

# verb -> its line in --help, and the module with its function ``main``, which is imported when it is used: verbs need
# different libraries
_MODULES: Mapping[str, tuple[str, str]] = {
    "exec": ("run a command while a simulator serves, and return its exit code", ".exec_command"),
    "join": ("run a further command at 169.254.169.254 of a running simulator", ".join_command"),
    "log": ("show the log of events, approvals, faults and requests", ".log_command"),
    "record": ("record the answers of IMDS on a VM of Azure", "..recording.record_command"),
    "replay": ("serve a recording as the VM saw it", "..recording.replay_command"),
    "report": ("write the run of a running simulator as an HTML file", ".report_command"),
    "wait": ("wait until an event is approved, has started, or is gone", ".wait_command"),
}
_NAME = program_name()
_HELP = {name: row[0] for name, row in _MODULES.items()} | {name: each.command.help for name, each in VERBS.items()}
_OVERVIEW = "\n".join(f"  {name:13}{line}" for name, line in _HELP.items())
_SERVES = f"""
A simulator of Azure Scheduled Events, the part of IMDS that announces maintenance to a VM. It needs no Azure.

\b
Serve two VMs, and announce a live migration of both after ten seconds:
  {_NAME} --scenario live-migration
Run a program that uses http://169.254.169.254 while a user restarts its VM:
  {_NAME} exec --imds-address --scenario user-reboot -- PROGRAM
Announce an event in a running simulator:
  {_NAME} schedule --type Redeploy --resources vm1 --notice 5m
"""
_VERBS = f"""
Without a verb the simulator serves in the foreground until SIGTERM, SIGINT or SIGHUP. The verbs have options of their
own; VERB --help lists them:

\b
{_OVERVIEW}

Each long option is also an environment variable: --speed is {PREFIX}_SPEED. An argument has precedence. Several values
of a repeatable option are separated by line ends, or by commas before the next NAME=.
"""
_EXECUTES = f"""
Run a command while a simulator serves, and return its exit code.

\b
Run the tests of a program that reads the address of IMDS from a variable:
  {_NAME} exec --scenario live-migration --speed 60 -- pytest
Run a program that uses http://169.254.169.254:
  {_NAME} exec --imds-address --scenario user-reboot -- PROGRAM
Write the run as an HTML file with a time line:
  {_NAME} exec --report run.html --scenario user-reboot -- PROGRAM

The command has the URLs of the simulator in {ENDPOINT} (the first VM), {ENDPOINTS} (a JSON object with those of all
VMs) and {CONTROL}.
"""

SERVE = Command(
    "serve",
    _SERVES,
    [*serving_options(DEFAULT_LISTEN, DEFAULT_CONTROL), *PRINTING_OPTIONS],
    prefix=PREFIX,
    remedies=dict.fromkeys(
        (str(each.opts[0]) for each in IMDS_OPTIONS),
        "there is no such option without exec; write: exec [OPTIONS] -- COMMAND",
    ),
    epilog=_VERBS,
    options_metavar="[VERB] [OPTIONS]",
)
# free ports: two runs side by side must not meet
EXEC = Command(
    "exec",
    _EXECUTES,
    [*serving_options(FREE_PORT, FREE_PORT), *IMDS_OPTIONS],
    prefix=PREFIX,
    remedies=REMOVED_IMDS_OPTIONS,
    options_metavar="[OPTIONS] -- COMMAND ...",
)


def dispatch(argv: Sequence[str]) -> int:
    """Run the command that ``argv`` names and return the exit code.

    A verb ends with the code 1 when a running simulator refuses its request, or cannot be reached.
    """
    verbs = (*_MODULES, *VERBS)
    of_verbs = [f"{PREFIX}_{verb.upper()}_" for verb in verbs if verb != "exec"]
    known = {*variables(SERVE), *variables(EXEC), ENDPOINT, ENDPOINTS}
    warn_of_unknown_variables(PREFIX, known, of_verbs)
    if not argv or argv[0].startswith("-"):
        return _serve_or_print(argv)
    verb, *arguments = argv
    try:
        if verb in VERBS:
            return run_control_command(VERBS[verb], arguments)
        if verb in _MODULES:
            return int(importlib.import_module(_MODULES[verb][1], __package__).main(arguments))
    except ControlError as error:
        fail(error.error, 1)
    except KeyboardInterrupt:
        return 130
    hint = suggestion(verb, verbs)
    fail(f"there is no verb {verb}{hint}; --help lists the verbs, --scenario FILE serves a scenario")


def _serve_or_print(arguments: Sequence[str]) -> int:
    options = parse(SERVE, arguments)
    if options.version:
        print(program_name(), __version__)
        return 0
    # each needs fewer libraries than serving
    from .print_commands import print_chosen

    code = print_chosen(options)
    if code is not None:
        return code
    from .serve_command import serve

    return serve(options)
