# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A minion of azure_events_steps without Salt: its configuration, and the functions of the execution module."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from azure_events_steps import answers, approval, hook_check, preparation, recovery, status
from azure_events_steps.configuration import parse_configuration
from azure_events_steps.hook_files import HookFiles
from azure_events_steps.minion import Minion
from support.salt.hook_tree import HOOKS
from support.salt.steps import append, raises, variable


class Outcomes(ABC):
    """The outcomes of a minion's functions, and the lines that its steps write into ``log``."""

    log: Path

    @abstractmethod
    def call(self, function: str, *arguments: Any, **named: Any) -> Any:
        """Return the answer of a function of the execution module."""

    def prepare(self, event_id: str | None = None) -> str:
        return self._outcome("prepare", event_id)

    def recover(self, event_id: str | None = None) -> str:
        return self._outcome("recover", event_id)

    def approve(self, event_id: str, *resources: str) -> str:
        answer = self.call("approve_prepared", event_id, list(resources))
        assert set(answer) == {"version", "event_id", "outcome", "reason", "resource_name"}
        outcome: str = answer["outcome"]
        return outcome

    @property
    def ran(self) -> list[str]:
        return [line.rstrip() for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def _outcome(self, function: str, event_id: str | None) -> str:
        answer = self.call(function, event_id)
        assert (
            set(answer) == {"version", "event_id", "outcome", "reason", "changed", "resource_name", "event", "steps"}
            and answer["version"] == 1
        )
        outcome: str = answer["outcome"]
        return outcome


class StepsMinion(Outcomes):
    """A minion whose steps write a line into a file; another process can call it, too.

    ``file_root`` is the master's, with the ready hooks.
    """

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.cachedir = folder / "cache"
        self.log = folder / "ran"
        self.file_root = folder / "no-file-root"
        event_id = variable("EVENT_ID")
        self.section: dict[str, Any] = {
            "endpoint": endpoint,
            **{word: [append(f"{word} {event_id}", self.log)] for word in ("prepare", "recover")},
        }

    def configure(self, **section: Any) -> None:
        self.section.update(section)

    def minion(self, **options: Any) -> Minion:
        """Return the minion as a job has it."""
        hook_files = HookFiles(str(self.cachedir), "no-package", self._fetch_hooks)
        configuration = parse_configuration(self.section)
        clock = _QuickClock()
        return Minion(
            str(self.cachedir),
            configuration,
            raises,
            hook_files=hook_files,
            clock=clock.now,
            sleep=clock.sleep,
            **options,
        )

    def call(self, function: str, *arguments: Any, **named: Any) -> Any:
        return _FUNCTIONS[function](self.minion(), *arguments, **named)

    @property
    def record(self) -> Path:
        return self.cachedir / "azure_events" / "prepared.json"

    @property
    def hook_copies(self) -> list[Path]:
        """Return the versions of the ready hooks on this minion."""
        return sorted(path for path in (self.cachedir / "azure_events").glob("hooks-*") if path.is_dir())

    def _fetch_hooks(self) -> Mapping[str, str]:
        folder = self.file_root / HOOKS
        return {file.relative_to(folder).as_posix(): str(file) for file in folder.rglob("*.py")}


class _QuickClock:
    """The clock of this system, on which a pause between requests to IMDS takes at most 50 milliseconds."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def now(self) -> float:
        return time.monotonic() + self._skipped

    def sleep(self, seconds: float) -> None:
        waited = min(seconds, 0.05)
        time.sleep(waited)
        self._skipped += seconds - waited


def _prepare(minion: Minion, event_id: str | None = None, test: bool = False) -> dict[str, Any]:
    return preparation.prepare(minion, answers.Job(answers.PREPARE, event_id), test)


def _recover(minion: Minion, event_id: str | None = None, test: bool = False) -> dict[str, Any]:
    return recovery.recover(minion, answers.Job(answers.RECOVER, event_id), test)


def _approve_prepared(minion: Minion, event_id: str, resources: list[str], **options: Any) -> dict[str, Any]:
    receipts = Path(minion.folder) / "approvals"
    job = answers.Job(answers.APPROVE, event_id)
    return approval.approve_prepared(minion, job, resources, str(receipts), **options)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "prepare": _prepare,
    "recover": _recover,
    "sweep": recovery.sweep,
    "approve_prepared": _approve_prepared,
    "check": hook_check.check,
    "status": status.status,
}
