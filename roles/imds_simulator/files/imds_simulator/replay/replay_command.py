# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``replay``: serves a recording."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ..cli.environment import parse_arguments
from ..cli.options import DEFAULT_LISTEN, add_control_options, control_problem, to_address, to_speed
from ..cli.output import discard, finish_writing, print_out, start_writing
from ..cli.program import program_name
from ..cli.serve_command import on_signals
from ..recording.reader import Recording, Unusable, read
from ..server.clock import Clock, ManualClock, WallClock
from ..server.listeners import CannotListen
from .progress import Progress
from .server import Replay, run_replay
from .timeline import Timeline


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code: 0, or 2 for options or files that are unusable."""
    options = parse_arguments(_parser(), arguments, "replay")
    start_writing()
    try:
        problem = control_problem(options)
        if problem:
            raise Unusable(problem)
        recording = read(options.file)
        if not recording.answers:
            raise Unusable(f"{options.file}: there are no answers; record for longer")
        for problem in recording.problems:
            print(f"replay: {problem}", file=sys.stderr)
        asyncio.run(_serve(options, recording))
    except (Unusable, CannotListen) as error:
        print(f"{program_name()}: {error}", file=sys.stderr)
        return 2
    finally:
        finish_writing()
    return 0


async def _serve(options: argparse.Namespace, recording: Recording) -> None:
    clock: Clock = ManualClock(time.time()) if options.clock == "manual" else WallClock()
    timeline = Timeline(recording)
    progress = Progress(timeline, clock.now(), options.speed, options.loop, options.times == "shifted")
    stop = asyncio.Event()
    on_signals(lambda _number: stop.set())
    replay = Replay(recording, progress, timeline, clock, discard if options.quiet else print_out)
    token = options.control_token or ""
    async with run_replay(replay, options.listen, options.control, token) as running:
        print_out(f"listening {running.endpoint} for {len(recording.answers)} answers in {timeline.length:.0f} s")
        print_out(f"control {running.control}")
        await stop.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{program_name()} replay",
        description="Serve a recording as the VM saw it, in the foreground until SIGTERM, SIGINT or SIGHUP.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=to_address,
        default=DEFAULT_LISTEN,
        help=f"address of the VM's IMDS; port 0: any free port (default {DEFAULT_LISTEN})",
    )
    add_control_options(parser, "requests to the control API need this token")
    parser.add_argument(
        "--speed", metavar="N", type=to_speed, default=1.0, help="recorded seconds per second (default 1)"
    )
    parser.add_argument("--loop", action="store_true", help="begin again at the end; otherwise the last answer stays")
    parser.add_argument(
        "--times",
        choices=("shifted", "recorded"),
        default="shifted",
        help="shifted: NotBefore and Date count from now (default); recorded: all bytes as recorded",
    )
    parser.add_argument(
        "--clock", choices=("real", "manual"), default="real", help="manual: only 'advance' moves the clock"
    )
    parser.add_argument("--quiet", action="store_true", help="print the addresses, but not the approvals")
    return parser
