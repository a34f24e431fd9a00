# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of the D-Bus wire format that a call of systemd's manager needs. Pure functions."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, Sequence

CALL, RETURN, ERROR = 1, 2, 3
_PATH, _INTERFACE, _MEMBER, _ERROR_NAME, _REPLY_SERIAL, _DESTINATION, _SIGNATURE, _UNIX_FDS = 1, 2, 3, 4, 5, 6, 8, 9
# bytes of the fixed part of a header, with the length of the fields
FIXED = 16
# the alignment of each type, and how struct writes it
_ALIGNMENT = {"y": 1, "b": 4, "i": 4, "u": 4, "h": 4, "t": 8, "s": 4, "g": 1, "v": 1, "a": 4, "(": 8}
_NUMBERS = {"y": "B", "b": "I", "i": "i", "u": "I", "h": "I", "t": "Q"}


class Reply(NamedTuple):
    """An answer to a call.

    Attributes:
        serial: number of the call that it answers.
        error: name of the error, such as ``org.freedesktop.systemd1.UnitExists``; "" where the call
            succeeded.
        text: what the error says.
    """

    serial: int
    error: str
    text: str


def call(
    serial: int, path: str, interface: str, member: str, signature: str, arguments: Sequence[Any], descriptors: int = 0
) -> bytes:
    """Return a method call with the number `serial`, 1 or more.

    `arguments` has one value for each type of `signature`; a variant is a pair (type, value), a struct a tuple,
    an array a list. `descriptors` is how many file descriptors go with it; a value of type "h" is an index into
    these.
    """
    body = _Writer()
    for each, value in zip(split(signature), arguments):
        body.add(each, value)
    fields: list[tuple[int, tuple[str, Any]]] = [
        (_PATH, ("o", path)),
        (_INTERFACE, ("s", interface)),
        (_MEMBER, ("s", member)),
        (_SIGNATURE, ("g", signature)),
    ]
    if descriptors:
        fields.append((_UNIX_FDS, ("u", descriptors)))
    header = _Writer()
    for number in (ord("l"), CALL, 0, 1):
        header.add("y", number)
    header.add("u", len(body.data))
    header.add("u", serial)
    header.add("a(yv)", fields)
    header.align(8)
    return bytes(header.data + body.data)


def length(start: bytes) -> int:
    """Return how many bytes the message has that begins with these FIXED ones. Raises ValueError."""
    order = _order(start)
    body, _serial, fields = struct.unpack_from(order + "III", start, 4)
    size: int = FIXED + (fields + 7) // 8 * 8 + body
    return size


def reply(message: bytes) -> Reply | None:
    """Return the answer that a whole message is; None for a signal or a call. Raises ValueError."""
    order, kind = _order(message), message[1]
    if kind not in (RETURN, ERROR):
        return None
    try:
        body, _serial, fields = struct.unpack_from(order + "III", message, 4)
        found = _fields(message, order, FIXED + fields)
        text = ""
        if kind == ERROR and str(found.get(_SIGNATURE, "")).startswith("s"):
            text = _text(message, order, len(message) - body)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"a message of D-Bus cannot be read: {error}") from None
    serial = found.get(_REPLY_SERIAL)
    return Reply(
        serial if isinstance(serial, int) else 0, str(found.get(_ERROR_NAME, "error")) if kind == ERROR else "", text
    )


def split(signature: str) -> list[str]:
    """Return the single complete types of a signature."""
    found, at = [], 0
    while at < len(signature):
        end = _end_of_type(signature, at)
        found.append(signature[at:end])
        at = end
    return found


def _end_of_type(signature: str, at: int) -> int:
    if signature[at] == "a":
        return _end_of_type(signature, at + 1)
    if signature[at] != "(":
        return at + 1
    depth = 0
    for end in range(at, len(signature)):
        depth += {"(": 1, ")": -1}.get(signature[end], 0)
        if depth == 0:
            return end + 1
    raise ValueError(f"{signature} is not a signature")


class _Writer:
    """Appends values in little-endian order."""

    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, to: int) -> None:
        self.data += bytes(-len(self.data) % to)

    def add(self, kind: str, value: Any) -> None:
        self.align(_ALIGNMENT.get(kind[0], 4))
        if kind in _NUMBERS:
            self.data += struct.pack("<" + _NUMBERS[kind], value)
        elif kind in ("s", "o"):
            text = value.encode("utf-8")
            self.data += struct.pack("<I", len(text)) + text + b"\0"
        elif kind == "g":
            self.data += bytes([len(value)]) + value.encode("ascii") + b"\0"
        elif kind == "v":
            self.add("g", value[0])
            self.add(*value)
        elif kind[0] == "(":
            for each, item in zip(split(kind[1:-1]), value):
                self.add(each, item)
        else:
            self._add_array(kind[1:], value)

    def _add_array(self, kind: str, items: Any) -> None:
        """Four bytes for the length of all items, without the padding before the first one."""
        at = len(self.data)
        self.data += bytes(4)
        self.align(_ALIGNMENT.get(kind[0], 4))
        begin = len(self.data)
        if kind == "y":
            self.data += items
        else:
            for item in items:
                self.add(kind, item)
        struct.pack_into("<I", self.data, at, len(self.data) - begin)


def _order(start: bytes) -> str:
    if start[:1] not in (b"l", b"B"):
        raise ValueError(f"a message of D-Bus does not begin so: {start[:1]!r}")
    return "<" if start[:1] == b"l" else ">"


def _fields(message: bytes, order: str, end: int) -> dict[int, object]:
    """Return the header's fields that hold a text or a number."""
    found: dict[int, object] = {}
    at = FIXED
    while at < end:
        at += -at % 8
        code, kind = message[at], chr(message[at + 2])
        at += 4
        if kind == "g":
            found[code] = message[at + 1 : at + 1 + message[at]].decode("ascii")
            at += message[at] + 2
            continue
        at += -at % 4
        if kind == "u":
            (found[code],) = struct.unpack_from(order + "I", message, at)
            at += 4
        else:
            found[code] = _text(message, order, at)
            at += 4 + len(str(found[code]).encode("utf-8")) + 1
    return found


def _text(message: bytes, order: str, at: int) -> str:
    (size,) = struct.unpack_from(order + "I", message, at)
    return message[at + 4 : at + 4 + size].decode("utf-8")
