# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``replay``: serves the answers of a recording."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from aiohttp import web
from multidict import CIMultiDict

from ..cli.options import DEFAULT_LISTEN, address_option
from ..cli.output import finish_writing, print_out, start_writing
from ..cli.parsing import Command, Parsed, parse
from ..cli.program import program_name
from ..cli.serve_command import on_signals
from ..recording.reader import Recording, Unusable, read
from ..scenario.groups import Address
from ..server.client_errors import LOGGER
from ..server.listeners import CannotListen, ListenAddress, Listener
from .answers import Answers

_REMOVED = ("--speed", "--loop", "--times", "--clock", "--control", "--control-token", "--control-anywhere", "--quiet")
_COMMAND = Command(
    "replay",
    "Serve the answers of a recording, each at its time, in the foreground until SIGTERM, SIGINT or SIGHUP. After the "
    "end the last answers stay.",
    [
        click.Argument(["file"], metavar="FILE", type=Parsed(Path)),
        address_option("listen", DEFAULT_LISTEN, "address of the VM's IMDS; port 0: any free port"),
    ],
    remedies=dict.fromkeys(
        _REMOVED,
        "there is no such option; it was removed: a recording is served as it is, and without a control API; "
        "leave the option out",
    ),
)


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code: 0, or 2 for options or files that are unusable."""
    options = parse(_COMMAND, arguments)
    start_writing()
    try:
        recording = read(options.file)
        if not recording.answers:
            raise Unusable(f"{options.file}: there are no answers; record for longer")
        for problem in recording.problems:
            print(f"replay: {problem}", file=sys.stderr)
        asyncio.run(_serve(recording, options.listen))
    except (Unusable, CannotListen) as error:
        print(f"{program_name()}: {error}", file=sys.stderr)
        return 2
    finally:
        finish_writing()
    return 0


async def _serve(recording: Recording, listen: Address) -> None:
    recorded = sorted(recording.answers, key=lambda each: each.time)
    answers, loop, stop = Answers(recorded), asyncio.get_running_loop(), asyncio.Event()
    began = loop.time()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        reply = answers.answer(request.method, request.raw_path, request.headers, loop.time() - began)
        headers = CIMultiDict(reply.headers)
        if reply.content_type:
            headers["Content-Type"] = reply.content_type
        return web.Response(status=reply.status, body=reply.body, headers=headers)

    on_signals(lambda _number: stop.set())
    listener = Listener(ListenAddress(listen, ("vm1",), None), web.Server(handle, access_log=None, logger=LOGGER))
    try:
        await listener.open()
        length = recorded[-1].time - recorded[0].time
        print_out(f"listening {listener.url} for {len(recorded)} answers in {length:.0f} s")
        await stop.wait()
    finally:
        await listener.close()
