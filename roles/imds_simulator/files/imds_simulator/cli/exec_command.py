# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``exec``: runs a command while a simulator serves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Sequence
from types import SimpleNamespace
from typing import Callable

from ..simulator import ServerOptions, run_simulator
from .commands import EXEC
from .output import discard, print_err
from .parsing import CONTROL, CONTROL_TOKEN, ENDPOINT, ENDPOINTS, fail, parse, variables
from .place import CannotRun, Process, place_of
from .program import program_name
from .serve_command import on_signals, print_addresses, run

# real seconds that a command has to end after SIGINT before it is sent SIGINT again
_SECOND_INTERRUPT = 1.0


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code of the command."""
    words = list(arguments)
    if "--" not in words and not {"-h", "--help"} & set(words):
        fail("exec needs a command after --: exec [OPTIONS] -- COMMAND ARGUMENTS...")
    separator = words.index("--") if "--" in words else len(words)
    options = parse(EXEC, words[:separator])
    if not words[separator + 1 :]:
        fail("exec: there is no command after --")
    if not options.imds_address:
        for option in ("imds_vm", "keep_network", "as_root"):
            if getattr(options, option):
                fail(f"--{option.replace('_', '-')}: only with --imds-address")
    if options.keep_network and options.as_root:
        fail("--as-root: not with --keep-network, which creates no user namespace")
    try:
        return run(options, lambda settings: _serve_during(settings, options, words[separator + 1 :]))
    except CannotRun as error:
        print(f"{program_name()}: {error}", file=sys.stderr)
        return error.status


async def _serve_during(settings: ServerOptions, options: SimpleNamespace, command: Sequence[str]) -> int:
    """Run ``command`` while the simulator serves and return its exit code.

    The environment of the command has IMDS_SIMULATOR_ENDPOINT (first VM, or that of 169.254.169.254),
    IMDS_SIMULATOR_ENDPOINTS (JSON, VM name to URL), IMDS_SIMULATOR_CONTROL, and IMDS_SIMULATOR_CONTROL_TOKEN
    if there is a token. It has no other variable of an option, because the command may start another simulator.
    Signals go to the command.

    Raises:
        CannotEnter: the command cannot have the address of IMDS.
        CannotRun: the command cannot be executed.
    """
    log = discard if options.quiet else print_err
    async with run_simulator(settings, log) as simulator:
        print_addresses(simulator, log)
        async with place_of(options, simulator) as place:
            if options.imds_address:
                vm = next(name for name, url in place.endpoints.items() if url == place.endpoint)
                log(f"listening {place.endpoint} for {vm}, in the network of the command")
            own = variables(EXEC)
            environment = {
                **{name: text for name, text in os.environ.items() if name not in own},
                ENDPOINT: place.endpoint,
                ENDPOINTS: json.dumps(place.endpoints),
                CONTROL: place.control,
                **({CONTROL_TOKEN: settings.control_token} if settings.control_token else {}),
            }
            status = await _run(lambda: place.start(command, environment))
    # the exit code that a shell returns for a command that a signal ended
    return 128 - status if status < 0 else status


async def _run(start: Callable[[], Awaitable[Process]]) -> int:
    """Run the command that ``start`` starts, forward signals to it, and return its status."""
    process: Process | None = None
    early_signals: list[int] = []

    def forward(number: int) -> None:
        # a terminal sends SIGINT to the whole foreground process group itself
        if number == signal.SIGINT and os.isatty(0):
            return
        if process is None:
            early_signals.append(number)
        elif number == signal.SIGINT:
            # most senders (also CI systems) send SIGINT to the whole process group; a second SIGINT
            # immediately after the first makes ansible-playbook exit without ending its workers
            asyncio.get_running_loop().call_later(_SECOND_INTERRUPT, send, number)
        else:
            send(number)

    def send(number: int) -> None:
        if process is not None and process.returncode is None:
            process.send_signal(number)

    # before the command starts, because a signal during the start must reach the command too
    on_signals(forward)
    process = await start()
    for number in early_signals:
        forward(number)
    return await process.wait()
