# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Make the screenshots of the simulator's live page in docs/images, from a shipped scenario."""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path

from support import simulator_process
from support.browser import Page, chromium
from support.simulator.raw_http import send_request

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SCENARIO = "two-at-once"
# name of the file -> width and height in pixels, and colour scheme
VIEWS = {
    "live-page.png": (1200, 940, "light"),
    "live-page-dark.png": (1200, 940, "dark"),
    "live-page-phone.png": (390, 1000, "light"),
}


def main() -> int:
    """Make the images and return the exit code."""
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
            (IMAGES / name).write_bytes(deflated(driver.get_screenshot_as_png()))
            print(f"docs/images/{name}: {(IMAGES / name).stat().st_size // 1024} kB")
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
