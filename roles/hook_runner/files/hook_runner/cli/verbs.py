# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verbs of the command azure-scheduled-events and their options."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from functools import partial
from typing import Any

from azure_scheduled_events.event_types import EVENT_TYPES
from azure_scheduled_events.options import Parser, parse_choice, parse_integer, parse_seconds
from hook_runner import __version__
from hook_runner.cli.daemon_verbs import order, show_status
from hook_runner.cli.host_verbs import check_host, run_service, show_config, show_history, try_hook
from hook_runner.config.settings import DEFAULT_PATH
from hook_runner.service.control_requests import moment


def parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs and options."""
    made = argparse.ArgumentParser(
        prog="azure-scheduled-events", description="Prepare this VM for Azure Scheduled Events, and recover from them."
    )
    made.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    verbs = made.add_subparsers(metavar="VERB", required=True)

    def verb(name: str, function: Any, about: str, prints_data: bool = True) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=about, description=about)
        added.set_defaults(verb=function, name=name)
        added.add_argument(
            "--config", default=DEFAULT_PATH, metavar="FILE", help="configuration (default: %(default)s)"
        )
        if prints_data:
            added.add_argument("--json", action="store_true", help="print JSON")
        return added

    run = verb("run", run_service, "poll IMDS, and act until a signal ends it", prints_data=False)
    run.add_argument("--dry-run", action="store_true", help="run hooks, but approve nothing")

    verb("status", show_status, "show the known events and their state")

    history = verb("history", show_history, "show the maintenances, newest last; with an ID, their hooks and timelines")
    history.add_argument(
        "id",
        nargs="?",
        type=argument(some_id),
        metavar="ID",
        help="show only these: the id of a maintenance or of an event of it, or the beginning of an id",
    )
    history.add_argument(
        "--others",
        action="store_true",
        help="show only the past events that belong to no maintenance, such as those of other VMs",
    )
    amount = history.add_mutually_exclusive_group()
    amount.add_argument(
        "--limit",
        type=argument(partial(parse_integer, least=1)),
        default=20,
        metavar="N",
        help="show at most this number of maintenances (default: %(default)s)",
    )
    amount.add_argument("--all", action="store_true", help="show all that the records have")

    approve = verb("approve", order, "approve an event manually, as soon as this VM is prepared for it")
    approve.add_argument(
        "event_id", type=argument(some_id), metavar="EVENT", help="the id of the event, or the beginning of it"
    )
    approve.add_argument(
        "--force",
        action="store_true",
        help="approve now, also if this VM is not prepared or not affected, or a value of the event is unknown",
    )
    approve.add_argument(
        "--release-others",
        action="store_true",
        help="approve also an event that affects other VMs; the approval releases them, too",
    )

    recover = verb("recover", order, "repeat the failed recover hooks now, or end the attempts")
    recover.add_argument(
        "id", nargs="?", type=argument(some_id), metavar="ID", help="the id of the maintenance, or of an event of it"
    )
    recover.add_argument(
        "--give-up", action="store_true", help="end the attempts; effects of the prepare hooks may remain"
    )
    pause = verb("pause", order, "begin no prepare hook and approve nothing until `resume`; polls and recovery go on")
    times = "end the pause after 30m or 2h, or at 2026-11-21T18:00:00Z (UTC)"
    pause.add_argument("--until", type=argument(some_moment), metavar="TIME", help=times)
    pause.add_argument("--reason", default="", metavar="TEXT", help="a text that `status` shows")
    verb("resume", order, "end a pause")
    attempt = verb(
        "try",
        try_hook,
        "run one hook with a made-up event; its effects are real",
    )
    attempt.add_argument("hook", metavar="[STAGE/]NAME", help="the hook; without STAGE it is of stage prepare")
    attempt.add_argument(
        "--type",
        type=argument(partial(parse_choice, known=EVENT_TYPES, kind="event type")),
        default="Reboot",
        metavar="TYPE",
        help=f"type of the event, one of {', '.join(EVENT_TYPES)} (default: %(default)s)",
    )
    attempt.add_argument(
        "--notice",
        type=argument(parse_seconds),
        default=900.0,
        metavar="DURATION",
        help="time until the event may start (default: 15m)",
    )

    verb("config", show_config, "show every key of the configuration with its value, its default and its source")
    check = verb("check", check_host, "check configuration, hooks, permissions and IMDS")
    check.add_argument("--offline", action="store_true", help="send no request to IMDS, and run no checks of hooks")
    check.add_argument("--hooks", action="store_true", help="with --offline: run the checks of hooks nevertheless")
    check.add_argument(
        "--hooks-directory", metavar="DIR", help="check the hooks in this folder, not those of the configuration"
    )
    return made


def argument(parse: Parser) -> Parser:
    """Return the parser for an argument: argparse shows the text of its error."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def some_id(text: str) -> str:
    """Return a text that is not empty. Raises ValueError."""
    if not text:
        raise ValueError("an id is never empty")
    return text


def some_moment(text: str) -> str:
    """Return the text of a time, which the daemon reads by its own clock. Raises ValueError."""
    moment(text, datetime.now(timezone.utc))
    return text
