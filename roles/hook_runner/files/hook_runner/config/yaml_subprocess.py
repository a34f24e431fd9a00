# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads YAML in a separate process: PyYAML would keep a megabyte of the daemon's memory."""

from __future__ import annotations

import marshal
import os
import select
import signal
import time

from azure_scheduled_events.yaml_lines import YamlSource, load_with_lines

# seconds; a stuck child must not block a start or a reload for ever
CHILD_TIMEOUT = 10.0


def load_in_subprocess(text: str, name: str, kind: str) -> YamlSource | None:
    """Parse YAML in a separate process; arguments, result and errors are those of `load_with_lines`."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _read_in_child(writer, text, name, kind)
    os.close(writer)
    data = _read_all(reader)
    if data is None:
        os.kill(child, signal.SIGKILL)
    _child, status = os.waitpid(child, 0)
    if data is None or status != 0:
        return load_with_lines(
            text, name, kind
        )  # raises the error again, or returns a value that marshal does not support
    found = marshal.loads(data)
    return None if found is None else YamlSource(*found)


def _read_all(reader: int) -> bytes | None:
    """Read a pipe to its end and close it; return None if its end does not come in time."""
    until = time.monotonic() + CHILD_TIMEOUT
    data = bytearray()
    asked = select.poll()
    asked.register(reader, select.POLLIN)
    try:
        while asked.poll(max(0.0, until - time.monotonic()) * 1000):
            piece = os.read(reader, 65536)
            if not piece:
                return bytes(data)
            data += piece
        return None
    finally:
        os.close(reader)


def _read_in_child(writer: int, text: str, name: str, kind: str) -> None:
    status = 1
    try:
        located = load_with_lines(text, name, kind)
        data = marshal.dumps(None if located is None else tuple(located))
        with open(writer, "wb") as pipe:
            pipe.write(data)
        status = 0
    finally:
        os._exit(status)
