# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Commands that make an interruption real: in the background, with a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Mapping
from string import Template
from typing import Any, Callable

from ..model.events import Occurrence
from ..scenario.plans import ImpactCommands
from ..times import iso

_PHASES = {"impact-start": "start", "impact-end": "end"}
_MAX_OUTPUT = 4096
# Names come by the control API, and an argument may be code: a value in it must not end a word or begin an option.
_UNSAFE = re.compile(r"^-|[^\w.,:@-]")

LogFunction = Callable[..., None]


class Impact:
    """Starts the commands of a scenario; ``log(what, **fields)`` adds a line to the log."""

    def __init__(self, commands: ImpactCommands, log: LogFunction) -> None:
        self._commands = commands
        self._log = log
        self._running: set[asyncio.Task[None]] = set()

    def run_for(self, occurrence: Occurrence) -> None:
        """Start the command for this occurrence, once for each affected VM."""
        phase = _PHASES.get(occurrence.kind)
        if phase is None:
            return
        argv = self._commands.command(str(occurrence.detail["type"]), phase)
        if argv is None:
            return
        for vm in occurrence.detail["resources"]:
            task = asyncio.get_running_loop().create_task(self._run(argv, variables(occurrence, vm, phase)))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def stop(self) -> None:
        """End the commands that still run."""
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self, argv: tuple[str, ...], values: Mapping[str, str]) -> None:
        safe = {name: _UNSAFE.sub("_", value) for name, value in values.items()}
        command = [Template(part).safe_substitute(safe) for part in argv]
        fields: dict[str, Any] = {"command": command, "vm": values["VM_NAME"], "event": values["EVENT_NAME"]}
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **values},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._log("impact-command", error=str(error), **fields)
            return
        try:
            output = await asyncio.wait_for(_last_output(process), self._commands.timeout)
        except asyncio.TimeoutError:
            await _end(process)
            self._log("impact-command", error=f"stopped after {self._commands.timeout:g} s", **fields)
        except asyncio.CancelledError:
            await _end(process)
            raise
        else:
            self._log(
                "impact-command",
                status=process.returncode,
                output=output.decode(errors="replace"),
                **fields,
            )


def variables(occurrence: Occurrence, vm: str, phase: str) -> dict[str, str]:
    """Return the variables for the environment and the arguments of a command."""
    return {
        "EVENT_ID": occurrence.event_id,
        "EVENT_NAME": occurrence.event,
        "EVENT_TYPE": str(occurrence.detail["type"]),
        "EVENT_PHASE": phase,
        "EVENT_TIME": iso(occurrence.moment),
        "EVENT_RESOURCES": ",".join(occurrence.detail["resources"]),
        "GROUP_NAME": occurrence.group,
        "VM_NAME": vm,
    }


async def _last_output(process: asyncio.subprocess.Process) -> bytes:
    """Return the last bytes of the output when the command has ended."""
    assert process.stdout is not None, "it is a pipe"
    last = b""
    while part := await process.stdout.read(_MAX_OUTPUT):
        last = (last + part)[-_MAX_OUTPUT:]
    await process.wait()
    return last


async def _end(process: asyncio.subprocess.Process) -> int | None:
    """Kill the command, which leads a process group of its own, and the processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            # without the processes that it started
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    return await process.wait()
