# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A ready hook for tests: it writes a line for each run, and waits for a file before it ends.

It replaces the hook ``command`` in a copy of the ready hooks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ready_hooks.core import arguments
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import OutOfTime
from ready_hooks.core.hook import ERROR, INFO, WARNING, Finding, ReadyHook


class Probe(ReadyHook):
    """Append NAME and the verb to a file."""

    name = "command"
    summary = "Writes lines."
    options = (
        Option("file", arguments.path, "the file", required=True),
        Option("wait_for", arguments.path, "file whose existence ends the preparation"),
        Option("wait", arguments.seconds, "seconds to wait for it; by default all that are left"),
        Option("warn", arguments.boolean, "whether the check has a warning", False),
    )

    def check(self) -> Iterator[Finding]:
        folder = os.path.dirname(self.run.options["file"])
        exists = os.path.isdir(folder)
        yield Finding(INFO if exists else ERROR, f"{folder}: {'it exists' if exists else 'there is no such folder'}")
        if self.run.options["warn"]:
            yield Finding(WARNING, "a warning")

    def prepare(self) -> None:
        if self.run.record.load() is None:
            self.run.remember({})
        self.run.act("write", self._write, "prepare")
        wanted = self.run.options["wait_for"]
        most = self.run.options["wait"]
        if wanted and not self.run.deadline.wait_until(lambda: os.path.exists(wanted), most, interval=0.05):
            raise OutOfTime(wanted, "it does not exist")

    def recover(self) -> None:
        if self.run.record.load() is not None:
            self.run.act("write", self._write, "recover")
            self.run.forget()

    def _write(self, verb: str) -> None:
        with open(self.run.options["file"], "a", encoding="utf-8") as file:
            file.write(f"{self.run.name} {verb} {os.environ['EVENT_STAGE']} {os.environ['HOOK_SECONDS']}\n")


HOOK = Probe
