# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`impact` commands of the simulator that interrupt hosts of the lab.

Only the process of the test controls the hosts, and the simulator runs its commands in others.
Therefore this file is also the command: it sends its arguments to a socket of the test, and waits
for the result.
"""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from support.hosts.host import Host

DONE = "done"
# (type of the event, start or end of the interruption) -> method of Host
ACTS = {
    ("Freeze", "start"): "freeze",
    ("Freeze", "end"): "thaw",
    ("Reboot", "start"): "reboot",
    ("Redeploy", "start"): "redeploy",
    ("Preempt", "start"): "crash",
    ("Terminate", "start"): "crash",
}


class Impacts:
    """The socket of the test, which is open in a with statement; ``hosts`` maps the name of a VM to its host.

    Attributes:
        happened: (VM, act) in the order of their ends.
    """

    def __init__(self, hosts: Mapping[str, Host], folder: Path) -> None:
        self.happened: list[tuple[str, str]] = []
        self.hosts = hosts
        self._path = folder / "impacts"
        impacts = self

        class Caller(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                act, name = self.rfile.readline().decode().split()
                self.wfile.write(impacts.answer(act, name).encode())

        self._server = socketserver.ThreadingUnixStreamServer(str(self._path), Caller)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def commands(self) -> dict[str, Any]:
        """The key `impact` of a scenario."""
        said: dict[str, Any] = {"timeout": "120s"}
        for (kind, phase), act in ACTS.items():
            said.setdefault(kind, {})[phase] = [
                sys.executable,
                str(Path(__file__).resolve()),
                str(self._path),
                act,
                "${VM_NAME}",
            ]
        return said

    def answer(self, act: str, name: str) -> str:
        """Call the method; return DONE or the error."""
        try:
            getattr(self.hosts[name], act)()
        except Exception as error:  # pylint: disable=broad-exception-caught  # goes to the simulator's log
            return f"{type(error).__name__}: {error}"
        self.happened.append((name, act))
        return DONE

    def __enter__(self) -> Impacts:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink()


def main() -> None:
    path, act, name = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(path)
        channel.sendall(f"{act} {name}\n".encode())
        said = channel.makefile().read()
    if said != DONE:
        sys.exit(said)


if __name__ == "__main__":
    main()
