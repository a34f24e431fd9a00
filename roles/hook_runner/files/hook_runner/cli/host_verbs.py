# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verbs that need no daemon, except for the history of a user who may not read the records.

Each returns its result, or raises CommandError.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from hook_runner import record_files
from hook_runner.cli.daemon_verbs import ask
from hook_runner.cli.output import NO_SUCH_EVENT, OK, PROBLEM, CommandError, Result, print_error
from hook_runner.config import listing
from hook_runner.config.settings import load_settings
from hook_runner.hooks.discovery import WHOLE_DIRECTORY, discover_hooks
from hook_runner.log import LogHandler, log_to
from hook_runner.preflight import trial
from hook_runner.preflight.check import run_checks
from hook_runner.records import PREPARE
from hook_runner.reporting import history, history_text
from hook_runner.service.configuration_source import Configuration
from hook_runner.service.daemon import assemble


def run_service(options: argparse.Namespace) -> None:
    """Run the daemon until a signal ends it."""
    log_to(LogHandler())
    assemble(Configuration(options.config, options.dry_run)).run()


def show_history(options: argparse.Namespace) -> Result:
    """Run the verb `history`."""
    most = None if options.all else options.limit
    found = _stored(options, 0 if options.others else None if options.id else most)
    for sentence in found["missing"]:
        print_error(sentence)
    maintenances, others = found["maintenances"], found["others"]
    if options.id:
        maintenances, others = history.matching(options.id, maintenances), history.matching(options.id, others)
        if not (others if options.others else maintenances):
            text = f"the history has no {options.id}; events without a maintenance are in `history --others`"
            raise CommandError(NO_SUCH_EVENT, text, found=False)
    maintenances, others = maintenances[-most:] if most else maintenances, others[-most:] if most else others
    if options.others:
        return Result(OK, others, history_text.table_of_others(others))
    text = history_text.details(maintenances) if options.id else history_text.overview(maintenances, others)
    return Result(OK, maintenances, text)


def show_config(options: argparse.Namespace) -> Result:
    """Run the verb `config`."""
    listed = listing.entries(load_settings(options.config))
    return Result(OK, [each._asdict() for each in listed], listing.as_text(listed))


def try_hook(options: argparse.Namespace) -> Result:
    """Run the verb `try`."""
    settings = load_settings(options.config, is_checked=True)
    hooks = discover_hooks(settings.hooks_directory, settings)[0]
    stage, slash, name = options.hook.rpartition("/")
    stage = stage if slash else PREPARE
    hook = next((each for each in hooks.get(stage, ()) if each.name in (name, WHOLE_DIRECTORY)), None)
    if hook is None:
        known = ", ".join(f"{stage}/{each.name}" for stage, of_stage in hooks.items() for each in of_stage) or "none"
        text = f"there is no hook {stage}/{name} in {settings.hooks_directory}; there are: {known}"
        raise CommandError(NO_SUCH_EVENT, text, found=False)
    if hook.problem is None:
        print_error(f"{stage}/{hook.name} really runs now, for a made-up event")
    tried = trial.attempt(settings, hook, options.type, options.notice)
    return Result(OK if tried.result.exit_status == 0 else PROBLEM, tried.as_data(), tried.as_text())


def check_host(options: argparse.Namespace) -> Result:
    """Run the verb `check`."""
    report = run_checks(options.config, options.hooks_directory, options.offline, ask_hooks=options.hooks)
    return Result(PROBLEM if report.has_errors() else OK, report.as_data(), report.as_text())


def _stored(options: argparse.Namespace, most: int | None) -> dict[str, Any]:
    """Return `history.to_data` of the files, or of the daemon if this user may not read them; `most`: how many, or all.

    Raises:
        CommandError: there are no records, or no daemon runs for a user who may not read them.
        PermissionError: this user may do neither.
        OSError: they cannot be read.
    """
    directory = load_settings(options.config).state_directory
    try:
        if os.geteuid() not in (0, os.stat(directory).st_uid):
            raise PermissionError  # also if the directory itself is open to all users: its files are not
        return history.to_data(record_files.stored(directory, most))
    except FileNotFoundError:
        text = f"there are no records in {directory}: the service never ran"
        raise CommandError(PROBLEM, text) from None
    except PermissionError:
        return ask(options, "history", most=most)
