# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon as a process: what it tells the service manager, how it ends, and that nothing stops its polls."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from support.daemon.daemon_process import Daemon
from support.daemon.hook_scripts import HANGS, is_alive
from support.daemon.simulated_azure import Azure

MakeDaemon = Callable[..., Daemon]


def gets(azure: Azure, status: int = 200) -> int:
    """Good answers so far; 304 says that nothing is new."""
    wanted = (200, 304) if status == 200 else (status,)
    return sum(request["status"] in wanted for request in azure.requests("GET"))


def test_t56_ready_at_once_however_late_the_first_answer_is(azure: Azure, make_daemon: MakeDaemon) -> None:
    azure.schedule("Reboot", hold=True)
    azure.fault("slow-first-answer", route="scheduledevents", delay=119)
    me = make_daemon()
    me.start(until="READY=1")
    # the control socket is there when systemd knows that the service is ready, and the first answer
    # is not
    code, data = me.data("status")
    assert (code, data["imds"]["ok"], data["imds"]["last_good_poll"]) == (1, False, None)
    me.wait(lambda: me.times("STATUS=waiting for the first answer of IMDS"))
    assert [line for _at, line in me.told if line.startswith("EXTEND_TIMEOUT_USEC=")] == []
    azure.advance(119)
    me.wait(lambda: me.times("STATUS=watching as vm1: Reboot Scheduled, prepare") == 1)
    assert me.times("READY=1") == 1


def test_ready_while_imds_is_sick_and_status_and_metrics_say_that_it_is(azure: Azure, make_daemon: MakeDaemon) -> None:
    azure.fault("unavailable", route="scheduledevents")
    me = make_daemon()
    file = me.rig.folder / "our.prom"
    me.rig.configure(metrics_file=str(file))
    me.start(until="READY=1", first="from hook_runner.service import daemon; daemon.METRICS_INTERVAL = 0.2")
    me.wait(lambda: gets(azure, 503) >= 2)
    code, data = me.data("status")
    assert (code, data["imds"]["ok"]) == (1, False) and "503" in data["imds"]["error"]
    me.wait(lambda: file.exists() and "azure_scheduled_events_imds_ok 0.0" in file.read_text())
    azure.heal()
    me.wait(lambda: me.data("status")[0] == 0)
    me.wait(lambda: "azure_scheduled_events_imds_ok 1.0" in file.read_text())


def test_the_status_line_follows_what_happens(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon().start(until="STATUS=watching as vm1: no events")
    event = azure.schedule("Freeze", started_for=60)
    me.wait(lambda: me.times("STATUS=watching as vm1: Freeze Scheduled, prepare"))
    me.wait(azure.approvals)
    azure.advance(2)
    me.wait(lambda: me.times("STATUS=watching as vm1: Freeze Started, started"))
    azure.complete(event)
    me.wait(lambda: me.times("STATUS=watching as vm1: no events") == 2)


def test_the_watchdog_is_fed_by_polls_and_by_nothing_else(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon(timeout=0.5, first_timeout=0.5)
    stuck = me.rig.folder / "stuck"
    first = f"""
import os, time
from azure_scheduled_events.imds import Imds
from hook_runner.service import poller
from hook_runner.service import daemon
poller.SLACK, daemon.CONNECT_TIMEOUT = 0.5, 0.0
events = Imds.events
def events_or_nothing(self, within=None):
    while os.path.exists({str(stuck)!r}):
        time.sleep(0.1)
    return events(self, within)
Imds.events = events_or_nothing
"""
    me.start(first=first, WATCHDOG_USEC="600000")
    me.wait(lambda: me.times("WATCHDOG=1") >= 5)
    stuck.touch()
    me.wait(lambda: me.silent_for("WATCHDOG=1") > 1.5)
    # the other loop lives, which is just why it must not feed the watchdog
    assert me.command("status").returncode in (0, 1) and me.silent_for("WATCHDOG=1") > 1.5
    stuck.unlink()
    me.wait(lambda: me.silent_for("WATCHDOG=1") < 0.5)


def test_sigterm_ends_it_in_two_seconds_while_a_request_hangs(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon()
    took = []
    # a machine that is busy may need longer once, but not each time
    for _attempt in range(3):
        me.start()
        azure.fault("hang", route="scheduledevents")
        before = -1
        while before != gets(azure):
            before, until = gets(azure), time.monotonic() + 1
            me.wait(lambda until=until: time.monotonic() > until)  # type: ignore[misc]
        took.append(me.stop())
        assert me.process is not None and me.process.returncode == 0
        azure.heal()
        if took[-1] < 2:
            break
    assert min(took) < 2


def test_sigterm_while_a_hook_runs_leaves_the_hook_to_the_next_process(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon()
    me.rig.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.start()
    me.wait(lambda: me.rig.marks("hang"))
    me.stop()
    (mark,) = me.rig.marks("hang")
    assert is_alive(mark.pid) and me.said("hooks that run go on, and are taken over at the next start") == 1
    me.start()
    me.wait(lambda: me.said("prepare/10-a runs on from before the daemon's start"))
    assert is_alive(mark.pid) and azure.approvals() == []
    me.rig.release("prepare/10-a")
    me.wait(azure.approvals)
    assert me.rig.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_kill_9_loses_neither_the_hook_nor_the_approval(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon()
    me.rig.hook("prepare/10-a", HANGS)
    azure.schedule("Reboot", hold=True)
    me.start()
    me.wait(lambda: me.rig.marks("hang"))
    me.stop(signal.SIGKILL)
    me.rig.release("prepare/10-a")
    me.start()
    me.wait(azure.approvals)
    assert me.rig.ran() == ["prepare/10-a"]


def test_polling_goes_on_while_a_hook_hangs(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon()
    me.rig.hook("prepare/10-a", HANGS)
    me.rig.hook("recover/10-a")
    event = azure.schedule("Reboot", hold=True)
    me.start()
    me.wait(lambda: me.rig.marks("hang"))
    before = gets(azure)
    me.wait(lambda: gets(azure) >= before + 5)
    assert is_alive(me.rig.marks("hang")[0].pid)
    azure.cancel(event)
    me.wait(lambda: me.rig.ran("recover"))


def test_t53_five_requests_a_second_are_never_exceeded(azure: Azure, make_daemon: MakeDaemon) -> None:
    azure.simulator.post("/knobs", {"rate_limit": 5})
    for _event in range(4):
        azure.schedule("Reboot", hold=True)
    me = make_daemon().start()
    me.wait(lambda: len(azure.approvals()) == 4 and gets(azure) >= 10)
    statuses = [
        request["status"]
        for request in azure.requests("GET") + azure.requests("POST") + azure.requests("GET", "instance")
    ]
    assert set(statuses) <= {200, 304}


def test_a_lasting_error_of_imds_is_one_line_and_its_end_another(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon().start()
    azure.fault("unavailable")
    me.wait(lambda: gets(azure, 503) >= 2)
    azure.heal()
    me.wait(lambda: me.said("IMDS answers again"))
    assert me.said("IMDS gives no good answer") == me.said("IMDS answers again") == 1


def test_sighup_reads_a_good_configuration_and_refuses_a_bad_one(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon(policy="observe")
    me.rig.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.start()
    me.wait(lambda: me.rig.marks("hang"))
    assert me.said("waits up to 15 minutes") == 1
    me.rig.hook("prepare/20-b")
    me.rig.configure(
        timeout=9, policy={"name": "other", "rules": [{"when": {}, "do": ["prepare", {"approve": "after_prepare"}]}]}
    )
    assert me.process is not None
    me.process.send_signal(signal.SIGHUP)
    me.wait(lambda: me.times("READY=1") == 2)
    assert me.said("take effect with the next restart only: timeout") == 1
    assert me.times("RELOADING=1") == 1 and me.data("status")[1]["policy"] == "other"
    file = me.rig.folder / "config.yml"
    good = file.read_text()
    file.write_text(good.replace('"policy"', '"polciy"'))
    me.process.send_signal(signal.SIGHUP)
    me.wait(lambda: me.said("the configuration stays as it was"))
    assert "policy?" in next(line for line in me.log() if "stays as it was" in line)
    me.wait(lambda: me.times("READY=1") == 3)
    assert me.command("status").returncode == 78
    file.write_text(good)
    assert me.data("status")[1]["policy"] == "other"
    # what ran went on, and the new hook comes after it
    me.rig.release("prepare/10-a")
    me.wait(azure.approvals)
    assert me.rig.ran() == ["prepare/10-a", "prepare/20-b"] and azure.approvals() == [("vm1", event)]


def test_locale_and_time_zone_of_the_host_do_not_matter(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon()
    me.rig.hook("prepare/10-a")
    azure.schedule("Reboot", hold=True)
    me.start(LC_ALL="ru_RU.UTF-8", LANGUAGE="ru", TZ="Europe/Moscow")
    me.wait(azure.approvals)
    assert 850 <= me.rig.marks()[0].seconds_left <= 900


def test_an_event_that_came_before_the_name_was_known_is_not_forgotten(azure: Azure, make_daemon: MakeDaemon) -> None:
    event = azure.schedule("Reboot", hold=True)
    azure.fault("unavailable", route="instance", requests="1-2")
    me = make_daemon()
    me.start(first="from hook_runner.service import poller; poller._NAME_RETRY_INTERVAL = 0.5")
    me.wait(azure.approvals)
    assert azure.approvals() == [("vm1", event)] and me.said("resource name is not known yet") == 1
