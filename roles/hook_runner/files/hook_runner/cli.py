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
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Sequence, Union

from azure_scheduled_events.document import EVENT_TYPES
from azure_scheduled_events.predicates import parse_seconds
from azure_scheduled_events.yaml_lines import Reader, locate

from hook_runner import __version__
from hook_runner.configuration import DEFAULT_PATH, ConfigError, Settings, load_settings
from hook_runner.instance import AlreadyRunning
from hook_runner.logs import harmless

if TYPE_CHECKING:
    import argparse

    from hook_runner.history_source import Found as HistoryFound

GOOD, WRONG, NOT_RUNNING, NO_SUCH_EVENT, NOT_PERMITTED, BAD_CONFIG = 0, 1, 3, 4, 77, 78


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command; returns its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    options: Any = options_of_run(words) or parser().parse_args(words)
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

    argparse would stay in the daemon's memory, 0.4 MiB for a line that is read once.
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


def parser() -> argparse.ArgumentParser:
    """All verbs and options."""
    import argparse

    made = argparse.ArgumentParser(prog="azure-scheduled-events", description="Prepare this VM for Azure Scheduled Events, and recover from them.")
    made.add_argument("--version", action="version", version="%%(prog)s %s" % __version__)
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

    history = verb("history", show_history, "a line for each event so far, newest last; with an event, all that happened to it")
    history.add_argument("event_id", nargs="?", type=some_id, metavar="EVENT", help="only this event: its id, or the beginning of it")
    amount = history.add_mutually_exclusive_group()
    amount.add_argument("--limit", type=positive, default=20, metavar="N", help="how many events at most (default: %(default)s)")
    amount.add_argument("--all", action="store_true", help="all events that the journal has")

    approve = verb("approve", approve_event, "approve an event by hand, as soon as this VM is prepared for it")
    approve.add_argument("event_id", type=some_id, metavar="EVENT", help="which event: its id, or the beginning of it")
    approve.add_argument("--force", action="store_true", help="now, even if the preparation failed or goes on")
    approve.add_argument("--release-others", action="store_true", help="even if the event hits other VMs too, which the approval releases as well")

    recover = verb("recover", recover_event, "try again now to recover from an event that is over, or give it up")
    recover.add_argument("event_id", help="which event")
    recover.add_argument("--give-up", action="store_true", help="run its recover hooks no more; what was prepared may still hold")
    pause = verb("pause", pause_service, "begin no prepare hook and approve nothing until `resume`; watching and recovery go on")
    times = "end by itself: 30m, 2h, 18:00 or 2026-11-21T18:00:00Z (UTC)"
    pause.add_argument("--until", type=until, default={}, metavar="TIME", help=times)
    pause.add_argument("--reason", default="", metavar="TEXT", help="why, for those who look at the status")
    verb("resume", resume_service, "end a pause")
    attempt = verb("try", try_hook, "really run one hook by hand, with a made-up event of which neither the journal nor Azure learns")
    attempt.add_argument("hook", metavar="[STAGE/]NAME", help="which hook; of stage prepare where no stage is given")
    attempt.add_argument("--type", default="Reboot", choices=EVENT_TYPES, help="type of the event (default: %(default)s)")
    attempt.add_argument("--notice", type=duration, default=900.0, metavar="SECONDS", help="time until the event may start (default: 15m)")

    check = verb("check", check_host, "whether configuration, hooks, permissions and IMDS are as they should be")
    check.add_argument("--offline", action="store_true", help="do not ask IMDS")
    check.add_argument("--hooks-directory", metavar="DIR", help="hooks of another place than the configuration says")
    check.add_argument("--imds-users", type=positive, default=0, metavar="SECONDS", help="watch so long which users but root ask IMDS")
    return made


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("at least 1")
    return number


def until(text: str) -> dict[str, Any]:
    import argparse
    from datetime import datetime, timezone

    from hook_runner.pausing import moment

    try:
        return moment(text, datetime.now(timezone.utc))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def some_id(text: str) -> str:
    if not text:
        raise ValueError("an event's id is never empty")
    return text


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
    from hook_runner import event_ids, history_source, history_table
    from hook_runner.journal import JournalUnreadable

    settings = settings_of(options.config)
    limit = history_source.ALL if options.all else options.limit
    try:
        found = history_of(settings, options.event_id, limit)
    except FileNotFoundError:
        return fail(WRONG, "there is no journal %s: the service never ran" % settings.journal, options.json)
    except JournalUnreadable as error:
        return fail(WRONG, str(error), options.json)
    for sentence in found.unreadable:
        complain(WRONG, sentence)
    ambiguous = event_ids.explained(options.event_id, found.candidates)
    if ambiguous is not None:
        return fail(NO_SUCH_EVENT, ambiguous, options.json, found=False, candidates=found.candidates)
    if options.event_id and not found.events:
        return fail(NO_SUCH_EVENT, "the journal has no event %s" % options.event_id, options.json, found=False)
    show(found.events, "\n\n".join(found.texts) if options.event_id else history_table.as_text(found.events), options.json)
    return GOOD


def history_of(settings: Settings, event_id: Optional[str], limit: int) -> HistoryFound:
    """The history from the daemon, or from the file where no daemon runs."""
    from hook_runner import history_source

    try:
        found = history_source.from_daemon(settings.run_directory, event_id, limit)
    except PermissionError:
        raise
    except OSError:
        found = None  # it does not run, or does not answer
    if found is None:
        os.stat(settings.journal)
        found = history_source.from_file(settings.journal, event_id, limit)
    return found


def approve_event(options: argparse.Namespace) -> int:
    question = {"ask": "approve", "event_id": options.event_id, "force": options.force, "release_others": options.release_others}
    return ask_about_event(options, question, "it is the one that approves", "now")


def recover_event(options: argparse.Namespace) -> int:
    question = {"ask": "recover", "event_id": options.event_id, "give_up": options.give_up}
    return ask_about_event(options, question, "it is the one that recovers", "to recover from")


def ask_about_event(options: argparse.Namespace, question: dict[str, Any], why: str, what: str) -> int:
    """Put a question about one event to the service. why: it is needed; what: ends the sentence about an event that there is not."""
    from hook_runner import event_ids
    from hook_runner.control import ask

    try:
        answer = ask(settings_of(options.config).run_directory, question)
    except (FileNotFoundError, ConnectionRefusedError):
        return fail(NOT_RUNNING, "the service does not run, and %s" % why, options.json, running=False)
    ambiguous = event_ids.explained(options.event_id, answer.get("candidates"))
    if ambiguous is not None:
        return fail(NO_SUCH_EVENT, ambiguous, options.json, found=False, candidates=answer["candidates"])
    if not answer.get("found"):
        text = "there is no event %s %s; `azure-scheduled-events status` lists them" % (options.event_id, what)
        return fail(NO_SUCH_EVENT, text, options.json, found=False)
    show(answer, answer["text"], options.json)
    return GOOD if answer["accepted"] else WRONG


def pause_service(options: argparse.Namespace) -> int:
    return change_pause(options, {"ask": "pause", "reason": options.reason, **options.until})


def resume_service(options: argparse.Namespace) -> int:
    return change_pause(options, {"ask": "resume"})


def change_pause(options: argparse.Namespace, question: dict[str, Any]) -> int:
    from hook_runner.control import ask

    try:
        answer = ask(settings_of(options.config).run_directory, question)
    except (FileNotFoundError, ConnectionRefusedError):
        text = "the service does not run; only a service that runs can be paused or resumed"
        return fail(NOT_RUNNING, text, options.json, running=False)
    if "error" in answer:
        return fail(WRONG, answer["error"], options.json)
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
    if options.imds_users:
        from hook_runner.check_imds_users import check_imds_users

        check_imds_users(options.imds_users, report)
    show(report.as_data(), report.as_text(), options.json)
    return WRONG if report.has_errors() else GOOD
