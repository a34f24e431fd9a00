# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook connections with nginx and clients on another host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.workload_host import Completed, WorkloadHost
from support.wait import wait_until

pytestmark = pytest.mark.all

NGINX = """
server {
    listen 80;
    listen [::]:443 ipv6only=off;
    root /srv/connections;
    limit_rate 1k;
}
"""


class Site:
    """A web server, and a host with its clients."""

    def __init__(self, web: WorkloadHost, client: WorkloadHost) -> None:
        self.web, self.client = web, client

    def hook(self, verb: str, seconds: float = 30.0, **options: Any) -> Completed:
        return self.web.hook("connections", verb, {"ports": [80, 443], "quiet_for": "1s", **options}, seconds=seconds)

    def connect(self, port: int) -> None:
        """Start a download that takes longer than any test."""
        url = f"http://{self.web.host.address}:{port}/large"
        self.client.start("client", "curl", "-sS", "--output", "/dev/null", url)
        wait_until(lambda: self.established(port), "a connection")

    def established(self, port: int) -> str:
        return self.web.run("ss", "-Hnt", "state", "established", f"sport = :{port}").stdout

    def disconnect(self) -> None:
        self.client.kill("client")


@pytest.fixture(scope="module")
def made(workload_host: Callable[[str], WorkloadHost]) -> Site:
    site = Site(workload_host("web1"), workload_host("lb1"))
    site.web.write("/srv/connections/large", "x" * 1_000_000)
    site.web.shell("rm -f /etc/nginx/sites-enabled/default /etc/nginx/conf.d/*")
    site.web.write("/etc/nginx/conf.d/connections.conf", NGINX)
    site.web.run("systemctl", "restart", "nginx")
    return site


@pytest.fixture
def site(made: Site) -> Iterator[Site]:
    yield made
    made.disconnect()


def test_ignored_networks_and_other_ports_do_not_count(site: Site) -> None:
    site.connect(443)
    own = site.client.host.address
    for options in ({"ports": 80}, {"ignore": own}, {"ignore": ["168.63.129.16", "10.77.0.0/24"]}):
        assert site.hook("prepare", wait="5s", **options).returncode == 0
    failed = site.hook("prepare", wait="1s", ignore="168.63.129.16")
    assert (failed.returncode, f"{own}: 1" in failed.stderr) == (1, True)


def test_check_warns_about_a_port_without_a_program(site: Site) -> None:
    checked = site.hook("check", ports=[80, 444])
    assert (checked.returncode, "port 80: " in checked.stdout, "port 444: " in checked.stderr) == (0, True, True)


def test_wait_that_is_shorter_than_quiet_for_is_an_error(site: Site) -> None:
    options: dict[str, Any] = {"ports": [81], "wait": "0.2s", "quiet_for": "2s"}
    for verb in ("validate", "check", "prepare"):
        refused = site.hook(verb, **options)
        assert (refused.returncode, "less than quiet_for" in refused.stderr) == (2, True)
    failed = site.hook("prepare", seconds=1.0, ports=[81], quiet_for="2s")
    assert (failed.returncode, "without connections for 2 s" in failed.stderr) == (1, True)


def test_printed_play_waits_for_connections_before_an_event(site: Site, tmp_path: Path) -> None:
    with printed_play("connections", tmp_path, site.web) as play:
        play.apply()
        assert "port 443: connections: 0" in play.site.ask("check").stdout
        site.connect(443)
        with ThreadPoolExecutor(1) as later:
            prepared = later.submit(play.prepare, "Reboot")
            wait_until(lambda: site.web.run("pgrep", "-f", "ready_hooks connections", check=False).stdout, "the hook")
            assert not prepared.done()
            site.disconnect()
            prepared.result()
        play.recover()


def test_on_timeout_continue_succeeds_with_a_warning(site: Site) -> None:
    site.connect(80)
    assert site.hook("recover").returncode == 0
    dry = site.hook("prepare", dry_run=True)
    assert (dry.returncode, "connections: 1" in dry.stdout) == (0, True)
    continued = site.hook("prepare", wait="1s", on_timeout="continue")
    assert (continued.returncode, "not ended within 1 s: 1" in continued.stderr) == (0, True)
    assert site.web.record("connections") is None
