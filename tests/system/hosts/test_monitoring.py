# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Configuration, alerts and dashboard of docs/monitoring.md, with Debian's Prometheus and a real daemon."""

from __future__ import annotations

import json
import re
import shutil
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.daemon.hook_scripts import write_program
from support.daemon.metrics_file import parse
from support.hosts import rootfs
from support.hosts.ansible_inventory import ansible_on
from support.hosts.host import Host
from support.hosts.lab import Lab
from support.hosts.role_host import COMMAND, Azure, azure_of
from support.recipes.printed import printed_in
from support.repository import REPOSITORY
from support.wait import wait_until

pytestmark = pytest.mark.all

PAGE = "docs/monitoring.md"
FILES = REPOSITORY / "docs" / "monitoring"
SITE, PROMETHEUS, WITH_NODE_EXPORTER = "site.yml", "# /etc/prometheus/prometheus.yml", "with-node-exporter.yml"
TEXT_FILE = "/var/lib/prometheus/node-exporter/azure-scheduled-events.prom"
PRINTED = {found.name: found.text for found in printed_in(PAGE)}
# the time spans that Grafana inserts into queries
TIME_SPANS = re.compile(r"\$__rate_interval|\$__range")


@pytest.fixture(scope="module")
def web(lab: Lab) -> Host:
    host = lab.host("web", rootfs.WORKLOADS)
    for file in FILES.iterdir():
        shutil.copy(file, host.file("/etc/prometheus"))
    return host


@pytest.fixture(scope="module")
def azure(web: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    with azure_of({"web": web}, tmp_path_factory.mktemp("azure")) as made:
        yield made


def apply_printed(name: str, web: Host, folder: Path) -> None:
    """Run a printed play on the host."""
    playbook = folder / name
    playbook.write_text(PRINTED[name], encoding="utf-8")
    # the connection is root's already, and the host has no sudo
    ran = ansible_on({"web": web}, folder).playbook(str(playbook), {"ansible_become": False})
    assert ran.returncode == 0, ran.stdout + ran.stderr


def query(web: Host, expression: str) -> list[Any]:
    """Return the result of a query to Prometheus."""
    url = "http://127.0.0.1:9090/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    answer = json.loads(web.run(["curl", "-sS", "--retry", "30", "--retry-connrefused", url]).stdout)
    assert answer["status"] == "success", answer
    return list(answer["data"]["result"])


def dashboard_queries() -> list[str]:
    """Return the queries of the dashboard, with its variables replaced as Grafana does."""
    board = json.loads((FILES / "grafana-dashboard.json").read_text(encoding="utf-8"))
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    found += [each["expr"] for each in board["annotations"]["list"]]
    return [TIME_SPANS.sub("5m", text).replace("$instance", ".*") for text in found]


def rule_of(alert: str) -> str:
    rules = yaml.safe_load((FILES / "prometheus-alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    return next(str(rule["expr"]) for rule in rules if rule["alert"] == alert)


def test_page_prints_only_what_these_tests_run() -> None:
    blocks = {name for name, text in PRINTED.items() if not name.startswith("promtool")}
    assert blocks == {SITE, PROMETHEUS, WITH_NODE_EXPORTER}


@pytest.mark.parametrize("command", [name for name in PRINTED if name.startswith("promtool")])
def test_alert_rules_are_correct_and_fire(command: str, web: Host) -> None:
    web.run(["sh", "-ec", f"cd /etc/prometheus; {command}"])


def test_each_alert_has_a_rule_a_test_and_a_row() -> None:
    rules = yaml.safe_load((FILES / "prometheus-alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    tests = yaml.safe_load((FILES / "prometheus-alerts-test.yml").read_text(encoding="utf-8"))["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
    page = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    assert {rule["alert"] for rule in rules} == fired == set(re.findall(r"^\| `(Azure\w+)` \|", page, re.MULTILINE))


def test_prometheus_reads_the_daemon_and_answers_the_dashboard(web: Host, azure: Azure, tmp_path: Path) -> None:
    write_program(web.file("/etc/azure-scheduled-events/hooks.d/prepare/10-fails"), "#!/bin/sh\nexit 1\n")
    apply_printed(SITE, web, tmp_path)
    web.file("/etc/prometheus/prometheus.yml").write_text(PRINTED[PROMETHEUS], encoding="utf-8")
    web.run(["promtool", "check", "config", "/etc/prometheus/prometheus.yml"])
    web.run(["systemctl", "start", "prometheus"])
    result = 'azure_scheduled_events_hook_runs_total{stage="prepare", hook="10-fails", result="failed"}'
    wait_until(lambda: query(web, f"{result} == 0"), "Prometheus has the result before it occurs", timeout=120)
    azure.announce("Reboot", "web", notice="15m")
    wait_until(lambda: query(web, f"{result} > 0"), "Prometheus has the failed hook", timeout=120)
    assert query(web, 'up{job="azure-scheduled-events"}')[0]["value"][1] == "1"
    condition = rule_of("AzureEventPrepareFailed")
    wait_until(lambda: query(web, condition), "the first failure of a hook meets the alert's condition", timeout=120)
    empty = [text for text in dashboard_queries() if not query(web, text)]
    # rates need two scrapes, and this run has no approval and no error of IMDS
    assert {re.findall(r"azure_scheduled_events_\w+", text)[0] for text in empty} <= {
        "azure_scheduled_events_approval_answers_total",
        "azure_scheduled_events_hook_runs_total",
        "azure_scheduled_events_hook_duration_seconds_bucket",
        "azure_scheduled_events_imds_errors_total",
    }


def test_daemon_writes_the_file_for_node_exporter(web: Host, azure: Azure, tmp_path: Path) -> None:
    web.file(TEXT_FILE).parent.mkdir(parents=True, exist_ok=True)
    apply_printed(WITH_NODE_EXPORTER, web, tmp_path)
    wait_until(lambda: web.file(TEXT_FILE).exists(), "the daemon writes the file")
    assert parse(web.file(TEXT_FILE).read_text(encoding="utf-8"))["imds_ok", ()] in (0, 1)
    assert web.run([COMMAND, "check", "--offline"], check=False).returncode == 0
