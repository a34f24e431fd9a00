# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``replay``: serves the answers of a recording."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click
from aiohttp import web

from ..cli.options import DEFAULT_LISTEN, address_option
from ..cli.output import discard, fail, print_problem
from ..cli.parsing import Command, Parsed, parse
from ..server.listeners import CannotListen, bind, bound, hide_client_errors
from .recorded_answers import Answers, read
from .recording_file import Unusable

_COMMAND = Command(
    "replay",
    "Serve the answers of a recording, each at its time, in the foreground until SIGTERM, SIGINT or SIGHUP. After the "
    "end the last answers stay.",
    [
        click.Argument(["file"], metavar="FILE", type=Parsed(Path)),
        address_option("listen", DEFAULT_LISTEN, "address of the VM's IMDS; port 0: any free port"),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code, 2 for options or files that are unusable."""
    options = parse(_COMMAND, arguments)
    try:
        recorded, problems = read(options.file)
        sock = bind(options.listen)
    except (Unusable, CannotListen) as error:
        fail(str(error))
    for problem in problems:
        print_problem(problem)
    answers, began = Answers(recorded), time.monotonic()

    async def handle(request: web.Request) -> web.Response:
        reply = answers.answer(request.method, request.raw_path, request.headers, time.monotonic() - began)
        content_type = {"Content-Type": reply.content_type} if reply.content_type else {}
        return web.Response(status=reply.status, body=reply.body, headers={**dict(reply.headers), **content_type})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    hide_client_errors()
    # from now on connections wait
    sock.listen()
    length = recorded[-1].time - recorded[0].time
    print(f"listening http://{bound(sock)} for {len(recorded)} answers in {length:.0f} s", flush=True)
    web.run_app(app, sock=sock, access_log=None, print=discard, shutdown_timeout=0.1)
    return 0
