# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for hooks: whether they are found, trusted, and can be started."""

from __future__ import annotations

import os
import re
from typing import Iterable

from azure_scheduled_events.options import did_you_mean, suggestion
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hook, SkipReason, discover_hooks
from hook_runner.hooks.one_run import RunOrder
from hook_runner.hooks.runs import PATH
from hook_runner.hooks.systemd import Systemd
from hook_runner.preflight.report import ERROR, INFO, WARNING, Report
from hook_runner.records import PREPARE, RECOVER, STAGES

# bytes of a first line that the kernel reads
_FIRST_LINE = 256
_NUMBER = re.compile(r"^[0-9]+-(?=.)")


def check_hooks(
    directory: str, settings: Settings, owners: frozenset[int], report: Report
) -> dict[str, tuple[Hook, ...]]:
    """Check all hooks, and return them by stage."""
    hooks, skipped = discover_hooks(directory, settings, owners)
    everywhere = [hook for stage in STAGES for hook in hooks[stage]]
    if not everywhere:
        report.add(INFO, "hooks", directory, "there are no hooks")
    else:
        counts = ", ".join(f"{stage} {len(hooks[stage])}" for stage in STAGES)
        report.add(INFO, "hooks", directory, f"hooks by stage: {counts}")
    for file in skipped:
        # a hidden file, a README or a backup is not a mistake; these may be one
        severity = WARNING if file.reason in (SkipReason.NOT_EXECUTABLE, SkipReason.NAME) else INFO
        report.add(severity, "hooks", directory, file.text)
    for hook in everywhere:
        reason = hook.problem or _cannot_start(hook.path, settings)
        if reason is not None:
            report.add(ERROR, "hooks", hook.path, f"it will not be run, and counts as failed: {reason}")
    _check_stages(directory, report)
    _check_keys(everywhere, settings, report)
    _check_limits(everywhere, settings, report)
    _check_needs(hooks[PREPARE], settings, report)
    undone = {without_number(hook.name) for hook in hooks[RECOVER]}
    for hook in hooks[PREPARE]:
        if hook.problem is None and without_number(hook.name) not in undone:
            report.add(INFO, "hooks", hook.path, f"no matching recover hook (recover/{hook.name})")
    return hooks


def without_number(name: str) -> str:
    """Return the name of a hook without its leading number: prepare/21-web and recover/79-web are a pair."""
    return _NUMBER.sub("", name)


def _check_stages(directory: str, report: Report) -> None:
    """Report folders that are not stages: their hooks never run."""
    try:
        names = sorted(os.listdir(directory), key=os.fsencode)
    except FileNotFoundError:
        return
    except OSError as error:
        report.add(ERROR, "hooks", directory, f"it cannot be listed: {error.strerror}")
        return
    for name in names:
        path = os.path.join(directory, name)
        if name not in STAGES and not name.startswith(".") and os.path.isdir(path):
            report.add(WARNING, "hooks", path, f"not a stage, its files are not run{did_you_mean(name, STAGES)}")


def _check_keys(hooks: Iterable[Hook], settings: Settings, report: Report) -> None:
    """Report settings of hooks that do not exist: the hook that was meant runs without them."""
    known = tuple(dict.fromkeys(key for hook in hooks for key in (hook.name, f"{hook.stage}/{hook.name}")))
    for key in settings.hooks:
        if key not in known:
            similar = suggestion(key, known)
            text = f"hooks.{key}: there is no such hook{(f'; did you mean {similar}?' if similar else '')}"
            report.add(WARNING, "configuration", settings.source("hooks", key), text)


def _check_needs(hooks: Iterable[Hook], settings: Settings, report: Report) -> None:
    """Report hooks that need more time than they may use."""
    for hook in hooks:
        needs, timeout = hook.settings.needs, hook.settings.timeout
        if needs > timeout:
            key = next(key for key in (f"{PREPARE}/{hook.name}", hook.name) if "needs" in settings.hooks.get(key, {}))
            text = f"hooks.{key}: needs is {needs:g} s, and timeout is {timeout:g} s; lower needs, or raise timeout"
            report.add(ERROR, "configuration", settings.source("hooks", key, "needs"), text)


def _check_limits(hooks: list[Hook], settings: Settings, report: Report) -> None:
    """Report hooks whose units systemd would refuse, because it does not accept a limit."""
    limited, systemd = [hook for hook in hooks if hook.settings.unit], Systemd()
    if not limited or not systemd.has_units():
        return
    for number, hook in enumerate(limited):
        order = RunOrder(number, hook, b"", {}, hook.settings.timeout, settings.kill_after)
        problem = systemd.limits_problem(order)
        if problem is not None:
            report.add(ERROR, "configuration", hook.path, f"systemd refuses its `unit`: {problem}")


def _cannot_start(path: str, settings: Settings) -> str | None:
    """Return why the kernel would not start a file, judging from its first line, or None."""
    try:
        if os.statvfs(path).f_flag & os.ST_NOEXEC:
            return "its file system is mounted noexec"
        with open(path, "rb") as file:
            start = file.read(_FIRST_LINE)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if not start.startswith(b"#!"):
        return (
            None
            if start.startswith(b"\x7fELF")
            else "it does not begin with #! and an interpreter, and is not a program"
        )
    line = start[2:].split(b"\n")[0]
    if line.endswith(b"\r"):
        return "its lines end in carriage returns, which the kernel reads as a part of the interpreter's name"
    words = [os.fsdecode(word) for word in line.split()]
    if not words:
        return "its first line names no interpreter"
    if not _executable(words[0]):
        return f"its interpreter {words[0]} is missing, or is not executable"
    if os.path.basename(words[0]) == "env":
        return _env_command_problem(words[1:], settings)
    return None


def _env_command_problem(words: list[str], settings: Settings) -> str | None:
    """Return why `env` will not find its command on the hooks' PATH, or None."""
    command = next((word for word in words if not word.startswith("-") and "=" not in word), None)
    folders = settings.environment.get("PATH", PATH).split(":")
    if command is None or any(_executable(os.path.join(folder or ".", command)) for folder in folders):
        return None
    return f"env will not find {command} on the hooks' PATH ({':'.join(folders)})"


def _executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
