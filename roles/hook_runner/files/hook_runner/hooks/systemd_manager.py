# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Starts transient units over systemd's private socket, without another process or a message bus.

A call takes about a millisecond; ``systemd-run`` takes ten times as long, and cannot pass
descriptors that outlive it to a unit.
"""

from __future__ import annotations

import array
import os
import socket
import time
from typing import Any, NamedTuple, Sequence

from hook_runner.hooks import dbus_message
from hook_runner.hooks.spawning import SYSTEMD, HostEnds

# seconds that systemd may take to answer; while it reloads all units, an answer takes almost one second
ANSWER_TIMEOUT = 10.0
# attempts, and seconds between them, while systemd closes the connection because it re-executes itself
ATTEMPTS, PAUSE = 3, 0.2
EXISTS = "org.freedesktop.systemd1.UnitExists"
# errors of a job that is impossible because the host, or all services, are ending
ENDING = ("org.freedesktop.systemd1.TransactionIsDestructive", "org.freedesktop.systemd1.ShuttingDown")
MAX_ANSWER = 1 << 20


class Property(NamedTuple):
    """A property of a unit: name, D-Bus type and value."""

    name: str
    kind: str
    value: Any


class NoAnswer(OSError):
    """systemd has received the call and may still execute it."""


class Refused(OSError):
    """systemd does not start the unit; the text is the reason."""


def start_transient(name: str, properties: Sequence[Property], descriptors: Sequence[int]) -> None:
    """Start a unit. Return when systemd has accepted the job, before the unit's first instruction.

    A value of type "h" in `properties` is an index into `descriptors`: open files that systemd duplicates and
    keeps for as long as the unit lives. A call is repeated if systemd ends the connection, up to ATTEMPTS times
    in all; then a unit that exists already counts as started.

    Raises:
        Refused: systemd does not start the unit.
        HostEnds: systemd does not start the unit, because the host is ending.
        NoAnswer: it is unknown whether the unit starts.
        OSError: systemd cannot be reached.
    """
    variants = [(each.name, (each.kind, each.value)) for each in properties]
    message = dbus_message.call(
        1,
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
        "StartTransientUnit",
        "ssa(sv)a(sa(sv))",
        (name, "fail", variants, []),
        len(descriptors),
    )
    for attempt in range(1, ATTEMPTS + 1):
        try:
            reply = _ask(message, descriptors)
        except socket.timeout:
            raise NoAnswer(f"systemd did not answer within {ANSWER_TIMEOUT:g} s") from None
        except ConnectionError:
            if attempt == ATTEMPTS:
                raise
            time.sleep(PAUSE)
            continue
        if reply.error in ENDING:
            raise HostEnds("the host is going down")
        if reply.error and not (reply.error == EXISTS and attempt > 1):  # an earlier attempt may have started it
            raise Refused(f"systemd does not start the unit {name}: {reply.text or reply.error}")
        return


def _ask(message: bytes, descriptors: Sequence[int]) -> dbus_message.Reply:
    """Send a call and return its answer. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as channel:
        channel.settimeout(ANSWER_TIMEOUT)
        channel.connect(SYSTEMD)
        _authenticate(channel)
        ancillary = (
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors).tobytes())] if descriptors else []
        )
        sent = channel.sendmsg([message], ancillary)
        channel.sendall(message[sent:])
        until = time.monotonic() + ANSWER_TIMEOUT
        while time.monotonic() < until:
            start = _receive(channel, dbus_message.FIXED)
            try:
                size = dbus_message.length(start)
                reply = dbus_message.reply(start + _receive(channel, size - len(start))) if size < MAX_ANSWER else None
            except ValueError as error:
                raise NoAnswer(str(error)) from None
            if reply is not None and reply.serial == 1:
                return reply
        raise socket.timeout()


def _authenticate(channel: socket.socket) -> None:
    """Authenticate by the credentials of this process, and enable the passing of descriptors."""
    identity = str(os.geteuid()).encode("ascii").hex().encode("ascii")
    # in one piece: systemd closes a connection whose descriptors arrive together with the end of this
    channel.sendall(b"\0AUTH EXTERNAL %s\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n" % identity)
    answers = b""
    while answers.count(b"\r\n") < 2:
        answers += _receive(channel, 1)
    if not answers.startswith(b"OK ") or b"\r\nAGREE_UNIX_FD" not in answers:
        raise PermissionError(f"systemd refuses to authenticate this process: {answers!r}")


def _receive(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = channel.recv(size - len(data))
        if not piece:
            raise ConnectionResetError("systemd ended the connection")
        data += piece
    return data
