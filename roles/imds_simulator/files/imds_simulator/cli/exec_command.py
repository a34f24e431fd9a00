# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``exec``: runs a command while a simulator serves, which may be at 169.254.169.254 for the command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from ..namespace.entry import IMDS_ADDRESS, IMDS_PORT
from ..namespace.outside import entered
from ..namespace.relay import relay
from ..scenario.groups import Address, Vm
from ..server.listeners import ListenAddress, Listener
from ..simulator import RunningSimulator
from ..suggestions import unknown
from .commands import EXEC
from .options import http_address
from .output import discard, fail, print_err
from .running import Process, Start, environment_of, parse_with_command, run_command
from .serve_command import UsageError, is_loopback, print_addresses, run

_IMDS_URL = f"http://{IMDS_ADDRESS}"
# a connection to the unspecified address reaches the loopback address
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code of the command."""
    options, command = parse_with_command(EXEC, arguments)
    if options.imds_vm and not options.imds_address:
        fail("--imds-vm: only with --imds-address")
    log = discard if options.quiet else print_err

    async def execute(simulator: RunningSimulator, signals: asyncio.Queue[int]) -> int:
        print_addresses(simulator, log)
        if options.imds_address:
            vm = _vm(options.imds_vm, simulator)
            log(f"listening {_IMDS_URL} for {vm.name}, in the network of the command")
            start = _inside(command, simulator, vm, options.control_token)
        else:
            start = _here(command, simulator, options.control_token)
        return await run_command(start, command[0], signals)

    return run(options, execute, log)


def _vm(wanted: str | None, simulator: RunningSimulator) -> Vm:
    vms = simulator.engine.world.vms
    name = wanted or simulator.engine.scenario.default_vm or next(iter(vms))
    if name not in vms:
        raise UsageError(f"--imds-vm: {unknown('VM', name, vms)}")
    return vms[name]


def _here(command: Sequence[str], simulator: RunningSimulator, token: str | None) -> Start:
    """Return the function that starts ``command`` in the present network."""
    endpoints = simulator.listeners.endpoints()
    environment = environment_of(next(iter(endpoints.values())), endpoints, simulator.control, token)
    return partial(asyncio.create_subprocess_exec, *command, env=environment)


def _inside(command: Sequence[str], simulator: RunningSimulator, vm: Vm, token: str | None) -> Start:
    """Return the function that starts ``command`` in a network namespace, in which 169.254.169.254 is ``vm``.

    It raises CannotEnter if there is no such namespace.
    """
    imds = ListenAddress(Address(IMDS_ADDRESS, IMDS_PORT), (vm.name,), vm)
    served = [imds, *filter(None, map(_address_inside, simulator.listeners.all))]
    outside = http_address(simulator.control)
    control = outside._replace(host="127.0.0.1")
    addresses = [*(each.address for each in served), control]
    reachable = {name for each in served for name in each.vms}
    endpoints = {name: url for name, url in simulator.listeners.endpoints().items() if name in reachable}
    environment = environment_of(_IMDS_URL, endpoints | {vm.name: _IMDS_URL}, f"http://{control}", token)

    async def start() -> Process:
        async with entered(command, environment, addresses) as (process, sockets):
            for listen_address, sock in zip(served, sockets):
                await simulator.listeners.serve_also(listen_address, sock)
            await relay(sockets[-1], outside)
        return process

    return start


def _address_inside(listener: Listener) -> ListenAddress | None:
    """Return the address in the namespace, which has loopback only, at which the URL of ``listener`` works, or None."""
    address = Address(_LOOPBACK.get(listener.address.host, listener.address.host), listener.address.port)
    return listener.listen_address._replace(address=address) if is_loopback(address) else None
