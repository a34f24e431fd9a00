# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``replay``: serves the answers of a recording, each at its time."""

from __future__ import annotations

import bisect
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from aiohttp import web

from ..cli.options import DEFAULT_LISTEN, address_option
from ..cli.output import discard, fail, print_problem
from ..cli.parsing import Command, Parsed, parse
from ..http_reply import Reply, is_header_value
from ..protocol.instance_lookup import element
from ..protocol.request import INSTANCE, Request, Target, parse_target, reject_headers
from ..protocol.responses import compact, error, method_not_allowed
from ..scenario.knobs import Knobs
from ..server.listeners import CannotListen, bind, bound, hide_client_errors
from ..times import parse_moment
from .recording_file import FIRST_LINE, Unusable

_METHODS = ("GET", "HEAD")
_HEADERS = ("date", "retry-after", "server")
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
    except (Unusable, CannotListen) as unusable:
        fail(str(unusable))
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


class Answer(NamedTuple):
    """A recorded answer at ``time``, in seconds since 1970, to a request for ``target``."""

    time: float
    target: Target
    reply: Reply
    body: Any


class Answers:
    """Chooses from answers that are in the order of their times."""

    def __init__(self, answers: list[Answer]) -> None:
        self._began = answers[0].time
        self._by_question: dict[object, list[Answer]] = {}
        for each in answers:
            self._by_question.setdefault(_question(each.target), []).append(each)

    def answer(self, method: str, path: str, headers: Mapping[str, str], seconds: float) -> Reply:
        """Return the last answer to this request ``seconds`` after the first one of the recording, else the next."""
        if method not in _METHODS:
            return method_not_allowed(_METHODS)
        target = parse_target(path)
        rejection = reject_headers(Request(method, target, headers), Knobs())
        if rejection is not None:
            return rejection
        found = self._by_question.get(_question(target))
        if found is None:
            return error(404, "Not found. The recording has no answer to this request")
        times = [each.time for each in found]
        latest = found[max(0, bisect.bisect_right(times, self._began + seconds) - 1)]
        if target.route == INSTANCE and latest.reply.status == 200 and latest.body:
            return element(latest.body, target)
        return latest.reply


def read(file: Path) -> tuple[list[Answer], list[str]]:
    """Return the answers in ``file`` by time, and the problems of lines that are damaged and therefore left out.

    Raises:
        Unusable: the file cannot be read, or has no answer.
    """
    answers, problems = [], []
    try:
        with file.open("rb") as lines:
            if lines.readline(len(FIRST_LINE)) != FIRST_LINE:
                raise Unusable(f"{file}: not a recording; name a file that 'record' wrote")
            for number, line in enumerate(lines, 2):
                try:
                    data = json.loads(line)
                    if "error" not in data:
                        answers.append(_answer(data))
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                    problems.append(f"{file}:{number}: not an answer; this line is left out")
    except OSError as problem:
        raise Unusable(f"{file}: {problem.strerror}; name a file that 'record' wrote") from None
    if not answers and problems:
        raise Unusable(f"{file}: there are no answers, but {len(problems)} damaged lines; name another file")
    if not answers:
        raise Unusable(f"{file}: there are no answers; record for longer")
    return sorted(answers, key=lambda each: each.time), problems


def _answer(data: dict[str, Any]) -> Answer:
    body, status, headers = data["body"], data["status"], data["headers"]
    # a recording from elsewhere may have any text
    if not 200 <= status <= 999 or not all(map(is_header_value, headers.values())):
        raise ValueError
    content = body.encode() if isinstance(body, str) else compact(body)
    kept = tuple((name, headers[name]) for name in _HEADERS if name in headers)
    moment = parse_moment(data["time"]).unix
    return Answer(
        moment, parse_target(data["path"]), Reply(status, content, headers.get("content-type", ""), kept), body
    )


def _question(target: Target) -> object:
    return target.route if target.route == INSTANCE else (target.route, target.version)
