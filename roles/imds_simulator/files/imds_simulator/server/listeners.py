# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The listening addresses: one per VM, or one that VMs share; closed while a fault refuses connections."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterable
from typing import NamedTuple

from aiohttp import web

from ..scenario.groups import Address, Vm
from .engine import Engine
from .imds_handler import ImdsHandler

# a thousand VMs may connect within the same second
_BACKLOG = 2048
# what a request under way gets when the simulator stops, in seconds
SHUTDOWN_TIMEOUT = 0.1


class CannotListen(Exception):
    """An address that is in use, or not ours."""


class ListenAddress(NamedTuple):
    """Who listens where: ``own`` is the only VM there, None when ``vms`` share the address."""

    address: Address
    vms: tuple[str, ...]
    own: Vm | None


def listen_addresses(vms: Iterable[Vm], listen: Address) -> list[ListenAddress]:
    """VMs with a ``listen`` of their own are there, VMs with a ``source`` together at ``listen``, and the others at
    ``listen`` and the ports that follow it."""
    vms = list(vms)
    shared = tuple(vm.name for vm in vms if vm.source)
    found = [ListenAddress(listen, shared, None)] if shared else []
    following = len(found)
    for vm in vms:
        if vm.listen is not None:
            found.append(ListenAddress(vm.listen, (vm.name,), vm))
        elif not vm.source:
            port = listen.port + following if listen.port else 0
            found.append(ListenAddress(Address(listen.host, port), (vm.name,), vm))
            following += 1
    return found


class Listener:
    """One listening address in use."""

    def __init__(self, place: ListenAddress, web_server: web.Server) -> None:
        self.vms = place.vms
        self._web_server = web_server
        self._sock: socket.socket | None = bind(place.address)
        self.address = bound(self._sock)
        self._server: asyncio.AbstractServer | None = None

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @property
    def accepts(self) -> bool:
        return self._server is not None

    async def open(self) -> None:
        """Accept connections; CannotListen when somebody took the address while it was closed."""
        sock = self._sock or bind(self.address)
        self._sock = None
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._web_server, sock=sock, backlog=_BACKLOG)
        except OSError as error:
            # somebody has bound the same address by its number, and was the first to listen
            sock.close()
            raise _cannot_listen(self.address, error) from None

    def refuse(self) -> None:
        """Close the socket and every connection: clients get "connection refused"."""
        self._stop_accepting()
        # nobody listens at a bound socket, and as long as there is one, nobody else is given the
        # port
        with contextlib.suppress(CannotListen):
            self._sock = bind(self.address)
        for connection in list(self._web_server.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()

    async def close(self) -> None:
        """Stop for good; requests under way have a moment."""
        self._stop_accepting()
        await self._web_server.shutdown(SHUTDOWN_TIMEOUT)

    def _stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()
        elif self._sock is not None:
            self._sock.close()
        self._server, self._sock = None, None


def bind(address: Address) -> socket.socket:
    """A bound socket; CannotListen says which address is the matter."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setblocking(False)
    try:
        sock.bind((address.host, address.port))
    except (OSError, OverflowError) as error:
        sock.close()
        raise _cannot_listen(address, error) from None
    return sock


def _cannot_listen(address: Address, error: Exception) -> CannotListen:
    return CannotListen(f"cannot listen on {address}: {getattr(error, 'strerror', None) or error}")


def bound(sock: socket.socket) -> Address:
    """The address that ``sock`` has, with the real port."""
    name = sock.getsockname()
    return Address(name[0], name[1])


class Listeners:
    """All listening addresses of a running simulator."""

    def __init__(self, engine: Engine, listen: Address) -> None:
        self._engine = engine
        self._obeying = asyncio.Lock()
        self.all: list[Listener] = []
        imds = ImdsHandler(engine)
        for place in listen_addresses(engine.world.vms.values(), listen):
            self.all.append(Listener(place, imds.listener(place.own)))

    def endpoints(self) -> dict[str, str]:
        """VM name -> URL, in the order of the scenario."""
        urls = {vm: each.url for each in self.all for vm in each.vms}
        return {name: urls[name] for name in self._engine.world.vms}

    async def open(self) -> None:
        for each in self.all:
            await each.open()

    async def apply_refusals(self) -> None:
        """Close and reopen listeners as the refuse faults demand at this moment."""
        # the ticker and the control API may come at the same time, and opening takes a moment,
        # after which it is later
        async with self._obeying:
            for each in self.all:
                refused = self._engine.faults.is_refused(each.vms, self._engine.clock.now())
                if refused and each.accepts:
                    each.refuse()
                    self._engine.log("refusing", address=each.url)
                elif not refused and not each.accepts:
                    await self._open_again(each)

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in self.all))

    async def _open_again(self, listener: Listener) -> None:
        try:
            await listener.open()
        except CannotListen as error:
            self._engine.log("cannot-listen", error=str(error))
        else:
            self._engine.log("listening-again", address=listener.url)
