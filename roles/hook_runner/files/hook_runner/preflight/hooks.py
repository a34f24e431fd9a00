# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for hooks: whether they are found, trusted, and can be started."""

from __future__ import annotations

import glob
import os
import re
from typing import Iterable, Iterator

from azure_scheduled_events.options import did_you_mean, suggestion
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hook, Hooks, Skipped, SkipReason
from hook_runner.hooks.one_run import RunOrder, usual_variables
from hook_runner.hooks.systemd import Systemd
from hook_runner.preflight.report import ERROR, INFO, WARNING, Finding
from hook_runner.records import PREPARE, RECOVER, STAGES

# bytes of a first line that the kernel reads
_FIRST_LINE = 256
_NUMBER = re.compile(r"^[0-9]+-(?=.)")


def check_hooks(directory: str, hooks: Hooks, skipped: Iterable[Skipped], settings: Settings) -> Iterator[Finding]:
    """Check the hooks of a directory, the files that are not hooks, and the settings of single hooks."""
    everywhere = [hook for of_stage in hooks.values() for hook in of_stage]
    counts = ", ".join(f"{stage} {len(hooks[stage])}" for stage in STAGES)
    yield Finding(INFO, "hooks", directory, f"hooks by stage: {counts}" if everywhere else "there are no hooks")
    for file in skipped:
        # a hidden file, a README or a backup is not a mistake; these may be one
        severity = WARNING if file.reason in (SkipReason.NOT_EXECUTABLE, SkipReason.NAME) else INFO
        yield Finding(severity, "hooks", directory, file.text)
    search_path = usual_variables(settings)["PATH"]
    for hook in everywhere:
        reason = hook.problem or _cannot_start(hook.path, search_path)
        if reason is not None:
            yield Finding(ERROR, "hooks", hook.path, f"it will not be run, and counts as failed: {reason}")
    yield from _check_stages(directory)
    yield from _check_keys(everywhere, settings)
    yield from _check_needs(hooks[PREPARE], settings)
    yield from _check_limits(everywhere, settings.kill_after)
    undone = {without_number(hook.name) for hook in hooks[RECOVER]}
    for hook in hooks[PREPARE]:
        if hook.problem is None and without_number(hook.name) not in undone:
            yield Finding(INFO, "hooks", hook.path, f"no matching recover hook (recover/{hook.name})")


def without_number(name: str) -> str:
    """Return the name of a hook without its leading number: prepare/21-web and recover/79-web are a pair."""
    return _NUMBER.sub("", name)


def _check_stages(directory: str) -> Iterator[Finding]:
    """Report folders that are not stages: their hooks never run."""
    for path in sorted(glob.glob(os.path.join(glob.escape(directory), "*", ""))):
        folder, name = path.rstrip("/"), os.path.basename(path.rstrip("/"))
        if name not in STAGES:
            yield Finding(WARNING, "hooks", folder, f"not a stage, its files are not run{did_you_mean(name, STAGES)}")


def _check_keys(hooks: Iterable[Hook], settings: Settings) -> Iterator[Finding]:
    """Report settings of hooks that do not exist: the hook that was meant runs without them."""
    known = tuple(dict.fromkeys(key for hook in hooks for key in (hook.name, f"{hook.stage}/{hook.name}")))
    for key in settings.hooks:
        if key not in known:
            similar = suggestion(key, known)
            text = f"hooks.{key}: there is no such hook{f'; did you mean {similar}?' if similar else ''}"
            yield Finding(WARNING, "configuration", settings.source("hooks", key), text)


def _check_needs(hooks: Iterable[Hook], settings: Settings) -> Iterator[Finding]:
    """Report hooks that need more time than they may use."""
    for hook in hooks:
        needs, timeout = hook.settings.needs, hook.settings.timeout
        if needs > timeout:
            own = f"{PREPARE}/{hook.name}"
            key = own if "needs" in settings.hooks.get(own, {}) else hook.name
            text = f"hooks.{key}: needs is {needs:g} s, and timeout is {timeout:g} s; lower needs, or raise timeout"
            yield Finding(ERROR, "configuration", settings.source("hooks", key, "needs"), text)


def _check_limits(hooks: Iterable[Hook], kill_after: float) -> Iterator[Finding]:
    """Report hooks whose units systemd would refuse, because it does not accept a limit."""
    limited, systemd = [hook for hook in hooks if hook.settings.unit], Systemd()
    if not limited or not systemd.has_units():
        return
    for number, hook in enumerate(limited):
        problem = systemd.limits_problem(RunOrder(number, hook, b"", {}, hook.settings.timeout, kill_after))
        if problem is not None:
            yield Finding(ERROR, "configuration", hook.path, f"systemd refuses its `unit`: {problem}")


def _cannot_start(path: str, search_path: str) -> str | None:
    """Return why the kernel would not start a file, judging from its first line, or None."""
    try:
        if os.statvfs(path).f_flag & os.ST_NOEXEC:
            return "its file system is mounted noexec"
        with open(path, "rb") as file:
            line = file.read(_FIRST_LINE).split(b"\n")[0]
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if line.startswith(b"\x7fELF"):
        return None
    if not line.startswith(b"#!"):
        return "it does not begin with #! and an interpreter, and is not a program"
    if line.endswith(b"\r"):
        return "its lines end in carriage returns, which the kernel reads as a part of the interpreter's name"
    words = [os.fsdecode(word) for word in line[2:].split()]
    if not words:
        return "its first line names no interpreter"
    if not _executable(words[0]):
        return f"its interpreter {words[0]} is missing, or is not executable"
    command = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
    if os.path.basename(words[0]) != "env" or command is None:
        return None
    if any(_executable(os.path.join(folder or ".", command)) for folder in search_path.split(":")):
        return None
    return f"env will not find {command} on the hooks' PATH ({search_path})"


def _executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
