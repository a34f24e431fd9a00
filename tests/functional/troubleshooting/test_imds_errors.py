# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""IMDS answers with an error: the output for each, and its end after the remedy."""

from __future__ import annotations

import pytest

from support.daemon.simulated_azure import Azure
from support.troubleshooting.daemon_host import DaemonHost
from support.troubleshooting.page import Section

pytestmark = pytest.mark.all


def is_good(host: DaemonHost) -> bool:
    return bool(host.status()["imds"]["ok"])


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("too-many-requests", marks=[pytest.mark.symptom("Status 429")]),
        pytest.param("gone", marks=[pytest.mark.symptom("Status 410")]),
        pytest.param("forbidden-html", marks=pytest.mark.symptom("A proxy answers")),
        pytest.param("refuse", marks=pytest.mark.symptom("No connection")),
    ],
)
def test_error_is_shown_and_its_end_too(section: Section, host: DaemonHost, azure: Azure, kind: str) -> None:
    host.start()
    vm = {"vm": "vm1"} if kind == "refuse" else {}
    azure.fault(kind, **vm)
    host.wait(lambda: not is_good(host))
    section.see(host.run, 1)
    for _block in section.left():
        # check warns about a status that may pass
        section.see(host.run, 0 if kind == "too-many-requests" else 1)
    azure.heal()
    host.wait(lambda: is_good(host))


@pytest.mark.symptom("Status 400")
def test_refused_api_version_is_found_and_removed(section: Section, host: DaemonHost) -> None:
    host.config = {"policy": "documented", "api_version": "2031-01-01"}
    host.start(until="IMDS gives no good answer")
    host.wait(lambda: host.status()["imds"]["error"])
    section.see(host.run, 1)
    section.see(host.run, 1)
    host.config = {"policy": "documented"}
    host.write_config()
    section.see_all(host.run)
