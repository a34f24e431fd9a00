# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verbs that need no daemon. Each prints its result and returns the exit status, or raises CommandError."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from hook_runner import record_files
from hook_runner.cli.output import NO_SUCH_EVENT, OK, PROBLEM, CommandError, print_error, print_result
from hook_runner.config import listing
from hook_runner.config.settings import Settings, load_settings
from hook_runner.log import LogHandler, log_to
from hook_runner.permissions import trusted_owners
from hook_runner.preflight import trial
from hook_runner.preflight.check import run_checks
from hook_runner.reporting import history, history_text
from hook_runner.service.assembly import assemble
from hook_runner.service.configuration_source import Configuration
from hook_runner.service.control_socket import send_request
from hook_runner.service.daemon import Service


def run_service(options: argparse.Namespace) -> int:
    """Run the daemon until a signal ends it."""
    owners = trusted_owners()
    log_to(LogHandler())
    Service(assemble(Configuration(options.config, owners, options.dry_run), owners)).run()
    return OK


def show_history(options: argparse.Namespace) -> int:
    """Run the verb `history`."""
    most = None if options.all else options.limit
    found = _stored(load_settings(options.config), 0 if options.others else None if options.id else most)
    for sentence in found["unreadable"]:
        print_error(sentence)
    maintenances, others = found["maintenances"], found["others"]
    if options.id:
        maintenances, others = history.matching(options.id, maintenances), history.matching(options.id, others)
        if not (others if options.others else maintenances):
            text = f"the history has no {options.id}; events without a maintenance are in `history --others`"
            raise CommandError(NO_SUCH_EVENT, text, found=False)
    maintenances, others = maintenances[-most:] if most else maintenances, others[-most:] if most else others
    text = history_text.details(maintenances) if options.id else history_text.overview(maintenances, others)
    if options.others:
        print_result(others, history_text.table_of_others(others), options.json)
    else:
        print_result(maintenances, text, options.json)
    return OK


def show_config(options: argparse.Namespace) -> int:
    """Run the verb `config`."""
    listed = listing.entries(load_settings(options.config))
    print_result([each._asdict() for each in listed], listing.as_text(listed), options.json)
    return OK


def try_hook(options: argparse.Namespace) -> int:
    """Run the verb `try`."""
    owners = trusted_owners()
    settings = load_settings(options.config, owners)
    try:
        hook = trial.find(settings, options.hook, owners)
    except trial.NoSuchHook as error:
        raise CommandError(NO_SUCH_EVENT, str(error), found=False) from None
    print_error(f"{hook.stage}/{hook.name} really runs now, for a made-up event")
    sys.stdout.flush()
    tried = trial.attempt(settings, hook, options.type, options.notice)
    print_result(tried.as_data(), tried.as_text(), options.json)
    return OK if tried.result.exit_status == 0 else PROBLEM


def check_host(options: argparse.Namespace) -> int:
    """Run the verb `check`."""
    report = run_checks(
        options.config, options.hooks_directory, options.offline, ask_hooks=True if options.hooks else None
    )
    print_result(report.as_data(), report.as_text(), options.json)
    return PROBLEM if report.has_errors() else OK


def _stored(settings: Settings, most: int | None) -> dict[str, Any]:
    """Return `history.to_data` of the files, or of the daemon if this user may not read them; `most`: how many, or all.

    Raises:
        CommandError: there are no records.
        PermissionError: this user may do neither.
        OSError: they cannot be read.
    """
    try:
        return history.to_data(record_files.stored(settings.state_directory, most))
    except FileNotFoundError:
        text = f"there are no records in {settings.state_directory}: the service never ran"
        raise CommandError(PROBLEM, text) from None
    except PermissionError:
        try:
            answer = send_request(settings.run_directory, {"ask": "history"})
        except (FileNotFoundError, ConnectionRefusedError):
            answer = {}
        if "maintenances" not in answer:
            raise
        return answer
