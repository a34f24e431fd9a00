# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` that lets hooks check themselves: it runs `FILE check` for the hooks that announce it."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from typing import IO, Iterable, NamedTuple, Sequence

from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.runs import PATH
from hook_runner.preflight.report import ERROR, INFO, WARNING, Report

# the second line of a hook that knows the argument "check"
MARKER = b"# azure-scheduled-events: answers check"
# seconds for one hook
LIMIT = 30.0
# bytes of each output, and lines of it, that are read
MOST_BYTES, MOST_LINES = 16 * 1024, 50
# bytes at the beginning of a hook that have its first two lines
_HEAD = 1024
# seconds between two checks for the end of the process; bytes that a pipe holds
_INTERVAL, _PIPE = 0.02, 65536
# variables of the caller that the checks get: they name the library of the ready hooks, and its Python
_INHERITED = "READY_HOOKS_"


class Answer(NamedTuple):
    """The end of a hook's check, with its standard output and its standard error.

    `status` is the exit status, or minus the number of a signal; None at the time limit.
    """

    status: int | None
    output: bytes
    errors: bytes


def check_hooks_themselves(hooks: Iterable[Hook], settings: Settings, report: Report, limit: float = LIMIT) -> None:
    """Run the check of each hook that has one, and report what it prints.

    Lines of standard output are information. Lines of standard error are errors if the exit status is not 0,
    else warnings. Hooks with a problem are not run. `limit` is in seconds for one hook.
    """
    for hook in hooks:
        if hook.problem is None and _answers(hook.path):
            _check(hook.path, settings, report, limit)


def _answers(path: str) -> bool:
    """Return True if the second line of the file is the marker."""
    try:
        with open(path, "rb") as file:
            lines = file.read(_HEAD).split(b"\n")
    except OSError:
        return False
    return len(lines) > 1 and lines[1].strip() == MARKER


def _check(path: str, settings: Settings, report: Report, limit: float) -> None:
    try:
        answer = _run([path, "check"], _environment(settings, limit), limit)
    except OSError as error:
        report.add(ERROR, "hooks", path, f"its check cannot be started: {error.strerror}")
        return
    for line in _lines(answer.output):
        report.add(INFO, "hooks", path, line)
    problems = _lines(answer.errors)
    for line in problems:
        report.add(WARNING if answer.status == 0 else ERROR, "hooks", path, line)
    if answer.status is None:
        report.add(ERROR, "hooks", path, f"its check did not end within {limit:g} s")
    elif answer.status != 0 and not problems:
        report.add(ERROR, "hooks", path, f"its check failed without a message ({_how(answer.status)})")


def _how(status: int) -> str:
    return f"exit status {status}" if status >= 0 else f"signal {-status} ended it"


def _environment(settings: Settings, limit: float) -> dict[str, str]:
    """Return the variables of a hook, without those of an event."""
    inherited = {name: value for name, value in os.environ.items() if name.startswith(_INHERITED)}
    usual = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": os.path.expanduser("~")}
    return {**usual, **settings.environment, **inherited, "HOOK_SECONDS": f"{limit:g}"}


def _lines(text: bytes) -> list[str]:
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines()]
    return [line for line in lines if line][:MOST_LINES]


def _run(command: Sequence[str], environment: dict[str, str], limit: float) -> Answer:
    """Run a program and end its process group, at the latest at the limit. Raises OSError if it cannot be started."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            outputs = _read([process.stdout, process.stderr], process, time.monotonic() + limit)
            ended = _has_ended(process)
        finally:
            # not reaped yet: the number still belongs to the process
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
    return Answer(status if ended else None, *outputs)


def _read(streams: Sequence[IO[bytes] | None], process: subprocess.Popen[bytes], end: float) -> list[bytes]:
    """Return the beginning of each stream, when the process has ended or at the end of its time."""
    texts = {stream.fileno(): b"" for stream in streams if stream is not None}
    with selectors.DefaultSelector() as selector:
        for descriptor in texts:
            selector.register(descriptor, selectors.EVENT_READ)
        ended = False
        while not ended and time.monotonic() < end:
            ended = _has_ended(process)
            for key, _events in selector.select(0 if ended else _INTERVAL):
                data = os.read(key.fd, _PIPE)
                texts[key.fd] = (texts[key.fd] + data)[:MOST_BYTES]
                if not data:
                    selector.unregister(key.fd)
            if not ended and not selector.get_map():
                time.sleep(_INTERVAL)
    return list(texts.values())


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return True if the process has ended, and leave its number to it."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
