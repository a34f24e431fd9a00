# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""kill -9 of a process before one of its changes, which audit events of Python announce."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

from support.daemon.child_processes import die, in_child

SIGKILL = -9
START, REMOVE, APPROVE = "start a hook", "forget a unit", "send an approval"
_PROGRAMS = {"systemd-run": START, "systemctl": "ask systemd", "journalctl": "read the output", "sh": REMOVE}


def killed_before(number: int, kinds: Container[str] | None, folder: Path, work: Callable[[], object]) -> str:
    """Run `work` in a child process that is killed before the change of this number; name it, or "" if there is none.

    Only changes of these kinds count, or all.
    """
    found, end = os.pipe()
    count = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        name = change(event, arguments, str(folder))
        if name and (kinds is None or name in kinds):
            count += 1
            if count == number:
                os.write(end, name.encode())
                die()

    def be_watched() -> None:
        sys.addaudithook(watch)
        work()

    status = in_child(be_watched)
    os.close(end)
    with open(found, encoding="ascii") as pipe:
        name = pipe.read()
    assert status == (SIGKILL if name else 0)
    return name


def change(event: str, arguments: tuple[Any, ...], folder: str) -> str:
    """Name the change below the folder, or the effect, that an audit event announces; "" if it is neither."""
    if event == "subprocess.Popen":
        return _PROGRAMS.get(os.path.basename(arguments[1][0]), START)  # or a hook itself, as a child
    if event == "http.client.send":
        return APPROVE if b"StartRequests" in arguments[1] else ""
    if event not in ("open", "os.mkdir", "os.remove", "os.rename"):
        return ""
    path = str(arguments[event == "os.rename"])
    if path.startswith(f"{folder}/systemd/clock"):
        return ""
    is_read = event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    # folders of the records are made relative to the folder above
    if is_read or not (path.startswith(folder) or (event == "os.mkdir" and "/" not in path)):
        return ""
    if "/.durable-file-" in path:
        return "make a draft"
    name = re.sub(r"\d+", "ID", path[len(folder) + 1 :] if path.startswith(folder) else path)
    if event == "os.remove" and name.startswith("run/runs/"):
        return "remove a file of a run"
    return f"{ {'os.rename': 'write', 'os.remove': 'remove'}.get(event, 'make') } {name}"
