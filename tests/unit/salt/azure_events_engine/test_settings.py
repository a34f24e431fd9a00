# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The key azure_events of the master's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from azure_events_engine.settings import Settings, parse_settings


def test_settings_have_defaults() -> None:
    assert parse_settings(None) == parse_settings({}) == Settings()


def test_times_have_units() -> None:
    assert parse_settings({"sweep": "10m", "answer": 5}).sweep == 600.0


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"patience": "1h"}, "azure_events: unknown key 'patience'"),
        ([], "azure_events: expected keys with values"),
        ({"minions_type": "globb"}, "did you mean glob?"),
        ({"minions": []}, "azure_events: minions: expected a target"),
        ({"sweep": 1}, "azure_events: sweep: expected at least 10 seconds"),
        ({"at_once": 0}, "azure_events: at_once: expected a whole number"),
        ({"mapping": {"a": 7}}, "azure_events: mapping: expected a minion id with the name of a VM"),
        ({"mapping": ["a"]}, "azure_events: mapping: expected minion ids with names of VMs"),
        ({"mapping": {"a": "vm1", "b": "_VM1"}}, "a and b have the same VM"),
        ({"mapping_pillar": 7}, "azure_events: mapping_pillar: expected a text"),
    ],
)
def test_invalid_setting_is_refused_with_its_key(given: Any, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_settings(given)
    assert text in str(caught.value)
