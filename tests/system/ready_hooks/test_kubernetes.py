# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook kubernetes, and its page: Debian's kubectl against an API server in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.hosts.bridge import GATEWAY
from support.ready_hooks.certificates import Certificates
from support.ready_hooks.kubernetes_api import KubernetesApi, kubeconfig
from support.ready_hooks.printed_play import entries, printed_play
from support.ready_hooks.web_server import Answer, Request, WebServer
from support.ready_hooks.workload_host import RECORDS, Completed, WorkloadHost
from support.recipes.printed import find
from support.wait import wait_until

pytestmark = pytest.mark.all

KUBECONFIG, CA_FILE = "/etc/kubernetes/drain.conf", "/etc/kubernetes/ca.pem"
NODE, ANNOTATION = "web1", "azure-scheduled-events/cordoned-for"
OPTIONS: dict[str, Any] = {"kubeconfig": KUBECONFIG}


@pytest.fixture
def api(workload_host: Callable[[str], WorkloadHost], certificates: Certificates) -> Iterator[KubernetesApi]:
    workload_host(NODE)  # makes the bridge
    with WebServer(GATEWAY, certificates.server_context()) as server:
        yield KubernetesApi(server)


@pytest.fixture
def host(
    workload_host: Callable[[str], WorkloadHost], api: KubernetesApi, certificates: Certificates
) -> Iterator[WorkloadHost]:
    host = workload_host(NODE)
    host.write(CA_FILE, certificates.authority.read_text(encoding="ascii"))
    host.write(KUBECONFIG, kubeconfig(api.server, CA_FILE), 0o600)
    api.add_node(NODE, host.host.boot_id)
    api.add_pod("web", NODE)
    api.add_pod("agent", NODE, "DaemonSet")
    api.add_pod("elsewhere", "web2")
    yield host
    host.shell(f"rm -rf {RECORDS} /etc/kubernetes /root/.kube")


def drain(host: WorkloadHost, verb: str = "prepare", seconds: float = 60, **options: Any) -> Completed:
    return host.hook("kubernetes", verb, {**OPTIONS, **options}, seconds=seconds)


def annotation(api: KubernetesApi) -> str | None:
    value: str | None = (api.nodes[NODE]["metadata"].get("annotations") or {}).get(ANNOTATION)
    return value


def test_node_cordoned_by_an_operator_stays_cordoned(host: WorkloadHost, api: KubernetesApi) -> None:
    api.nodes[NODE]["spec"]["unschedulable"] = True
    assert drain(host).returncode == 0
    assert api.pod_names() == ["agent", "elsewhere"]
    assert drain(host, "recover").returncode == 0
    assert (api.is_cordoned(NODE), annotation(api)) == (True, None)


def test_operator_who_removes_the_annotation_keeps_the_node_cordoned(host: WorkloadHost, api: KubernetesApi) -> None:
    drain(host)
    del api.nodes[NODE]["metadata"]["annotations"][ANNOTATION]
    done = drain(host, "recover")
    assert (done.returncode, "operator" in done.stdout) == (0, True)
    assert (api.is_cordoned(NODE), host.record("kubernetes")) == (True, None)


def test_lost_record_is_found_again_by_the_annotation(host: WorkloadHost, api: KubernetesApi) -> None:
    drain(host)
    host.shell(f"rm -rf {RECORDS}")
    drain(host)
    drain(host, "recover")
    assert (api.is_cordoned(NODE), annotation(api)) == (False, None)


def test_api_server_that_is_down_fails_and_recover_succeeds_later(
    host: WorkloadHost, api: KubernetesApi, certificates: Certificates
) -> None:
    host.write(KUBECONFIG, kubeconfig(api.server, CA_FILE).replace(f":{api.server.port}", ":9"), 0o600)
    done = drain(host)
    assert (done.returncode, host.record("kubernetes")) == (1, None)
    host.write(KUBECONFIG, kubeconfig(api.server, CA_FILE), 0o600)
    drain(host)
    api.server.otherwise = lambda _request: Answer(503)
    assert drain(host, "recover", wait_ready=1).returncode == 1
    assert host.record("kubernetes") is not None
    api.server.otherwise = api.answer
    assert drain(host, "recover").returncode == 0
    assert not api.is_cordoned(NODE)


def test_wrong_token_and_wrong_node_fail_without_a_change(host: WorkloadHost, api: KubernetesApi) -> None:
    done = drain(host, node="wbe1")
    assert (done.returncode, "wbe1: the cluster has no such node" in done.stderr) == (1, True)
    assert drain(host, "check", node="wbe1").returncode == 1
    host.write(KUBECONFIG, kubeconfig(api.server, CA_FILE, token="wrong"), 0o600)
    for verb in ("prepare", "check"):
        done = drain(host, verb)
        assert (done.returncode, "Unauthorized" in done.stderr or "logged in" in done.stderr) == (1, True)
    assert (api.is_cordoned(NODE), host.record("kubernetes")) == (False, None)


def test_eviction_that_is_forbidden_fails_and_check_reports_it(host: WorkloadHost, api: KubernetesApi) -> None:
    api.forbidden.add(("create", "pods/eviction"))
    found = drain(host, "check")
    assert (found.returncode, "create pods --subresource=eviction" in found.stderr) == (1, True)
    done = drain(host)
    assert (done.returncode, "forbidden" in done.stderr, "web" in api.pod_names()) == (1, True, True)
    drain(host, "recover")
    assert not api.is_cordoned(NODE)


@pytest.mark.parametrize(
    ("pod", "option"),
    [({"owner": None}, "force"), ({"volumes": [{"name": "a", "emptyDir": {}}]}, "delete_emptydir_data")],
)
def test_pod_that_would_be_lost_needs_an_option(
    host: WorkloadHost, api: KubernetesApi, pod: dict[str, Any], option: str
) -> None:
    api.add_pod("alone", NODE, **pod)
    found = drain(host, "check")
    assert (found.returncode, "alone" in found.stderr) == (1, True)
    done = drain(host)
    assert (done.returncode, "alone" in done.stderr, "alone" in api.pod_names()) == (1, True, True)
    assert host.hook("kubernetes", "prepare", {**OPTIONS, option: True}).returncode == 0
    assert api.pod_names() == ["agent", "elsewhere"]


def test_options_of_the_drain_reach_the_server(host: WorkloadHost, api: KubernetesApi) -> None:
    drain(host, pod_selector="app=web", grace_period=7, context="drain@cluster")
    lists = [request.target for request in api.server.requests if request.target.startswith("/api/v1/pods?")]
    evictions = [request.json for request in api.server.requests if "eviction" in request.target]
    assert "labelSelector=app%3Dweb" in lists[0]
    assert [each["deleteOptions"]["gracePeriodSeconds"] for each in evictions] == [7]


def test_record_of_another_node_is_not_overwritten(host: WorkloadHost, api: KubernetesApi) -> None:
    drain(host)
    api.add_node("web9")
    assert drain(host, node="web9").returncode == 1
    assert host.record("kubernetes")["node"] == NODE


def test_prepare_drains_and_recover_uncordons(host: WorkloadHost, api: KubernetesApi) -> None:
    done = drain(host)
    assert (done.returncode, api.is_cordoned(NODE), api.pod_names()) == (0, True, ["agent", "elsewhere"])
    first = "Reboot 75BA7D9B-F708-406F-B6A6-E16F4461F46B"
    assert annotation(api) == first
    api.add_pod("late", NODE)
    second = host.hook("kubernetes", "prepare", OPTIONS, event={"ID": "second", "TYPE": "Freeze"})
    assert (second.returncode, annotation(api), api.pod_names()) == (0, first, ["agent", "elsewhere"])
    assert drain(host, "recover", dry_run=True).returncode == 0
    assert (api.is_cordoned(NODE), host.record("kubernetes") is None) == (True, False)
    for _again in range(2):
        assert drain(host, "recover").returncode == 0
        assert (api.is_cordoned(NODE), annotation(api), host.record("kubernetes")) == (False, None, None)


@pytest.mark.parametrize(("on_timeout", "status"), [("fail", 1), ("continue", 0)])
def test_pod_that_stays_ends_the_drain_at_its_timeout(
    host: WorkloadHost, api: KubernetesApi, on_timeout: str, status: int
) -> None:
    if on_timeout == "fail":
        api.protected.add("web")
    else:
        api.ends_pods = False
    done = drain(host, drain_timeout=2, on_timeout=on_timeout)
    assert (done.returncode, "pods remain after 2 s" in done.stderr) == (status, True)
    assert (api.is_cordoned(NODE), "web" in api.pod_names()) == (True, True)
    assert drain(host, "recover").returncode == 0
    assert not api.is_cordoned(NODE)


def test_time_of_the_hook_ends_the_drain_with_a_message(host: WorkloadHost, api: KubernetesApi) -> None:
    api.ends_pods = False
    done = drain(host, seconds=4)
    assert (done.returncode, "pods remain" in done.stderr) == (1, True)


@pytest.mark.parametrize("when", ["annotations", "unschedulable", "Eviction"])
def test_hook_that_is_killed_at_a_request_is_undone(host: WorkloadHost, api: KubernetesApi, when: str) -> None:
    def is_the_request(request: Request) -> bool:
        return request.method in ("PATCH", "POST") and when.encode() in request.body

    api.server.otherwise = lambda request: (api.server.hang if is_the_request(request) else api.answer)(request)
    host.start_hook("kubernetes", "prepare", OPTIONS)
    wait_until(lambda: any(map(is_the_request, api.server.requests)), "the request")
    host.kill("hook")
    api.server.otherwise = api.answer
    assert host.record("kubernetes")["cordoned"] == (when != "annotations")
    assert drain(host, "recover").returncode == 0
    assert (api.is_cordoned(NODE), annotation(api), host.record("kubernetes")) == (False, None, None)


@pytest.mark.parametrize("reason", ["not ready", "since the boot"])
def test_recover_waits_until_the_node_is_ready_after_this_boot(
    host: WorkloadHost, api: KubernetesApi, reason: str
) -> None:
    drain(host)
    status = api.nodes[NODE]["status"]
    if reason == "not ready":
        status["conditions"][0]["status"] = "Unknown"
    else:
        host.host.reboot()
    early = drain(host, "recover", wait_ready=1)
    assert (early.returncode, reason in early.stderr, api.is_cordoned(NODE)) == (1, True, True)
    status["conditions"][0]["status"], status["nodeInfo"]["bootID"] = "True", host.host.boot_id
    assert drain(host, "recover", wait_ready=1).returncode == 0
    assert not api.is_cordoned(NODE)


def test_recover_that_is_not_to_wait_uncordons_a_node_that_is_not_ready(host: WorkloadHost, api: KubernetesApi) -> None:
    drain(host)
    api.nodes[NODE]["status"]["conditions"][0]["status"] = "Unknown"
    assert drain(host, "recover", wait_ready=0).returncode == 0
    assert not api.is_cordoned(NODE)


def test_check_and_dry_run_change_nothing(host: WorkloadHost, api: KubernetesApi) -> None:
    found = drain(host, "check")
    assert (found.returncode, found.stdout) == (0, "kubernetes: web1: schedulable; a drain would evict 1 pods\n")
    done = drain(host, dry_run=True)
    assert (done.returncode, done.stdout.count("would "), host.record("kubernetes")) == (0, 3, None)
    assert {request.method for request in api.server.requests if "accessreview" not in request.target} == {"GET"}
    host.run("chmod", "0644", KUBECONFIG)
    assert "0644" in drain(host, "check").stderr
    assert drain(host, "check", kubectl="/missing/kubectl").returncode == 1


def test_printed_play_drains_the_node_with_the_printed_permissions(
    host: WorkloadHost, api: KubernetesApi, tmp_path: Path
) -> None:
    (entry,) = entries("kubernetes")
    (role,) = yaml.safe_load_all(find("docs/ready-hooks/kubernetes.md", "drain-role.yaml").text)
    api.allowed = {
        (verb, resource) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]
    }
    api.add_pod("scratch", NODE, volumes=[{"name": "scratch", "emptyDir": {}}])
    host.write(entry["kubeconfig"], kubeconfig(api.server, CA_FILE), 0o600)
    with printed_play("kubernetes", tmp_path, host) as play:
        play.apply()
        play.prepare("Redeploy")
        assert (api.is_cordoned(NODE), api.pod_names()) == (True, ["agent", "elsewhere"])
        play.recover()
        assert not api.is_cordoned(NODE)
