# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Make the screenshots of the simulator's live page and of a report in docs/images, from shipped scenarios."""

from __future__ import annotations

import struct
import tempfile
import zlib

from imds_simulator.cli.report_command import main as report_main
from support import simulator_process
from support.browser import Page, chromium
from support.simulator.raw_http import send_request

SCENARIO = "two-at-once"
# name of the file -> width and height in pixels, and colour scheme
VIEWS = {
    "live-page.png": (1200, 940, "light"),
    "live-page-dark.png": (1200, 940, "dark"),
    "live-page-phone.png": (390, 1000, "light"),
}
REPORT_VIEW = (1100, 445, "light")


def pictures() -> dict[str, bytes]:
    """Return name of the file -> PNG; needs Chromium and its driver."""
    made: dict[str, bytes] = {}
    with (
        simulator_process.start(SCENARIO, args=["--clock", "manual", "--speed", "10"]) as simulator,
        chromium() as driver,
    ):
        play(simulator)
        page = Page(driver)
        for name, (width, height, scheme) in VIEWS.items():
            page.show(width, height, scheme)
            page.open(simulator.control)
            page.wait_for_part("freeze", ".approved", "by vm1")
            page.wait_for("tr[data-vm='vm2'] .request", "429")
            made[name] = deflated(driver.get_screenshot_as_png())
    with (
        simulator_process.start("live-migration", args=["--clock", "manual"]) as simulator,
        tempfile.NamedTemporaryFile(suffix=".html") as report,
        chromium() as driver,
    ):
        migrate(simulator)
        report_main(["--control", simulator.control, "--output", report.name])
        page = Page(driver)
        page.show(*REPORT_VIEW)
        driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        driver.get(f"file://{report.name}")
        made["report.png"] = deflated(driver.get_screenshot_as_png())
    return made


def deflated(png: bytes) -> bytes:
    """Return the same image with better compressed data; the browser compresses for speed."""
    parts, data, position = [png[:8]], b"", 8
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        chunk = png[position : position + 12 + length]
        position += len(chunk)
        if chunk[4:8] == b"IDAT":
            data += chunk[8:-4]
        elif chunk[4:8] == b"IEND":
            body = b"IDAT" + zlib.compress(zlib.decompress(data), 9)
            parts += [struct.pack(">I", len(body) - 4), body, struct.pack(">I", zlib.crc32(body)), chunk]
        else:
            parts.append(chunk)
    return b"".join(parts)


def play(simulator: simulator_process.Simulator) -> None:
    """Bring the scenario to a moment with a Started and a Scheduled event, requests of both VMs, and a fault."""
    simulator.advance(12)
    for url in simulator.endpoints.values():
        send_request(url)
    simulator.advance(60)
    simulator.post("/events/freeze/approve", {"as": "vm1"})
    simulator.advance(90)
    simulator.post("/faults", {"kind": "too-many-requests", "vm": "vm2", "for": "5m"})
    for url in simulator.endpoints.values():
        send_request(url)


def migrate(simulator: simulator_process.Simulator) -> None:
    """Let two VMs go through a live migration, one of them with a fault."""

    def poll(vm: str) -> None:
        send_request(simulator.endpoints[vm])

    def note(vm: str, what: str) -> None:
        simulator.post("/notes", {"vm": vm, "what": what, "event": "migration"})

    simulator.advance(11)
    poll("vm1")
    simulator.advance(1.5)
    poll("vm2")
    simulator.advance(4)
    note("vm1", "prepared")
    simulator.post("/faults", {"kind": "unavailable", "vm": "vm2", "for": "6s"})
    poll("vm2")
    simulator.advance(8)
    note("vm2", "prepared")
    simulator.advance(1)
    simulator.post("/events/migration/approve", {"as": "vm1"})
    simulator.advance(12)
    simulator.post("/events/migration/complete")
    simulator.advance(2)
    note("vm1", "recovered")
    simulator.advance(1)
    note("vm2", "recovered")
