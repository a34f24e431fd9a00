# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The input of a hook has the event of the run, and all events of the maintenance."""

from __future__ import annotations

import json
import subprocess
from datetime import timedelta
from typing import Any

from hook_runner.maintenance.inputs import input_of
from hook_runner.records import ACCEPTED, RECOVER
from support.daemon.record_factory import NOON, after, make_maintenance, make_record, make_run

WORST = "\U0001f600" * 100000


def test_hook_gets_the_event_of_its_run_and_all_events() -> None:
    maintenance = make_maintenance()
    (record,) = maintenance.events
    record.event = record.event._replace(not_before=NOON + timedelta(seconds=600.7))
    other = make_record(9, "E-9", status="Started")
    other.gone_at = after(5)
    maintenance.events.append(other)
    stdin, variables = input_of(maintenance.runs[0], maintenance, "web-0", NOON)
    found = {name: variables[name] for name in ("EVENT_ID", "EVENT_SECONDS_LEFT", "EVENT_OUTCOME", "HOOK_SECONDS")}
    assert found == {"EVENT_ID": "E-1", "EVENT_SECONDS_LEFT": "600", "EVENT_OUTCOME": "", "HOOK_SECONDS": "300"}
    given = json.loads(stdin)
    assert (given["event_id"], given["stage"], given["resource_name"]) == ("E-1", "prepare", "web-0")
    assert given["approved"] is False
    assert [(each["event_id"], each["status"], each["outcome"]) for each in given["events"]] == [
        ("E-1", "Scheduled", ""),
        ("E-9", "Started", "completed"),
    ]
    record.approval = ACCEPTED
    assert json.loads(input_of(maintenance.runs[0], maintenance, "web-0", NOON)[0])["approved"] is True
    stdin, variables = input_of(make_run(5, 9, "recover/10-join"), maintenance, "web-0", NOON)
    assert variables["EVENT_OUTCOME"] == json.loads(stdin)["outcome"] == "completed"


def test_run_of_a_maintenance_without_events_has_no_values_of_one() -> None:
    maintenance = make_maintenance()
    maintenance.events.clear()
    stdin, variables = input_of(make_run(5, 0, "recover/10-join"), maintenance, "web-0", NOON)
    assert (variables["EVENT_STAGE"], variables["EVENT_ID"], variables["EVENT_OUTCOME"]) == (RECOVER, "", "unknown")
    assert json.loads(stdin)["events"] == []


def test_kernel_takes_the_variables_of_the_worst_event() -> None:
    maintenance = make_maintenance()
    (record,) = maintenance.events
    texts = ("event_id", "event_type", "status", "resource_type", "description", "source")
    odd: dict[str, Any] = dict.fromkeys(texts, WORST)
    record.event = record.event._replace(**odd, resources=(WORST,) * 50)
    _stdin, variables = input_of(maintenance.runs[0], maintenance, WORST, NOON)
    done = subprocess.run(["/usr/bin/env", "-0"], env=variables, capture_output=True, check=True)
    assert done.stdout.count(b"\0") == len(variables)
