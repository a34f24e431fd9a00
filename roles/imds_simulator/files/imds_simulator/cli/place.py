# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Where the command of ``exec`` runs: how it starts, and which addresses it can use, also 169.254.169.254."""

from __future__ import annotations

import socket
from asyncio import create_subprocess_exec
from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import urlsplit

from ..namespace.messages import IMDS_ADDRESS, IMDS_PORT
from ..namespace.outside import start_inside
from ..scenario.groups import Address, Vm, parse_address
from ..server.listeners import ListenAddress, Listener
from ..simulator import RunningSimulator
from ..suggestions import suggestion
from .running import Process, Start
from .serve_command import UsageError, is_loopback

_IMDS = Address(IMDS_ADDRESS, IMDS_PORT)
_IMDS_URL = f"http://{IMDS_ADDRESS}"
# a connection to the unspecified address reaches the loopback address
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Place(NamedTuple):
    """The URLs that the command can use, and the function that starts it with an environment."""

    endpoint: str
    endpoints: Mapping[str, str]
    control: str
    start: Start


async def _start_here(command: Sequence[str], environment: Mapping[str, str]) -> Process:
    return await create_subprocess_exec(*command, env=environment)


def place_of(options: SimpleNamespace, simulator: RunningSimulator) -> Place:
    """Return the place of a command; with ``--imds-address`` it reaches the simulator at the address of IMDS.

    Raises:
        UsageError: there is no VM ``--imds-vm``.
    """
    if not options.imds_address:
        first, *_others = simulator.endpoints.values()
        return Place(first, simulator.endpoints, simulator.control, _start_here)
    vm = _vm(options.imds_vm, simulator)
    # only loopback addresses exist in the namespace
    listeners = [each for each in map(_inside, simulator.listeners.all) if each is not None]
    reachable = {name for each in listeners for name in each.vms}
    endpoints = {name: url for name, url in simulator.endpoints.items() if name in reachable}
    control = parse_address(urlsplit(simulator.control).netloc)._replace(host="127.0.0.1")
    served = [ListenAddress(_IMDS, (vm.name,), vm), *listeners]
    start = partial(_start, simulator, served, control)
    return Place(_IMDS_URL, {**endpoints, vm.name: _IMDS_URL}, f"http://{control}", start)


def _inside(listener: Listener) -> ListenAddress | None:
    """Return the address in the namespace at which the URL of ``listener`` reaches the simulator, or None."""
    address = Address(_LOOPBACK.get(listener.address.host, listener.address.host), listener.address.port)
    return listener.listen_address._replace(address=address) if is_loopback(address) else None


async def _start(
    simulator: RunningSimulator,
    listeners: Sequence[ListenAddress],
    control: Address,
    command: Sequence[str],
    environment: Mapping[str, str],
) -> Process:
    async def serve(sockets: Sequence[socket.socket]) -> None:
        for listen_address, sock in zip(listeners, sockets[1:]):
            await simulator.listeners.serve_also(listen_address, sock)
        await simulator.serve_control(sockets[0])

    addresses = [(each.host, each.port) for each in (control, *(listener.address for listener in listeners))]
    return await start_inside(command, environment, addresses, serve)


def _vm(wanted: str | None, simulator: RunningSimulator) -> Vm:
    vms = simulator.engine.world.vms
    name = wanted or simulator.engine.scenario.default_vm or next(iter(vms))
    if name not in vms:
        raise UsageError(f"--imds-vm: there is no VM {name}{suggestion(name, vms)}; there are {', '.join(sorted(vms))}")
    return vms[name]
