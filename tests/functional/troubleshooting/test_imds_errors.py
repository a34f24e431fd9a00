# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""IMDS answers with an error: the output of each row of the table, and its end after the remedy."""

from __future__ import annotations

import pytest

from support.daemon.documents import quoted, rows
from support.daemon.simulated_azure import Azure
from support.repository import REPOSITORY
from support.troubleshooting.daemon_host import DaemonHost
from support.troubleshooting.page import DOCUMENT

pytestmark = pytest.mark.all

TABLE = rows((REPOSITORY / DOCUMENT).read_text(encoding="utf-8"), "IMDS answers with an error")
FAULTS = {
    "answered 429": "too-many-requests",
    "answered 410": "gone",
    "this status comes from a proxy or another service": "forbidden-html",
    "no connection": "refuse",
}
OLD_VERSION = "answered 400 to api-version"


def is_good(host: DaemonHost) -> bool:
    return bool(host.status()["imds"]["ok"])


def test_table_has_these_rows() -> None:
    assert {output for row in TABLE for output in quoted(row[0])} == {*FAULTS, OLD_VERSION}


@pytest.mark.parametrize("output", FAULTS)
def test_error_is_shown_and_its_end_too(host: DaemonHost, azure: Azure, output: str) -> None:
    host.start()
    kind = FAULTS[output]
    vm = {"vm": "vm1"} if kind == "refuse" else {}
    azure.fault(kind, **vm)
    host.wait(lambda: not is_good(host))
    code, text = host.run("azure-scheduled-events status")
    assert code == 1 and output in text
    azure.heal()
    host.wait(lambda: is_good(host))


def test_refused_api_version_is_shown_and_removed(host: DaemonHost) -> None:
    host.config = {"policy": "documented", "api_version": "2031-01-01"}
    host.start(until="IMDS gives no good answer")
    host.wait(lambda: host.status()["imds"]["error"])
    code, text = host.run("azure-scheduled-events status")
    assert code == 1 and OLD_VERSION in text
    host.config = {"policy": "documented"}
    host.write_config()
    assert host.run("systemctl restart azure-scheduled-events")[0] == 0
    assert host.run("azure-scheduled-events check")[0] == 0
