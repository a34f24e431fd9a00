# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The address of IMDS and the api-versions of Scheduled Events in configurations."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from .options import as_list, parse_text

DEFAULT_ENDPOINT = "http://169.254.169.254"

# a name or an address, that of IPv6 in brackets, and a port
_ENDPOINT = re.compile(
    r"http://((?:[0-9a-z_-]{1,63}(?:\.[0-9a-z_-]{1,63})*\.?|\[[0-9a-f.]*:[0-9a-f:.]*\])(?::([0-9]{1,5}))?)/?",
    re.ASCII | re.IGNORECASE,
)
_API_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:-[a-z]+)?")
_MOST_API_VERSIONS = 4


def parse_endpoint(value: Any) -> str:
    """Return the base URL ``http://HOST[:PORT]`` without a closing slash.

    Raises:
        ValueError: the value is not such a URL, with or without a closing slash.
    """
    match = _ENDPOINT.fullmatch(parse_text(value))
    if match is None or not 0 < int(match[2] or 80) < 65536:
        raise ValueError(f"{value!r} is not an address of IMDS; expected http://HOST or http://HOST:PORT")
    return "http://" + match[1]


def parse_api_versions(value: Any) -> tuple[str, ...]:
    """Return api-versions of Scheduled Events in the order of fall-back, each once.

    The value is one, or a list of at most four: a poll may try them all, and IMDS takes five requests in a second.

    Raises:
        ValueError: the value is none of these.
    """
    # YAML reads a version without quotes as a date
    texts = [str(each) if isinstance(each, date) else each for each in as_list(value)]
    if not texts or not all(isinstance(each, str) and _API_VERSION.fullmatch(each) for each in texts):
        raise ValueError(f"expected an api-version such as 2020-07-01, or a list of some, not {value!r}")
    versions = tuple(dict.fromkeys(texts))
    if len(versions) > _MOST_API_VERSIONS:
        raise ValueError(f"expected at most {_MOST_API_VERSIONS} api-versions, not {len(versions)}")
    return versions
