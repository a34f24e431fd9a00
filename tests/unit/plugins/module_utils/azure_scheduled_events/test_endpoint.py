# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of IMDS and api-versions as users write them."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.endpoint import (
    parse_api_versions,
    parse_endpoint,
)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://169.254.169.254", "http://169.254.169.254"),
        ("HTTP://Imds_1.Example-2.:65535/", "http://Imds_1.Example-2.:65535"),
        ("http://[fe80::1]:8080/", "http://[fe80::1]:8080"),
    ],
)
def test_address_is_returned_without_a_closing_slash(text, url):
    assert parse_endpoint(text) == url


@pytest.mark.parametrize(
    "value",
    [
        "auto",
        "http://h:",
        "http://h:0",
        "http://h:65536",
        "http://h\n",
        "http://\u212a",
        "http://::1",
        "http://h//",
        80,
    ],
)
def test_other_address_is_refused(value):
    with pytest.raises(ValueError, match="is not an address of IMDS; expected http://HOST|expected a text, not 80"):
        parse_endpoint(value)


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("2020-07-01", ("2020-07-01",)),
        ("'2020-07-01'", ("2020-07-01",)),
        ("[2024-07-09-preview, 2020-07-01]", ("2024-07-09-preview", "2020-07-01")),
        ("[2020-07-01, '2020-07-01', 2019-08-01]", ("2020-07-01", "2019-08-01")),
    ],
)
def test_versions_of_yaml_with_and_without_quotes(text, versions):
    assert parse_api_versions(yaml.safe_load(text)) == versions


@pytest.mark.parametrize(
    "value",
    ["", " ", "latest", "2020-07-01\n", "2020-07-01&x=1", "\u0662020-07-01", [], [[]], None, 2020, {"2020-07-01": 1}],
)
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match="expected an api-version such as 2020-07-01"):
        parse_api_versions(value)


def test_more_versions_than_a_poll_may_try_are_refused():
    """IMDS takes five requests in a second, of which the last one would get 429 in each poll."""
    assert len(parse_api_versions([f"2020-07-0{day}" for day in range(1, 5)])) == 4
    with pytest.raises(ValueError, match="at most 4 api-versions, not 5"):
        parse_api_versions([f"2020-07-0{day}" for day in range(1, 6)])
