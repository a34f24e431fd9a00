# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verbs of the command azure-scheduled-events and their options."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from azure_scheduled_events.event_types import EVENT_TYPES
from azure_scheduled_events.options import Parser, parse_choice, parse_integer, parse_seconds
from azure_scheduled_events.printable import printable
from hook_runner import __version__, event_ids, record_files
from hook_runner.cli.output import NO_SUCH_EVENT, NOT_RUNNING, OK, PROBLEM, exit_with_error, print_error, print_result
from hook_runner.cli.run import load_settings_for, run_service
from hook_runner.config.settings import DEFAULT_PATH, Settings
from hook_runner.lifecycle.pause import moment
from hook_runner.permissions import trusted_owners
from hook_runner.preflight import trial
from hook_runner.preflight.check import run_checks
from hook_runner.records import EventRecord
from hook_runner.reporting import history, history_table, status
from hook_runner.service.control_socket import send_request


def parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs and options."""
    made = argparse.ArgumentParser(
        prog="azure-scheduled-events", description="Prepare this VM for Azure Scheduled Events, and recover from them."
    )
    made.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    verbs = made.add_subparsers(metavar="VERB", required=True)

    def verb(name: str, function: Any, about: str, prints_data: bool = True) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=about, description=about)
        added.set_defaults(verb=function)
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
        "history", show_history, "a line for each event so far, newest last; with an event, all that happened to it"
    )
    history.add_argument(
        "event_id",
        nargs="?",
        type=argument(some_id),
        metavar="EVENT",
        help="only this event: its id, or the beginning of it",
    )
    amount = history.add_mutually_exclusive_group()
    amount.add_argument(
        "--limit",
        type=argument(partial(parse_integer, least=1)),
        default=20,
        metavar="N",
        help="how many events at most (default: %(default)s)",
    )
    amount.add_argument("--all", action="store_true", help="all events that were kept")

    approve = verb("approve", approve_event, "approve an event by hand, as soon as this VM is prepared for it")
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
        help="even if the event hits other VMs too, which the approval releases as well",
    )

    recover = verb("recover", recover_event, "try again now to recover from an event that is over, or give it up")
    recover.add_argument("event_id", help="which event")
    recover.add_argument(
        "--give-up", action="store_true", help="do not run its recover hooks again; its preparation may still hold"
    )
    pause = verb(
        "pause", pause_service, "begin no prepare hook and approve nothing until `resume`; watching and recovery go on"
    )
    times = "end by itself: 30m, 2h or 2026-11-21T18:00:00Z (UTC)"
    pause.add_argument("--until", type=argument(moment), default={}, metavar="TIME", help=times)
    pause.add_argument("--reason", default="", metavar="TEXT", help="why; `status` shows it")
    verb("resume", resume_service, "end a pause")
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
        raise ValueError("an event's id is never empty")
    return text


def show_status(options: argparse.Namespace) -> int:
    """Run the verb `status`; return the exit status."""
    try:
        data = send_request(load_settings_for(options.config).run_directory, {"ask": "status"})
    except (FileNotFoundError, ConnectionRefusedError):
        print_result({"running": False}, "the service does not run", options.json)
        return NOT_RUNNING
    if "error" in data:
        print_result(data, data["error"], options.json)
        return PROBLEM
    print_result({"running": True, **data}, status.to_text(data), options.json)
    return OK if status.is_healthy(data) else PROBLEM


def show_history(options: argparse.Namespace) -> int:
    """Run the verb `history`; return the exit status."""
    settings = load_settings_for(options.config)
    try:
        found = stored_records(settings, None if options.all or options.event_id else options.limit)
    except FileNotFoundError:
        text = f"there are no records in {settings.state_directory}: the service never ran"
        return exit_with_error(PROBLEM, text, options.json)
    records = []
    for data in found.records:
        try:
            records.append(record_files.from_data(data))
        except ValueError as error:
            print_error(PROBLEM, f"record {data.get('id')} cannot be read: {error}")
    for sentence in found.unreadable:
        print_error(PROBLEM, sentence)
    if options.event_id:
        known = {record.key: record.event.event_id for record in records}
        keys = event_ids.matching_ids(options.event_id, known)
        candidates = [known[key] for key in keys]
        if not keys:
            text = f"no record is of the event {options.event_id}"
            return exit_with_error(NO_SUCH_EVENT, text, options.json, found=False)
        if len(keys) > 1:
            text = event_ids.explain_mismatch(options.event_id, candidates) or ""
            return exit_with_error(NO_SUCH_EVENT, text, options.json, found=False, candidates=candidates)
        records = [record for record in records if record.key == keys[0]]
    print_history(records[: None if options.all else options.limit][::-1], options)
    return OK


def print_history(records: list[EventRecord], options: argparse.Namespace) -> None:
    """Print records, oldest first."""
    data = history.to_dict(records)
    print_result(data, history.as_text(records) if options.event_id else history_table.as_text(data), options.json)


def stored_records(settings: Settings, most: int | None) -> record_files.Stored:
    """Return the newest records in the files, or those that the daemon returns if this user may not read the files.

    ``most``: how many, or all.

    Raises:
        FileNotFoundError: there are none.
        PermissionError: this user may do neither.
        OSError: they cannot be read.
    """
    try:
        return record_files.stored(settings.state_directory, most)
    except PermissionError:
        try:
            answer = send_request(settings.run_directory, {"ask": "history"})
        except (FileNotFoundError, ConnectionRefusedError):
            answer = {}
        if "records" not in answer:
            raise
        return record_files.Stored(answer["records"], answer["unreadable"])


def approve_event(options: argparse.Namespace) -> int:
    """Run the verb `approve`; return the exit status."""
    request = {
        "ask": "approve",
        "event_id": options.event_id,
        "force": options.force,
        "release_others": options.release_others,
    }
    return ask_about_event(options, request, "it is the one that approves", "now")


def recover_event(options: argparse.Namespace) -> int:
    """Run the verb `recover`; return the exit status."""
    request = {"ask": "recover", "event_id": options.event_id, "give_up": options.give_up}
    return ask_about_event(options, request, "it is the one that recovers", "to recover from")


def ask_about_event(options: argparse.Namespace, request: dict[str, Any], why: str, what: str) -> int:
    """Send a request about one event to the daemon; return the exit status.

    `why` is the reason why the verb needs the daemon; `what` is the end of the error about an event that does
    not exist.
    """
    try:
        answer = send_request(load_settings_for(options.config).run_directory, request)
    except (FileNotFoundError, ConnectionRefusedError):
        return exit_with_error(NOT_RUNNING, f"the service does not run, and {why}", options.json, running=False)
    if "error" in answer:
        return exit_with_error(PROBLEM, answer["error"], options.json)
    ambiguous = event_ids.explain_mismatch(options.event_id, answer.get("candidates"))
    if ambiguous is not None:
        return exit_with_error(NO_SUCH_EVENT, ambiguous, options.json, found=False, candidates=answer["candidates"])
    if not answer.get("found"):
        text = f"there is no event {options.event_id} {what}; `azure-scheduled-events status` lists them"
        return exit_with_error(NO_SUCH_EVENT, text, options.json, found=False)
    print_result(answer, printable(answer["text"]), options.json)
    return OK if answer["accepted"] and not answer.get("withheld") else PROBLEM


def pause_service(options: argparse.Namespace) -> int:
    """Run the verb `pause`; return the exit status."""
    return change_pause(options, {"ask": "pause", "reason": options.reason, **options.until})


def resume_service(options: argparse.Namespace) -> int:
    """Run the verb `resume`; return the exit status."""
    return change_pause(options, {"ask": "resume"})


def change_pause(options: argparse.Namespace, request: dict[str, Any]) -> int:
    """Send a request to pause or resume; return the exit status."""
    try:
        answer = send_request(load_settings_for(options.config).run_directory, request)
    except (FileNotFoundError, ConnectionRefusedError):
        text = "the service does not run; only a service that runs can be paused or resumed"
        return exit_with_error(NOT_RUNNING, text, options.json, running=False)
    if "error" in answer:
        return exit_with_error(PROBLEM, answer["error"], options.json)
    print_result(answer, printable(answer["text"]), options.json)
    return OK if answer["accepted"] else PROBLEM


def try_hook(options: argparse.Namespace) -> int:
    """Run the verb `try`; return the exit status."""
    owners = trusted_owners()
    settings = load_settings_for(options.config, owners)
    try:
        hook = trial.find(settings, options.hook, owners)
    except trial.NoSuchHook as error:
        return exit_with_error(NO_SUCH_EVENT, str(error), options.json, found=False)
    print_error(OK, f"{hook.stage}/{hook.name} really runs now, for a made-up event")
    sys.stdout.flush()
    tried = trial.attempt(settings, hook, options.type, options.notice)
    print_result(trial.as_data(hook, tried), trial.as_text(hook, tried), options.json)
    return OK if tried.result is not None and tried.result.exit_status == 0 else PROBLEM


def check_host(options: argparse.Namespace) -> int:
    """Run the verb `check`; return the exit status."""
    report = run_checks(
        options.config, options.hooks_directory, options.offline, ask_hooks=True if options.hooks else None
    )
    print_result(report.as_data(), report.as_text(), options.json)
    return PROBLEM if report.has_errors() else OK
