# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times in every known format, whatever the locale and the time zone of this machine."""

from __future__ import annotations

import locale
import sys
import time
from contextlib import suppress
from datetime import datetime, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.timestamps import (
    as_utc_text,
    parse_time,
)

MOMENT = datetime(2016, 9, 19, 18, 29, 47, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 19 Sep 2016 18:29:47 GMT",
        "Mon, 19 Sep 2016 18:29:47 UTC",
        "mon, 19 sep 2016 18:29:47 gmt",
        "Fri 19 Sep 2016 18:29:47",
        "19 Sep 2016 18:29:47 GMT",
        "19 Sep 16 18:29:47 +0000",
        "Mon, 19 Sep 2016 13:29:47 -0500",
        "Mon, 19 Sep 2016 20:29:47 +02:00",
        "Monday, 19-Sep-16 18:29:47 GMT",
        "2016-09-19T18:29:47Z",
        "2016-09-19T18:29:47.250Z",
        "2016-09-19T20:29:47+02:00",
        "2016-09-19 18:29:47",
    ],
)
def test_all_known_formats_are_the_same_time(text):
    assert parse_time(text) == MOMENT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "Mon, 31 Feb 2016 18:29:47 GMT",
        "Mon, 19 Sep 2016 25:29:47 GMT",
        "Mon, 19 Foo 2016 18:29:47 GMT",
        "Mon, 19 Sep 2016 18:29:47 CEST",
        "Mon, 19 Sep 2016 18:29:47 GMT+2",
        "Mon, 19 Sep 2016 18:29:47 +02",
        "Mon, 19 Sep 2016 18:29:47 GMT or later",
        "Mon, 19 Sep 2016 18:29:47 0200",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "1474309787",
        "\u041f\u043d, 19 \u0441\u0435\u043d\u0442\u044f\u0431\u0440\u044f 2016 \u0433.",
    ],
)
def test_invalid_time_is_none(text):
    assert parse_time(text) is None


def test_the_far_future_is_a_time():
    assert as_utc_text(parse_time("Fri, 31 Dec 9999 23:59:59 GMT")) == "9999-12-31T23:59:59Z"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot change the time zone of a process (time.tzset)")
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Pacific/Apia"])
def test_the_time_zone_of_the_machine_makes_no_difference(zone, monkeypatch):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        # within the hour that occurs twice when summer time ends in Berlin
        assert as_utc_text(parse_time("Sun, 25 Oct 2026 00:30:00 GMT")) == "2026-10-25T00:30:00Z"
        assert as_utc_text(parse_time("2026-10-25T01:30:00Z")) == "2026-10-25T01:30:00Z"
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_the_locale_of_the_machine_makes_no_difference():
    before = locale.setlocale(locale.LC_ALL)
    for name in ("ru_RU.UTF-8", "de_DE.UTF-8", "C.UTF-8"):
        with suppress(locale.Error):  # not every machine has them all; C.UTF-8 is always there
            locale.setlocale(locale.LC_ALL, name)
        try:
            assert parse_time("Mon, 19 Sep 2016 18:29:47 GMT") == MOMENT
        finally:
            locale.setlocale(locale.LC_ALL, before)
