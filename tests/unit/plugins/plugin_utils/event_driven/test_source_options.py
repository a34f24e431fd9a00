# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments of the event source: defaults, conversion, and errors that name the argument."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.source_options import (
    SourceOptions,
    parse_arguments,
)


def test_without_arguments_there_are_defaults():
    assert parse_arguments({"due_within": "", "eda_feedback_queue": object()}) == SourceOptions()


def test_arguments_are_converted():
    given = {
        "endpoint": "http://127.0.0.1:80/",
        "interval": "2",
        "due_within": "30m",
        "api_version": ["2020-07-01", "2019-08-01"],
    }
    options = parse_arguments(given)
    assert options.endpoint == "http://127.0.0.1:80" and options.interval == 2.0 and options.due_within == 1800.0
    assert options.api_version == ("2020-07-01", "2019-08-01")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("endpoint", "https://example.com"),
        ("endpoint", "auto"),
        ("endpoint", 5),
        ("interval", 0.5),
        ("timeout", 1000),
        ("due_within", -1),
        ("resource_name", 7),
        ("api_version", "2020-07-01\r\n"),
    ],
)
def test_unusable_argument_is_an_error_that_names_it(name, value):
    with pytest.raises(ValueError, match=f"^azure_imds.scheduled_events.scheduled_events: {name}: "):
        parse_arguments({name: value})
