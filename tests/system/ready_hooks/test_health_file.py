# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook health-file with real nginx and keepalived."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.ready_hooks.printed_play import entries, options_of, printed_play
from support.ready_hooks.workload_host import WorkloadHost
from support.recipes import printed
from support.wait import wait_until

pytestmark = pytest.mark.all

PAGE = "docs/ready-hooks/health-file.md"
FILE = "/srv/health/ready"
FLAG = "/etc/nginx/maintenance"
TRACKED = "/etc/keepalived/interruption"
VIRTUAL_ADDRESS = "10.0.0.100"
# the other entries of the page
CREATE, WRITE = (options_of(entry) for entry in entries("health-file") if "name" in entry)


class WebServer:
    """A host with the nginx and the keepalived of the page."""

    def __init__(self, host: WorkloadHost) -> None:
        self.host = host

    def run(self, verb: str, options: dict[str, Any], seconds: float = 30.0) -> tuple[int, str]:
        done = self.host.hook("health-file", verb, {"wait": 0, **options}, seconds=seconds)
        return done.returncode, done.stdout + done.stderr

    def status(self, url: str) -> str:
        """Return the status of the answer that a load balancer gets."""
        format = ["--output", "/dev/null", "--write-out", "%{http_code}"]
        return self.host.run("curl", "-sS", *format, f"http://127.0.0.1{url}").stdout

    def probe(self) -> str:
        return self.status("/ready")

    def has_virtual_address(self) -> bool:
        return VIRTUAL_ADDRESS in self.host.run("ip", "-4", "address").stdout

    def about(self, path: str) -> str:
        return self.host.shell(f"stat -c '%a %U %G %F' {path}; cat {path}")

    def reset(self) -> None:
        self.host.kill("hook")
        self.host.shell(f"rm -rf {FLAG} {TRACKED} {FILE} /var/lib/azure-scheduled-events/ready-hooks /tmp/answers")
        self.host.shell(f"echo up >{FILE}; chown www-data:nogroup {FILE}; chmod 640 {FILE}")
        self.host.run("systemctl", "start", "nginx")


@pytest.fixture(scope="module")
def made(workload_host: Callable[[str], WorkloadHost]) -> WebServer:
    host = workload_host("web1")
    host.shell("rm -f /etc/nginx/sites-enabled/default /etc/nginx/conf.d/*; mkdir -p /srv/health")
    for path in ("/etc/nginx/conf.d/shop.conf", "/etc/keepalived/keepalived.conf"):
        host.write(path, printed.find(PAGE, f"# {path}").text)
    host.write("/srv/shop/index.html", "welcome\n")
    host.run("systemctl", "restart", "nginx")
    return WebServer(host)


@pytest.fixture
def web(made: WebServer) -> WebServer:
    made.reset()
    return made


def test_removed_file_comes_back_as_it_was_after_the_check(web: WebServer) -> None:
    before = web.about(FILE)
    assert (web.run("prepare", {"path": FILE})[0], web.probe()) == (0, "404")
    options = {"path": FILE, "check_command": "test -e /tmp/answers"}
    with ThreadPoolExecutor(1) as later:
        recovered = later.submit(web.run, "recover", options)
        assert (web.probe(), recovered.done()) == ("404", False)
        web.host.shell("touch /tmp/answers")
        assert recovered.result()[0] == 0
    assert (web.probe(), web.about(FILE), web.host.record("health-file")) == ("200", before, None)
    assert "640 www-data nogroup regular file\nup" in before


def test_absent_file_stays_absent(web: WebServer) -> None:
    web.host.shell(f"rm {FILE}")
    assert (web.run("prepare", {"path": FILE})[0], web.host.record("health-file")) == (0, None)
    assert (web.run("recover", {"path": FILE})[0], web.probe()) == (0, "404")


@pytest.mark.parametrize("existed", [False, True])
def test_recover_removes_only_the_flag_that_prepare_created(web: WebServer, existed: bool) -> None:
    options = {**CREATE, "wait": 0}
    assert web.status("/") == "200"
    if existed:
        web.host.shell(f"echo by hand >{FLAG}")
    assert (web.run("prepare", options)[0], web.status("/")) == (0, "503")
    assert (web.run("prepare", options)[0], web.status("/")) == (0, "503")
    assert (web.run("recover", options)[0], web.status("/")) == (0, "503" if existed else "200")


def test_written_file_moves_the_address_of_keepalived(web: WebServer) -> None:
    options = {**WRITE, "wait": 0}
    web.host.run("systemctl", "start", "keepalived")
    try:
        wait_until(web.has_virtual_address, "the address")
        web.host.shell(f"echo 0 >{TRACKED}; chmod 600 {TRACKED}")
        before = web.about(TRACKED)
        assert web.run("prepare", options)[0] == 0
        wait_until(lambda: not web.has_virtual_address(), "no address")
        assert (web.run("recover", options)[0], web.about(TRACKED)) == (0, before)
        wait_until(web.has_virtual_address, "the address")
    finally:
        web.host.run("systemctl", "stop", "keepalived")


def test_change_of_another_program_stays(web: WebServer) -> None:
    web.run("prepare", {"path": FILE})
    web.host.shell(f"echo deployed >{FILE}")
    status, output = web.run("recover", {"path": FILE})
    assert (status, "another program" in output, web.host.record("health-file")) == (0, True, None)
    assert "deployed" in web.about(FILE)


def test_killed_hook_leaves_what_recover_undoes(web: WebServer) -> None:
    before = web.about(FILE)
    options = {"path": FILE, "wait": "1h"}
    web.host.start_hook("health-file", "prepare", options, seconds=7200)
    wait_until(lambda: web.probe() == "404", "no file")
    web.host.kill("hook")
    assert (web.run("recover", options)[0], web.about(FILE)) == (0, before)
    assert (web.run("recover", options)[0], web.about(FILE)) == (0, before)


def test_printed_play_fails_the_probe_for_an_event(web: WebServer, tmp_path: Path) -> None:
    with printed_play("health-file", tmp_path, web.host) as play:
        play.apply()
        assert f"{FILE}: present" in play.site.ask("check").stdout
        play.prepare("Reboot")
        assert (web.probe(), web.status("/")) == ("404", "200")
        web.host.run("systemctl", "stop", "nginx")
        web.host.run("systemctl", "start", "nginx")
        play.recover()
        assert (web.probe(), web.host.record("health-file")) == ("200", None)


def test_second_event_keeps_the_first_file(web: WebServer) -> None:
    before = web.about(FILE)
    assert web.run("prepare", {"path": FILE})[0] == 0
    web.host.shell(f"echo deployed >{FILE}")
    assert (web.run("prepare", {"path": FILE})[0], web.probe()) == (0, "404")
    assert (web.run("recover", {"path": FILE})[0], web.about(FILE)) == (0, before)


def test_wait_or_check_that_exceeds_the_time_of_the_hook_is_a_failure(web: WebServer) -> None:
    status, output = web.run("prepare", {"path": FILE, "wait": "1h"}, seconds=1)
    assert (status, "time of the hook" in output, web.probe()) == (1, True, "404")
    # the message has the command, too, which does not have these words
    check = {"path": FILE, "check_command": ["sh", "-c", "printf 'not%syet' ' '; exit 1"]}
    status, output = web.run("recover", check, seconds=2)
    assert (status, "not yet" in output, web.probe()) == (1, True, "404")
    assert (web.run("recover", {"path": FILE})[0], web.probe()) == (0, "200")


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        ({"path": "/srv/missing/ready"}, 1, "/srv/missing: "),
        ({"path": "/srv/health"}, 1, "neither a file"),
        ({"path": "/sys/ready"}, 1, "/sys: "),
        ({"path": FILE, "check_command": ["crul", "-f"]}, 1, "crul: "),
        ({"path": "/srv/health/raedy"}, 0, "nothing to do"),
        ({"path": FILE, "check_command": ["curl", "-f"]}, 0, "present"),
    ],
)
def test_check_and_dry_run_change_nothing(web: WebServer, options: dict[str, Any], status: int, says: str) -> None:
    found, output = web.run("check", options)
    assert (found, says in output, web.probe()) == (status, True, "200"), output
    web.run("prepare", {**options, "dry_run": True, "wait": "1h"})
    assert (web.probe(), web.host.record("health-file")) == ("200", None)
