# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The listening addresses, one per VM or shared; they are closed while a fault refuses connections."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Iterable
from typing import NamedTuple

from aiohttp import web
from aiohttp.http import HttpProcessingError

from ..scenario.groups import Address, Vm, colliding
from .engine import Engine
from .imds_handler import ImdsHandler

# a thousand VMs may connect within the same second
_BACKLOG = 2048
# seconds that a request in progress gets when the simulator stops
SHUTDOWN_TIMEOUT = 0.1


class CannotListen(Exception):
    """The simulator cannot listen on an address; the text names the address and the reason."""


class ListenAddress(NamedTuple):
    """An address with its VMs. ``sole_vm`` is None when ``vms`` share the address."""

    address: Address
    vms: tuple[str, ...]
    sole_vm: Vm | None


def listen_addresses(vms: Iterable[Vm], listen: Address) -> list[ListenAddress]:
    """Return the addresses of ``vms``.

    A VM with an address ``listen`` of its own gets that address. VMs with a ``source`` share the
    address ``listen``. The others get ``listen``, if it is not shared, and the ports that follow.
    """
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


def conflict(listen: Iterable[ListenAddress], control: Address) -> str:
    """Return the address that the simulator would need twice, and what for; an empty text if there is none."""
    used = (ListenAddress(control, ("--control",), None), *listen)
    for each, other in colliding((each.address, each) for each in used):
        return f"{each.address} is the address of {each.vms[0]} and of {other.vms[0]}"
    return ""


class Listener:
    """One listening address in use.

    ``foreign`` is a bound socket of another network namespace, in which this process cannot bind again.
    """

    def __init__(
        self, listen_address: ListenAddress, web_server: web.Server, foreign: socket.socket | None = None
    ) -> None:
        self.vms = listen_address.vms
        self._web_server = web_server
        self._foreign = foreign
        self._sock: socket.socket | None = self._bind(listen_address.address)
        self.address = bound(self._sock)
        self.listen_address = listen_address._replace(address=self.address)
        self._server: asyncio.AbstractServer | None = None

    @property
    def url(self) -> str:
        """The address as a URL."""
        return f"http://{self.address}"

    @property
    def is_accepting(self) -> bool:
        """True while connections are accepted."""
        return self._server is not None

    async def open(self) -> None:
        """Accept connections.

        Raises:
            CannotListen: another process took the address while it was closed.
        """
        sock = self._sock or self._bind(self.address)
        self._sock = None
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._web_server, sock=sock, backlog=_BACKLOG)
        except OSError as error:
            # another process bound the same address and listened first
            sock.close()
            raise _cannot_listen(self.address, error) from None

    def refuse(self) -> None:
        """Close the socket and all connections; clients get "connection refused"."""
        self._stop_accepting()
        # a bound socket that does not listen refuses connections and reserves the port
        with contextlib.suppress(CannotListen):
            self._sock = self._bind(self.address)
        for connection in list(self._web_server.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()

    async def close(self) -> None:
        """Stop without a later start; requests in progress get SHUTDOWN_TIMEOUT."""
        self._stop_accepting()
        if self._foreign is not None:
            self._foreign.close()
        await self._web_server.shutdown(SHUTDOWN_TIMEOUT)

    def _bind(self, address: Address) -> socket.socket:
        return bind(address) if self._foreign is None else self._foreign.dup()

    def _stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()
            if self._foreign is not None:
                # the duplicate listens on; after a shutdown the socket is bound, and can listen again
                self._foreign.shutdown(socket.SHUT_RDWR)
        elif self._sock is not None:
            self._sock.close()
        self._server, self._sock = None, None


def bind(address: Address) -> socket.socket:
    """Return a socket that is bound to ``address``.

    Raises:
        CannotListen: the address is in use, or does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with contextlib.ExitStack() as opened:
        try:
            sock = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setblocking(False)
            sock.bind((address.host, address.port))
        except (OSError, OverflowError) as error:
            raise _cannot_listen(address, error) from None
        # the caller closes it
        opened.pop_all()
    return sock


def _cannot_listen(address: Address, error: Exception) -> CannotListen:
    """Return the error for ``address``, at which ``error`` occurred."""
    reason = getattr(error, "strerror", None) or error
    return CannotListen(f"cannot listen on {address}: {reason}{bind_advice(address, getattr(error, 'errno', None))}")


def bind_advice(address: Address, code: int | None) -> str:
    """Return what the operator can do about the error ``code``, an ``errno``; empty if it is another error."""
    if code == errno.EADDRNOTAVAIL:
        prefix = 128 if ":" in address.host else 32
        return f"; add the address: ip address add {address.host}/{prefix} dev lo"
    if code in (errno.EACCES, errno.EPERM) and address.port < 1024:
        return (
            f"; port {address.port} needs root, the capability CAP_NET_BIND_SERVICE, or: "
            f"sysctl net.ipv4.ip_unprivileged_port_start={address.port}; to give one command the address "
            "169.254.169.254 without root, use exec --imds-address"
        )
    if code == errno.EADDRINUSE:
        return (
            f"; find the program that uses port {address.port}: ss -ltnp 'sport = :{address.port}'; or choose another "
            "port, 0 for any free one"
        )
    if code == errno.EMFILE:
        return (
            "; each VM needs open files; raise the hard limit (ulimit -Hn; LimitNOFILE= of a service), or use fewer VMs"
        )
    return ""


def bound(sock: socket.socket) -> Address:
    """Return the address of ``sock``, with the real port."""
    name = sock.getsockname()
    return Address(name[0], name[1])


def hide_client_errors() -> None:
    """Keep the errors of clients, which get an answer with the reason, out of the log of aiohttp in this process.

    Aiohttp prints a traceback for each: older versions also for a browser that is sent to https:// instead of http://.
    """
    logging.getLogger("aiohttp.server").addFilter(_is_ours)


def _is_ours(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], (HttpProcessingError, web.RequestPayloadError))


class Listeners:
    """All listening addresses of a running simulator."""

    def __init__(self, engine: Engine, listen: Address) -> None:
        self._engine = engine
        self._refusal_lock = asyncio.Lock()
        self.all: list[Listener] = []
        self._inside: list[Listener] = []
        self._imds = ImdsHandler(engine)
        for listen_address in listen_addresses(engine.world.vms.values(), listen):
            self.all.append(Listener(listen_address, self._imds.listener(listen_address.sole_vm)))

    def endpoints(self) -> dict[str, str]:
        """Return VM name -> URL, in the order of the scenario."""
        urls = {vm: each.url for each in self.all for vm in each.vms}
        return {name: urls[name] for name in self._engine.world.vms}

    async def open(self) -> None:
        """Accept connections on all addresses; raises CannotListen."""
        for each in self.all:
            await each.open()

    async def serve_also(self, listen_address: ListenAddress, sock: socket.socket) -> None:
        """Accept connections also at an address that ``endpoints`` does not name.

        ``sock`` is a bound socket of another network namespace.
        """
        listener = Listener(listen_address, self._imds.listener(listen_address.sole_vm), sock)
        self._inside.append(listener)
        await listener.open()
        await self.apply_refusals()

    async def apply_refusals(self) -> None:
        """Close and reopen listeners as the active ``refuse`` faults and the deleted VMs require."""
        # the ticker and the control API may call this at the same time, and ``open`` suspends
        async with self._refusal_lock:
            engine = self._engine
            refused_vms = engine.faults.refused_vms(engine.clock.now()) | engine.world.removed
            for each in (*self.all, *self._inside):
                # a shared address serves the VMs that are left
                refused = refused_vms.issuperset(each.vms)
                if refused and each.is_accepting:
                    each.refuse()
                    self._engine.log("refusing", address=each.url)
                elif not refused and not each.is_accepting:
                    await self._open_again(each)

    async def close(self) -> None:
        """Close all addresses without a later opening."""
        await asyncio.gather(*(each.close() for each in (*self.all, *self._inside)))

    async def _open_again(self, listener: Listener) -> None:
        try:
            await listener.open()
        except CannotListen as error:
            self._engine.log("cannot-listen", error=str(error))
        else:
            self._engine.log("listening-again", address=listener.url)
