# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook pacemaker with Corosync and Pacemaker on two hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.workload_host import RECORDS, WorkloadHost
from support.wait import wait_until

pytestmark = pytest.mark.all

# the names in the cluster differ from those of the hosts
HOSTS = {"pcmk1": "node-a", "pcmk2": "node-b"}
NODE, PEER = HOSTS.values()
# a run with these does not wait for the peer's starts
QUICK = {"tool": "crm_standby", "stable_timeout": 0}
COROSYNC = """\
totem {{
    version: 2
    cluster_name: lab
    transport: udpu
}}
quorum {{
    provider: corosync_votequorum
    two_node: 1
    wait_for_all: 0
}}
nodelist {{
    node {{
        name: node-a
        nodeid: 1
        ring0_addr: {first}
    }}
    node {{
        name: node-b
        nodeid: 2
        ring0_addr: {second}
    }}
}}
logging {{
    to_syslog: yes
}}
"""
THIRD = """
    node {
        name: node-c
        nodeid: 3
        ring0_addr: 10.77.0.250
    }"""
# "slow" needs 4 s for its stop; it is switched off except in the tests that need it
CIB = """\
<cib validate-with="pacemaker-3.9" admin_epoch="1" epoch="1" num_updates="0">
  <configuration>
    <crm_config>
      <cluster_property_set id="cluster">
        <nvpair id="cluster-stonith" name="stonith-enabled" value="false"/>
        <nvpair id="cluster-dc" name="dc-deadtime" value="1s"/>
      </cluster_property_set>
    </crm_config>
    <nodes/>
    <resources>
      <primitive id="address" class="ocf" provider="pacemaker" type="Dummy"/>
      <primitive id="slow" class="ocf" provider="heartbeat" type="Delay">
        <instance_attributes id="slow-attributes">
          <nvpair id="slow-start" name="startdelay" value="0"/>
          <nvpair id="slow-stop" name="stopdelay" value="4"/>
          <nvpair id="slow-monitor" name="mondelay" value="0"/>
        </instance_attributes>
        <meta_attributes id="slow-meta">
          <nvpair id="slow-role" name="target-role" value="Stopped"/>
        </meta_attributes>
        <operations>
          <op id="slow-stop-0" name="stop" interval="0" timeout="60s"/>
        </operations>
      </primitive>
      <clone id="database-clone">
        <meta_attributes id="database-meta">
          <nvpair id="database-promotable" name="promotable" value="true"/>
        </meta_attributes>
        <primitive id="database" class="ocf" provider="pacemaker" type="Stateful"/>
      </clone>
    </resources>
    <constraints>
      <rsc_location id="address-first" rsc="address" node="node-a" score="100"/>
      <rsc_location id="slow-first" rsc="slow" node="node-a" score="100"/>
    </constraints>
  </configuration>
  <status/>
</cib>
"""


class Cluster(NamedTuple):
    host: WorkloadHost
    peer: WorkloadHost

    def shown(self) -> str:
        return self.host.run("crm_mon", "--one-shot", "--inactive", check=False).stdout

    def where(self, resource: str) -> str:
        """Return the node of a resource, or ""."""
        question = ("crm_resource", "--resource", resource, "--locate", "--quiet")
        return self.host.run(*question, check=False).stdout.strip()

    def is_standby(self, node: str = NODE) -> bool:
        question = ("crm_standby", "--node", node, "--query", "--quiet")
        return self.host.run(*question, check=False).stdout.strip() == "on"

    def set_standby(self, node: str, on: bool) -> None:
        self.host.run("crm_standby", "--node", node, *(("--update", "on") if on else ("--delete",)))

    def set_slow(self, role: str) -> None:
        meta = ("--meta", "--set-parameter", "target-role", "--parameter-value", role)
        self.host.run("crm_resource", "--resource", "slow", *meta)

    def start_slow(self) -> None:
        self.set_slow("Started")
        wait_until(lambda: self.where("slow") == NODE, "the slow resource runs", self.shown)

    def has_joined(self) -> bool:
        return f"Online: [ {NODE} {PEER} ]" in self.shown()


@pytest.fixture(scope="module")
def made(workload_host: Callable[[str], WorkloadHost]) -> Cluster:
    made = Cluster(*map(workload_host, HOSTS))
    first, second = made.host.host.address, made.peer.host.address
    for host in made:
        host.write("/etc/corosync/corosync.conf", COROSYNC.format(first=first, second=second))
        host.write("/etc/hosts", f"127.0.0.1 localhost\n{first} {NODE}\n{second} {PEER}\n")
        host.write("/etc/resolv.conf", "")
        host.write("/var/lib/pacemaker/cib/cib.xml", CIB, 0o600)
        host.shell("chown -R hacluster:haclient /var/lib/pacemaker/cib")
        host.shell("systemctl --quiet enable corosync pacemaker 2>/dev/null")
    for host in made:
        host.run("systemctl", "start", "--no-block", "pacemaker")
    wait_until(made.has_joined, "both nodes are online", made.shown, pause=0.2)
    return made


@pytest.fixture
def cluster(made: Cluster) -> Iterator[Cluster]:
    wait_until(lambda: made.where("address") == NODE, "the resource runs on the node", made.shown, pause=0.1)
    yield made
    made.host.shell(f"rm -f {RECORDS}/pacemaker.json")
    for node in HOSTS.values():
        made.set_standby(node, False)
    made.set_slow("Stopped")


def prepare(cluster: Cluster, **options: object) -> tuple[int, str]:
    done = cluster.host.hook("pacemaker", "prepare", {**QUICK, **options})
    return done.returncode, done.stderr


def recover(cluster: Cluster, **options: object) -> int:
    return cluster.host.hook("pacemaker", "recover", {**QUICK, **options}).returncode


def test_recover_takes_the_node_out_that_prepare_put_in_standby(cluster: Cluster) -> None:
    assert prepare(cluster) == (0, "")
    assert (cluster.is_standby(), cluster.where("address") in ("", PEER)) == (True, True)
    assert cluster.host.record("pacemaker") == {"node": NODE}
    assert prepare(cluster) == (0, "")
    assert cluster.host.record("pacemaker") == {"node": NODE}
    assert recover(cluster) == 0
    assert (cluster.is_standby(), cluster.host.record("pacemaker")) == (False, None)
    assert recover(cluster) == 0


@pytest.mark.parametrize("tool", ["pcs", "crm", "auto"])
def test_prepare_with_each_tool_moves_the_resources(cluster: Cluster, tool: str) -> None:
    assert cluster.host.hook("pacemaker", "prepare", {"tool": tool}).returncode == 0
    assert (cluster.is_standby(), cluster.where("address")) == (True, PEER)
    assert f"Promoted: [ {PEER} ]" in cluster.shown()
    assert cluster.host.hook("pacemaker", "recover", {"tool": tool}).returncode == 0
    assert (cluster.is_standby(), cluster.where("address")) == (False, NODE)


def test_recover_leaves_a_node_that_was_in_standby_before(cluster: Cluster) -> None:
    cluster.set_standby(NODE, True)
    assert prepare(cluster)[0] == 0
    assert cluster.host.record("pacemaker") is None
    assert recover(cluster) == 0
    assert cluster.is_standby()


@pytest.fixture
def third_node_missing(cluster: Cluster) -> Iterator[None]:
    """A cluster of three nodes, one of which is down."""
    addresses = {"first": cluster.host.host.address, "second": cluster.peer.host.address}
    two = COROSYNC.format(**addresses)
    three = two.replace("two_node: 1", "two_node: 0").replace("nodelist {", "nodelist {" + THIRD, 1)

    def load(configuration: str, quorum: str) -> None:
        for host in cluster:
            host.write("/etc/corosync/corosync.conf", configuration)
        cluster.host.run("corosync-cfgtool", "-R")
        shown = ("corosync-quorumtool", "-s")
        wait_until(lambda: quorum in cluster.host.run(*shown, check=False).stdout, quorum, cluster.shown)

    load(three, "Expected votes:   3")
    yield
    cluster.peer.run("systemctl", "start", "pacemaker")
    load(two, "2Node")
    cluster.host.run("crm_node", "--force", "--remove", "node-c", check=False)
    wait_until(cluster.has_joined, "both nodes are online", cluster.shown)


def test_prepare_keeps_the_quorum_and_recover_waits_for_it(cluster: Cluster, third_node_missing: None) -> None:
    assert refused(cluster, "loses quorum")
    assert prepare(cluster, force=True)[0] == 0
    cluster.peer.run("systemctl", "stop", "pacemaker", "corosync")
    wait_until(lambda: "WITHOUT quorum" in cluster.shown(), "the quorum is lost", cluster.shown)
    assert cluster.host.hook("pacemaker", "recover", QUICK, seconds=3).returncode == 1
    assert (cluster.is_standby(), cluster.host.record("pacemaker")) == (True, {"node": NODE})
    cluster.peer.run("systemctl", "start", "pacemaker")
    assert recover(cluster) == 0
    assert not cluster.is_standby()


@pytest.mark.parametrize(("on_timeout", "status"), [("fail", 1), ("continue", 0)])
def test_prepare_that_runs_out_of_time_names_the_resource(cluster: Cluster, on_timeout: str, status: int) -> None:
    cluster.start_slow()
    done = cluster.host.hook("pacemaker", "prepare", {**QUICK, "on_timeout": on_timeout}, seconds=3)
    assert (done.returncode, "slow" in done.stderr) == (status, True), done
    assert recover(cluster) == 0
    assert not cluster.is_standby()


def test_recover_after_a_reboot_waits_until_the_node_has_joined(cluster: Cluster) -> None:
    assert prepare(cluster)[0] == 0
    cluster.host.run("systemctl", "--quiet", "disable", "pacemaker")
    cluster.host.host.reboot()
    early = cluster.host.hook("pacemaker", "recover", QUICK, seconds=3)
    checked = cluster.host.hook("pacemaker", "check", QUICK)
    cluster.host.shell("systemctl --quiet enable pacemaker; systemctl start pacemaker")
    assert (early.returncode, checked.returncode) == (1, 1)
    assert cluster.host.record("pacemaker") == {"node": NODE}
    assert recover(cluster) == 0
    assert (cluster.is_standby(), cluster.host.record("pacemaker")) == (False, None)
    wait_until(cluster.has_joined, "both nodes are online", cluster.shown)


def test_hook_with_the_name_of_no_node_fails(cluster: Cluster) -> None:
    assert (prepare(cluster, node="pcmk1")[0], cluster.host.record("pacemaker")) == (1, None)
    checked = cluster.host.hook("pacemaker", "check", {"node": "pcmk1"})
    assert (checked.returncode, "pcmk1" in checked.stderr) == (1, True)


def test_hook_with_crm_finds_that_the_name_has_no_address(cluster: Cluster) -> None:
    cluster.host.shell("cp /etc/hosts /etc/hosts.saved; sed -i /node-/d /etc/hosts")
    try:
        checked = cluster.host.hook("pacemaker", "check", {"tool": "crm"})
        assert (checked.returncode, "without address" in checked.stderr) == (1, True)
        assert prepare(cluster, tool="crm")[0] == 1
    finally:
        cluster.host.shell("mv /etc/hosts.saved /etc/hosts")
    assert recover(cluster) == 0
    assert (cluster.is_standby(), cluster.host.record("pacemaker")) == (False, None)


def test_printed_play_moves_the_resources_and_back(cluster: Cluster, tmp_path: Path) -> None:
    """Run docs/ready-hooks/pacemaker.md as printed, through one event."""
    with printed_play("pacemaker", tmp_path, *cluster) as play:
        play.apply()
        play.prepare("Reboot")
        assert (cluster.is_standby(), cluster.where("address")) == (True, PEER)
        play.recover()
        assert (cluster.is_standby(), cluster.where("address")) == (False, NODE)
        assert cluster.host.record("pacemaker") is None


def refused(cluster: Cluster, words: str) -> bool:
    """Return True if prepare fails with these words and changes nothing, and check warns of it."""
    status, errors = prepare(cluster)
    checked = cluster.host.hook("pacemaker", "check", QUICK)
    return (
        (status, checked.returncode, cluster.is_standby(), cluster.host.record("pacemaker")) == (1, 0, False, None)
        and words in errors
        and words in checked.stderr
    )


def test_prepare_with_the_peer_in_standby_is_refused_without_force(cluster: Cluster) -> None:
    cluster.set_standby(PEER, True)
    assert refused(cluster, "no other node")
    assert prepare(cluster, force=True)[0] == 0
    assert cluster.is_standby()
    # an operator is faster than recover
    cluster.set_standby(NODE, False)
    assert recover(cluster) == 0
    assert cluster.host.record("pacemaker") is None


def test_prepare_is_refused_where_a_resource_cannot_run_elsewhere(cluster: Cluster) -> None:
    cluster.host.run("crm_resource", "--resource", "address", "--ban", "--node", PEER)
    try:
        assert refused(cluster, "address cannot run on another node")
    finally:
        cluster.host.run("crm_resource", "--resource", "address", "--clear")


def test_recover_undoes_a_prepare_that_was_killed(cluster: Cluster) -> None:
    cluster.start_slow()
    cluster.host.start_hook("pacemaker", "prepare", QUICK)
    wait_until(cluster.is_standby, "the node is in standby", cluster.shown)
    cluster.host.kill("hook")
    assert cluster.host.record("pacemaker") == {"node": NODE}
    assert recover(cluster) == 0
    assert (cluster.is_standby(), cluster.host.record("pacemaker")) == (False, None)
