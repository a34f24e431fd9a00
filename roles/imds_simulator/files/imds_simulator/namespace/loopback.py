# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Changes the interface lo of the present network namespace, without the program ``ip``.

Each function raises OSError if the kernel refuses it.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct

# linux/sockios.h, linux/if.h
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
# linux/netlink.h
_NETLINK_ROUTE = 0
_REQUEST_AND_ACKNOWLEDGE, _CREATE, _EXCLUSIVE = 0x1 | 0x4, 0x400, 0x200
_ERROR = 2
# linux/rtnetlink.h, linux/if_addr.h
_NEW_ADDRESS = 20
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_SCOPE_HOST = 254
_HEADER = struct.Struct("=IHHII")


def bring_up() -> None:
    """Bring lo up, which gives it 127.0.0.1 and ::1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh22x", b"lo", 0)
        _name, flags = struct.unpack("16sh22x", fcntl.ioctl(sock, _SIOCGIFFLAGS, request))
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))


def add_address(address: str) -> None:
    """Add the IPv4 ``address`` to lo."""
    packed = socket.inet_aton(address)
    body = struct.pack("=BBBBi", socket.AF_INET, 32, 0, _SCOPE_HOST, socket.if_nametoindex("lo"))
    for attribute in (_IFA_LOCAL, _IFA_ADDRESS):
        body += struct.pack("=HH", 4 + len(packed), attribute) + packed
    flags = _REQUEST_AND_ACKNOWLEDGE | _CREATE | _EXCLUSIVE
    header = _HEADER.pack(_HEADER.size + len(body), _NEW_ADDRESS, flags, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as sock:
        sock.bind((0, 0))
        sock.send(header + body)
        answer = sock.recv(4096)
    if _HEADER.unpack_from(answer)[1] != _ERROR:
        raise OSError("netlink: the kernel sent an unknown answer")
    code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
    if code:
        raise OSError(code, os.strerror(code))
