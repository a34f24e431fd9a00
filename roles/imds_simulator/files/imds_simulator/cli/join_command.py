# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``join``: runs a further command at 169.254.169.254 of a running simulator."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Sequence
from types import SimpleNamespace

from ..namespace.entry import IMDS_ADDRESS, IMDS_PORT
from ..namespace.outside import CannotEnter, entered
from ..namespace.processes import kill_processes, network_of
from ..namespace.relay import relay
from ..scenario.groups import Address
from ..suggestions import unknown
from .control_client import ControlError, get_state
from .options import REMOVED_IMDS_OPTIONS, control_options, http_address
from .output import fail, print_problem, program_name
from .parsing import Command, option
from .running import Process, environment_of, parse_with_command, run_command
from .serve_command import signal_queue

# real seconds between two questions whether the VM still exists
_INTERVAL = 1.0
# so many questions without an answer mean that the simulator has ended
_ATTEMPTS = 3
# real seconds for a connection from the source address of a VM
_TIMEOUT = 5.0
_COMMAND = Command(
    "join",
    f"""
Run a further command with a VM of a running simulator, and return its exit code.

\b
Run a handler at the address of the VM web_1:
  {program_name()} join --vm web_1 -- ./handler

The command has a network namespace of its own, in which http://169.254.169.254 is the VM; it needs no root. An event
that deletes the VM ends all processes of that network by SIGKILL: exit code 137.
""",
    [
        *control_options(),
        option("vm", "NAME", "the VM of the address 169.254.169.254", required=True),
    ],
    remedies=REMOVED_IMDS_OPTIONS,
    options_metavar="[OPTIONS] -- COMMAND ...",
)


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code of the command, or 2 if it has no VM to join."""
    options, command = parse_with_command(_COMMAND, arguments)
    try:
        control = http_address(options.control)
    except ValueError as error:
        fail(f"--control: {error}; join relays no other connections")
    address, source = _addresses(options)
    try:
        return asyncio.run(_join(options, address, (source, 0) if source else None, control, command))
    except CannotEnter as error:
        fail(str(error))


def _addresses(options: SimpleNamespace) -> tuple[Address, str]:
    """Return the address of the VM, and the one from which it sends its requests; empty: any."""
    try:
        name, vms = options.vm, get_state(options)["vms"]
    except ControlError as error:
        fail(error.error)
    if name not in vms:
        fail(f"--vm: {options.control}: {unknown('VM', name, vms)}")
    if vms[name]["removed"]:
        fail(f"--vm: {name} was deleted; choose another VM")
    address, source = http_address(vms[name]["endpoint"]), vms[name]["source"] or ""
    if source:
        try:
            socket.create_connection(address, _TIMEOUT, (source, 0)).close()
        except OSError as error:
            fail(f"--vm: cannot connect to {name} from its source address {source}: {error.strerror or error}")
    return address, source


async def _join(
    options: SimpleNamespace, address: Address, local: tuple[str, int] | None, control: Address, command: Sequence[str]
) -> int:
    """Run ``command`` where 169.254.169.254 is ``address``, and the control API has its port; return the exit code."""
    inside = [(IMDS_ADDRESS, IMDS_PORT), ("127.0.0.1", control.port)]
    watchers: list[asyncio.Task[None]] = []

    async def start() -> Process:
        async with entered(command, environment, inside, in_own_session=True) as (process, sockets):
            network = network_of(sockets[0])
            relays = [await relay(sockets[0], address, local), await relay(sockets[1], control)]
        watchers.append(asyncio.create_task(_watch(options, process, network, relays)))
        return process

    url = f"http://{IMDS_ADDRESS}"
    environment = environment_of(url, {options.vm: url}, f"http://127.0.0.1:{control.port}", options.control_token)
    return await run_command(start, command[0], signal_queue(), in_own_session=True)


async def _watch(
    options: SimpleNamespace, process: Process, network: int, relays: Sequence[asyncio.AbstractServer]
) -> None:
    """Kill the command, and all processes in its ``network``, when its VM is deleted.

    Close ``relays`` when the simulator has ended.
    """
    failures = 0
    while failures < _ATTEMPTS:
        await asyncio.sleep(_INTERVAL)
        try:
            state = await asyncio.to_thread(get_state, options)
        except ControlError as error:
            failures = 0 if error.status else failures + 1
            continue
        failures = 0
        if state["vms"].get(options.vm, {}).get("removed"):
            print_problem(f"{options.vm}: the VM was deleted; its command is killed")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            # not in a thread: the program would end before it, as the command has ended
            kill_processes(network)
            return
    for each in relays:
        each.close()
    print_problem(
        f"{options.control}: the simulator has ended, and {IMDS_ADDRESS} refuses connections of the command; "
        "when it runs again, start join again"
    )
