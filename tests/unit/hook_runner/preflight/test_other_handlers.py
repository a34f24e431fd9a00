# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`check` names other programs that prepare or approve, by the files and processes of a host."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from azure_scheduled_events.receipts import DEFAULT_FOLDER, Receipts
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.preflight.check import run_checks
from hook_runner.preflight.other_handlers import JETPACK, RECENT, check_other_handlers
from hook_runner.preflight.report import ERROR, INFO, WARNING, Finding, Report
from support.daemon.child_processes import in_child

CLUSTER = "var/lib/pacemaker/cib/cib.xml"
KUBELET = "etc/default/kubelet"
ENDPOINT = "http://169.254.169.254"
KINDS = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
SAMPLE = 'url = "http://169.254.169.254/metadata/scheduledevents"\nbody = {"StartRequests": []}\n'
ASKS = "#!/bin/sh\nazure-scheduled-events status\n"
PRIMITIVE = '<cib><primitive id="az" class="ocf" provider="heartbeat" type="%s"/></cib>'


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def findings(root: Path, approves: bool = True) -> list[Finding]:
    report = Report(check_other_handlers(ENDPOINT, approves, ERROR, str(root)))
    assert all(each.what == "other handlers" for each in report.findings)
    assert all(line.isprintable() for line in report.as_text().splitlines())
    return report.findings


def process(root: Path, number: int, *words: str, cwd: Path | None = None) -> Path:
    """Make the files that Linux shows for a process."""
    folder = root / "proc" / str(number)
    folder.mkdir(parents=True)
    (folder / "cmdline").write_bytes(b"".join(os.fsencode(word) + b"\0" for word in words))
    (folder / "cwd").symlink_to(cwd or root)
    (folder / "root").symlink_to(root)
    return folder


def jetpack(root: Path, configuration: str | None = None, **scripts: str) -> str:
    """Install Jetpack with scripts by the types of their events."""
    (root / JETPACK / "config").mkdir(parents=True)
    if configuration is not None:
        write(root, f"{JETPACK}/config/node.json", configuration)
    for kind, text in scripts.items():
        write(root, f"{JETPACK}/scripts/on{kind}.sh", text)
    return str(root / JETPACK)


def test_host_without_other_owners_has_no_finding(tmp_path: Path) -> None:
    write(tmp_path, CLUSTER, PRIMITIVE % "IPaddr2")
    write(tmp_path, KUBELET, "KUBELET_EXTRA_ARGS=--node-ip=10.0.0.4\n")
    write(tmp_path, "opt/handler.py", "print('no request')\n")
    write(tmp_path, "opt/listener.py", SAMPLE)
    process(tmp_path, 7, "python3", "/opt/handler.py", "/opt/listener.py")
    process(tmp_path, 8, "tail", "-f", "/opt/listener.py")
    process(tmp_path, 2)
    assert findings(tmp_path) == []


def test_handlers_in_comments_have_no_finding(tmp_path: Path) -> None:
    write(tmp_path, CLUSTER, f"<cib><!-- {PRIMITIVE % 'azure-events-az'}\n--></cib>")
    write(tmp_path, KUBELET, "# KUBELET_NODE_LABELS=kubernetes.azure.com/cluster=MC\n")
    write(tmp_path, "etc/salt/minion", "master: salt\n#beacons:\n#  azure_events:\n#    - interval: 1\n")
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    ("scripts", "unasked"),
    [
        ({}, KINDS),
        ({"Reboot": ASKS, "Redeploy": ASKS, "Freeze": "#!/bin/sh\nsync\n"}, ("Freeze", "Preempt", "Terminate")),
        (dict.fromkeys(KINDS, "#!/bin/sh\n# to do: azure-scheduled-events\nexit 0\n"), KINDS),
        (dict.fromkeys(KINDS, ASKS), ()),
    ],
)
def test_jetpack_is_an_error_for_each_type_whose_script_does_not_ask(
    tmp_path: Path, scripts: dict[str, str], unasked: tuple[str, ...]
) -> None:
    folder = jetpack(tmp_path, **scripts)
    (found,) = findings(tmp_path)
    assert (found.severity, found.where) == (ERROR if unasked else INFO, folder)
    if unasked:
        assert f"approves {', '.join(unasked)} without asking the hook runner" in found.text
        assert "; set cyclecloud.monitor_scheduled_events = false" in found.text


@pytest.mark.parametrize(
    ("configuration", "severity"),
    [
        ('{"cyclecloud": {"monitor_scheduled_events": false}}', INFO),
        ('\ufeff{"cyclecloud": {\n"monitor_scheduled_events" : "False"}}', INFO),
        (" " * (1 << 20) + '{"cyclecloud": {"monitor_spot_eviction": "false"}}', INFO),
        ('{"cyclecloud": {"monitor_scheduled_events": true, "monitor_spot_eviction": false}}', ERROR),
        ('{"cyclecloud": {"monitor_scheduled_events": "falsely"}}', ERROR),
        ('{"cyclecloud": ', ERROR),
    ],
    ids=range(6),
)
def test_jetpack_that_is_switched_off_is_no_error(tmp_path: Path, configuration: str, severity: str) -> None:
    jetpack(tmp_path, configuration)
    (found,) = findings(tmp_path)
    assert found.severity == severity and ("node.json" in found.text) == (severity == INFO)


def test_pipe_in_place_of_a_file_is_not_opened(tmp_path: Path) -> None:
    jetpack(tmp_path)
    os.mkfifo(tmp_path / JETPACK / "config" / "node.json")
    write(tmp_path, CLUSTER, "").unlink()
    os.mkfifo(tmp_path / CLUSTER)
    os.mkfifo(tmp_path / "pipe")
    process(tmp_path, 3, "cat", "/pipe")
    assert [each.severity for each in findings(tmp_path)] == [ERROR]


@pytest.mark.parametrize("agent", ["azure-events-az", "azure-events"])
@pytest.mark.parametrize("element", ["primitive", "template"])
def test_agent_of_pacemaker_is_an_error(tmp_path: Path, agent: str, element: str) -> None:
    path = write(tmp_path, CLUSTER, (PRIMITIVE % agent).replace("primitive", element))
    (found,) = findings(tmp_path)
    assert (found.severity, found.where) == (ERROR, str(path)) and f" {agent}," in found.text


def test_node_of_aks_is_a_warning(tmp_path: Path) -> None:
    labels = "agentpool=nodepool1,kubernetes.azure.com/cluster=MC_rg_aks_westeurope"
    path = write(tmp_path, KUBELET, f"KUBELET_NODE_LABELS={labels}\n")
    (found,) = findings(tmp_path)
    assert (found.severity, found.where) == (WARNING, str(path)) and "Redeploy and Preempt" in found.text


@pytest.mark.parametrize(
    "words",
    [
        ("python3", "/opt/sample/listener.py"),
        ("/usr/bin/python3", "-u", "/opt/sample/listener.py", "--verbose"),
        ("python3", "listener.py"),
        ("python3", "sample/listener.py"),
        ("python3", "-W", "ignore", "/opt/sample/listener.py"),
        ("-bash", "-o", "pipefail", "/opt/sample/listener.py"),
    ],
)
def test_process_with_a_script_that_approves_is_an_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    script = write(tmp_path, "opt/sample/listener.py", SAMPLE)
    for number in (41, 42):
        process(tmp_path, number, *words, cwd=tmp_path / "opt" if "/" in words[1] else script.parent)
    (found,) = findings(tmp_path)
    assert (found.severity, found.where) == (ERROR, str(script)) and "process 41 " in found.text


def test_running_copy_of_the_sample_is_found_on_this_host(tmp_path: Path) -> None:
    script = write(tmp_path, "listener.py", f"import sys\n'''{SAMPLE}'''\nprint(flush=True)\nsys.stdin.read()\n")
    words = [sys.executable, str(script)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline() == b"\n"
        report = Report(check_other_handlers(ENDPOINT, True, ERROR))
        running.communicate()
    (found,) = [each for each in report.findings if each.where == str(script)]
    assert found.severity == ERROR and f"process {running.pid} " in found.text


def test_process_that_ends_during_the_check_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "opt/listener.py", SAMPLE)
    (process(tmp_path, 5, "python3", "/opt/listener.py") / "cmdline").unlink()
    process(tmp_path, 6, "python3", "/opt/deleted.py")
    (process(tmp_path, 7, "python3", "listener.py") / "cwd").unlink()
    process(tmp_path, 8, "python3", "/opt/listener.py")
    (found,) = findings(tmp_path)
    assert "process 8 " in found.text


def test_script_that_another_process_has_leased_delays_nothing(tmp_path: Path) -> None:
    leased = write(tmp_path, "opt/leased.py", SAMPLE)
    process(tmp_path, 4, "python3", "/opt/leased.py")
    with leased.open("r+") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        # the kernel asks for the lease by a signal
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        try:
            (found,) = findings(tmp_path)
        finally:
            signal.signal(signal.SIGIO, before)
    assert found.severity == WARNING and "processes 4 cannot be read; run check as root" in found.text


def test_script_with_an_unprintable_name_is_shown_escaped(tmp_path: Path) -> None:
    name = os.fsdecode(b"opt/\x1b[2J\n\xff.py")
    write(tmp_path, name, SAMPLE)
    process(tmp_path, 9, "python3", f"/{name}")
    (found,) = findings(tmp_path)
    assert found.severity == ERROR and found.where.isprintable()
    json.dumps(found).encode()


def test_file_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    # a loop fails for root, too
    write(tmp_path, CLUSTER, "").unlink()
    (tmp_path / CLUSTER).symlink_to("cib.xml")
    write(tmp_path, KUBELET, "kubernetes.azure.com/cluster=MC\n")
    first, second = findings(tmp_path)
    assert first.severity == WARNING and first.where.endswith("cib.xml") and "; run check as root" in first.text
    assert second.where.endswith(KUBELET)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_folder_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    jetpack(tmp_path)
    tmp_path.chmod(0o700)

    def as_nobody() -> None:
        os.seteuid(65534)
        assert {each.severity for each in findings(tmp_path)} == {WARNING}

    assert in_child(as_nobody) == 0


@pytest.mark.parametrize("offline, severity", [(False, ERROR), (True, WARNING)])
def test_check_fails_for_an_owner_that_approves_unless_offline(tmp_path: Path, offline: bool, severity: str) -> None:
    config = write(tmp_path, "config.yml", "endpoint: http://127.0.0.1:9\n")
    jetpack(tmp_path / "root")
    report = run_checks(str(config), str(tmp_path / "hooks.d"), offline, root=str(tmp_path / "root"))
    assert [each.severity for each in report.findings if each.what == "other handlers"] == [severity]


@pytest.mark.parametrize("name", ["etc/salt/minion", "etc/salt/minion.d/beacons.conf"])
@pytest.mark.parametrize("text", ["beacons:\n  azure_events:\n    - interval: 1\n", "beacons:\n  - azure_events: []\n"])
def test_beacon_of_salt_is_a_warning(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, name, text)
    assert [each[:3] for each in findings(tmp_path)] == [(WARNING, "other handlers", str(path))]


def test_recent_approval_by_a_module_is_a_warning(tmp_path: Path) -> None:
    folder = str(tmp_path / DEFAULT_FOLDER.lstrip("/"))
    now = datetime.now(UTC)
    Receipts(folder, "http://127.0.0.1:8080").write("E-2", as_utc_text(now))
    Receipts(folder, ENDPOINT).write("E-3", as_utc_text(now - RECENT - timedelta(minutes=1)))
    assert findings(tmp_path) == []
    Receipts(folder, ENDPOINT).write("E-1", as_utc_text(now))
    assert [each[:3] for each in findings(tmp_path)] == [(WARNING, "other handlers", folder)]
    assert findings(tmp_path, approves=False) == []
