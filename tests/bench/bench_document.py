# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Time and memory of parse_document and of json.loads alone, for 1, 100 and 10,000 events.

python tests/bench/bench_document.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "plugins" / "module_utils"))
from table import print_table, ratio

from azure_scheduled_events import changes, parse_document

IMPORT = (
    "import time, requests; started = time.perf_counter(); "
    "import azure_scheduled_events; print(time.perf_counter() - started)"
)


def body(count: int) -> bytes:
    """Return a document of so many events, about 500 bytes each."""
    events = [
        {
            "EventId": f"{number:08X}-0000-4000-8000-000000000000",
            "EventStatus": "Scheduled",
            "EventType": "Freeze",
            "ResourceType": "VirtualMachine",
            "Resources": [f"web_{number}", f"web_{number + count}"],
            "NotBefore": "Mon, 11 Apr 2022 22:26:58 GMT",
            "Description": "Virtual machine is being paused because of a memory-preserving Live Migration operation."
            + "." * 150,
            "EventSource": "Platform",
            "DurationInSeconds": 5,
        }
        for number in range(count)
    ]
    return json.dumps({"DocumentIncarnation": 1, "Events": events}).encode()


def best(action: Callable[[], Any], seconds: float = 0.5) -> float:
    """Return the shortest time of the runs within so many seconds, at least three runs."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def memory(action: Callable[[], Any]) -> int:
    """Return the number of bytes in memory of the result."""
    tracemalloc.start()
    result = action()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del result
    return size


def main() -> None:
    rows = []
    for count in (1, 100, 10_000):
        text = body(count)
        ours, plain = best(lambda: parse_document(text)), best(lambda: json.loads(text))
        mine, theirs = memory(lambda: parse_document(text)), memory(lambda: json.loads(text))
        document = parse_document(text)
        compared = best(lambda: changes(document, document))
        cells = [
            f"{count}",
            f"{len(text) / 1024:.1f}",
            f"{ours * 1000.0:.3f}",
            f"{plain * 1000.0:.3f}",
            ratio(ours, plain),
        ]
        cells += [f"{mine / 1024:.1f}", f"{theirs / 1024:.1f}", ratio(mine, theirs), f"{compared * 1000.0:.3f}"]
        rows.append(cells)
    columns = [
        "events",
        "KiB",
        "parse, ms",
        "json.loads, ms",
        "ratio",
        "held, KiB",
        "json.loads, KiB",
        "ratio",
        "compare, ms",
    ]
    print_table("Reading a document", columns, rows)
    environment = {
        "PYTHONPATH": str(REPOSITORY / "plugins" / "module_utils"),
        "PYTHONPYCACHEPREFIX": str(REPOSITORY / ".cache" / "pycache"),
    }
    runs = [
        float(subprocess.run([sys.executable, "-c", IMPORT], env=environment, capture_output=True, check=True).stdout)
        for _run in range(6)
    ]
    print(f"Importing the helper takes {min(runs[1:]) * 1000.0:.1f} ms in addition to requests (best of 5, compiled).")


if __name__ == "__main__":
    main()
