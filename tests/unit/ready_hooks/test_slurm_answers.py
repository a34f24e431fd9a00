# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Answers of Slurm 22.05, shortened."""

from __future__ import annotations

import time

import pytest

from ready_hooks.hooks.slurm import answers

NODES = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=0.14
   NodeAddr=10.77.0.11 NodeHostName=vm-1 Version=22.05.8
   OS=Linux 6.1 #1 SMP PREEMPT_DYNAMIC @0
   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=main
   BootTime=2026-11-22T00:55:13 SlurmdStartTime=2026-11-22T22:14:00

NodeName=n2 Arch=x86_64 CoresPerSocket=1
   NodeAddr=10.77.0.12 NodeHostName=n2 Version=22.05.8
   State=DOWN+DRAIN+NOT_RESPONDING ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   BootTime=None SlurmdStartTime=None
   Reason=a disk [sdb] is broken [root@2026-11-22T22:14:06]

"""
JOB = """\
JobId=5 JobName=Requeue=1 BatchFlag=1
   UserId=root(0) GroupId=root(0) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue={} Restarts=0 BatchFlag={} Reboot=0 ExitCode=0:0
"""
SLURMD = """\
Active Steps             = NONE
Boot time                = 2026-11-22T22:16:01
Hostname                 = n2
"""


def test_parse_nodes_returns_each_node() -> None:
    first, second = answers.parse_nodes(NODES)
    assert (first.name, first.host, first.states, first.reason) == ("n1", "vm-1", ("IDLE",), "")
    assert (second.name, second.reason) == ("n2", "a disk [sdb] is broken")
    assert (first.is_drained, first.is_down, first.is_away) == (False, False, False)
    assert (second.is_drained, second.is_down, second.is_away) == (True, True, True)
    assert second.started is None


def test_parse_nodes_reads_the_start_of_slurmd_as_local_time() -> None:
    started = answers.parse_nodes(NODES)[0].started
    assert started is not None
    assert time.strftime("%H:%M:%S", time.localtime(started)) == "22:14:00"


@pytest.mark.parametrize(("state", "is_away"), [("IDLE*", True), ("IDLE*+DRAIN", True), ("IDLE+DRAIN", False)])
def test_parse_nodes_reads_a_star_as_not_responding(state: str, is_away: bool) -> None:
    (node,) = answers.parse_nodes(f"NodeName=n1\n   State={state} Weight=1\n")
    assert (node.is_away, node.is_drained) == (is_away, "DRAIN" in state)


def test_parse_nodes_of_an_error_is_empty() -> None:
    assert answers.parse_nodes("Node n7 not found\n") == []


@pytest.mark.parametrize(("requeue", "batch", "expected"), [(1, 1, True), (0, 1, False), (1, 0, False)])
def test_parse_may_requeue_needs_a_batch_job_that_permits_it(requeue: int, batch: int, expected: bool) -> None:
    assert answers.parse_may_requeue(JOB.format(requeue, batch)) is expected


def test_parse_may_requeue_of_a_job_that_has_gone_is_false() -> None:
    assert not answers.parse_may_requeue("slurm_load_jobs error: Invalid job id specified\n")


def test_parse_jobs_returns_numbers_and_states() -> None:
    assert answers.parse_jobs("5|COMPLETING\n6|RUNNING\n") == [("5", "COMPLETING"), ("6", "RUNNING")]
    assert answers.parse_jobs("") == []
    with pytest.raises(ValueError):
        answers.parse_jobs("slurm_load_jobs error: Unable to contact slurm controller\n")


def test_parse_slurmd_started_is_none_without_slurmd() -> None:
    started = answers.parse_slurmd_started(SLURMD)
    assert started is not None
    assert time.strftime("%H:%M:%S", time.localtime(started)) == "22:16:01"
    assert answers.parse_slurmd_started("slurm_load_slurmd_status: Connection refused\n") is None
