# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks run in units of systemd, which end as a whole, with limits of their own, outside of the sandbox."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from support.hosts.role_host import COMMAND, HOLD_FILE, MARKER_FILE, SERVICE, Azure, RoleHost
from support.wait import wait_until

pytestmark = pytest.mark.all

VM = "units"
HOOKS_FOLDER = "/etc/azure-scheduled-events/hooks.d"
UNITS = "azure-scheduled-events-hook-*.service"
OF_ALL_HOOKS = "/etc/systemd/system/azure-scheduled-events-hook-.service.d"
# starts a process in another group and one in another session, and does not exit
SPREADS = """#!/bin/sh
trap : TERM
timeout 300 sleep 9001 &
setsid sleep 9002 &
echo "spread $EVENT_SECONDS_LEFT"
while :; do sleep 0.1; done
"""
LEAVES = "#!/bin/sh\nsetsid sleep 9003 &\nexit 0\n"
SUPERVISOR = "/usr/local/lib/azure-scheduled-events/hook_runner/hooks/supervisor.py"
WAITS = (
    "import marshal, time, pathlib\npathlib.Path('/run/asked').touch()\n"
    f"while pathlib.Path('{HOLD_FILE}-unit').exists():\n    time.sleep(0.1)\n"
)
# seconds; more than any test needs, less than the 90 s for which a process that ignores TERM delays a reboot
REBOOT_TIMEOUT = 45


@pytest.fixture(autouse=True)
def _as_it_was(site: RoleHost) -> Iterator[None]:
    yield
    if not site.host.is_up:
        return
    site.host.run(["sh", "-c", f"rm -rf {OF_ALL_HOOKS} {HOOKS_FOLDER}/*/20-*; systemctl daemon-reload"])
    site.configure()


def write_hook(site: RoleHost, name: str, text: str) -> None:
    file = site.host.file(f"{HOOKS_FOLDER}/{name}")
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def units(site: RoleHost) -> list[str]:
    """Return the names of the units of hooks."""
    lines = site.host.run(["systemctl", "list-units", "--plain", "--no-legend", "--all", UNITS]).stdout.splitlines()
    return [line.split()[0] for line in lines]


def shown(site: RoleHost, unit: str, *names: str) -> list[str]:
    return [site.host.run(["systemctl", "show", "--value", "--property", name, unit]).stdout.strip() for name in names]


def runs(site: RoleHost, command: str) -> bool:
    return site.host.run(["pgrep", "--full", "--exact", command], check=False).returncode == 0


def test_unit_of_a_hook_has_its_limits_and_those_of_all_hooks(site: RoleHost, azure: Azure) -> None:
    site.host.file(OF_ALL_HOOKS).mkdir(parents=True)
    site.host.file(f"{OF_ALL_HOOKS}/test.conf").write_text("[Service]\nProtectClock=yes\n", encoding="utf-8")
    site.host.run(["systemctl", "daemon-reload"])
    site.configure(
        hooks={"prepare/10-mark": {"unit": {"MemoryMax": "1G", "TasksMax": 50, "CPUQuota": "50%"}}}, kill_after=2
    )
    site.hold("prepare")
    azure.announce("Freeze", VM, duration=0)
    site.wait_for("began", "prepare")
    (unit,) = units(site)
    assert unit.startswith("azure-scheduled-events-hook-prepare-10-mark-")
    assert shown(site, unit, "MemoryMax", "TasksMax", "CPUQuotaPerSecUSec", "ProtectClock") == [
        str(1 << 30),
        "50",
        "500ms",
        "yes",
    ]
    assert shown(site, unit, "KillMode", "OOMPolicy", "TimeoutStopUSec") == ["mixed", "continue", "6s"]
    # nothing of the daemon's sandbox
    assert shown(site, unit, "ProtectSystem", "NoNewPrivileges") == ["no", "no"]
    assert shown(site, SERVICE, "ProtectSystem", "NoNewPrivileges") == ["strict", "yes"]
    site.release("prepare")
    site.wait_for("ended", "prepare")
    wait_until(lambda: units(site) == [], "the unit is gone", site.log)


def test_timeout_ends_all_processes_of_a_hook(site: RoleHost, azure: Azure) -> None:
    write_hook(site, "prepare/20-spreads", SPREADS)
    site.configure(hooks={"20-spreads": {"timeout": 3}}, kill_after=1)
    azure.announce("Freeze", VM, duration=0)
    wait_until(lambda: runs(site, "sleep 9001") and runs(site, "sleep 9002"), "the processes of the hook", site.log)
    wait_until(lambda: "20-spreads: timeout" in site.log(), "the timeout of the hook", site.log)
    assert not runs(site, "sleep 9001") and not runs(site, "sleep 9002")
    wait_until(lambda: units(site) == [], "the unit is gone", site.log)


def test_hook_that_exits_leaves_no_process(site: RoleHost, azure: Azure) -> None:
    write_hook(site, "prepare/20-leaves", LEAVES)
    site.configure()
    event = azure.announce("Freeze", VM, duration=0)
    azure.wait_for_approval(event, site)
    assert not runs(site, "sleep 9003")
    wait_until(lambda: units(site) == [], "the unit is gone", site.log)
    assert site.host.run(["find", "/run/systemd", "-name", "*azure-scheduled-events-hook*"]).stdout == ""


def test_stopping_the_unit_by_hand_ends_the_hook(site: RoleHost, azure: Azure) -> None:
    write_hook(site, "prepare/20-spreads", SPREADS)
    site.configure(kill_after=1, hooks={"20-spreads": {"rerun": False}})
    azure.announce("Freeze", VM, duration=0)
    wait_until(lambda: runs(site, "sleep 9002"), "the processes of the hook", site.log)
    site.host.run(["systemctl", "stop", UNITS])
    assert not runs(site, "sleep 9001") and not runs(site, "sleep 9002")
    wait_until(lambda: "20-spreads: interrupted" in site.log(), "the end of the hook is logged", site.log)


def test_log_lines_of_a_hook_have_its_event_and_the_unit_of_the_daemon(site: RoleHost, azure: Azure) -> None:
    write_hook(site, "prepare/20-says", '#!/bin/sh\necho "here I am"\n')
    site.configure()
    event = azure.announce("Freeze", VM, duration=0)
    azure.wait_for_approval(event, site)
    line = f"prepare/20-says {event}: here I am"

    def journal(*words: str) -> str:
        return site.host.run(["journalctl", "--no-pager", "--output=cat", *words]).stdout

    wait_until(lambda: line in journal(f"AZURE_EVENT_ID={event}"), "it is found by its event", site.log)
    assert line in journal(f"--unit={SERVICE}") and line in journal("--identifier=azure-scheduled-events")


def test_daemon_that_is_killed_before_a_unit_has_begun_runs_the_hook_once(site: RoleHost, azure: Azure) -> None:
    keeper = site.host.file(SUPERVISOR)
    whole = keeper.read_text(encoding="utf-8")
    # delays the first instruction of the supervisor
    keeper.write_text(whole.replace("import marshal\n", WAITS, 1), encoding="utf-8")
    site.hold("unit")
    event = azure.announce("Freeze", VM, duration=0)
    wait_until(
        lambda: site.host.run(["test", "-e", "/run/asked"], check=False).returncode == 0,
        "its process is there",
        site.log,
    )
    process = site.process()
    site.host.run(["systemctl", "kill", "--signal=KILL", "--kill-who=main", SERVICE])
    wait_until(lambda: site.process() not in ("0", process) and site.watches(), "another daemon polls", site.log)
    assert site.began("prepare") == 0 and site.sees("stage", "prepare")
    keeper.write_text(whole, encoding="utf-8")
    site.release("unit")
    azure.wait_for_approval(event, site)
    assert (site.began("prepare"), site.ended("prepare")) == (1, 1), site.log()


def test_try_runs_a_hook_like_the_daemon_and_leaves_no_trace(site: RoleHost) -> None:
    before = json.dumps(site.history())
    tried = site.host.run([COMMAND, "try", "10-mark", "--type", "Redeploy"])
    assert "prepare/10-mark" in tried.stdout
    assert [(mark.what, mark.stage, mark.type) for mark in site.markers()] == [
        ("began", "prepare", "Redeploy"),
        ("ended", "prepare", "Redeploy"),
    ]
    assert json.dumps(site.history()) == before and units(site) == []
    write_hook(site, "recover/20-fails", "#!/bin/sh\ncat /proc/self/cgroup\nexit 3\n")
    failed = site.host.run([COMMAND, "try", "recover/20-fails", "--type", "Reboot"], check=False)
    assert failed.returncode == 1 and "azure-scheduled-events-hook-recover-20-fails-" in failed.stdout
    site.host.run(["sh", "-c", f"rm -f {MARKER_FILE}"])


def test_hook_that_ignores_term_does_not_delay_a_reboot(site: RoleHost, azure: Azure) -> None:
    write_hook(site, "prepare/20-spreads", SPREADS)
    site.configure(kill_after=2)
    azure.announce("Freeze", VM, duration=0)
    wait_until(lambda: runs(site, "sleep 9002"), "the processes of the hook", site.log)
    began = time.monotonic()
    site.host.reboot()
    assert time.monotonic() - began < REBOOT_TIMEOUT
    # the reboot interrupted the hook; therefore it runs again
    wait_until(lambda: runs(site, "sleep 9002"), "it runs again", site.log)
    assert '"interrupted"' in json.dumps(site.history())
