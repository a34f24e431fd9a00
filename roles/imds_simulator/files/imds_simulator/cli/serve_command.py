# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Serves in the foreground."""

from __future__ import annotations

import asyncio
import dataclasses
import ipaddress
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

from ..namespace.refusal import CannotEnter
from ..report.atomic_file import check_writable
from ..scenario.files import ScenarioError, default_scenario, load
from ..scenario.groups import Address
from ..scenario.knobs import KnobError, change_knobs
from ..scenario.plans import Scenario
from ..server.listeners import CannotListen, listen_addresses, overlapping
from ..simulator import RunningSimulator, ServerOptions, run_simulator, with_sources
from .output import discard, finish_writing, print_out, start_writing
from .program import program_name
from .run_report import RunReport


class UsageError(Exception):
    """Options are invalid, or exclude each other; the text is one line."""


def server_options(options: SimpleNamespace) -> ServerOptions:
    """Return the settings that ``options`` describe.

    Raises:
        ScenarioError: the scenario is invalid.
        UsageError: options are invalid, or exclude each other.
    """
    if options.vm and options.scenario:
        raise UsageError("--vm: not allowed with --scenario; the scenario names the VMs")
    scenario = load(options.scenario) if options.scenario else default_scenario(options.vm)
    scenario = _with_sources(scenario, dict(options.source))
    try:
        knobs = change_knobs(scenario.knobs, dict(options.knob))
    except KnobError as error:
        raise UsageError(str(error)) from None
    _check_addresses(options, scenario)
    if options.report is not None:
        _check_folder_of(options.report)
    return ServerOptions(
        dataclasses.replace(scenario, knobs=knobs, speed=options.speed or scenario.speed),
        options.listen,
        options.control,
        options.clock == "manual",
        options.control_token or "",
    )


def _check_addresses(options: SimpleNamespace, scenario: Scenario) -> None:
    control = options.control
    if not (is_loopback(control) or options.control_token or options.control_anywhere):
        raise UsageError(
            f"--control: {control} is not a loopback address, and the control API has no token; "
            "set --control-token, or add --control-anywhere to allow requests without a token"
        )
    vms = [vm for group in scenario.groups for vm in group.vms]
    addresses = [(each.address, f"of {', '.join(each.vms[:3])}") for each in listen_addresses(vms, options.listen)]
    for index, (address, owner) in enumerate(addresses):
        for other, other_owner in [*addresses[:index], (control, "of --control")]:
            if overlapping(address, other):
                raise UsageError(
                    f"--listen: {address} is the address {owner} and {other_owner}; the VMs use the ports from that of "
                    "--listen on; choose another port, 0 for any free one"
                )


def is_loopback(address: Address) -> bool:
    """Return True if only this machine can connect to ``address``."""
    if address.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return False


def _check_folder_of(report: str) -> None:
    try:
        check_writable(Path(report))
    except OSError as error:
        # before the run, because a run may take hours
        raise UsageError(f"--report: cannot write {report}: {error.strerror}; name another file") from None


def _with_sources(scenario: Scenario, sources: dict[str, str]) -> Scenario:
    vms = {vm.name for group in scenario.groups for vm in group.vms}
    for name in sources:
        if name not in vms:
            raise UsageError(f"--source: there is no VM {name}; there are {', '.join(sorted(vms))}")
    moved = with_sources(scenario, sources)
    taken: dict[str, str] = {}
    for vm in (vm for group in moved.groups for vm in group.vms if vm.source):
        other = taken.setdefault(str(vm.source), vm.name)
        if other != vm.name:
            raise UsageError(f"--source: {other} and {vm.name} have the same source address {vm.source}")
    shared = {vm.name for group in moved.groups for vm in group.vms if vm.source}
    for fault in moved.faults:
        if not fault.effect.is_per_request and shared & set(fault.window.vms):
            raise UsageError(
                f"--source: the scenario refuses connections of {', '.join(sorted(shared & set(fault.window.vms)))}, "
                "which a shared listening address cannot do; use reset"
            )
    return moved


async def serve(settings: ServerOptions, log: Callable[[str], None]) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP and return the exit code."""
    stop = asyncio.Event()
    on_signals(lambda _number: stop.set())
    _allow_many_connections()
    async with run_simulator(settings, log) as simulator:
        print_addresses(simulator, print_out)
        await stop.wait()
    return 0


def print_addresses(simulator: RunningSimulator, log: Callable[[str], None]) -> None:
    """Print one line for each address. The control API comes last: then all addresses are ready."""
    for listener in simulator.listeners.all:
        if len(listener.vms) > 8:
            vms = f"{len(listener.vms)} VMs, identified by source address"
        else:
            vms = ", ".join(listener.vms)
        log(f"listening {listener.url} for {vms}")
    log(f"control {simulator.control}")


def run(options: SimpleNamespace, work: Callable[[ServerOptions], Coroutine[Any, Any, int]] | None = None) -> int:
    """Run ``work`` with the settings of ``options`` and return the exit code; None: serve until a signal."""
    if work is None:
        log = discard if options.quiet else print_out

        def work(settings: ServerOptions) -> Coroutine[Any, Any, int]:
            return serve(settings, log)

    start_writing()
    try:
        settings, report = server_options(options), RunReport(options.report)
        status = asyncio.run(work(dataclasses.replace(settings, at_end=report.write)))
        return status or report.status
    except ScenarioError as error:
        _print_problem(str(error), options)
    except (UsageError, CannotListen, CannotEnter) as error:
        _print_problem(f"{program_name()}: {error}", options)
    except KeyboardInterrupt:
        return 130
    finally:
        finish_writing()
    return 2


def _print_problem(text: str, options: SimpleNamespace) -> None:
    print(text, file=sys.stderr)
    names = getattr(options, "from_environment", ())
    if names:
        print(f"{program_name()}: from the environment: {', '.join(names)}", file=sys.stderr)


def on_signals(react: Callable[[int], None]) -> None:
    """Call ``react`` with the number of each signal that ends a program."""
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        # its event loop has no handlers of signals
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _frame: loop.call_soon_threadsafe(react, number))
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, react, number)
    # with nohup the simulator ignores SIGHUP
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, react, signal.SIGHUP)


def _allow_many_connections() -> None:
    """Raise the limit of open files: a thousand VMs keep more than 1,024 connections open."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
