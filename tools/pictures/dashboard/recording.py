# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Record the answers of a real Prometheus to the queries of the dashboard: make recordings RECORDINGS=dashboard.

Three real daemons meet events of a simulator for eight minutes. Needs Debian's package prometheus.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from tools.pictures.dashboard.run import SCRAPE_INTERVAL, Prometheus, command_of, fleet, wait_for
from tools.pictures.picture_error import PictureError

REPOSITORY = Path(__file__).resolve().parents[3]
DASHBOARD = REPOSITORY / "docs" / "monitoring" / "grafana-dashboard.json"
RECORDED = Path(__file__).with_name("recorded.json")
# seconds of the run, and the moment at which an operator pauses web1
DURATION, PAUSED_AT = 480, 455
EVENTS: list[dict[str, Any]] = [
    {"name": "a", "at": "25s", "type": "Reboot", "resources": ["web1"], "notice": "90s", "started_for": "25s"},
    {"name": "b", "at": "80s", "type": "Freeze", "resources": ["web2"], "notice": "60s", "started_for": "15s"},
    {
        "name": "c",
        "at": "150s",
        "type": "Redeploy",
        "resources": ["web1", "web3"],
        "notice": "60s",
        "started_for": "30s",
    },
    {"name": "d", "at": "275s", "type": "Reboot", "resources": ["web3"], "notice": "120s", "started_for": "30s"},
    {"name": "e", "at": "350s", "type": "Reboot", "resources": ["web2"], "notice": "45s", "started_for": "20s"},
    {"name": "f", "at": "440s", "type": "Redeploy", "resources": ["web3"], "notice": "120s", "started_for": "30s"},
]
FAULTS: list[dict[str, Any]] = [
    {"kind": "unavailable", "vm": "web1", "route": "scheduledevents", "method": "GET", "from": "100s", "for": "20s"},
    {
        "kind": "too-many-requests",
        "vm": "web2",
        "route": "scheduledevents",
        "method": "GET",
        "from": "200s",
        "for": "30s",
    },
    {"kind": "bad-request", "vm": "web3", "route": "scheduledevents", "method": "POST", "from": "275s", "for": "25s"},
    {"kind": "gone", "vm": "web2", "route": "scheduledevents", "method": "GET", "from": "465s", "for": "60s"},
]
# Grafana's variables, with its own rule for $__rate_interval
VARIABLES = {"$__rate_interval": f"{4 * SCRAPE_INTERVAL}s", "$__range": f"{DURATION}s", "$instance": ".*"}


def record() -> str:
    """Write the recorded answers, and return the logs of the daemons.

    Raises:
        PictureError: the program prometheus is missing.
    """
    if shutil.which("prometheus") is None:
        raise PictureError("dashboard: the program prometheus is missing; install the package prometheus")
    with tempfile.TemporaryDirectory() as name, fleet(Path(name), EVENTS, FAULTS) as addresses:
        folder = Path(name)
        folder.chmod(0o755)
        prometheus = Prometheus(folder, addresses)
        with prometheus.runs():
            began, clock = time.time(), time.monotonic()
            wait_for(clock + PAUSED_AT)
            command_of(folder / "web1", "pause")
            wait_for(clock + DURATION)
            version = prometheus.get("status/buildinfo")["version"]
            panels = {str(panel["id"]): _answers(prometheus, panel, began) for panel in _panels()}
        logs = "".join((folder / vm / "log").read_text(encoding="utf-8") for vm in addresses)
    recorded = {"prometheus": version, "seconds": DURATION, "step": SCRAPE_INTERVAL, "vms": len(addresses)}
    text = json.dumps({**recorded, "panels": panels}, indent=1)
    # one series on one line
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", text)
    RECORDED.write_text(text + "\n", encoding="utf-8")
    return f"the logs of the daemons:\n\n{logs}"


def expression_of(text: str) -> str:
    """Return a query of the dashboard with its variables replaced as Grafana does."""
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    return text


def _panels() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return panels


def _answers(prometheus: Prometheus, panel: dict[str, Any], began: float) -> list[dict[str, Any]]:
    """Return the series of a panel: the labels, and a value or None for each step; instant queries have one step."""
    found = []
    for target in panel["targets"]:
        expression = expression_of(target["expr"])
        begin = began + DURATION if panel["type"] != "timeseries" else began
        data = prometheus.get(
            "query_range", query=expression, start=begin, end=began + DURATION, step=f"{SCRAPE_INTERVAL}s"
        )
        for series in data["result"]:
            values = {round((float(at) - begin) / SCRAPE_INTERVAL): float(value) for at, value in series["values"]}
            steps = round((began + DURATION - begin) / SCRAPE_INTERVAL) + 1
            row = [_rounded(values.get(step)) for step in range(steps)]
            found.append({"expr": target["expr"], "labels": series["metric"], "values": row})
    return found


def _rounded(value: float | None) -> float | None:
    # NaN is the quantile of a histogram without observations
    return None if value is None or math.isnan(value) else round(value, 2)
