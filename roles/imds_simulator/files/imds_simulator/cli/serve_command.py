# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Serves in the foreground, alone or while a command runs."""

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
from ..scenario.notify import Notify, notify_from, notify_problems
from ..scenario.plans import Scenario
from ..scenario.schema_check import check
from ..server.listeners import CannotListen
from ..simulator import RunningSimulator, ServerOptions, run_simulator, with_sources
from .options import is_loopback

# real seconds that a command has to end after SIGINT before it is sent SIGINT again
_SECOND_INTERRUPT = 1.0
_lines: queue.Queue[tuple[int, bytes]] = queue.Queue(maxsize=10_000)


class UsageError(Exception):
    """Options are invalid, or exclude each other; the text is one line."""


def server_options(options: argparse.Namespace) -> ServerOptions:
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
    scenario = dataclasses.replace(scenario, notify=_notify(options, scenario.notify))
    if not is_loopback(options.control) and not (options.control_token or options.control_anywhere):
        raise UsageError(
            f"--control: {options.control} is not a loopback address, and the control API has no token; "
            "set --control-token, or add --control-anywhere to allow requests of anyone"
        )
    return ServerOptions(
        dataclasses.replace(scenario, knobs=knobs, speed=options.speed or scenario.speed),
        options.listen,
        options.control,
        options.clock == "manual",
        options.control_token or "",
    )


def _notify(options: argparse.Namespace, present: Notify | None) -> Notify | None:
    """Return the settings of notifications: those of the scenario, changed by the options."""
    given = {key: getattr(options, f"notify_{key}") for key in (each.name for each in dataclasses.fields(Notify))}
    given = {**given, "token": options.notify_token, "headers": dict(options.notify_headers or ()) or None}
    given = {key: value for key, value in given.items() if value is not None}
    if not given:
        return present
    if present is not None:
        # a header of the scenario stays, unless an option sets it
        given["headers"] = {**present.headers, **given.get("headers", {})}
        given = {**present.as_data(), **given}
    problems = [(str(path[0]), text) for path, text in check(given, "notify")] or list(notify_problems(given))
    for key, text in problems:
        raise UsageError(f"--notify-{'header' if key == 'headers' else key}: {text}")
    return notify_from(given)


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
        if fault.action == "refuse" and shared & set(fault.vms):
            raise UsageError(
                f"--source: the scenario refuses connections of {', '.join(sorted(shared & set(fault.vms)))}, "
                "which a shared listening address cannot do; use reset"
            )
    return moved


class CannotRun(Exception):
    """A command did not start.

    ``status`` is the exit code that a shell returns for it.
    """

    def __init__(self, command: str, error: OSError) -> None:
        super().__init__(f"cannot run {command}: {error.strerror}")
        self.status = 127 if isinstance(error, FileNotFoundError) else 126


async def serve(settings: ServerOptions, log: Callable[[str], None]) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP and return the exit code.

    ``log`` prints a line of the log.
    """
    stop = asyncio.Event()
    _on_signals(lambda _number: stop.set())
    _allow_many_connections()
    async with run_simulator(settings, log) as simulator:
        print_addresses(simulator, _print_out)
        await stop.wait()
    return 0


async def serve_during(settings: ServerOptions, command: Sequence[str], log: Callable[[str], None]) -> int:
    """Run ``command`` while the simulator serves and return its exit code.

    The environment of the command has IMDS_SIMULATOR_ENDPOINT (first VM), IMDS_SIMULATOR_ENDPOINTS
    (JSON, VM name to URL) and IMDS_SIMULATOR_CONTROL. Signals go to the command. ``log`` prints a
    line of the log.
    """
    async with run_simulator(settings, log) as simulator:
        print_addresses(simulator, log)
        endpoints = dict(simulator.endpoints)
        environment = dict(
            os.environ,
            IMDS_SIMULATOR_ENDPOINT=next(iter(endpoints.values())),
            IMDS_SIMULATOR_ENDPOINTS=json.dumps(endpoints),
            IMDS_SIMULATOR_CONTROL=simulator.control,
            **({"IMDS_SIMULATOR_CONTROL_TOKEN": settings.control_token} if settings.control_token else {}),
        )
        status = await _run(command, environment)
    # the exit code that a shell returns for a command that a signal ended
    return 128 - status if status < 0 else status


async def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    process: asyncio.subprocess.Process | None = None
    early_signals: list[int] = []

    def forward(number: int) -> None:
        # a terminal sends SIGINT to the whole foreground process group itself
        if number == signal.SIGINT and os.isatty(0):
            return
        if process is None:
            early_signals.append(number)
        elif number == signal.SIGINT:
            # most senders (also CI systems) send SIGINT to the whole process group; a second SIGINT
            # immediately after the first makes ansible-playbook exit without ending its workers
            asyncio.get_running_loop().call_later(_SECOND_INTERRUPT, send, number)
        else:
            send(number)

    def send(number: int) -> None:
        if process is not None and process.returncode is None:
            process.send_signal(number)

    # before the command starts, because a signal during the start must reach the command too
    _on_signals(forward)
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environment)
    except OSError as error:
        raise CannotRun(command[0], error) from None
    for number in early_signals:
        forward(number)
    return await process.wait()


def print_addresses(simulator: RunningSimulator, log: Callable[[str], None]) -> None:
    """Print one line for each address.

    The control API comes last: then all addresses are ready.
    """
    for listener in simulator.listeners.all:
        if len(listener.vms) > 8:
            vms = f"{len(listener.vms)} VMs, identified by source address"
        else:
            vms = ", ".join(listener.vms)
        log(f"listening {listener.url} for {vms}")
    log(f"control {simulator.control}")


def run(options: argparse.Namespace, command: Sequence[str]) -> int:
    """Serve, while ``command`` runs if it is not empty, and return the exit code."""
    threading.Thread(target=_write_lines, daemon=True).start()
    try:
        settings = server_options(options)
        if command:
            return asyncio.run(serve_during(settings, command, _discard if options.quiet else _print_err))
        return asyncio.run(serve(settings, _discard if options.quiet else _print_out))
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
    """Wait at most 0.5 s for the writer thread to write the queued lines."""
    deadline = time.monotonic() + 0.5
    while _lines.unfinished_tasks and time.monotonic() < deadline:
        time.sleep(0.01)


def _on_signals(react: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, react, number)
    # with nohup the simulator ignores SIGHUP
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, react, signal.SIGHUP)


def _allow_many_connections() -> None:
    """Raise the limit of open files.

    A thousand VMs keep more than 1,024 connections open.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _print_out(text: str) -> None:
    _queue_line(sys.stdout, text)


def _print_err(text: str) -> None:
    _queue_line(sys.stderr, text)


def _queue_line(stream: TextIO | None, text: str) -> None:
    """Queue a line for the writer thread.

    Lines are dropped when the queue is full: a slow reader must not block.
    """
    if stream is None:
        # the process was started with a closed stdout (>&-)
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
    """Print nothing."""
