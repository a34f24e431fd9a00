# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The api-versions, and the members and types that each version of scheduledevents adds.

See docs/reference/scheduled-events.md 1.3, 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping

SCHEDULED_EVENTS_VERSIONS = (
    "2017-03-01",
    "2017-08-01",
    "2017-11-01",
    "2019-01-01",
    "2019-04-01",
    "2019-08-01",
    "2020-07-01",
)
# the only version that needs no Metadata header and adds "_" to names of IaaS VMs
# (reference 1.2.2, 3.2)
PREVIEW_VERSION = "2017-03-01"
LATEST_EVENTS_VERSION = SCHEDULED_EVENTS_VERSIONS[-1]

# the type that only advises; the version that adds it is not known (reference 1.4.16)
ADVICE = "SpotRebalanceRecommendation"
EVENT_TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate", ADVICE)
TYPE_SINCE: Mapping[str, str] = {"Preempt": "2017-11-01", "Terminate": "2019-01-01"}
FIELD_SINCE: Mapping[str, str] = {
    "Description": "2019-04-01",
    "EventSource": "2019-08-01",
    "DurationInSeconds": "2020-07-01",
}

INSTANCE_VERSIONS = (
    "2017-03-01",
    "2017-04-02",
    "2017-08-01",
    "2017-10-01",
    "2017-12-01",
    "2018-02-01",
    "2018-04-02",
    "2018-10-01",
    "2019-02-01",
    "2019-03-11",
    "2019-04-30",
    "2019-06-01",
    "2019-06-04",
    "2019-08-01",
    "2019-08-15",
    "2019-11-01",
    "2020-06-01",
    "2020-07-15",
    "2020-09-01",
    "2020-10-01",
    "2020-12-01",
    "2021-01-01",
    "2021-02-01",
    "2021-03-01",
    "2021-05-01",
    "2021-08-01",
    "2021-10-01",
    "2021-11-01",
    "2021-11-15",
    "2021-12-13",
    "2023-07-01",
    "2023-11-15",
    "2024-03-15",
    "2024-07-17",
    "2025-04-07",
)
