# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook haproxy with a runtime socket that knows two servers."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ready_hooks.core.errors import HookError
from support.ready_hooks.hook_host import HookHost

HEADER = "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_check_state\n"
READY, MAINT, DRAIN = 0, 1, 8
UP, DOWN = 2, 0
ADMIN = {"ready": READY, "maint": MAINT, "drain": DRAIN}


class HAProxy(socketserver.ThreadingUnixStreamServer):
    """A HAProxy.

    Attributes:
        admin, operation: the states of each server of the backend web.
        sessions: of each server in the next answers to `show stat`; the last one repeats. None: HAProxy restarts.
    """

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), Connection)
        self.admin, self.operation = {"web1": READY, "web2": READY}, {"web1": UP, "web2": UP}
        self.sessions: list[int | None] = [0]

    def answer(self, command: str) -> str:
        if command == "show servers state":
            rows = ""
            for number, (name, admin) in enumerate(self.admin.items(), 1):
                rows += f"1 web {number} {name} 10.0.0.1 {self.operation[name]} {admin} 6\n"
            return HEADER + rows
        if command.startswith("show stat"):
            sessions = self.sessions.pop(0) if len(self.sessions) > 1 else self.sessions[0]
            rows = "".join(f"web,{name},0,{sessions},L4OK,,\n" for name in self.admin)
            return "" if sessions is None else "# pxname,svname,qcur,scur,check_status,last_chk,tracked\n" + rows
        for each in command.split(";"):
            words = each.split()
            if words[3] == "state":
                self.admin[words[2].rpartition("/")[2]] = ADMIN[words[4]]
        return "\n"


class Connection(socketserver.StreamRequestHandler):
    server: HAProxy

    def handle(self) -> None:
        self.wfile.write(self.server.answer(self.rfile.readline().decode().strip()).encode())


@pytest.fixture
def haproxy(hook_host: HookHost) -> Iterator[HAProxy]:
    with HAProxy(hook_host.folder / "socket") as made:
        threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield made
        finally:
            made.shutdown()


def options(host: HookHost, *servers: str) -> dict[str, Any]:
    return {"socket": str(host.folder / "socket"), "server": [f"web/{name}" for name in servers]}


def test_restart_of_haproxy_during_the_wait_does_not_end_it(hook_host: HookHost, haproxy: HAProxy) -> None:
    haproxy.sessions = [1, None, None, 1, 0]
    hook_host.hook("haproxy", **options(hook_host, "web1")).prepare()
    assert (haproxy.admin, haproxy.sessions) == ({"web1": MAINT, "web2": READY}, [0])


def test_server_that_is_back_leaves_the_record_and_is_the_operators_again(
    hook_host: HookHost, haproxy: HAProxy, capsys: pytest.CaptureFixture[str]
) -> None:
    haproxy.admin["removed"], haproxy.operation["removed"] = READY, UP
    hook = hook_host.hook("haproxy", seconds=5, **options(hook_host, "web1", "web2", "removed"))
    hook.prepare()
    del haproxy.admin["removed"]
    haproxy.operation["web2"] = DOWN
    with pytest.raises(HookError, match="web2"):
        hook.recover()
    assert haproxy.admin == {"web1": READY, "web2": DRAIN}
    assert hook_host.record("haproxy").load() == {"servers": {str(hook_host.folder / "socket"): ["web/web2"]}}
    assert capsys.readouterr().err.count("no such server any more") == 1
    haproxy.admin["web1"] = MAINT
    haproxy.operation["web2"] = UP
    hook.recover()
    assert haproxy.admin == {"web1": MAINT, "web2": READY}
    assert hook_host.record("haproxy").load() is None
