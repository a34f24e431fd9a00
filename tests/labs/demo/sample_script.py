# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The handling of events of the Python sample in Microsoft's documentation, written for this project.

    python3 sample_script.py

Once a second the sample reads the document. When its DocumentIncarnation has changed, the sample
approves at once each Scheduled event of a user, and each Freeze of less than 9 seconds. It prints
the description of all others. It prepares nothing, and does not ask which VM an event affects.
"""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

URL = "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"
INTERVAL = 1.0
SHORT_FREEZE = 9


def request(body: dict[str, Any] | None = None) -> bytes:
    """Send a GET, or a POST with a body, and return the answer."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(URL, data, {"Metadata": "true"}), timeout=30) as answer:
        return bytes(answer.read())


def is_approved(event: dict[str, Any]) -> bool:
    """Return True if the sample approves this event."""
    if event["EventStatus"] == "Started":
        return False
    is_short = event["EventType"] == "Freeze" and 0 <= int(event["DurationInSeconds"]) < SHORT_FREEZE
    return event["EventSource"] == "User" or is_short


def main() -> None:
    known = None
    while True:
        time.sleep(INTERVAL)
        document = json.loads(request())
        if document["DocumentIncarnation"] == known:
            continue
        known = document["DocumentIncarnation"]
        for event in document["Events"]:
            if is_approved(event):
                request({"StartRequests": [{"EventId": event["EventId"]}]})
            else:
                print(event["Description"], flush=True)


if __name__ == "__main__":
    main()
