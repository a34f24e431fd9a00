# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Serves a replay: a listener for the VM and a control API."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Callable

from aiohttp import web
from multidict import CIMultiDict

from ..control.access import Access
from ..control.request_body import BadRequest, json_object
from ..protocol.approval_request import MAX_BODY
from ..protocol.request_target import parse_target
from ..recording.reader import Recording
from ..scenario.groups import Address
from ..server import fault_injection
from ..server.activity_log import ActivityLog
from ..server.client_errors import LOGGER
from ..server.clock import Clock
from ..server.imds_handler import read_body
from ..server.listeners import ListenAddress, Listener, bind, bound, cannot_listen
from ..times import iso, parse_duration
from .answers import Answers, Replayed
from .progress import Progress
from .timeline import Timeline

VM = "vm1"


@dataclass(frozen=True)
class RunningReplay:
    """The URLs of a replay that serves."""

    endpoint: str
    control: str


class Replay:
    """A recording that is served; ``print_line`` prints a line of the log."""

    def __init__(
        self,
        recording: Recording,
        progress: Progress,
        timeline: Timeline,
        clock: Clock,
        print_line: Callable[[str], None],
    ) -> None:
        self._recording = recording
        self._progress = progress
        self._timeline = timeline
        self._clock = clock
        self._print_line = print_line
        self._answers = Answers(timeline, progress)
        self._log = ActivityLog()
        self.endpoint = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request of the VM."""
        now = self._clock.now()
        if request.method == "POST":
            try:
                body = await read_body(request, MAX_BODY)
            except (web.RequestPayloadError, ConnectionResetError):
                body = b""
            replayed = self._answers.approve(request.raw_path, request.headers, body, now)
            self._line("approval", status=replayed.reply.status, body=ascii(body[:200].decode("latin-1"))[1:-1])
        else:
            replayed = self._answers.answer(request.method, request.raw_path, request.headers, now)
        if replayed.until > now:
            await self._clock.wait_until(replayed.until)
        return self._send(request, replayed)

    def _send(self, request: web.BaseRequest, replayed: Replayed) -> web.StreamResponse:
        target, reply = parse_target(request.raw_path), replayed.reply
        self._log.add_request(
            self._clock.now(), VM, request.method, target.route, target.version or "", reply.status,
            f"line {replayed.line}" if replayed.line else "default", request.remote or "",
        )  # fmt: skip
        if replayed.is_lost:
            fault_injection.reset(request.transport)
            return fault_injection.ConnectionConsumed()
        headers = CIMultiDict(reply.headers)
        headers["Date"] = self._progress.date(self._clock.now())
        headers.setdefault("Server", self._timeline.server)
        if reply.content_type:
            headers["Content-Type"] = reply.content_type
        return web.Response(status=reply.status, body=reply.body, headers=headers)

    # -- the control API

    def control_app(self, access: Access) -> web.Application:
        """Return the application of the control API; ``access`` has the rules for requests."""
        app = web.Application(middlewares=[_errors_as_json, access.middleware])
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/state", self._state),
                web.get("/requests", self._requests),
                web.get("/log", self._lines),
                web.post("/advance", self._advance),
            ]
        )
        return app

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({"ok": True, "title": f"replay of {self._recording.name}", "vms": 1})

    async def _state(self, _request: web.Request) -> web.Response:
        now = self._clock.now()
        position = self._progress.position(now)
        return web.json_response(
            {
                "recording": self._recording.name,
                "now": iso(now),
                "unix": now,
                "speed": self._progress.speed,
                "position": position.seconds,
                "length": self._timeline.length,
                "round": position.round,
                "finished": self._progress.is_finished(now),
                "vms": {VM: {"endpoint": self.endpoint}},
            }
        )

    async def _requests(self, _request: web.Request) -> web.Response:
        requests = self._log.requests_after(0, None)
        return web.json_response({"requests": requests, "counts": self._log.request_counts()})

    async def _lines(self, request: web.Request) -> web.Response:
        return web.json_response({"lines": self._log.lines_after(0, request.query.get("what"))})

    async def _advance(self, request: web.Request) -> web.Response:
        body = await json_object(request, {"seconds"}, {"seconds"})
        try:
            seconds = parse_duration(body["seconds"])
        except ValueError as error:
            raise BadRequest(f"seconds: {error}") from None
        self._clock.advance(seconds / self._progress.speed)
        return web.json_response({"unix": self._clock.now()})

    def _line(self, what: str, **fields: object) -> None:
        line = self._log.add_line(self._clock.now(), what, **fields)
        self._print_line(" ".join([line["time"], what, *(f"{key}={value}" for key, value in fields.items())]))


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequest as error:
        return web.json_response({"error": str(error)}, status=400)
    except web.HTTPException as error:
        problem = f"{error.reason}: {request.method} {request.path} of a replay"
        return web.json_response({"error": problem}, status=error.status)


@contextlib.asynccontextmanager
async def run_replay(replay: Replay, listen: Address, control: Address, token: str) -> AsyncIterator[RunningReplay]:
    """Serve while the block runs.

    Args:
        replay: the recording.
        listen: the address of the VM's IMDS.
        control: the address of the control API.
        token: the token that requests to the control API need; empty: none.

    Raises:
        CannotListen: an address is in use, or does not belong to this machine.
    """
    listener = Listener(ListenAddress(listen, (VM,), None), web.Server(replay.handle, access_log=None, logger=LOGGER))
    replay.endpoint = listener.url
    runner = web.AppRunner(replay.control_app(Access(token, control.host)), access_log=None, logger=LOGGER)
    try:
        sock = bind(control)
        await listener.open()
        await runner.setup()
        try:
            await web.SockSite(runner, sock).start()
        except OSError as error:
            # --listen may have the same address
            raise cannot_listen(bound(sock), error) from None
        yield RunningReplay(listener.url, f"http://{bound(sock)}")
    finally:
        await listener.close()
        await runner.cleanup()
