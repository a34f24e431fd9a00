# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import pytest

from ready_hooks.core import options
from ready_hooks.core.errors import UsageError
from ready_hooks.core.options import Option

OPTIONS = (
    Option("server", options.text, "a server", required=True),
    Option("wait", options.seconds, "seconds", 30.0),
    Option("units", options.text, "units", many=True),
)


def test_from_mapping_parses_values_and_adds_defaults() -> None:
    assert options.from_mapping(OPTIONS, {"server": "web/web1", "wait": "2m", "units": "a"}) == {
        "server": "web/web1",
        "wait": 120.0,
        "units": ("a",),
    }


@pytest.mark.parametrize(
    ("given", "subject"),
    [
        ({}, "server"),
        ({"server": "a", "wiat": 1}, "wiat"),
        ({"server": ["a"]}, "server"),
        ({"server": "a", "wait": "soon"}, "wait"),
        ([], "options"),
    ],
)
def test_from_mapping_names_the_option_that_is_wrong(given: object, subject: str) -> None:
    with pytest.raises(UsageError, match=f"^{subject}: "):
        options.from_mapping(OPTIONS, given)
