# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon as a process: notifications, its end, polls that nothing stops, and approvals at its interval."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from support.daemon.daemon_process import MakeDaemon
from support.daemon.hook_scripts import HANGS, is_alive
from support.daemon.simulated_azure import Azure

needs_units = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts units of systemd")


def gets(azure: Azure, status: int = 200) -> int:
    return sum(request["status"] == status for request in azure.requests("GET"))


@pytest.mark.all
def test_t56_ready_at_once_however_late_the_first_answer_is(azure: Azure, make_daemon: MakeDaemon) -> None:
    azure.schedule("Reboot", hold=True)
    azure.fault("slow-first-answer", route="scheduledevents", delay=119)
    vm = make_daemon()
    vm.start(until="READY=1")
    # the control socket is there when systemd knows that the service is ready, and the first answer
    # is not
    code, data = vm.data("status")
    assert (code, data["imds"]["ok"], data["imds"]["last_good_poll"]) == (1, False, None)
    vm.wait(lambda: vm.times_notified("STATUS=waiting for the first answer of IMDS"))
    assert [line for _at, line in vm.notifications if line.startswith("EXTEND_TIMEOUT_USEC=")] == []
    azure.advance(119)
    vm.wait(lambda: vm.times_notified("STATUS=watching as vm1: prepared; Reboot Scheduled") == 1)
    assert vm.times_notified("READY=1") == 1


@pytest.mark.all
def test_the_watchdog_is_fed_by_polls_and_by_nothing_else(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(timeout=0.5, first_timeout=0.5)
    stuck = vm.harness.folder / "stuck"
    first = f"""
import os, time
from azure_scheduled_events.imds import Imds
from hook_runner.service import poller
poller.STUCK_MARGIN, poller.CONNECT_TIMEOUT = 0.5, 0.0
events = Imds.events
def events_or_nothing(self, within=None):
    while os.path.exists({str(stuck)!r}):
        time.sleep(0.1)
    return events(self, within)
Imds.events = events_or_nothing
"""
    vm.start(first=first, WATCHDOG_USEC="600000")
    vm.wait(lambda: vm.times_notified("WATCHDOG=1") >= 5)
    stuck.touch()
    vm.wait(lambda: vm.seconds_since("WATCHDOG=1") > 1.5)
    # the other loop lives, and must not feed the watchdog
    assert vm.command("status").returncode in (0, 1) and vm.seconds_since("WATCHDOG=1") > 1.5
    stuck.unlink()
    vm.wait(lambda: vm.seconds_since("WATCHDOG=1") < 0.5)


def test_sigterm_ends_it_in_two_seconds_while_a_request_hangs(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    took = []
    # a machine that is busy may need longer once, but not each time
    for _attempt in range(3):
        vm.start()
        azure.fault("hang", route="scheduledevents")
        before = -1
        while before != gets(azure):
            before, until = gets(azure), time.monotonic() + 1
            vm.wait(lambda until=until: time.monotonic() > until)  # type: ignore[misc]
        took.append(vm.stop())
        assert vm.process is not None and vm.process.returncode == 0
        azure.heal()
        if took[-1] < 2:
            break
    assert min(took) < 2


@needs_units
@pytest.mark.parametrize("how", [pytest.param(signal.SIGTERM, marks=pytest.mark.all), signal.SIGKILL])
def test_hook_that_runs_is_left_to_the_next_process(azure: Azure, make_daemon: MakeDaemon, how: signal.Signals) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.start()
    vm.wait(lambda: vm.harness.marks("hang"))
    vm.stop(how)
    (mark,) = vm.harness.marks("hang")
    told = vm.times_logged("a hook in a unit continues, and the next start adopts it")
    assert is_alive(mark.pid) and told == (how == signal.SIGTERM)
    vm.start()
    vm.wait(lambda: vm.data("status")[1]["maintenance"]["hooks"][0]["state"] == "running")
    assert is_alive(mark.pid) and azure.approvals() == []
    vm.harness.release("prepare/10-a")
    vm.wait(azure.approvals)
    assert vm.harness.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


@needs_units
def test_preparation_outlives_a_restart_of_the_daemon_and_no_soft_reboot(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(policy="observe")
    vm.harness.hook("prepare/10-a")
    azure.schedule("Reboot", hold=True)
    prepared = "STATUS=watching as vm1: prepared; Reboot Scheduled"
    for times, ran in ((1, 1), (2, 1), (3, 2)):
        if times == 2:
            vm.harness.systemd.execute_again(1.0)
        if times == 3:
            vm.harness.systemd.start_services_again()
        vm.start()
        vm.wait(lambda times=times: vm.times_notified(prepared) == times)  # type: ignore[misc]
        assert vm.harness.ran() == ["prepare/10-a"] * ran
        vm.stop()


@pytest.mark.all
def test_polling_goes_on_while_a_hook_hangs(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a", HANGS)
    vm.harness.hook("recover/10-a")
    event = azure.schedule("Reboot", hold=True)
    vm.start()
    vm.wait(lambda: vm.harness.marks("hang"))
    before = gets(azure)
    vm.wait(lambda: gets(azure) >= before + 5)
    assert is_alive(vm.harness.marks("hang")[0].pid)
    azure.cancel(event)
    vm.wait(lambda: vm.harness.ran("recover"))


def test_sighup_reads_a_good_configuration_and_refuses_a_bad_one(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(policy="observe")
    vm.harness.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.start()
    vm.wait(lambda: vm.harness.marks("hang"))
    assert vm.times_logged("waits up to 15 minutes") == 1
    vm.harness.hook("prepare/20-b")
    vm.harness.configure(timeout=9, policy={"name": "other", "rules": [{"when": {}, "approve": "after_prepare"}]})
    assert vm.process is not None
    vm.process.send_signal(signal.SIGHUP)
    vm.wait(lambda: vm.times_notified("READY=1") == 2)
    assert vm.times_logged("take effect with the next restart only: timeout") == 1
    assert vm.times_notified("RELOADING=1") == 1 and vm.data("status")[1]["policy"] == "other"
    file = vm.harness.folder / "config.yml"
    good = file.read_text()
    # an empty one is refused because an event is in progress
    for times, bad in enumerate(("", good.replace('"policy"', '"polciy"')), 1):
        file.write_text(bad)
        vm.process.send_signal(signal.SIGHUP)
        vm.wait(lambda times=times: vm.times_logged("the configuration is not changed") == times)  # type: ignore[misc]
        vm.wait(lambda times=times: vm.times_notified("READY=1") == 2 + times)  # type: ignore[misc]
    assert any("policy?" in line for line in vm.log() if "is not changed" in line)
    assert vm.command("status").returncode == 78
    file.write_text(good)
    assert vm.data("status")[1]["policy"] == "other"
    # the running hook went on, and the new hook comes after it
    vm.harness.release("prepare/10-a")
    vm.wait(azure.approvals)
    assert vm.harness.ran() == ["prepare/10-a", "prepare/20-b"] and azure.approvals() == [("vm1", event)]


@pytest.mark.parametrize(
    "broken", ["imds.Imds.approve", "imds.Imds.instance", "imds.Imds.events", "pacing.Pacer.is_outage"]
)
def test_program_error_in_the_poller_is_reported_and_ends_no_poll(
    azure: Azure, make_daemon: MakeDaemon, broken: str
) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a")
    azure.schedule("Reboot", hold=True)
    first = f"""
from azure_scheduled_events import imds, pacing
whole, calls = {broken}, []
def fails_twice(*arguments, **options):
    calls.append(arguments)
    if len(calls) <= 2:
        raise KeyError("odd")
    return whole(*arguments, **options)
{broken} = fails_twice
"""
    azure.fault("unavailable", method="GET", route="scheduledevents", requests="1-2")
    vm.start(first=first)
    if broken == "imds.Imds.approve":
        vm.wait(lambda: vm.times_logged("approval-failed") == 2)
        azure.advance(30)  # the pause after a second refusal
    vm.wait(azure.approvals)
    assert vm.times_logged("KeyError") and not vm.times_logged("Traceback")


@pytest.mark.all
def test_locale_and_time_zone_of_the_host_do_not_matter(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a")
    azure.schedule("Reboot", hold=True)
    vm.start(LC_ALL="ru_RU.UTF-8", LANGUAGE="ru", TZ="Europe/Moscow")
    vm.wait(azure.approvals)
    assert 850 <= vm.harness.marks()[0].seconds_left <= 900


@pytest.mark.parametrize("restarts", [False, True])
def test_one_short_document_releases_no_vm(azure: Azure, make_daemon: MakeDaemon, restarts: bool) -> None:
    vm = make_daemon(leader="self-only")
    vm.harness.configure(interval=1)  # the next document comes after the decision, as on a VM
    vm.harness.hook("prepare/10-a")
    event = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    vm.start()
    vm.wait(lambda: [each["prepared"] for each in vm.data("status")[1]["events"]] == ["ok"])
    assert azure.requests("POST") == []
    if restarts:
        vm.stop()
    short = json.dumps({"DocumentIncarnation": 9, "Events": [azure.entry(EventId=event, Resources=["vm1"])]})
    azure.fault("body", body=short, method="GET", route="scheduledevents", requests=1)
    if restarts:
        vm.start(until="")
    before = len(azure.requests("GET"))
    vm.wait(lambda: len(azure.requests("GET")) >= before + 3)
    assert azure.requests("POST") == [], "it released vm2, which has not prepared"
