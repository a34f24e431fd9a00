# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A scripted IMDS for recordings: it answers as the reference says, unless a test changes its script."""

from __future__ import annotations

import copy
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from typing import Any

from imds_simulator.recording.probes import EVENTS_PATH, INSTANCE_PATH, PROBES
from support.simulator.recordings import SettableClock

EVENT = {
    "EventId": "5F0A3C52-7E1B-4D55-9C0E-2B8E4C1D9A10",
    "EventStatus": "Scheduled",
    "EventType": "Freeze",
    "ResourceType": "VirtualMachine",
    "Resources": ["vm1"],
    "NotBefore": "",
    "Description": "",
    "EventSource": "Platform",
    "DurationInSeconds": 5,
}
_SINCE = {"Description": "2019-04-01", "EventSource": "2019-08-01", "DurationInSeconds": "2020-07-01"}
_NEWEST = ["2020-07-01", "2019-08-01", "2019-04-01"]
_VERSION_ERROR = {"error": "Bad request. api-version is invalid or was not specified", "newest-versions": _NEWEST}
VERSIONS = [
    *("2017-03-01", "2017-04-02", "2017-08-01", "2017-10-01", "2017-12-01", "2018-02-01", "2018-04-02", "2018-10-01"),
    *("2019-02-01", "2019-03-11", "2019-04-30", "2019-06-01", "2019-06-04", "2019-08-01", "2019-08-15", "2019-11-01"),
    *("2020-06-01", "2020-07-15", "2020-09-01", "2020-10-01", "2020-12-01", "2021-01-01", "2021-02-01", "2021-03-01"),
    *("2021-05-01", "2021-08-01", "2021-10-01", "2021-11-01", "2021-11-15", "2021-12-13", "2023-07-01", "2023-11-15"),
    *("2024-03-15", "2024-07-17", "2025-04-07"),
]
_EMPTY = (
    *(
        "azEnvironment",
        "customData",
        "evictionPolicy",
        "isHostCompatibilityLayerVm",
        "licenseType",
        "location",
        "offer",
    ),
    *("osType", "placementGroupId", "platformFaultDomain", "platformUpdateDomain", "priority", "provider", "publisher"),
    *("resourceGroupName", "resourceId", "sku", "subscriptionId", "tags", "userData", "version", "vmId"),
    *("vmScaleSetName", "vmSize", "zone"),
)
_COMPUTE = {
    **dict.fromkeys(_EMPTY, ""),
    "name": "vm1",
    "osProfile": {"computerName": "host1"},
    "plan": {"name": "", "product": "", "publisher": ""},
    "publicKeys": [],
    "securityProfile": {"secureBootEnabled": ""},
    "storageProfile": {"dataDisks": [], "resourceDisk": {"size": "0"}},
    "tagsList": [],
}
INSTANCE: dict[str, Any] = {"compute": {name: _COMPUTE[name] for name in sorted(_COMPUTE)}}
# members that the version of the probe adds
_NEWER = {
    **dict.fromkeys(("additionalCapabilities", "platformSubFaultDomain", "physicalZone"), ""),
    "extendedLocation": {"name": "", "type": ""},
    "host": {"id": ""},
    "hostGroup": {"id": ""},
    "virtualMachineScaleSet": {"id": ""},
}


class Script:
    """The script of the IMDS. ``frames`` are (seconds since the start, incarnation, events)."""

    def __init__(self, clock: SettableClock) -> None:
        self.clock = clock
        self.start = clock.now
        self.frames: list[tuple[float, int, list[dict[str, Any]]]] = []
        self.instance = copy.deepcopy(INSTANCE)
        self.headers = {"Content-Type": "application/json; charset=utf-8", "Server": "IMDS/1"}
        self.etag = True
        self.bodies: dict[int, bytes] = {}
        self.statuses: dict[int, int] = {}
        self.delays: dict[int, float] = {}
        self.shown_members: tuple[str, ...] = ()
        self.spaces = False
        self.hidden_types = {"Preempt": "2017-11-01", "Terminate": "2019-01-01"}
        self.underscore = True
        self.limit = 5
        self.instance_limited = True
        self.closes = False
        self.polls = 0
        self._sent: list[float] = []
        bad, good = {"error": "Bad request"}, {"DocumentIncarnation": 1, "Events": []}
        self.probes: dict[str, tuple[int, Any]] = {
            "no-header": (400, {"error": "Bad request. Required metadata header not specified"}),
            "header-false": (400, bad),
            "header-case": (200, good),
            "forwarded": (400, bad),
            "no-version": (400, _VERSION_ERROR),
            "unknown-version": (400, _VERSION_ERROR),
            "latest-version": (400, _VERSION_ERROR),
            "version-2021-12-13": (400, _VERSION_ERROR),
            "preview-no-header": (200, good),
            "duplicate-parameter": (400, bad),
            "format-json": (200, good),
            "path-case": (200, good),
            "trailing-slash": (200, good),
            "double-slash": (404, {"error": "Not found"}),
            "unknown-path": (404, {"error": "Not found"}),
            "head": (405, None),
            "versions": (200, {"apiVersions": VERSIONS}),
            "unknown-path-no-header": (400, bad),
            "root": (400, _VERSION_ERROR),
            "root-version": (404, {"error": "Not found"}),
            "instance-no-version": (400, _VERSION_ERROR),
            "instance-events-version": (400, _VERSION_ERROR),
            "leaf-as-json": (400, bad),
            "leaf-as-text": (200, "Linux"),
            "unknown-element": (404, {"error": "Not found"}),
            "if-none-match": (304, None),
        }
        self.too_many: Any = {"error": "Too many requests"}
        self.add_event()

    def date(self, seconds: float) -> str:
        """Return the date of ``seconds`` since the start."""
        return formatdate(self.start + seconds, usegmt=True)

    def add_event(self, appears: float = 60, notice: float = 900, lasts: float = 600, **members: Any) -> None:
        """Let one event appear, start at NotBefore, and end; replaces the script of documents."""
        scheduled = {**EVENT, "NotBefore": self.date(appears + notice), **members}
        started = {**scheduled, "EventStatus": "Started", "NotBefore": ""}
        self.frames = [
            (0, 1, []),
            (appears, 2, [scheduled]),
            (appears + notice, 3, [started]),
            (appears + notice + lasts, 4, []),
        ]

    def document(self, version: str) -> dict[str, Any]:
        """Return the present document."""
        now = self.clock.now - self.start
        _since, incarnation, events = [frame for frame in self.frames if frame[0] <= now][-1]
        prefix = "_" if self.underscore and version == "2017-03-01" else ""
        shown = [
            {
                name: [prefix + each for each in value] if name == "Resources" else value
                for name, value in event.items()
                if _SINCE.get(name, "") <= version or name in self.shown_members
            }
            for event in events
            if self.hidden_types.get(event["EventType"], "") <= version
        ]
        return {"DocumentIncarnation": incarnation, "Events": shown}

    def answer(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, Any]:
        """Return status and body; a body that is not bytes is sent as JSON."""
        for probe in PROBES:
            if (method, path) == (probe.method, probe.path) and headers == _names(probe.headers):
                return self.probes[probe.name] if probe.name in self.probes else (200, self._newest_instance())
        if "if-none-match" in headers:
            return self.probes["if-none-match"]
        is_events = path.startswith(EVENTS_PATH)
        if not is_events and not path.startswith(INSTANCE_PATH):
            return 404, {"error": "Not found"}
        return self._poll(path.rpartition("=")[2]) if is_events else self._instance()

    def _poll(self, version: str) -> tuple[int, Any]:
        self.polls += 1
        self.clock.now += self.delays.get(self.polls, 0.0)
        if self._is_limited():
            return 429, self.too_many
        if self.polls in self.statuses:
            return self.statuses[self.polls], {"error": "scripted"}
        return 200, self.bodies.get(self.polls, self.document(version))

    def _instance(self) -> tuple[int, Any]:
        return (429, self.too_many) if self.instance_limited and self._is_limited() else (200, self.instance)

    def _newest_instance(self) -> Any:
        members = {**_NEWER, **self.instance["compute"]}
        return {"compute": {name: members[name] for name in sorted(members)}}

    def _is_limited(self) -> bool:
        self._sent = [each for each in self._sent if each > self.clock.now - 1] + [self.clock.now]
        return len(self._sent) > self.limit


def _names(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@contextmanager
def scripted_imds(script: Script) -> Iterator[str]:
    """Serve ``script`` on loopback and yield the URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # headers and body in one packet
        wbufsize = 65536

        def do_GET(self) -> None:
            headers = {name: value for name, value in _names(self.headers).items() if name not in _CLIENT}
            status, body = script.answer(self.command, self.path, headers)
            if not isinstance(body, bytes):
                space = None if script.spaces else (",", ":")
                text = body if isinstance(body, str) else json.dumps(body, separators=space)
                body = b"" if body is None else text.encode()
            self.send_response_only(status)
            sent = {"Date": formatdate(script.clock.now, usegmt=True), **script.headers}
            if script.etag and status == 200:
                sent["ETag"] = f'"{len(body)}"'
            for name, value in sent.items():
                if value:
                    self.send_header(name, value)
            if status != 304:
                self.send_header("Content-Length", str(len(body)))
            if script.closes:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        do_HEAD = do_GET

        def log_message(self, *_arguments: object) -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


# headers that every client sends
_CLIENT = frozenset(("host", "accept", "accept-encoding", "user-agent", "connection"))
