# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Serves in the foreground."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
import sys
import time
from collections.abc import Awaitable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Callable

from ..control.state import run_data
from ..keys import Problems, problem_text
from ..namespace.outside import CannotEnter
from ..scenario.checks import scenario_problems
from ..scenario.files import ScenarioError, default_scenario, load_with_warnings
from ..scenario.groups import Address, Vm
from ..scenario.knobs import changed_knobs
from ..scenario.plans import Scenario
from ..server.listeners import CannotListen, conflict, listen_addresses
from ..simulator import RunningSimulator, ServerOptions, run_simulator
from ..suggestions import unknown
from .output import discard, finish_writing, print_out, print_problem, start_writing
from .report_command import check_writable, write_report

# runs while a simulator serves, with the numbers of the signals that come, and returns the exit code
Work = Callable[[RunningSimulator, asyncio.Queue[int]], Awaitable[int]]


class UsageError(Exception):
    """Options are invalid, or exclude each other; the text is one line."""


def server_options(options: SimpleNamespace) -> ServerOptions:
    """Return the settings that ``options`` describe.

    Raises:
        ScenarioError: the scenario is invalid.
        UsageError: options are invalid, or exclude each other.
    """
    if options.vms and options.scenario:
        raise UsageError("--vms: not allowed with --scenario; the scenario names the VMs")
    if options.scenario:
        scenario, _warnings = load_with_warnings(options.scenario)
    else:
        scenario = default_scenario(options.vms or ("vm1",))
    scenario = _with_sources(scenario, dict(options.source))
    changes, problems = {"strict": scenario.knobs.strict or options.strict, **dict(options.knob)}, Problems()
    knobs = changed_knobs(scenario.knobs, changes, (), problems)
    if problems.found:
        raise UsageError("; ".join(f"--knob {problem_text(path, text)}" for path, text in problems.found))
    _check_addresses(options, scenario)
    if options.report is not None:
        try:
            check_writable(Path(options.report))
        except OSError as error:
            # before the run, because a run may take hours
            raise UsageError(f"--report: cannot write {options.report}: {error.strerror}; name another file") from None
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
    problem = conflict(listen_addresses(vms, options.listen), control)
    if problem:
        raise UsageError(f"--listen: {problem}; VMs use the ports that follow; choose another port, 0 for any free one")


def is_loopback(address: Address) -> bool:
    """Return True if only this machine can connect to ``address``."""
    return address.ip is not None and address.ip.is_loopback


def _with_sources(scenario: Scenario, sources: Mapping[str, str]) -> Scenario:
    """Return ``scenario`` with VMs that are identified by source address; ``sources``: VM name -> address."""
    names = [vm.name for group in scenario.groups for vm in group.vms]
    for name in sources:
        if name not in names:
            raise UsageError(f"--source: {unknown('VM', name, names)}")

    def identified(vm: Vm) -> Vm:
        return dataclasses.replace(vm, source=sources[vm.name], listen=None) if vm.name in sources else vm

    groups = (dataclasses.replace(group, vms=tuple(map(identified, group.vms))) for group in scenario.groups)
    moved = dataclasses.replace(scenario, groups=tuple(groups))
    if sources:
        for path, text in scenario_problems(moved, time.time()):
            raise UsageError(f"--source: {problem_text(path, text)}")
    return moved


def serve(options: SimpleNamespace) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP and return the exit code."""
    return run(options, _until_signal, discard if options.quiet else print_out)


async def _until_signal(simulator: RunningSimulator, signals: asyncio.Queue[int]) -> int:
    """Print the addresses, and wait for a signal, which may have come before."""
    print_addresses(simulator, print_out)
    await signals.get()
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


def run(options: SimpleNamespace, work: Work, log: Callable[[str], None]) -> int:
    """Work while a simulator serves as ``options`` say, write the report, and return the exit code.

    ``log`` prints a line of the simulator's log.
    """
    _allow_many_connections()
    start_writing()
    try:
        return asyncio.run(_run(server_options(options), options.report, work, log))
    except ScenarioError as error:
        print(error, file=sys.stderr)
    except (UsageError, CannotListen, CannotEnter) as error:
        print_problem(str(error))
    except KeyboardInterrupt:
        return 130
    finally:
        finish_writing()
    if options.from_environment:
        print_problem(f"from the environment: {', '.join(options.from_environment)}")
    return 2


async def _run(settings: ServerOptions, report: str | None, work: Work, log: Callable[[str], None]) -> int:
    # before the simulator starts: a signal during the start ends it in order
    signals = signal_queue()
    async with run_simulator(settings, log) as simulator:
        status = await work(simulator, signals)
        if report is not None:
            report_status = write_report(Path(report), run_data(simulator.engine, simulator.listeners.endpoints()))
            status = status or report_status
    return status


def signal_queue() -> asyncio.Queue[int]:
    """Return a queue that gets the number of each signal that ends a program."""
    loop, signals = asyncio.get_running_loop(), asyncio.Queue[int]()
    if sys.platform == "win32":
        # its event loop has no handlers of signals
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _frame: loop.call_soon_threadsafe(signals.put_nowait, number))
        return signals
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number)
    # with nohup the simulator ignores SIGHUP
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, signals.put_nowait, signal.SIGHUP)
    return signals


def _allow_many_connections() -> None:
    """Raise the limit of open files: a thousand VMs keep more than 1,024 sockets and connections open."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    if soft != resource.RLIM_INFINITY and soft < needed:
        # macOS may refuse a value below an unlimited hard limit
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
