# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The command azure-scheduled-events.

Exit status: 0 good; 1 something is wrong that the output names; 2 wrong usage; 3 the service does not run; 4 no such event or hook;
77 not permitted; 78 the configuration cannot be used.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Optional, Sequence

from azure_scheduled_events.document import EVENT_TYPES
from azure_scheduled_events.predicates import parse_seconds
from azure_scheduled_events.yaml_lines import Reader, locate

from hook_runner.configuration import DEFAULT_PATH, ConfigError, Settings, load_settings
from hook_runner.instance import AlreadyRunning
from hook_runner.logs import harmless

GOOD, WRONG, NOT_RUNNING, NO_SUCH_EVENT, NOT_PERMITTED, BAD_CONFIG = 0, 1, 3, 4, 77, 78


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command; returns its exit status."""
    options = parser().parse_args(arguments)
    as_json = getattr(options, "json", False)
    try:
        status: int = options.verb(options)
        sys.stdout.flush()
        return status
    except ConfigError as error:
        return fail(BAD_CONFIG, str(error), as_json)
    except PermissionError as error:
        return fail(NOT_PERMITTED, "%s; this needs root, or the group of control_group" % error, as_json)
    except BrokenPipeError:
        # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return GOOD
    except (AlreadyRunning, OSError) as error:
        return fail(WRONG, str(error), as_json)


def parser() -> argparse.ArgumentParser:
    """All verbs and options."""
    made = argparse.ArgumentParser(prog="azure-scheduled-events", description="Prepare this VM for Azure Scheduled Events, and recover from them.")
    verbs = made.add_subparsers(metavar="VERB", required=True)

    def verb(name: str, function: Any, about: str, prints_data: bool = True) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=about, description=about)
        added.set_defaults(verb=function)
        added.add_argument("--config", default=DEFAULT_PATH, metavar="FILE", help="configuration (default: %(default)s)")
        if prints_data:
            added.add_argument("--json", action="store_true", help="print JSON")
        return added

    run = verb("run", run_service, "watch IMDS and act, until a signal ends it", prints_data=False)
    run.add_argument("--dry-run", action="store_true", help="run hooks, but approve nothing")

    verb("status", show_status, "what is known now, and what is being done about it")

    history = verb("history", show_history, "what happened to earlier events, newest last")
    history.add_argument("event_id", nargs="?", help="only this event")
    history.add_argument("--limit", type=positive, default=20, metavar="N", help="how many events at most (default: %(default)s)")

    approve = verb("approve", approve_event, "approve an event by hand, as soon as this VM is prepared for it")
    approve.add_argument("event_id", help="which event")
    approve.add_argument("--force", action="store_true", help="now, even if the preparation failed or goes on")
    approve.add_argument("--release-others", action="store_true", help="even if the event hits other VMs too, which the approval releases as well")

    attempt = verb("try", try_hook, "really run one hook by hand, with a made-up event of which neither the journal nor Azure learns")
    attempt.add_argument("hook", metavar="[STAGE/]NAME", help="which hook; of stage prepare where no stage is given")
    attempt.add_argument("--type", default="Reboot", choices=EVENT_TYPES, help="type of the event (default: %(default)s)")
    attempt.add_argument("--notice", type=duration, default=900.0, metavar="SECONDS", help="time until the event may start (default: 15m)")

    check = verb("check", check_host, "whether configuration, hooks, permissions and IMDS are as they should be")
    check.add_argument("--offline", action="store_true", help="do not ask IMDS")
    check.add_argument("--hooks-directory", metavar="DIR", help="hooks of another place than the configuration says")
    return made


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("at least 1")
    return number


def duration(text: str) -> float:
    seconds = parse_seconds(text)
    if seconds < 0:
        raise ValueError("not in the past")
    return seconds


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


def run_service(options: argparse.Namespace) -> int:
    from hook_runner.apart import locate_apart
    from hook_runner.logs import Log
    from hook_runner.service import Service
    from hook_runner.trust import trusted_owners

    owners = trusted_owners()
    Service(lambda: settings_of(options.config, owners, locate_apart), owners, Log(), options.dry_run).run()
    return GOOD


def show_status(options: argparse.Namespace) -> int:
    from hook_runner import status
    from hook_runner.control import ask

    try:
        data = ask(settings_of(options.config).run_directory, {"ask": "status"})
    except (FileNotFoundError, ConnectionRefusedError):
        show({"running": False}, "the service does not run", options.json)
        return NOT_RUNNING
    show({"running": True, **data}, status.as_text(data), options.json)
    return GOOD if status.is_good(data) else WRONG


def show_history(options: argparse.Namespace) -> int:
    from hook_runner import history
    from hook_runner.journal import Journal, JournalUnreadable

    path = settings_of(options.config).journal
    try:
        os.stat(path)
        journal = Journal.read_only(path)
        records = journal.records(options.limit, options.event_id)[::-1]
    except FileNotFoundError:
        return fail(WRONG, "there is no journal %s: the service never ran" % path, options.json)
    except JournalUnreadable as error:
        return fail(WRONG, str(error), options.json)
    journal.close()
    for sentence in journal.unreadable:
        complain(WRONG, sentence)
    if options.event_id and not records:
        return fail(NO_SUCH_EVENT, "the journal has no event %s" % options.event_id, options.json, found=False)
    show(history.as_data(records), history.as_text(records), options.json)
    return GOOD


def approve_event(options: argparse.Namespace) -> int:
    from hook_runner.control import ask

    question = {"ask": "approve", "event_id": options.event_id, "force": options.force, "release_others": options.release_others}
    try:
        answer = ask(settings_of(options.config).run_directory, question)
    except (FileNotFoundError, ConnectionRefusedError):
        return fail(NOT_RUNNING, "the service does not run, and it is the one that approves", options.json, running=False)
    if not answer.get("found"):
        return fail(NO_SUCH_EVENT, "there is no event %s now; `azure-scheduled-events status` lists them" % options.event_id, options.json, found=False)
    show(answer, answer["text"], options.json)
    return GOOD if answer["accepted"] else WRONG


def try_hook(options: argparse.Namespace) -> int:
    from hook_runner import trying
    from hook_runner.trust import trusted_owners

    owners = trusted_owners()
    settings = settings_of(options.config, owners)
    try:
        hook = trying.find(settings, options.hook, owners)
    except trying.NoSuchHook as error:
        return fail(NO_SUCH_EVENT, str(error), options.json, found=False)
    complain(GOOD, "%s/%s really runs now, for a made-up event" % (hook.stage, hook.name))
    sys.stdout.flush()
    tried = trying.attempt(settings, hook, options.type, options.notice, 2 if options.json else 1)
    show(trying.as_data(hook, tried), trying.as_text(hook, tried), options.json)
    return GOOD if tried.result is not None and tried.result.exit_status == 0 else WRONG


def check_host(options: argparse.Namespace) -> int:
    from hook_runner import checking

    report = checking.check(options.config, options.hooks_directory, options.offline)
    show(report.as_data(), report.as_text(), options.json)
    return WRONG if report.has_errors() else GOOD
