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

    run = verb("run", run_service, "watch IMDS and act, until a signal ends it", prints_data=False)
    run.add_argument("--dry-run", action="store_true", help="run hooks, but approve nothing")

    verb("status", show_status, "what is known now, and what is being done about it")

    history = verb(
        "history", show_history, "a line for each maintenance, newest last; with an id, all that happened in it"
    )
    history.add_argument(
        "id",
        nargs="?",
        type=argument(some_id),
        metavar="ID",
        help="only these: the id of a maintenance or of an event of it, or the beginning of an id",
    )
    history.add_argument(
        "--others",
        action="store_true",
        help="only the events that belong to no maintenance, such as those of other VMs",
    )
    amount = history.add_mutually_exclusive_group()
    amount.add_argument(
        "--limit",
        type=argument(partial(parse_integer, least=1)),
        default=20,
        metavar="N",
        help="how many maintenances at most (default: %(default)s)",
    )
    amount.add_argument("--all", action="store_true", help="all that were kept")

    approve = verb("approve", order, "approve an event by hand, as soon as this VM is prepared for it")
    approve.add_argument(
        "event_id", type=argument(some_id), metavar="EVENT", help="which event: its id, or the beginning of it"
    )
    approve.add_argument(
        "--force",
        action="store_true",
        help="now, even if the preparation failed or goes on, or a value of the event is unknown",
    )
    approve.add_argument(
        "--release-others",
        action="store_true",
        help="even if the event affects other VMs too, which the approval releases as well",
    )

    recover = verb("recover", order, "try again now to recover this host, or give it up")
    recover.add_argument(
        "id", nargs="?", type=argument(some_id), metavar="ID", help="the id of the maintenance, or of an event of it"
    )
    recover.add_argument(
        "--give-up", action="store_true", help="do not run the recover hooks again; the preparation may still hold"
    )
    pause = verb(
        "pause", order, "begin no prepare hook and approve nothing until `resume`; watching and recovery go on"
    )
    times = "end by itself: 30m, 2h or 2026-11-21T18:00:00Z (UTC)"
    pause.add_argument("--until", type=argument(some_moment), metavar="TIME", help=times)
    pause.add_argument("--reason", default="", metavar="TEXT", help="why; `status` shows it")
    verb("resume", order, "end a pause")
    attempt = verb(
        "try",
        try_hook,
        "really run one hook by hand, with a made-up event of which neither the daemon nor Azure learns",
    )
    attempt.add_argument("hook", metavar="[STAGE/]NAME", help="which hook; of stage prepare where no stage is given")
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
        metavar="SECONDS",
        help="time until the event may start (default: 15m)",
    )

    verb("config", show_config, "every key of the configuration with its value, its default and where it is set")
    check = verb("check", check_host, "whether configuration, hooks, permissions and IMDS are as they should be")
    check.add_argument("--offline", action="store_true", help="ask neither IMDS nor the hooks themselves")
    check.add_argument(
        "--hooks", action="store_true", help="with --offline: run the checks of the hooks that have one, nevertheless"
    )
    check.add_argument("--hooks-directory", metavar="DIR", help="hooks of another place than the configuration says")
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
