# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Figures for node_exporter's textfile collector."""

from __future__ import annotations

import contextlib
import re
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from hook_runner.maintenance.machine import PHASES
from hook_runner.records import LOST, OPEN_STATES, RUN_STATES
from support.daemon.daemon_process import DaemonProcess, MakeDaemon
from support.daemon.documents import GUIDE, quoted, rows
from support.daemon.hook_scripts import FAILS
from support.daemon.metrics_file import PREFIX, parse, read
from support.daemon.simulated_azure import Azure

# the daemon writes the figures with each poll, instead of every 15 seconds
AT_ONCE = "from hook_runner.reporting import metrics; metrics.METRICS_INTERVAL = 0.0"


@pytest.fixture
def vm(make_daemon: MakeDaemon) -> DaemonProcess:
    return make_daemon()


@pytest.fixture
def file(vm: DaemonProcess) -> Path:
    path = vm.harness.folder / "metrics.prom"
    vm.harness.configure(metrics_file=str(path))
    return path


@pytest.fixture
def port(vm: DaemonProcess) -> int:
    """The port of the figures, which no program used a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found: int = server.getsockname()[1]
    vm.harness.configure(metrics_address=f"127.0.0.1:{found}")
    return found


# of one histogram, and of counters in this format
SUFFIXES = re.compile(r"_(bucket|count|sum|created)$")


def test_figures_are_written(azure: Azure, vm: DaemonProcess, file: Path) -> None:
    vm.harness.hook("prepare/10-a")
    vm.harness.hook("prepare/20-b", FAILS)
    vm.start()
    azure.schedule("Reboot", hold=True)
    run_a = ("hook_runs_total", (("hook", "10-a"), ("result", "ok"), ("stage", "prepare")))
    run_b = ("hook_runs_total", (("hook", "20-b"), ("result", "failed"), ("stage", "prepare")))
    vm.wait(lambda: read(file).get(run_b) == 1)
    found = read(file)
    assert found[run_a] == 1
    assert found["events", (("affects_this_vm", "true"), ("type", "Reboot"))] == 1
    assert {phase: found["maintenance", (("phase", phase),)] for phase in PHASES} == {
        "preparing": 1,
        "prepared": 0,
        "started": 0,
        "recovering": 0,
    }
    assert found["hook_duration_seconds_count", (("hook", "10-a"), ("stage", "prepare"))] == 1
    assert 850 <= found["prepare_end_seconds_left", ()] <= 900
    assert abs(found["last_good_poll_timestamp_seconds", ()] - azure.now().timestamp()) < 60
    assert found["records_degraded", ()] == 0 == found["records_degraded_since_timestamp_seconds", ()]
    documented = {quoted(cells[0])[0]: set(cells[1].split(", ")) - {""} for cells in rows(GUIDE, "Metrics")}
    written = {PREFIX + SUFFIXES.sub("", name): {label for label, _value in labels} - {"le"} for name, labels in found}
    assert {name for name in written if f"{name}_total" not in documented} == set(documented)
    assert {name: written[name] for name in documented} == documented
    assert file.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in vm.harness.folder.glob("metrics*")] == ["metrics.prom"]


@pytest.mark.all
def test_results_are_shown_as_zero_before_they_occur(azure: Azure, vm: DaemonProcess, file: Path) -> None:
    vm.harness.hook("prepare/10-a")
    vm.start(first=AT_ONCE)
    vm.wait(lambda: read(file).get(("imds_ok", ())) == 1)
    found = read(file)
    hook = ("hook", "10-a"), ("stage", "prepare")
    for state in sorted({*RUN_STATES} - {*OPEN_STATES, LOST}):
        assert found["hook_runs_total", tuple(sorted((*hook, ("result", state))))] == 0
    assert found["hook_duration_seconds_count", hook] == 0
    assert found["approval_answers_total", (("result", "status-403"),)] == 0
    assert found["imds_errors_total", (("kind", "unreachable"),)] == 0


@pytest.mark.all
def test_recovery_that_fails_is_shown_until_it_succeeds(azure: Azure, vm: DaemonProcess, file: Path) -> None:
    vm.harness.hook("recover/10-a", FAILS)
    vm.start(first=AT_ONCE)
    event = azure.schedule("Freeze", hold=True)
    vm.wait(azure.approvals)
    azure.cancel(event)
    vm.wait(lambda: read(file).get(("not_recovered", ())) == 1)
    assert read(file)["maintenance", (("phase", "recovering"),)] == 1
    vm.harness.hook("recover/10-a")
    vm.command("recover")
    vm.wait(lambda: read(file)["not_recovered", ()] == read(file)["maintenance", (("phase", "recovering"),)] == 0)


@pytest.mark.all
def test_errors_of_imds_are_counted_by_kind(azure: Azure, vm: DaemonProcess, file: Path) -> None:
    vm.start(first=AT_ONCE)
    azure.fault("unavailable")
    vm.wait(lambda: read(file).get(("imds_errors_total", (("kind", "status-503"),)), 0) >= 2)
    assert read(file)["imds_ok", ()] == 0
    azure.heal()
    vm.wait(lambda: read(file)["imds_ok", ()] == 1)


@pytest.mark.all
def test_http_server_has_the_figures_of_the_daemon(azure: Azure, vm: DaemonProcess, port: int) -> None:
    vm.harness.hook("prepare/10-a")
    vm.start()
    azure.schedule("Reboot", hold=True)

    def served() -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            return parse(answer.read().decode())

    run = ("hook_runs_total", (("hook", "10-a"), ("result", "ok"), ("stage", "prepare")))
    vm.wait(lambda: served().get(run) == 1)
    vm.wait(lambda: served().get(("events", (("affects_this_vm", "true"), ("type", "Reboot")))) == 1)
    assert not list(vm.harness.folder.glob("*.prom"))
    names = {PREFIX + name for name, _labels in served()}
    query = "&".join(f"name[]={name}" for name in names)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics?{query}", timeout=30) as answer:
        assert {PREFIX + name for name, _labels in parse(answer.read().decode())} == names


def connections_accepted(vm: DaemonProcess, port: int) -> int:
    """Return how many connections to this port the daemon has open; those that the kernel keeps waiting are not its."""
    assert vm.process is not None
    found = psutil.Process(vm.process.pid).net_connections()
    return sum(one.laddr.port == port and one.status == psutil.CONN_ESTABLISHED for one in found)


def test_idle_connections_take_neither_descriptors_nor_the_metrics(azure: Azure, vm: DaemonProcess, port: int) -> None:
    # no idle connection ends by itself
    vm.start(first="from hook_runner.reporting import metrics_server; metrics_server.CONNECTION_LIMIT = 3600.0")
    with contextlib.ExitStack() as held:
        for _client in range(40):
            held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            assert b"azure_scheduled_events_imds_ok" in answer.read()
        vm.wait(lambda: connections_accepted(vm, port) <= 32)
        polls = len(azure.requests("GET"))
        vm.wait(lambda: len(azure.requests("GET")) >= polls + 3)


@pytest.mark.all
def test_metrics_server_begins_without_an_answer_of_dns(azure: Azure, vm: DaemonProcess, port: int) -> None:
    vm.start(first="import socket, time; socket.getfqdn = lambda *name: time.sleep(3600)")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        assert b"azure_scheduled_events_imds_ok" in answer.read()


def test_slow_client_of_the_metrics_is_left_after_five_seconds(azure: Azure, vm: DaemonProcess, port: int) -> None:
    vm.start()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(0.5)
        client.sendall(b"GET /metrics HTTP/1.1\r\n")
        began = time.monotonic()
        is_open = True
        while is_open and time.monotonic() < began + 30:
            with contextlib.suppress(TimeoutError):
                is_open = bool(client.recv(100))
            with contextlib.suppress(OSError):
                client.send(b"a")
        assert not is_open and time.monotonic() - began > 4


@pytest.mark.all
def test_request_that_the_library_cannot_answer_is_not_logged(azure: Azure, vm: DaemonProcess, port: int) -> None:
    """Some of its versions raise an error for an odd header; any local user can send one."""
    vm.start(first="import prometheus_client as client; client.make_wsgi_app = lambda registry: lambda *request: 1 / 0")
    with pytest.raises(urllib.error.HTTPError, match="500"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30)
    assert not vm.times_logged("ZeroDivisionError")


@pytest.mark.all
def test_a_type_that_utf_8_does_not_have_ends_nothing(azure: Azure, vm: DaemonProcess, file: Path) -> None:
    azure.show(azure.entry(EventType="\ud800"))
    vm.start(first=AT_ONCE)
    vm.wait(lambda: read(file).get(("events", (("affects_this_vm", "true"), ("type", "\\ud800")))) == 1)


@pytest.mark.all
@pytest.mark.parametrize(
    ("metrics_file", "first", "said"),
    [
        ("metrics.prom", "sys.modules['prometheus_client'] = None", "prometheus_client is not installed"),
        ("none/metrics.prom", "", "metrics cannot be written"),
        (
            "metrics.prom",
            "import prometheus_client; prometheus_client.generate_latest = lambda registry: 1 / 0",
            "metrics cannot be written: ZeroDivisionError",
        ),
    ],
    ids=["no-library", "no-folder", "error-of-the-library"],
)
def test_file_that_cannot_be_written_ends_nothing_and_is_logged_once(
    azure: Azure, vm: DaemonProcess, metrics_file: str, first: str, said: str
) -> None:
    vm.harness.configure(metrics_file=str(vm.harness.folder / metrics_file))
    vm.start(first=f"{first}\n{AT_ONCE}")
    azure.schedule("Reboot", hold=True)
    vm.wait(azure.approvals)
    assert vm.times_logged(said) == 1 and not list(vm.harness.folder.glob("*.prom"))


@pytest.mark.all
def test_address_in_use_is_logged_and_the_daemon_works(azure: Azure, vm: DaemonProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        vm.harness.configure(metrics_address=f"127.0.0.1:{server.getsockname()[1]}")
        vm.start()
        azure.schedule("Reboot", hold=True)
        vm.wait(azure.approvals)
    assert vm.times_logged("is not available: Address already in use; use another port") == 1
