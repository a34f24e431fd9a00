# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads answers that HAProxy 2.6 has given."""

from __future__ import annotations

import pytest

from ready_hooks.core.errors import HookError
from ready_hooks.hooks.haproxy import runtime_socket
from ready_hooks.hooks.haproxy.runtime_socket import DRAIN, MAINT, READY

SERVERS = """1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight \
srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state \
bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr \
srv_agent_port
3 web 1 web1 127.0.0.1 0 8 1 1 0 8 2 0 6 0 0 0 - 8081 - 0 0 - - 0
3 web 2 web2 127.0.0.1 2 0 1 1 1 8 2 2 6 0 0 0 - 8082 - 0 0 - - 0
4 api 1 web1 127.0.0.1 0 5 1 1 2 1 0 0 8 0 0 0 - 8081 - 0 0 - - 0
4 api 2 web3 127.0.0.1 0 18 1 1 0 1 0 2 0 0 0 0 - 8083 - 0 0 - - 0
4 api 3 web4 127.0.0.1 2 4 1 1 0 1 0 2 0 0 0 0 - 8083 - 0 0 - - 0"""
STATISTICS = """# pxname,svname,qcur,qmax,scur,smax,tracked,check_status,last_chk,-
web,web1,1,4,2,7,,* L4CON,Connection refused,
web,web2,,,0,0,web/web1,,,"""


def test_parse_servers_reads_the_state_that_an_administrator_set() -> None:
    found = runtime_socket.parse_servers(SERVERS, "socket")
    assert {name: server.state for name, server in found.items()} == {
        "web/web1": DRAIN,
        "web/web2": READY,
        "api/web1": MAINT,
        "api/web3": READY,  # in maintenance and drain because of a server that it tracks
        "api/web4": READY,  # `disabled` in the configuration, then enabled
    }
    assert [name for name, server in found.items() if server.is_up] == ["web/web2", "api/web4"]
    assert [name for name, server in found.items() if server.has_check] == ["web/web1", "web/web2"]
    assert [name for name, server in found.items() if server.is_held] == ["api/web3"]


def test_parse_statistics_counts_sessions_and_queue() -> None:
    found = runtime_socket.parse_statistics(STATISTICS, "socket")
    assert found["web/web1"] == (3, "L4CON: Connection refused", "")
    assert found["web/web2"] == (0, "", "web/web1")


@pytest.mark.parametrize("answer", ["", "Unknown command", "2\n# be_id be_name", "1\n"])
def test_parse_servers_refuses_an_unexpected_answer(answer: str) -> None:
    with pytest.raises(HookError, match="^socket: "):
        runtime_socket.parse_servers(answer, "socket")


ODD_STATES = SERVERS.splitlines()[2].replace("127.0.0.1 0 8", "127.0.0.1 x 8")


@pytest.mark.parametrize("line", ["3 web 1", ODD_STATES], ids=["short", "no number"])
def test_parse_servers_refuses_a_line_without_the_states(line: str) -> None:
    with pytest.raises(HookError, match="unexpected answer"):
        runtime_socket.parse_servers("\n".join([*SERVERS.splitlines()[:2], line]), "socket")


LONG_FIELD = 'web,"' + "x" * 200_000


@pytest.mark.parametrize("line", ["web,web1,x,4,2,7", LONG_FIELD], ids=["no number", "long field"])
def test_parse_statistics_refuses_a_line_without_numbers(line: str) -> None:
    with pytest.raises(HookError, match="unexpected answer"):
        runtime_socket.parse_statistics("# pxname,svname,qcur,qmax,scur,smax\n" + line, "socket")


@pytest.mark.parametrize("name", ["web", "web/", "/web1", "web/a b", "web/a;b", "web/a\nb", "a/b/c", 3, None])
def test_parse_server_name_refuses_what_a_command_cannot_contain(name: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        runtime_socket.parse_server_name(name)
