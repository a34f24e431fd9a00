# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Commands that make an interruption real: run beside the service, limited in time, never waited for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from string import Template
from typing import Any, Callable

from ..model.occurrence import Occurrence
from ..scenario.plans import ImpactCommands
from ..times import iso

_PHASES = {"impact-start": "start", "impact-end": "end"}
_KEEP_OUTPUT = 4096

Tell = Callable[..., None]


class Impact:
    """Starts the commands of a scenario; ``tell(what, **fields)`` writes a line of the log."""

    def __init__(self, commands: ImpactCommands, tell: Tell) -> None:
        self._commands = commands
        self._tell = tell
        self._running: set[asyncio.Task[None]] = set()

    def happened(self, happening: Occurrence) -> None:
        """Run what the scenario wants for this, once per affected VM."""
        phase = _PHASES.get(happening.what)
        if phase is None:
            return
        argv = self._commands.commands.get((str(happening.detail["type"]), phase))
        if argv is None:
            return
        for vm in happening.detail["resources"]:
            task = asyncio.get_running_loop().create_task(self._run(argv, variables(happening, vm, phase)))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def stop(self) -> None:
        """End whatever still runs."""
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self, argv: tuple[str, ...], values: Mapping[str, str]) -> None:
        command = [Template(part).safe_substitute(values) for part in argv]
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
            self._tell("impact-command", error=str(error), **fields)
            return
        try:
            output, _none = await asyncio.wait_for(process.communicate(), self._commands.timeout)
        except asyncio.TimeoutError:
            await _end(process)
            self._tell("impact-command", error=f"stopped after {self._commands.timeout:g} s", **fields)
        except asyncio.CancelledError:
            await _end(process)
            raise
        else:
            self._tell(
                "impact-command",
                status=process.returncode,
                output=output[-_KEEP_OUTPUT:].decode(errors="replace"),
                **fields,
            )


def variables(happening: Occurrence, vm: str, phase: str) -> dict[str, str]:
    """What a command is told, in its environment and for ``${NAME}`` in its arguments."""
    return {
        "EVENT_ID": happening.event_id,
        "EVENT_NAME": happening.event,
        "EVENT_TYPE": str(happening.detail["type"]),
        "EVENT_PHASE": phase,
        "EVENT_TIME": iso(happening.moment),
        "EVENT_RESOURCES": ",".join(happening.detail["resources"]),
        "GROUP_NAME": happening.group,
        "VM_NAME": vm,
    }


async def _end(process: asyncio.subprocess.Process) -> int | None:
    """Kill the command with everything it started: it is the leader of its own session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return await process.wait()
