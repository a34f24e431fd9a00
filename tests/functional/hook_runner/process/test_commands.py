# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Output and exit status of the verbs, with a running daemon and without one."""

from __future__ import annotations

import contextlib
import getpass
import grp
import json
import os
import pwd
import sys
from collections.abc import Callable

import pytest

from hook_runner import record_files
from hook_runner.cli.main import main
from hook_runner.service.control_socket import send_request
from support.daemon.child_processes import in_child
from support.daemon.daemon_process import DaemonProcess, MakeDaemon
from support.daemon.hook_scripts import FAILS, TALKS
from support.daemon.record_factory import make_maintenance
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure
from support.other_user import folder_for_user

NOBODY = 65534
NOBODYS_GROUP = pwd.getpwuid(NOBODY).pw_gid


@pytest.mark.all
def test_without_a_daemon_each_verb_says_so(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    assert vm.data("status") == (3, {"running": False})
    assert vm.command("status").stdout == "the service does not run\n"
    code, data = vm.data("approve", "some")
    assert (code, data["running"]) == (3, False) and "does not run" in data["text"]
    code, data = vm.data("history")
    assert code == 1 and "there are no records in" in data["error"]
    vm.start()
    vm.stop()
    assert vm.data("status")[0] == 3 and vm.data("history")[0] == 0


@pytest.mark.all
def test_history_lists_events_without_a_maintenance_separately(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon().start()
    event = azure.schedule("Freeze", "vm2", hold=True)
    vm.wait(lambda: vm.data("status")[1]["events"])
    azure.cancel(event)
    vm.wait(lambda: not vm.data("status")[1]["events"])
    assert vm.data("history") == (0, [])
    code, (other,) = vm.data("history", "--others", event[:8])
    assert (code, other["event_id"], other["affects_this_vm"], other["outcome"]) == (0, event, False, "unknown")
    shown = vm.command("history").stdout
    assert "no maintenances\n\nevents without a maintenance\n" in shown and event in shown
    assert vm.data("history", "--others", "x")[0] == vm.data("history", event)[0] == 4


@pytest.mark.all
def test_config_lists_each_key_with_its_source(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    vm.harness.configure(margin=7, hooks={"10-a": {"types": "Relocate"}})
    code, listed = vm.data("config")
    found = {each["key"]: each for each in listed}
    assert code == 0 and (found["margin"]["value"], found["margin"]["default"]) == (7.0, 5.0)
    assert found["margin"]["source"] == f"{vm.harness.folder}/config.yml:1" and found["leader"]["source"] == "default"
    assert "config.yml:1" in vm.command("config").stdout
    vm.start()
    assert vm.times_logged("settings that differ from the defaults: ") == 1 and vm.times_logged("margin 7.0") == 1
    assert vm.times_logged("config.yml:1: hooks.10-a.types: event type 'Relocate' is unknown") == 1


def test_approve_by_hand(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(policy="observe")
    vm.harness.hook("prepare/10-a", FAILS)
    vm.start()
    ids = [f"4B2C8F6{number}-0000-4000-8000-000000000000" for number in (1, 2)]
    own = azure.schedule("Reboot", hold=True, id=ids[0])
    shared = azure.schedule("Redeploy", "vm1", "vm2", hold=True, id=ids[1])
    vm.wait(lambda: [event["prepared"] for event in vm.data("status")[1]["events"]] == ["failed", "failed"])
    assert vm.command("approve", "no-such-event").returncode == 4
    code, data = vm.data("approve", "4b2c", "--force")
    assert (code, data["found"], sorted(data["candidates"])) == (4, False, [own, shared])
    refused = vm.command("approve", own)
    assert refused.returncode == 1 and "--force" in refused.stdout + refused.stderr
    code, data = vm.data("approve", shared, "--force")
    assert (code, data["accepted"]) == (1, False) and "--release-others" in data["text"]
    assert azure.requests("POST") == []
    code, data = vm.data("approve", own[:-1].lower(), "--force")
    assert (code, data["accepted"]) == (0, True)
    vm.wait(lambda: azure.approvals() == [("vm1", own)])
    assert vm.command("approve", shared, "--force", "--release-others").returncode == 0
    vm.wait(lambda: azure.approvals() == [("vm1", own), ("vm1", shared)])
    assert "by root" in vm.command("history", own).stdout or os.geteuid() != 0


def test_approve_says_when_nothing_is_sent_because_imds_fails(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(policy="observe")
    vm.start()
    event = azure.schedule("Reboot", hold=True)
    vm.wait(lambda: vm.data("status")[1]["events"])
    azure.fault("unavailable", route="scheduledevents")
    vm.wait(lambda: not vm.data("status")[1]["imds"]["ok"])
    code, data = vm.data("approve", event)
    assert (code, data["accepted"]) == (1, True) and "IMDS gives no good answer" in data["text"]
    assert azure.approvals() == []
    azure.heal()
    vm.wait(lambda: azure.approvals() == [("vm1", event)])


def test_texts_of_imds_steer_no_terminal(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(policy="observe")
    vm.start()
    entry = azure.entry(EventId="A\x1b[2J\n", Resources=["vm1", "vm2\n\x1b]0;x\x07\x9b\u202e"], Description="\x1b[2J")
    azure.show(entry)
    vm.wait(lambda: vm.data("status")[1]["events"])
    for verb in ("approve A", "approve A --release-others", "status", "history", "history A"):
        done = vm.command(*verb.split())
        assert done.stdout and (done.stdout + done.stderr).replace("\n", "").isprintable(), verb
    assert "vm2??]0;x???" in vm.command("approve", "A").stdout


@pytest.mark.all
def test_usage_errors_are_2_and_configuration_errors_78(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    assert vm.command("dance").returncode == 2
    for verb in ("approve", "history", "recover"):
        assert vm.command(verb, "").returncode == 2
    assert vm.command("history", "--limit", "0").returncode == 2
    vm.harness.folder.joinpath("config.yml").write_text("intervall: 2\nmargin: -1\n")
    for verb in ("run", "status", "history"):
        done = vm.command(verb)
        first, second = done.stderr.splitlines()
        assert done.returncode == 78 and "config.yml:1: intervall: unknown key" in first, verb
        assert "config.yml:2: margin: " in second


@pytest.mark.all
def test_json_is_printed_whatever_goes_wrong(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    vm.start()
    for verb in ("approve", "history"):
        code, data = vm.data(verb, "no-such-event")
        assert (code, data["found"]) == (4, False) and "no-such-event" in data["text"], verb
        assert "no-such-event" in vm.command(verb, "--json", "no-such-event").stderr
    vm.harness.folder.joinpath("config.yml").write_text('{"intervall": 2}')
    for verb in ("status", "history", "approve some"):
        code, data = vm.data(*verb.split())
        assert code == 78 and list(data) == ["error"] and "did you mean interval?" in data["error"], verb


def test_a_second_daemon_is_refused(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon().start()
    done = vm.command("run")
    assert done.returncode == 1 and "another azure-scheduled-events holds" in done.stderr
    assert vm.data("status")[0] == 0


@pytest.mark.all
def test_a_dry_run_of_the_command_approves_nothing(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon().start("--dry-run")
    azure.schedule("Reboot", hold=True)
    vm.wait(lambda: vm.times_logged("it would be approved now"))
    assert vm.data("status")[1]["dry_run"] is True and azure.requests("POST") == []


@pytest.mark.all
def test_debug_log_has_polls_decisions_and_hooks(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(log_level="debug")
    vm.harness.hook("prepare/10-a")
    vm.start()
    azure.schedule("Reboot", hold=True)
    vm.wait(azure.approvals)
    azure.fault("unavailable", route="scheduledevents")
    vm.wait(lambda: any("debug" in line and "503" in line and "it took" in line for line in vm.log()))
    (hook,) = [line for line in vm.log() if "prepare/10-a: it runs " in line]
    assert f"{vm.harness.hooks_directory}/prepare/10-a" in hook and "EVENT_ID" in hook and "=" not in hook
    assert vm.times_logged("poll: status 200, incarnation ") and vm.times_logged("decided: prepare/10-a begins") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(
    "key, permitted", [("", ""), ("control_group", "status history approve"), ("status_group", "status history")]
)
def test_who_may_ask_what(azure: Azure, make_daemon: MakeDaemon, key: str, permitted: str) -> None:
    vm = make_daemon(**{key: grp.getgrgid(NOBODYS_GROUP).gr_name} if key else {}).start()
    # the way there is open, so that only the socket's own mode is left to refuse
    (vm.harness.folder / "run").chmod(0o755)

    def ask_as_nobody(question: dict[str, str]) -> Callable[[], None]:
        def work() -> None:
            os.chdir(vm.harness.folder)
            os.setgroups([])
            os.setgid(NOBODYS_GROUP)
            os.setuid(NOBODY)
            try:
                os._exit(2 if "error" in send_request("run", question) else 0)
            except PermissionError:
                os._exit(77)

        return work

    questions = ("status", "history", "approve")
    results = [in_child(ask_as_nobody({"ask": each, "event_id": "x"})) for each in questions]
    assert results == [0 if each in permitted.split() else 77 for each in questions]
    assert (vm.harness.folder / "run" / "status.sock").exists() == (key == "status_group")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_history_over_the_socket_says_what_it_leaves_out(azure: Azure) -> None:
    with folder_for_user() as folder, contextlib.ExitStack() as held:
        vm = DaemonProcess(RunnerHarness(folder, azure, status_group=grp.getgrgid(NOBODYS_GROUP).gr_name))
        held.callback(vm.close)
        (folder / "config.yml").chmod(0o644)
        vm.start()
        for number in range(1, 202):
            path = folder / "state" / record_files.name_of(number)
            record_files.write(str(path), make_maintenance(number, is_open=False))

        def history_of_nobody(*arguments: str) -> tuple[int, int, str]:
            def work() -> None:
                for stream, name in ((1, "out"), (2, "err")):
                    os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
                os.setgroups([])
                os.setgid(NOBODYS_GROUP)
                os.setuid(NOBODY)
                sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
                sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
                os._exit(main(["history", "--json", "--config", str(folder / "config.yml"), *arguments]))

            return in_child(work), len(json.loads((folder / "out").read_text())), (folder / "err").read_text()

        code, shown, said = history_of_nobody("--all")
        assert (code, shown) == (0, 200) and "the newest 200 of 201 maintenances" in said
        assert history_of_nobody() == (0, 20, "")
        assert len(vm.data("history", "--all")[1]) == 201
        (folder / "state" / record_files.name_of(201)).write_text("{")
        code, shown, said = history_of_nobody("--all")
        assert (code, shown) == (0, 199) and "201.json cannot be used" in said and "of 201 maintenances" in said
        (folder / "state" / record_files.HISTORY).rename(folder / "state" / "other")
        (folder / "state" / record_files.HISTORY).touch()
        code, shown, said = history_of_nobody()
        assert (code, shown, vm.data("history")) == (0, 0, (0, [])) and "history cannot be used: [Errno 20]" in said
        vm.stop()
        for mode in (0o700, 0o755):
            (folder / "state").chmod(mode)
            code, _members, said = history_of_nobody()
            assert code == 3 and "the service does not run; without it only root may read the history" in said


@pytest.mark.all
def test_history_is_the_same_with_and_without_the_daemon(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a", TALKS)
    vm.start()
    for _number in range(5):
        event = azure.schedule("Freeze", hold=True)
        vm.wait(lambda event=event: ("vm1", event) in azure.approvals())  # type: ignore[misc]
        azure.cancel(event)
        vm.wait(lambda: not vm.data("status")[1]["events"])
    limits: list[tuple[str, ...]] = [("--all",), ("--limit", "3"), ("--limit", "4"), (event,), (event[:-1],)]
    shown = [(vm.data("history", *limit), vm.command("history", *limit).stdout) for limit in limits]
    assert [len(data) for (_code, data), _text in shown] == [5, 3, 4, 1, 1]
    vm.stop()
    assert shown == [(vm.data("history", *limit), vm.command("history", *limit).stdout) for limit in limits]
    table = shown[0][1].splitlines()
    assert len(table) == 6 and table[0].split()[:2] == ["MAINTENANCE", "BEGAN"]
    assert event in table[5] and "unknown" in table[5] and "accepted" in table[5]
    assert f"speaking of {event}" in shown[3][1]
    assert vm.command("history", "--all", "--limit", "3").returncode == 2


@pytest.mark.all
@pytest.mark.parametrize("give_up", [False, True])
def test_recover_is_tried_again_or_given_up_by_hand(azure: Azure, make_daemon: MakeDaemon, give_up: bool) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a")
    vm.harness.hook("recover/10-a", FAILS)
    vm.start()
    event = azure.schedule("Freeze", hold=True)
    vm.wait(azure.approvals)
    assert vm.command("recover", event).returncode == 1
    azure.cancel(event)
    vm.wait(lambda: vm.times_notified("STATUS=watching as vm1: NOT RECOVERED"))
    code, data = vm.data("status")
    assert code == 1 and data["maintenance"]["not_recovered"] == ["10-a"]
    assert vm.command("recover", "no-such-event").returncode == 4
    words = [event[:8].lower(), "--give-up"] if give_up else []
    # it is refused while the hook, which the daemon repeats as well, runs
    vm.wait(lambda: vm.command("recover", *words).returncode == 0)
    if not give_up:
        vm.wait(lambda: {run["state"] for run in vm.data("status")[1]["maintenance"]["hooks"][2:]} == {"failed"})
        vm.harness.hook("recover/10-a")
        vm.command("recover")
    vm.wait(lambda: vm.data("status")[1]["maintenance"] is None)
    (maintenance,) = vm.data("history")[1]
    assert maintenance["given_up_by"] == (getpass.getuser() if give_up else None)
    assert ("given-up" if give_up else "recovery-asked") in [entry["what"] for entry in maintenance["timeline"]]
    assert vm.command("recover", event).returncode == 4 and vm.command("recover").returncode == 1


def test_the_verbs_pause_and_resume(make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    file = vm.harness.folder / "our.prom"
    vm.harness.configure(metrics_file=str(file))
    assert vm.command("pause").returncode == vm.command("resume").returncode == 3
    vm.start(first="from hook_runner.reporting import metrics; metrics.METRICS_INTERVAL = 0.1")
    code, data = vm.data("status")
    assert (code, data["paused"]) == (0, None)
    code, data = vm.data("pause", "--until", "2h", "--reason", "a change\n\x1b[2J")
    assert (code, data["accepted"]) == (0, True)
    code, status = vm.data("status")
    assert code == 1 and set(status["paused"]) == {"since", "until", "by", "reason"}
    assert status["paused"]["reason"] == "a change??[2J"
    vm.wait(lambda: file.exists() and "azure_scheduled_events_paused 1.0" in file.read_text())
    vm.wait(lambda: vm.times_notified("STATUS=paused; watching as vm1: no events"))
    vm.stop(9)
    assert (vm.harness.folder / "run" / "control.sock").exists() and vm.data("status")[0] == 3
    vm.start(until="STATUS=paused; watching")
    assert vm.data("status")[1]["paused"] == status["paused"]
    assert vm.command("resume").stdout == "resumed\n"
    assert vm.command("resume").stdout == "the daemon is not paused\n"
    assert vm.data("status")[0] == 0
    code, data = vm.data("pause", "--until", "2020-01-01T00:00:00Z")
    assert (code, data["accepted"]) == (1, False) and "has passed" in data["text"]
    wrong = vm.command("pause", "--until", "soon")
    assert wrong.returncode == 2 and "expected a time such as 30m" in wrong.stderr


def test_the_version_is_that_of_the_collection_and_of_the_daemon(make_daemon: MakeDaemon) -> None:
    vm = make_daemon().start()
    version = vm.data("status")[1]["version"]
    assert vm.command("--version").stdout == f"azure-scheduled-events {version}\n"
