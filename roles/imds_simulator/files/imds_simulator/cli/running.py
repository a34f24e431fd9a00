# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Runs the command of ``exec`` and of ``join``: its words, its environment, its signals and its exit code."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Callable

from .commands import EXEC
from .output import fail, print_problem
from .parsing import CONTROL, CONTROL_TOKEN, ENDPOINT, ENDPOINTS, Command, parse, variables

Process = asyncio.subprocess.Process
# starts a command; raises OSError if it cannot be executed
Start = Callable[[], Awaitable[Process]]
# real seconds that a command has to end after SIGINT before it is sent SIGINT again
_SECOND_INTERRUPT = 1.0


def parse_with_command(verb: Command, arguments: Sequence[str]) -> tuple[SimpleNamespace, list[str]]:
    """Return the options of ``verb``, and the command after ``--``; end with exit code 2 if there is none."""
    words = list(arguments)
    separator = words.index("--") if "--" in words else len(words)
    own, command = words[:separator], words[separator + 1 :]
    if not command and not {"-h", "--help"} & set(own):
        fail(f"{verb.name}: there is no command after --; write: {verb.name} [OPTIONS] -- COMMAND ARGUMENTS...")
    return parse(verb, own), command


def environment_of(endpoint: str, endpoints: Mapping[str, str], control: str, token: str | None) -> dict[str, str]:
    """Return the environment of a command.

    It has IMDS_SIMULATOR_ENDPOINT, IMDS_SIMULATOR_ENDPOINTS (JSON, VM name to URL), IMDS_SIMULATOR_CONTROL, and
    IMDS_SIMULATOR_CONTROL_TOKEN if there is a token. It has no other variable of an option of ``exec``, because the
    command may start another simulator.
    """
    own = variables(EXEC)
    return {
        **{name: text for name, text in os.environ.items() if name not in own},
        ENDPOINT: endpoint,
        ENDPOINTS: json.dumps(endpoints),
        CONTROL: control,
        **({CONTROL_TOKEN: token} if token else {}),
    }


def _send(process: Process, program: str, to_session: bool, number: int) -> None:
    """Send a signal to a command, or to all processes of its session."""
    if process.returncode is not None:
        return
    try:
        if to_session:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
    except ProcessLookupError:
        pass  # it has ended, although the event loop does not know it yet
    except (OSError, ValueError) as error:
        # it has another user; Windows has not every signal
        print_problem(f"signal {number} cannot be sent to {program}: {error}")


async def run_command(start: Start, program: str, signals: asyncio.Queue[int], *, in_own_session: bool = False) -> int:
    """Run the command that ``start`` starts, forward signals to it, and return its exit code, as a shell has it.

    ``program`` is its name, ``signals`` the numbers of the signals. ``in_own_session``: the command leads a session of
    its own; all its processes get the signals.
    """
    try:
        process = await start()
    except OSError as error:
        print_problem(f"cannot run {program}: {error.strerror or error}")
        return 127 if isinstance(error, FileNotFoundError) else 126

    send = partial(_send, process, program, in_own_session)

    async def forward() -> None:
        while True:
            number = await signals.get()
            if number != signal.SIGINT or in_own_session:
                send(number)
            elif not os.isatty(0):
                # a terminal, and most other senders (also CI systems), send SIGINT to the whole process group; a second
                # SIGINT immediately after the first makes ansible-playbook exit without ending its workers
                asyncio.get_running_loop().call_later(_SECOND_INTERRUPT, send, number)

    # a signal that came during the start may not have reached the command
    while not signals.empty():
        send(signals.get_nowait())
    forwarding = asyncio.create_task(forward())
    status = await process.wait()
    forwarding.cancel()
    # a shell returns this code for a command that a signal ended
    return 128 - status if status < 0 else status
