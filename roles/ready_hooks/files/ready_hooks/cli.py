# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The command line of every ready hook: NAME VERB [OPTION...].

Exit status 0: done, also where there was nothing to do. 1: it failed. 2: wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Callable

from ready_hooks import hooks
from ready_hooks.core import arguments, event, report
from ready_hooks.core.arguments import Option
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, UsageError
from ready_hooks.core.hook import ERROR, INFO, RECOVER, STAGES, Finding, ReadyHook, Run
from ready_hooks.core.record import DEFAULT_FOLDER, Record

CHECK, VALIDATE = "check", "validate"
# with this variable a run ends its output with a line for the caller: changed or unchanged
REPORT = "READY_HOOKS_REPORT"
DEFAULT_LIMIT = 300.0
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_MOST_OF_AN_ERROR = 300


def _record_name(value: object) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", str(value)):
        raise ValueError(f"expected letters, digits, dot, dash and underscore, not {value!r}")
    return str(value)


# every hook has these
COMMON = (
    Option("name", _record_name, "name of this hook on the host; two hooks of one kind need different names"),
    Option("dry_run", arguments.boolean, "print the changes, and make none", False),
    Option("limit", arguments.seconds, "seconds for the run where HOOK_SECONDS is not set", DEFAULT_LIMIT),
    Option("state_directory", arguments.path, "folder of the records of preparations", DEFAULT_FOLDER),
)


def main(words: Sequence[str]) -> int:
    """Run the command line and return the exit status."""
    if not words or words[0] not in hooks.NAMES:
        print(f"ready hook: expected one of {', '.join(hooks.NAMES)}", file=sys.stderr)
        return 2
    kind = hooks.load(words[0])
    parser = _parser(kind)
    parsed = parser.parse_args(words[1:])
    try:
        # its constructor refuses options that do not go together
        hook = kind(_run(kind, parsed))
        if parsed.verb == VALIDATE:
            return 0
        return _check(hook) if parsed.verb == CHECK else _act(hook, parsed.verb)
    except UsageError as error:
        print(f"{kind.name}: {error}", file=sys.stderr)
        return 2
    except HookError as error:
        print(f"{kind.name}: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # a traceback would be one message per line for the caller
        print(f"{kind.name}: {_unexpected(error)}", file=sys.stderr)
        return 1


def _unexpected(error: Exception) -> str:
    """Return one line about an error of the program itself: its type, its place and its text."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(_PACKAGE)] or frames
    place = f"{os.path.relpath(own[-1].filename, _PACKAGE)}:{own[-1].lineno}"
    text = report.one_line(str(error))[:_MOST_OF_AN_ERROR]
    return f"{place}: unexpected {type(error).__name__}: {text}; please report it"


def _parser(kind: type[ReadyHook]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=kind.name, description=kind.summary, allow_abbrev=False)
    verbs = [*kind.stages, CHECK, VALIDATE]
    words = "the stage to run; check: find mistakes, and change nothing; validate: only read the options"
    parser.add_argument("verb", choices=verbs, help=words)
    parser.add_argument("--json", metavar="OBJECT", help="all options as one JSON object, with underscores in names")
    arguments.add_flags(parser, (*kind.options, *COMMON))
    return parser


def _run(kind: type[ReadyHook], parsed: argparse.Namespace) -> Run:
    every = (*kind.options, *COMMON)
    values = arguments.from_namespace(every, parsed)
    if parsed.json is not None:
        if values is not None:
            raise UsageError("--json", "it cannot be combined with other options")
        values = arguments.from_json(every, parsed.json)
    if values is None:
        values = arguments.from_mapping(every, {})
    name = values["name"] or kind.name
    deadline = Deadline(_limit(values["limit"]))
    record = Record(values["state_directory"], name, kind.name)
    about = event.from_environment(os.environ)._replace(stage=parsed.verb if parsed.verb in STAGES else "")
    return Run(name, values, about, deadline, record, values["dry_run"])


def _limit(otherwise: float) -> float:
    given = os.environ.get("HOOK_SECONDS", "")
    try:
        return arguments.seconds(given) if given else otherwise
    except ValueError:
        raise UsageError("HOOK_SECONDS", f"expected a number of seconds, not {given!r}") from None


def _act(hook: ReadyHook, stage: str) -> int:
    action: Callable[[], None] = hook.recover if stage == RECOVER else hook.prepare
    with _locked(hook):
        action()
    if os.environ.get(REPORT):
        print("changed" if hook.run.has_acted else "unchanged", flush=True)
    return 0


@contextlib.contextmanager
def _locked(hook: ReadyHook) -> Iterator[None]:
    """Hold the lock of the hook's runs. A hook that only reports runs without it where it cannot be had.

    A dry run creates no folder and no lock, and does not wait for another run.
    """
    with contextlib.ExitStack() as held:
        try:
            if not hook.run.dry_run:
                held.enter_context(hook.run.record.locked(hook.run.deadline))
        except HookError as error:
            if not hook.only_reports:
                raise
            hook.run.warn(f"{hook.name}: {error}")
        yield


def _check(hook: ReadyHook) -> int:
    """Print the findings: INFO to standard output, all others to standard error; exit status 1 for an ERROR."""
    status = 0
    for finding in _findings(hook):
        print(f"{hook.run.name}: {finding.text}", file=sys.stdout if finding.severity == INFO else sys.stderr)
        if finding.severity == ERROR:
            status = 1
    return status


def _findings(hook: ReadyHook) -> Iterator[Finding]:
    try:
        yield from hook.check()
    except HookError as error:
        yield Finding(ERROR, str(error))
