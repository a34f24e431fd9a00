# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook slurm with Slurm on two hosts. The hosts have no usable control groups for jobs."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.workload_host import RECORDS, WorkloadHost
from support.wait import wait_until

pytestmark = pytest.mark.all

CONTROLLER, NODE = "slurm1", "slurm2"
OPERATOR = "a disk is to be replaced"
CONFIGURATION = """\
ClusterName=lab
SlurmctldHost={controller}({controller_address})
SlurmUser=root
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation=/var/lib/slurm-state
SlurmdSpoolDir=/var/lib/slurmd
ReturnToService=1
KillWait=1
MpiDefault=none
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
NodeName={controller} NodeAddr={controller_address} CPUs=2
NodeName={node} NodeAddr={node_address} CPUs=2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm(NamedTuple):
    controller: WorkloadHost
    node: WorkloadHost

    def states(self) -> set[str]:
        return set(self._show("State").split("+"))

    def reason(self) -> str:
        return self._show("Reason").rpartition(" [")[0]

    def _show(self, name: str) -> str:
        lines = self.controller.run("scontrol", "show", "node", NODE).stdout.splitlines()
        found = [line.strip().partition("=")[2] for line in lines if line.strip().startswith(name + "=")]
        value = found[0] if found else ""
        return value if name == "Reason" else value.partition(" ")[0]

    def update(self, *words: str) -> None:
        self.controller.run("scontrol", "update", f"NodeName={NODE}", *words)

    def submit(self, script: str, *options: str) -> str:
        """Start a job on the node, and return its number."""
        batch = ("sbatch", "--parsable", f"--nodelist={NODE}", "--ntasks=1", "--output=/dev/null", *options)
        number = self.controller.run(*batch, given=f"#!/bin/sh\n{script}\n").stdout.strip()
        wait_until(lambda: self.jobs().get(number) == "RUNNING", f"job {number} runs", self.jobs)
        return number

    def jobs(self) -> dict[str, str]:
        lines = self.controller.run("squeue", "--noheader", "--format=%A %T").stdout.splitlines()
        return dict(line.split() for line in lines)


@pytest.fixture(scope="module")
def cluster(workload_host: Callable[[str], WorkloadHost]) -> Slurm:
    made = Slurm(workload_host(CONTROLLER), workload_host(NODE))
    addresses = {"controller_address": made.controller.host.address, "node_address": made.node.host.address}
    names = f"{made.controller.host.address} {CONTROLLER}\n{made.node.host.address} {NODE}\n"
    key = base64.b64encode(os.urandom(96)).decode("ascii")
    for host in made:
        host.write("/etc/slurm/slurm.conf", CONFIGURATION.format(controller=CONTROLLER, node=NODE, **addresses))
        # without it slurmd fails in a host whose control groups are of both versions
        host.write("/etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        host.write("/etc/hosts", f"127.0.0.1 localhost\n{names}")
        host.write("/etc/resolv.conf", "")
        host.shell("mkdir -p /var/lib/slurm-state /var/lib/slurmd")
        host.shell(f"echo {key} >/etc/munge/munge.key; systemctl --quiet enable munge slurmd 2>/dev/null")
        host.run("systemctl", "restart", "munge")
    # slurmd reports each start of its own as a boot: the kernel of the hosts is never rebooted
    made.node.write("/etc/default/slurmd", "SLURMD_OPTIONS=-b\n")
    made.controller.run("systemctl", "start", "slurmctld", "slurmd")
    made.node.run("systemctl", "start", "slurmd")
    return made


@pytest.fixture
def slurm(cluster: Slurm) -> Iterator[Slurm]:
    def is_usable() -> bool:
        if cluster.states() != {"IDLE"}:
            cluster.controller.run("scontrol", "update", f"NodeName={NODE}", "State=RESUME", check=False)
        return cluster.states() == {"IDLE"}

    wait_until(is_usable, "the node is idle", cluster.states, pause=0.2)
    yield cluster
    cluster.node.shell(f"rm -f {RECORDS}/slurm.json")
    cluster.controller.shell("for job in $(squeue --noheader --format=%A); do scancel $job; done")
    wait_until(lambda: not cluster.jobs(), "all jobs have ended", cluster.jobs)


def test_recover_resumes_the_node_that_prepare_drained(slurm: Slurm) -> None:
    assert slurm.node.hook("slurm", "prepare", {}).returncode == 0
    assert slurm.states() == {"IDLE", "DRAIN"}
    reason = "azure-scheduled-events 75BA7D9B-F708-406F-B6A6-E16F4461F46B Reboot"
    assert slurm.reason() == reason
    assert slurm.node.hook("slurm", "prepare", {}, event={"ID": "another"}).returncode == 0
    assert (slurm.reason(), slurm.node.record("slurm")["reason"]) == (reason, reason)
    assert slurm.node.hook("slurm", "recover", {}).returncode == 0
    assert "DRAIN" not in slurm.states()
    assert slurm.node.record("slurm") is None
    assert slurm.node.hook("slurm", "recover", {}).returncode == 0


def test_recover_leaves_a_node_that_an_operator_drained_before(slurm: Slurm) -> None:
    slurm.update("State=DRAIN", f"Reason={OPERATOR}")
    assert slurm.node.hook("slurm", "prepare", {}).returncode == 0
    assert slurm.node.record("slurm") is None
    assert slurm.node.hook("slurm", "recover", {}).returncode == 0
    assert ("DRAIN" in slurm.states(), slurm.reason()) == (True, OPERATOR)


def test_recover_fails_while_the_node_is_down(slurm: Slurm) -> None:
    assert slurm.node.hook("slurm", "prepare", {}).returncode == 0
    slurm.update("State=RESUME")
    slurm.update("State=DOWN", f"Reason={OPERATOR}")
    failed = slurm.node.hook("slurm", "recover", {})
    assert (failed.returncode, OPERATOR in failed.stderr, "DOWN" in slurm.states()) == (1, True, True)
    slurm.update("State=RESUME")
    assert slurm.node.hook("slurm", "recover", {}).returncode == 0
    assert slurm.node.record("slurm") is None


@pytest.mark.parametrize(("on_timeout", "status"), [("continue", 0), ("fail", 1)])
def test_prepare_leaves_a_job_that_needs_more_time(slurm: Slurm, on_timeout: str, status: int) -> None:
    job = slurm.submit("sleep 300", "--requeue")
    done = slurm.node.hook("slurm", "prepare", {"on_timeout": on_timeout}, seconds=4)
    assert (done.returncode, job in done.stderr) == (status, True)
    assert slurm.jobs() == {job: "RUNNING"}
    assert slurm.node.hook("slurm", "recover", {}).returncode == 0
    assert "DRAIN" not in slurm.states()


def test_prepare_requeues_at_the_time_limit_where_configured(slurm: Slurm) -> None:
    job = slurm.submit("sleep 300", "--requeue")
    assert slurm.node.hook("slurm", "prepare", {"wait": 0, "on_timeout": "requeue"}).returncode == 0
    wait_until(lambda: slurm.jobs() == {job: "PENDING"}, "the job is requeued", slurm.jobs)


def test_prepare_requeues_for_redeploy_only_jobs_that_allow_it(slurm: Slurm) -> None:
    requeued = slurm.submit("sleep 300", "--requeue")
    other = slurm.submit("sleep 300", "--no-requeue")
    assert slurm.node.hook("slurm", "prepare", {"wait": 0}, event={"TYPE": "Redeploy"}).returncode == 0
    expected = {requeued: "PENDING", other: "RUNNING"}
    wait_until(lambda: slurm.jobs() == expected, "one job is requeued", slurm.jobs)


def test_prepare_sends_the_signal_once_to_jobs_that_stay(slurm: Slurm) -> None:
    slurm.submit("trap 'echo signal >>/tmp/signals' USR1; while :; do sleep 0.1; done", "--requeue")
    options = {"wait": 0, "signal": "USR1"}
    for _attempt in range(2):
        assert slurm.node.hook("slurm", "prepare", options).returncode == 0
    count = wait_until(lambda: slurm.node.shell("cat /tmp/signals 2>/dev/null || :"), "the job has the signal")
    assert count == "signal\n"


def test_recover_after_a_reboot_waits_for_slurmd_and_resumes(slurm: Slurm) -> None:
    assert slurm.node.hook("slurm", "prepare", {}).returncode == 0
    slurm.node.run("systemctl", "--quiet", "disable", "slurmd")
    slurm.node.host.reboot()
    try:
        early = slurm.node.hook("slurm", "recover", {}, seconds=5)
        assert (early.returncode, "slurmd" in early.stderr, "DRAIN" in slurm.states()) == (1, True, True)
    finally:
        slurm.node.shell("systemctl --quiet enable slurmd 2>/dev/null; systemctl start slurmd")
    assert slurm.node.hook("slurm", "recover", {}).returncode == 0
    assert (slurm.states(), slurm.node.record("slurm")) == ({"IDLE"}, None)


def test_prepare_waits_for_jobs_while_slurmctld_restarts(slurm: Slurm) -> None:
    job = slurm.submit("sleep 4")
    with ThreadPoolExecutor(1) as later:
        prepared = later.submit(slurm.node.hook, "slurm", "prepare", {})
        wait_until(lambda: "DRAIN" in slurm.states(), "the node is drained", slurm.states)
        slurm.controller.run("systemctl", "restart", "slurmctld")
        assert (prepared.result().returncode, job in slurm.jobs()) == (0, False)


def test_hook_without_slurmctld_fails_and_changes_nothing(slurm: Slurm) -> None:
    slurm.controller.run("systemctl", "stop", "slurmctld")
    try:
        checked = slurm.node.hook("slurm", "check", {})
        assert (checked.returncode, "slurmctld" in checked.stderr) == (1, True)
        assert slurm.node.hook("slurm", "prepare", {}, seconds=15).returncode == 1
        assert slurm.node.record("slurm") is None
    finally:
        slurm.controller.run("systemctl", "start", "slurmctld")


def test_printed_play_drains_and_resumes_the_node(slurm: Slurm, tmp_path: Path) -> None:
    """Run docs/ready-hooks/slurm.md as printed, through one event."""
    with printed_play("slurm", tmp_path, slurm.node) as play:
        play.apply()
        event = play.prepare("Redeploy")
        assert ("DRAIN" in slurm.states(), slurm.reason()) == (True, f"azure-scheduled-events {event} Redeploy")
        play.recover()
        assert ("DRAIN" in slurm.states(), slurm.node.record("slurm")) == (False, None)


@pytest.mark.parametrize("prepares_again", [False, True])
def test_recover_leaves_a_node_that_an_operator_drained_meanwhile(slurm: Slurm, prepares_again: bool) -> None:
    assert slurm.node.hook("slurm", "prepare", {}).returncode == 0
    slurm.update("State=RESUME")
    slurm.update("State=DRAIN", f"Reason={OPERATOR}")
    if prepares_again:
        assert slurm.node.hook("slurm", "prepare", {}).returncode == 0
    assert slurm.node.hook("slurm", "recover", {}).returncode == 0
    assert ("DRAIN" in slurm.states(), slurm.reason()) == (True, OPERATOR)
    assert slurm.node.record("slurm") is None


def test_recover_leaves_a_node_that_an_operator_resumed(slurm: Slurm) -> None:
    assert slurm.node.hook("slurm", "prepare", {}).returncode == 0
    slurm.update("State=RESUME")
    assert slurm.node.hook("slurm", "recover", {}).returncode == 0
    assert ("DRAIN" in slurm.states(), slurm.node.record("slurm")) == (False, None)


def test_recover_undoes_a_prepare_that_was_killed(slurm: Slurm) -> None:
    slurm.submit("sleep 300")
    slurm.node.start_hook("slurm", "prepare", {})
    wait_until(lambda: "DRAIN" in slurm.states(), "the node is drained", slurm.states)
    slurm.node.kill("hook")
    assert slurm.node.hook("slurm", "recover", {}).returncode == 0
    assert ("DRAIN" in slurm.states(), slurm.node.record("slurm")) == (False, None)


def test_check_and_dry_run_change_nothing(slurm: Slurm) -> None:
    found = slurm.node.hook("slurm", "check", {})
    assert (found.returncode, found.stdout.strip()) == (0, f"slurm: {NODE}: IDLE")
    wrong = slurm.node.hook("slurm", "check", {"node": "slurm7"})
    assert (wrong.returncode, "slurm7" in wrong.stderr) == (1, True)
    job = slurm.submit("sleep 300", "--requeue")
    options = {"dry_run": True, "signal": "USR1"}
    assert slurm.node.hook("slurm", "prepare", options, event={"TYPE": "Preempt"}).returncode == 0
    assert (slurm.jobs(), "DRAIN" in slurm.states()) == ({job: "RUNNING"}, False)
    assert slurm.node.record("slurm") is None
