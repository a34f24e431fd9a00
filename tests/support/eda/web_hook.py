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

TOKEN = "token-of-the-tests"


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
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), secure)
        request = urllib.request.Request(self.url, body, headers, method="POST")
        try:
            with opener.open(request, timeout=60) as answer:
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


def change_of(event_id: str, *resources: str, kind: str = "Freeze") -> dict[str, Any]:
    """Return the change that announces an event, as the ready hook notify of vm1 reports it."""
    event = {
        "event_id": event_id,
        "event_type": kind,
        "status": "Scheduled",
        "resources": list(resources),
        "resource_type": "VirtualMachine",
        "not_before": None,
        "description": "",
        "source": "Platform",
        "duration_seconds": 9,
    }
    return {
        "schema": "azure_imds.scheduled_events/change/1",
        "id": str(uuid.uuid4()),
        "change": "appeared",
        "outcome": None,
        "event": event,
        "observed_at": datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "reporter": "vm1",
        "reported_by": "notify",
        "resource_id": None,
    }
