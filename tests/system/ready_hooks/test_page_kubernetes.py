# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/ready-hooks/kubernetes.md as printed, through one event, with the permissions that it prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from support.hosts.bridge import GATEWAY
from support.ready_hooks import page
from support.ready_hooks.certificates import Certificates
from support.ready_hooks.kubernetes_api import KubernetesApi, kubeconfig
from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.web_server import WebServer
from support.ready_hooks.workload_host import WorkloadHost
from support.recipes.printed import find

pytestmark = pytest.mark.all

CA_FILE = "/etc/kubernetes/ca.pem"


def printed_permissions() -> set[tuple[str, str]]:
    (role,) = yaml.safe_load_all(find("docs/ready-hooks/kubernetes.md", "drain-role.yaml").text)
    return {(verb, resource) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def test_printed_play_drains_the_node_for_an_event(
    workload_host: Callable[[str], WorkloadHost], certificates: Certificates, tmp_path: Path
) -> None:
    host = workload_host("web1")
    (entry,) = page.entries("kubernetes")
    with WebServer(GATEWAY, certificates.server_context()) as server:
        api = KubernetesApi(server)
        api.allowed = printed_permissions()
        api.add_node("web1", host.host.boot_id)
        api.add_pod("web", "web1", volumes=[{"name": "scratch", "emptyDir": {}}])
        api.add_pod("agent", "web1", "DaemonSet")
        host.write(CA_FILE, certificates.authority.read_text(encoding="ascii"))
        host.write(entry["kubeconfig"], kubeconfig(server, CA_FILE), 0o600)
        with printed_play("kubernetes", tmp_path, host) as play:
            play.apply()
            play.prepare("Redeploy")
            assert (api.is_cordoned("web1"), api.pod_names()) == (True, ["agent"])
            play.recover()
            assert not api.is_cordoned("web1")
    host.shell("rm -rf /etc/kubernetes /root/.kube")
