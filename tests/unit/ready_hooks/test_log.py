# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from ready_hooks.hooks.log import encode, journal_fields


def test_encode_writes_the_length_of_a_value_with_line_feeds() -> None:
    assert (
        encode({"MESSAGE": "a=b", "TEXT": "é\n2"}) == b"MESSAGE=a=b\nTEXT\n" + bytes([4, *[0] * 7]) + "é\n2\n".encode()
    )


def test_journal_fields_leave_out_unknown_values() -> None:
    values = {"text": "web1: over", "event_id": "1", "stage": "recover", "duration": 0, "outcome": "", "host": "a"}
    values |= {"seconds_left": None, "repeated": False}
    fields = journal_fields(values, "azure-event")
    assert fields.pop("MESSAGE_ID").isalnum()
    assert fields == {
        "MESSAGE": "web1: over",
        "PRIORITY": "5",
        "SYSLOG_IDENTIFIER": "azure-event",
        "AZURE_EVENT_ID": "1",
        "AZURE_EVENT_STAGE": "recover",
        "AZURE_EVENT_DURATION": "0",
    }
    assert journal_fields({**values, "stage": "emergency"}, "azure-event")["PRIORITY"] == "4"
