# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` that lets hooks check themselves: it runs `FILE check` for the hooks that announce it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Iterable, Iterator

from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.one_run import usual_variables
from hook_runner.preflight.report import ERROR, INFO, WARNING, Finding

# the second line of a hook that knows the argument "check"
MARKER = b"# azure-scheduled-events: answers check"
# seconds for one hook, and between two looks at it
LIMIT, _INTERVAL = 30.0, 0.02
# bytes of each output, and lines of it, that are kept
MOST_BYTES, MOST_LINES = 16 * 1024, 50
# bytes that a pipe holds
_PIPE = 65536
# bytes at the beginning of a hook that have its first two lines
_HEAD = 1024
# variables of the caller that the checks get: they name the library of the ready hooks, and its Python
_INHERITED = "READY_HOOKS_"


def check_hooks_themselves(hooks: Iterable[Hook], settings: Settings, limit: float = LIMIT) -> Iterator[Finding]:
    """Run the check of each hook that has one, and report what it prints.

    Lines of standard output are information. Lines of standard error are errors if the exit status is not 0,
    else warnings. Hooks with a problem are not run. `limit` is in seconds for one hook.
    """
    for hook in hooks:
        if hook.problem is None and _answers(hook.path):
            for severity, text in _check(hook.path, settings, limit):
                yield Finding(severity, "hooks", hook.path, text)


def _answers(path: str) -> bool:
    """Return True if the second line of the file is the marker."""
    try:
        with open(path, "rb") as file:
            return [line.strip() for line in file.read(_HEAD).split(b"\n")[1:2]] == [MARKER]
    except OSError:
        return False


def _check(path: str, settings: Settings, limit: float) -> Iterator[tuple[str, str]]:
    try:
        status, output, errors = _run(path, settings, limit)
    except OSError as error:
        yield ERROR, f"its check cannot be started: {error.strerror}"
        return
    for line in output:
        yield INFO, line
    for line in errors:
        yield WARNING if status == 0 else ERROR, line
    if status is None:
        yield ERROR, f"its check did not end within {limit:g} s"
    elif status != 0 and not errors:
        how = f"exit status {status}" if status > 0 else f"signal {-status} ended it"
        yield ERROR, f"its check failed without a message ({how})"


def _run(path: str, settings: Settings, limit: float) -> tuple[int | None, list[str], list[str]]:
    """Run a check with the variables of a hook, and end its process group. Raises OSError if it cannot be started.

    Returns:
        exit status, or minus the number of a signal, or None if the limit ended it; lines of both outputs.
    """
    inherited = {name: value for name, value in os.environ.items() if name.startswith(_INHERITED)}
    with subprocess.Popen(
        [path, "check"],
        stdin=subprocess.DEVNULL,
        # a file would need a disk with free space, `> /dev/stderr` would empty it, and a process that has left the
        # group could write to it for ever
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd="/",
        env={**usual_variables(settings), **inherited, "HOOK_SECONDS": f"{limit:g}"},
        start_new_session=True,
    ) as process:
        pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
        for pipe in pipes:
            os.set_blocking(pipe.fileno(), False)
        texts = [b"", b""]
        end, has_ended = time.monotonic() + limit, False
        try:
            while not has_ended and time.monotonic() < end:
                time.sleep(_INTERVAL)
                # it is not reaped yet: the number still belongs to the process
                has_ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
                texts = [(text + (pipe.read(_PIPE) or b""))[:MOST_BYTES] for text, pipe in zip(texts, pipes)]
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    output, errors = map(_lines, texts)
    return process.returncode if has_ended else None, output, errors


def _lines(text: bytes) -> list[str]:
    lines = text.decode("utf-8", "replace").splitlines()
    return [line.strip() for line in lines if line.strip()][:MOST_LINES]
