# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks run in units of systemd, which end as a whole, with limits of their own, outside of the sandbox."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from support.daemon.hook_scripts import write_program
from support.hosts.role_host import SERVICE, Azure, RoleHost
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
# programs that once end the daemon, before or after the real program does its work
PROGRAMS, ASKED = "/usr/local/lib/programs-of-the-test", "/var/lib/asked"
KILL = f"kill -KILL $(systemctl show --value --property MainPID {SERVICE})"
RESTART = f"systemctl --no-block restart {SERVICE}; sleep 0.5"
EVENT_VARIABLE = "EVENT_ID"
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
    write_program(site.host.file(f"{HOOKS_FOLDER}/{name}"), text)


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
    azure.announce_and_hold(site)
    (unit,) = units(site)
    assert unit.startswith("azure-scheduled-events-hook-prepare-10-mark-")
    assert shown(site, unit, "MemoryMax", "TasksMax", "CPUQuotaPerSecUSec", "ProtectClock") == [
        str(1 << 30),
        "50",
        "500ms",
        "yes",
    ]
    assert shown(site, unit, "KillMode", "OOMPolicy", "TimeoutStopUSec") == ["control-group", "continue", "2s"]
    assert "azure-scheduled-events.service" in shown(site, unit, "Before")[0].split()
    assert "network.target" in shown(site, unit, "After")[0].split()
    # variables may have passwords; every user can read properties
    assert EVENT_VARIABLE not in site.host.run(["systemctl", "show", unit]).stdout
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
    wait_until(lambda: "20-spreads timeout" in site.log(), "the timeout of the hook", site.log)
    assert not runs(site, "sleep 9001") and not runs(site, "sleep 9002")
    wait_until(lambda: units(site) == [], "the unit is gone", site.log)


def test_hook_that_exits_leaves_no_process(site: RoleHost, azure: Azure) -> None:
    write_hook(site, "prepare/20-leaves", LEAVES)
    site.configure()
    event = azure.announce("Freeze", VM, duration=0)
    azure.wait_for_approval(event, site)
    wait_until(lambda: units(site) == [], "the unit is gone", site.log)
    assert not runs(site, "sleep 9003") and "notification message" not in site.log()
    assert site.host.run(["find", "/run/systemd", "-name", "*azure-scheduled-events-hook*"]).stdout == ""


def test_output_of_a_hook_is_in_the_journal_by_its_unit_and_in_the_history(site: RoleHost, azure: Azure) -> None:
    forged = 'for run in $(seq 200); do logger --tag "azure-scheduled-events-hook-prepare-20-says-$run" forged; done'
    site.host.run(["runuser", "--user", "nobody", "--", "sh", "-c", forged])
    write_hook(site, "prepare/20-says", '#!/bin/sh\necho "here I am"\n')
    site.configure()
    event = azure.announce("Freeze", VM, duration=0)
    azure.wait_for_approval(event, site)

    def journal(unit: str) -> list[str]:
        return site.host.run(["journalctl", "--no-pager", "--output=cat", f"--unit={unit}"]).stdout.splitlines()

    wait_until(lambda: "here I am" in journal("azure-scheduled-events-hook-prepare-20-says-*"), "its unit", site.log)
    assert "here I am" in journal("azure-scheduled-events*")
    history = json.dumps(site.history())
    assert "here I am" in history and "forged" not in history


def test_flood_of_output_delays_no_hook_and_does_not_fill_the_journal(site: RoleHost, azure: Azure) -> None:
    write_hook(site, "prepare/20-flood", f"#!/bin/sh\nyes {'x' * 500} | head -c 100000000\n")
    site.configure()
    event = azure.announce("Freeze", VM, duration=0)
    azure.wait_for_approval(event, site)
    unit = "--unit=azure-scheduled-events-hook-prepare-20-flood-*"
    lines = site.host.run(["sh", "-c", f"journalctl --no-pager --output=cat '{unit}' | wc --lines"]).stdout
    assert 0 < int(lines) < 100_000  # of 200,000


def test_reload_refuses_a_limit_that_systemd_refuses(site: RoleHost) -> None:
    site.configure(reload=False, hooks={"prepare/10-mark": {"unit": {"MemoryMax": "lots"}}})
    assert site.host.run(["systemctl", "reload", SERVICE], check=False).returncode != 0
    checked = site.ask("check", "--offline")
    assert checked.returncode == 1 and "MemoryMax" in checked.stdout
    assert site.host.run(["systemctl", "list-units", "--plain", "--no-legend", "*events-check*"]).stdout == ""


@pytest.mark.parametrize(
    "words, before, after",
    [
        ("systemd-run", KILL, ""),
        ("systemd-run", "", KILL),
        ("systemd-run", RESTART, ""),
        ("systemctl show", KILL, ""),
        ("journalctl", KILL, ""),
        ("systemctl stop", KILL, ""),
        ("systemctl stop", "", KILL),
    ],
    ids=[
        "before start",
        "after start",
        "restart while it starts",
        "before state",
        "before output",
        "before end",
        "after end",
    ],
)
def test_daemon_that_is_ended_at_any_step_of_a_run_runs_the_hook_once(
    site: RoleHost, azure: Azure, words: str, before: str, after: str
) -> None:
    program, _space, verb = words.partition(" ")
    real = f'/usr/bin/{program} "$@"'
    condition = f'test -e {ASKED} || case "$*" in "{verb}"*hook-prepare*) false;; esac'
    script = f"#!/bin/sh\nPATH=/usr/bin:/bin\n{{ {condition}; }} && exec {real}\n"
    text = f"{script}touch {ASKED}\n{before}\n{real}\n{after}\n"
    write_program(site.host.file(f"{PROGRAMS}/{program}"), text)
    site.write_drop_in(f"Environment=PATH={PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin", "ReadWritePaths=/var/lib")
    process = site.process()
    event = azure.announce("Freeze", VM, duration=0)
    azure.wait_for_approval(event, site)
    wait_until(lambda: units(site) == [], "the unit is gone", site.log)
    assert site.process() != process and site.host.file(ASKED).exists()
    assert (site.began("prepare"), site.ended("prepare")) == (1, 1), site.log()
    site.host.run(["rm", "-r", ASKED, PROGRAMS])
    site.write_drop_in()


def test_shutdown_ends_the_daemon_first_then_hooks_and_the_network_last(site: RoleHost, azure: Azure) -> None:
    states = f"systemctl show --value --property ActiveState {SERVICE} network.target"
    text = f"#!/bin/sh\ntrap '{states} >/var/lib/states; exit 1' TERM\nsleep 9005 & wait\n"
    write_hook(site, "prepare/20-looks", text)
    # a busy machine may need seconds for the answer of systemctl
    site.configure(kill_after=60)
    azure.announce("Freeze", VM, duration=0)
    wait_until(lambda: runs(site, "sleep 9005"), "the hook runs", site.log)
    # network.target refuses to be started by itself
    site.host.run(["systemd-run", "--property=Wants=network.target", "--property=RemainAfterExit=yes", "/bin/true"])
    site.host.reboot()
    assert site.host.file("/var/lib/states").read_text(encoding="utf-8").split() == ["inactive", "active"]
    site.host.file("/var/lib/states").unlink()
    wait_until(lambda: runs(site, "sleep 9005"), "it runs again after the boot", site.log)


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
