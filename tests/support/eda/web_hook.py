# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The web hook of the rulebook maintenance_pushed, and a client that reports changes of events to it."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from support.ready_hooks.certificates import Certificates
from support.simulator_process import Simulator

TOKEN = "token-of-the-tests"
API_VERSION = "2020-07-01"
_NO_PROXY = urllib.request.ProxyHandler({})


class WebHook:
    """Where the rulebook listens: a free port of the loopback interface. ``folder`` is for the certificates."""

    def __init__(self, folder: Path, port: int) -> None:
        folder.mkdir()
        self.authority = Certificates(folder, "127.0.0.1").authority
        self.url = f"https://127.0.0.1:{port}/scheduled-events"
        self.variables = {
            "maintenance_webhook_port": port,
            "maintenance_webhook_token": TOKEN,
            "maintenance_webhook_certificate": str(folder / "server.pem"),
            "maintenance_webhook_key": str(folder / "server.key"),
        }

    def post(self, data: object, token: str = TOKEN) -> int:
        """Send JSON with the token; return the status of the answer."""
        body = json.dumps(data).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        secure = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(self.authority)))
        request = urllib.request.Request(self.url, body, headers, method="POST")
        try:
            with urllib.request.build_opener(_NO_PROXY, secure).open(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


def notify_entry(url: str, token_file: str, ca_file: str) -> dict[str, Any]:
    """Return the entry of the ready hook notify that reports to a rulebook."""
    return {
        "use": "notify",
        "url": url,
        "header_files": {"Authorization": token_file},
        "ca_file": ca_file,
        "change_record": True,
        "required": True,
    }


def event_of(azure: Simulator, vm: str) -> dict[str, Any]:
    """Return the one event of a VM's document in the shape of a change."""
    url = f"{azure.endpoints[vm]}/metadata/scheduledevents?api-version={API_VERSION}"
    request = urllib.request.Request(url, headers={"Metadata": "true"})
    with urllib.request.build_opener(_NO_PROXY).open(request, timeout=60) as answer:
        (entry,) = json.loads(answer.read())["Events"]
    return {
        "event_id": entry["EventId"],
        "event_type": entry["EventType"],
        "status": entry["EventStatus"],
        "resources": entry["Resources"],
        "resource_type": entry["ResourceType"],
        "not_before": None,
        "description": entry["Description"],
        "source": entry["EventSource"],
        "duration_seconds": entry["DurationInSeconds"],
    }


def change_of(kind: str, event: dict[str, Any], reporter: str) -> dict[str, Any]:
    """Return a change as the ready hook notify reports it."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "schema": "azure_imds.scheduled_events/change/1",
        "id": str(uuid.uuid4()),
        "change": kind,
        "outcome": None,
        "event": event,
        "observed_at": now,
        "reporter": reporter,
        "reported_by": "notify",
        "resource_id": None,
    }
