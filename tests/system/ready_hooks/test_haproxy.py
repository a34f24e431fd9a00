# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook haproxy on a web server, with real HAProxy and nginx."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.workload_host import RECORDS, Completed, WorkloadHost
from support.recipes import printed
from support.wait import wait_until

pytestmark = pytest.mark.all

PAGE = "docs/ready-hooks/haproxy.md"
# the addresses of the page; one nginx is both servers
LB, SERVERS = "10.0.0.4", {"web1": "10.0.0.11", "web2": "10.0.0.12"}
# a request for /slow takes longer than any test
NGINX = """
server {{
    listen {address}:80;
    root /srv/{name};
    location /slow {{
        limit_rate 1k;
        alias /srv/large;
    }}
}}
"""
# a second load balancer on the same host, and sockets of lower levels
MORE = """
global
    stats socket ipv4@10.0.0.4:9998 level operator
listen api
    bind :8080
    server web1 10.0.0.11:80 check inter 200ms
    server web2 10.0.0.12:80 check inter 200ms
backend other
    server web1 10.0.0.11:80 track web/web1
"""
SECOND = """
global
    stats socket /run/haproxy/second.sock level admin
    stats socket ipv4@10.0.0.4:9996 level admin
backend web
    server web1 10.0.0.11:80 check inter 200ms
"""


class Pool:
    """The load balancer, the web server, and the clients."""

    def __init__(self, lb: WorkloadHost, web: WorkloadHost) -> None:
        self.lb, self.web = lb, web
        self.socket = f"{LB}:9999"
        self.options: dict[str, Any] = {"server": "web/web1", "socket": self.socket}

    def ask(self, command: str, unit: str = "admin") -> str:
        script = (
            "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
            "s.sendall(sys.argv[2].encode() + b'\\n'); print(s.makefile().read())"
        )
        return self.lb.run("python3", "-c", script, f"/run/haproxy/{unit}.sock", command, check=False).stdout.strip()

    def states(self, unit: str = "admin") -> dict[str, str]:
        """Return ready, drain or maint of each server."""
        lines = [line.split() for line in self.ask("show servers state", unit).splitlines()[2:]]
        # without the bits of what a server inherits
        return {f"{line[1]}/{line[3]}": {0: "ready", 1: "maint", 8: "drain"}[int(line[6]) & 9] for line in lines}

    def state(self) -> str:
        return self.states()["web/web1"]

    def sessions(self) -> int:
        for line in self.ask("show stat -1 4 -1").splitlines():
            if line.startswith("web,web1,"):
                return int(line.split(",")[4])
        raise AssertionError("web/web1 is not there")

    def get(self) -> str:
        """Return the name of the server that answers a request through the load balancer."""
        return self.lb.run("curl", "-fsS", "http://127.0.0.1/").stdout.strip()

    def is_served_by_web1(self) -> bool:
        return "web1" in {self.get(), self.get()}

    def open_session(self) -> None:
        """Start one request that web1 answers slowly."""
        self.ask("set server web/web2 state maint")
        self.lb.start("client", "curl", "-sS", "--output", "/dev/null", "http://127.0.0.1/slow")
        wait_until(lambda: self.sessions() == 1, "a session")
        self.ask("set server web/web2 state ready")

    def reset(self) -> None:
        self.lb.kill("client")
        self.lb.kill("second")
        self.web.kill("hook")
        self.web.run("systemctl", "start", "nginx")
        self.restart()
        self.web.run("rm", "-rf", RECORDS)

    def restart(self) -> None:
        self.lb.run("systemctl", "reset-failed", "haproxy", check=False)  # its starts are counted
        self.lb.run("systemctl", "restart", "haproxy")

    def start_second(self) -> str:
        """Start another HAProxy, and return the address of its socket."""
        self.lb.start("second", "haproxy", "-db", "-f", "/etc/haproxy/second.cfg")
        wait_until(lambda: "web1" in self.ask("show servers state", "second"), "another HAProxy")
        return f"{LB}:9996"

    def prepare(self, **options: Any) -> Completed:
        return self.web.hook("haproxy", "prepare", {**self.options, **options})

    def recover(self, **options: Any) -> Completed:
        return self.web.hook("haproxy", "recover", {**self.options, **options})

    def record(self) -> Any:
        return (self.web.record("haproxy") or {}).get("servers")


@pytest.fixture(scope="module")
def made(workload_host: Callable[[str], WorkloadHost]) -> Pool:
    pool = Pool(workload_host("lb1"), workload_host("web1"))
    pool.lb.run("ip", "address", "replace", f"{LB}/24", "dev", "eth0")
    pool.web.shell("rm -f /etc/nginx/sites-enabled/default /etc/nginx/conf.d/*")
    for name, address in SERVERS.items():
        pool.web.run("ip", "address", "replace", f"{address}/24", "dev", "eth0")
        pool.web.write(f"/srv/{name}/index.html", name + "\n")
        pool.web.write(f"/etc/nginx/conf.d/{name}.conf", NGINX.format(address=address, name=name))
    pool.web.write("/srv/large", "x" * 1_000_000)
    pool.web.run("systemctl", "restart", "nginx")
    text = printed.find(PAGE, "# /etc/haproxy/haproxy.cfg").text
    pool.lb.write("/etc/haproxy/haproxy.cfg", text.replace("inter 1s", "inter 200ms") + MORE)
    pool.lb.write("/etc/haproxy/second.cfg", SECOND)
    return pool


@pytest.fixture
def pool(made: Pool) -> Pool:
    made.reset()
    return made


@pytest.fixture
def later() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def test_prepare_waits_for_sessions_and_recover_for_the_check(pool: Pool, later: ThreadPoolExecutor) -> None:
    pool.open_session()
    prepared: Future[Completed] = later.submit(pool.prepare)
    wait_until(lambda: pool.state() == "drain", "drain")
    assert (pool.is_served_by_web1(), prepared.done()) == (False, False)
    pool.lb.kill("client")
    assert (prepared.result().returncode, pool.state()) == (0, "maint")
    pool.web.run("systemctl", "stop", "nginx")
    recovered: Future[Completed] = later.submit(pool.recover)
    wait_until(lambda: pool.state() == "drain", "drain")
    wait_until(lambda: "L4CON" in pool.ask("show stat web 4 -1"), "a failed check")
    assert (pool.state(), recovered.done()) == ("drain", False)
    pool.web.run("systemctl", "start", "nginx")
    assert (recovered.result().returncode, pool.state(), pool.record()) == (0, "ready", None)
    assert pool.is_served_by_web1()


@pytest.mark.parametrize("state", ["drain", "maint"])
def test_server_that_was_out_before_stays_so(pool: Pool, state: str) -> None:
    pool.ask(f"set server web/web1 state {state}")
    assert (pool.prepare().returncode, pool.state(), pool.record()) == (0, state, None)
    assert (pool.recover().returncode, pool.state()) == (0, state)


def test_several_servers_and_a_tracking_one_come_back(pool: Pool) -> None:
    servers = ["web/web1", "api/web1", "other/web1"]
    pool.ask("set server api/web2 state maint")
    assert pool.prepare(server=servers).returncode == 0
    assert [pool.states()[name] for name in servers] == ["maint"] * 3
    assert (pool.prepare(server=servers).returncode, pool.record()) == (0, {pool.socket: servers})
    assert (pool.recover().returncode, pool.states()["api/web2"]) == (0, "maint")
    assert [pool.states()[name] for name in servers] == ["ready"] * 3


def test_load_balancer_that_does_not_answer_is_completed_later(pool: Pool) -> None:
    second = pool.start_second()
    both = [second, pool.socket]
    assert pool.prepare(socket=both).returncode == 0
    assert (pool.state(), pool.states("second")["web/web1"]) == ("maint", "maint")
    pool.lb.kill("second")
    # a second event: the other load balancer is prepared again, and the record stays
    pool.ask("set server web/web1 state ready")
    repeated = pool.prepare(socket=both)
    assert (repeated.returncode, second in repeated.stderr, pool.state()) == (1, True, "maint")
    recovered = pool.recover(wait_for_check="5s")
    assert (recovered.returncode, second in recovered.stderr) == (1, True)
    assert (pool.state(), pool.record()) == ("ready", {second: ["web/web1"]})
    pool.start_second()
    assert (pool.recover().returncode, pool.record()) == (0, None)
    assert (pool.states("second")["web/web1"], pool.state()) == ("ready", "ready")


def test_prepare_drains_again_after_a_restart_of_haproxy(pool: Pool, later: ThreadPoolExecutor) -> None:
    pool.open_session()
    prepared: Future[Completed] = later.submit(pool.prepare)
    wait_until(lambda: pool.state() == "drain", "drain")
    pool.lb.run("systemctl", "reload", "haproxy")
    wait_until(prepared.done, "the end of prepare")
    assert (prepared.result().returncode, pool.state()) == (0, "maint")
    pool.restart()
    assert pool.state() == "ready"
    assert (pool.prepare().returncode, pool.state()) == (0, "maint")
    pool.restart()
    assert (pool.recover().returncode, pool.state(), pool.record()) == (0, "ready", None)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"server": "web/wbe1"}, "did you mean web/web1?"),
        ({"socket": "/run/haproxy/missing.sock"}, "No such file"),
        ({"socket": "127.0.0.1:9999"}, "refused"),
        ({"socket": f"{LB}:9998"}, "level admin"),
        ({"socket": "10.0.0.11:80"}, "unexpected answer"),
    ],
)
def test_mistake_is_found_by_check_and_named_by_prepare(pool: Pool, options: dict[str, str], says: str) -> None:
    before = pool.states()
    checked = pool.web.hook("haproxy", "check", {**pool.options, **options})
    assert (checked.returncode, says in checked.stderr, pool.states()) == (1, True, before), checked.stderr
    prepared = pool.prepare(**options)
    assert (prepared.returncode, says in prepared.stderr, pool.states()) == (1, True, before), prepared.stderr


def test_printed_play_takes_the_server_out_for_an_event(pool: Pool, tmp_path: Path) -> None:
    with printed_play("haproxy", tmp_path, pool.web) as play:
        play.apply()
        assert "haproxy: web/web1" in play.site.ask("check").stdout
        play.prepare("Reboot")
        assert (pool.state(), pool.is_served_by_web1()) == ("maint", False)
        pool.web.host.reboot()
        pool.web.run("systemctl", "start", "nginx")
        play.recover()
        assert (pool.state(), pool.is_served_by_web1(), pool.record()) == ("ready", True, None)


@pytest.mark.parametrize(
    ("on_timeout", "status", "state", "sessions"),
    [("fail", 1, "drain", 1), ("continue", 0, "maint", 1), ("shutdown-sessions", 0, "maint", 0)],
)
def test_on_timeout_decides_about_sessions(pool: Pool, on_timeout: str, status: int, state: str, sessions: int) -> None:
    pool.open_session()
    prepared = pool.prepare(wait="1s", on_timeout=on_timeout)
    assert (prepared.returncode, pool.state()) == (status, state)
    wait_until(lambda: pool.sessions() == sessions, f"{sessions} sessions")
    assert "sessions that have not ended" in prepared.stderr
    assert (pool.recover().returncode, pool.state(), pool.record()) == (0, "ready", None)
    assert pool.sessions() == sessions


def test_recover_fails_while_the_check_of_haproxy_fails(pool: Pool) -> None:
    pool.prepare()
    pool.web.run("systemctl", "stop", "nginx")
    ended = pool.web.hook("haproxy", "recover", pool.options, seconds=2)
    assert (ended.returncode, "L4CON" in ended.stderr, pool.state()) == (1, True, "drain")


def test_killed_hook_leaves_what_recover_undoes_after_a_reboot(pool: Pool) -> None:
    pool.open_session()
    pool.web.start_hook("haproxy", "prepare", pool.options)
    wait_until(lambda: pool.state() == "drain", "drain")
    pool.web.kill("hook")
    assert (pool.state(), pool.record()) == ("drain", {pool.socket: ["web/web1"]})
    pool.web.host.reboot()
    pool.web.run("systemctl", "start", "nginx")
    pool.web.start_hook("haproxy", "recover", pool.options)
    pool.web.kill("hook")
    for _again in range(2):
        assert (pool.recover().returncode, pool.state(), pool.record()) == (0, "ready", None)


def test_check_and_dry_run_show_the_state(pool: Pool) -> None:
    checked = pool.web.hook("haproxy", "check", pool.options)
    assert (checked.returncode, "web/web1" in checked.stdout, checked.stderr) == (0, True, "")
    dry = pool.prepare(dry_run=True)
    assert (dry.returncode, "would set web/web1 to maint" in dry.stdout) == (0, True)
    assert (pool.state(), pool.record()) == ("ready", None)
