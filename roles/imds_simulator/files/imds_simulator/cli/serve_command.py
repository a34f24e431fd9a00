# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Serving in the foreground, alone or beside a command."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Callable, TextIO

from ..scenario.files import ScenarioError, default_scenario, load
from ..scenario.knobs import KnobError, change_knobs
from ..scenario.plans import Scenario
from ..server.listeners import CannotListen
from ..simulator import RunningSimulator, ServerOptions, run_simulator, with_sources
from .options import is_loopback

# so long a command that got an interrupt itself has for its end, in real seconds
_SECOND_INTERRUPT = 1.0
_lines: queue.Queue[tuple[int, bytes]] = queue.Queue(maxsize=10_000)


class UsageError(Exception):
    """Options that cannot be used together; the text is one clear line."""


def setup_from(options: argparse.Namespace) -> ServerOptions:
    """What the command line asks for; raises Unusable or ScenarioError."""
    if options.vm and options.scenario:
        raise UsageError("--vm names the only VM when there is no scenario; with --scenario the file names the VMs")
    scenario = load(options.scenario) if options.scenario else default_scenario(options.vm)
    scenario = _with_sources(scenario, dict(options.source))
    try:
        knobs = change_knobs(scenario.knobs, dict(options.knob))
    except KnobError as error:
        raise UsageError(str(error)) from None
    if not is_loopback(options.control) and not options.control_anywhere:
        raise UsageError(
            f"--control {options.control} is not a loopback address: anybody who reaches it could rule the simulator; "
            "add --control-anywhere if that is meant"
        )
    return ServerOptions(
        dataclasses.replace(scenario, knobs=knobs, speed=options.speed or scenario.speed),
        options.listen,
        options.control,
        options.clock == "manual",
    )


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
            raise UsageError(f"--source: {other} and {vm.name} cannot both have the source address {vm.source}")
    shared = {vm.name for group in moved.groups for vm in group.vms if vm.source}
    for fault in moved.faults:
        if fault.action == "refuse" and shared & set(fault.vms):
            raise UsageError(
                "the scenario refuses connections of {}, which --source puts on a shared address: that cannot be".format(
                    ", ".join(sorted(shared & set(fault.vms)))
                )
            )
    return moved


class CannotRun(Exception):
    """A command that did not even start; ``status`` is what a shell returns for it."""

    def __init__(self, command: str, error: OSError) -> None:
        super().__init__(f"cannot run {command}: {error.strerror}")
        self.status = 127 if isinstance(error, FileNotFoundError) else 126


async def serve(setup: ServerOptions, log: Callable[[str], None]) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP."""
    stop = asyncio.Event()
    _on_signals(lambda _number: stop.set())
    _allow_many_connections()
    async with run_simulator(setup, log) as simulator:
        print_addresses(simulator, _print_out)
        await stop.wait()
    return 0


async def run_beside(setup: ServerOptions, command: Sequence[str], log: Callable[[str], None]) -> int:
    """Run ``command`` while the simulator serves; returns the command's exit code.

    The command finds the simulator in IMDS_SIMULATOR_ENDPOINT (first VM), IMDS_SIMULATOR_ENDPOINTS
    (JSON, VM name to URL) and IMDS_SIMULATOR_CONTROL. Signals go to the command. What the simulator
    says goes to stderr.
    """
    async with run_simulator(setup, log) as simulator:
        print_addresses(simulator, log)
        endpoints = dict(simulator.endpoints)
        environment = dict(
            os.environ,
            IMDS_SIMULATOR_ENDPOINT=next(iter(endpoints.values())),
            IMDS_SIMULATOR_ENDPOINTS=json.dumps(endpoints),
            IMDS_SIMULATOR_CONTROL=simulator.control,
        )
        status = await _run(command, environment)
    # as a shell reports a command that a signal ended
    return 128 - status if status < 0 else status


async def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    process: asyncio.subprocess.Process | None = None
    early: list[int] = []

    def pass_on(number: int) -> None:
        # a terminal sends its interrupt to the whole foreground group by itself
        if number == signal.SIGINT and os.isatty(0):
            return
        if process is None:
            early.append(number)
        elif number == signal.SIGINT:
            # an interrupt mostly reaches the whole process group (CI does so too), and a second one
            # right behind it makes ansible-playbook die without ending its workers
            asyncio.get_running_loop().call_later(_SECOND_INTERRUPT, send, number)
        else:
            send(number)

    def send(number: int) -> None:
        if process is not None and process.returncode is None:
            process.send_signal(number)

    # before the command starts: a signal in that moment must reach it too
    _on_signals(pass_on)
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environment)
    except OSError as error:
        raise CannotRun(command[0], error) from None
    for number in early:
        pass_on(number)
    return await process.wait()


def print_addresses(simulator: RunningSimulator, log: Callable[[str], None]) -> None:
    """One line per address; the control API comes last, so that whoever reads it knows that all is ready."""
    for listener in simulator.listeners.all:
        if len(listener.vms) > 8:
            who = f"{len(listener.vms)} VMs, told apart by source address"
        else:
            who = ", ".join(listener.vms)
        log(f"listening {listener.url} for {who}")
    log(f"control {simulator.control}")


def run(options: argparse.Namespace, command: Sequence[str]) -> int:
    """Serve as ``options`` say, beside ``command`` if there is one; returns the exit code."""
    threading.Thread(target=_write_lines, daemon=True).start()
    try:
        setup = setup_from(options)
        if command:
            return asyncio.run(run_beside(setup, command, _discard if options.quiet else _print_err))
        return asyncio.run(serve(setup, _discard if options.quiet else _print_out))
    except ScenarioError as error:
        print(error, file=sys.stderr)
    except (UsageError, CannotListen) as error:
        print(f"imds_simulator: {error}", file=sys.stderr)
    except CannotRun as error:
        print(f"imds_simulator: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        return 130
    finally:
        _finish_writing()
    return 2


def _finish_writing() -> None:
    """Give the writer a moment for what is still queued."""
    deadline = time.monotonic() + 0.5
    while _lines.unfinished_tasks and time.monotonic() < deadline:
        time.sleep(0.01)


def _on_signals(react: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, react, number)
    # nohup means that it goes on
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, react, signal.SIGHUP)


def _allow_many_connections() -> None:
    """A thousand VMs with kept-alive connections need more than the usual 1,024 open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _print_out(text: str) -> None:
    _queue_line(sys.stdout, text)


def _print_err(text: str) -> None:
    _queue_line(sys.stderr, text)


def _queue_line(stream: TextIO | None, text: str) -> None:
    """Queue a line for the writer; whoever does not read misses lines, but never stops the service."""
    if stream is None:
        # started with a closed stdout (>&-)
        return
    try:
        descriptor = stream.fileno()
    except OSError:
        print(text, file=stream, flush=True)
        return
    with contextlib.suppress(queue.Full):
        _lines.put_nowait((descriptor, text.encode(errors="backslashreplace") + b"\n"))


def _write_lines() -> None:
    while True:
        descriptor, line = _lines.get()
        while line:
            try:
                line = line[os.write(descriptor, line) :]
            except OSError:
                break
        _lines.task_done()


def _discard(_text: str) -> None:
    """Say nothing."""
