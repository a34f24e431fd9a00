# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Polls the state of a simulator as its live page does, until it is ended: page_poll.py URL."""

from __future__ import annotations

import json
import sys
import time
import urllib.request


def main(control: str) -> None:
    line = request = 0
    print("open", flush=True)
    while True:
        path = f"{control}/state?after_line={line}&after_request={request}"
        with urllib.request.urlopen(path, timeout=10) as answer:
            data = json.load(answer)
        line, request = data["last_line"], data["last_request"]
        time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1])
