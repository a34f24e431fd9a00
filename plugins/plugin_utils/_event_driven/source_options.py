# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the event source, checked before the first poll."""

from __future__ import annotations

import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    API_VERSION,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.endpoint import (
    AUTO,
    DEFAULT_ENDPOINT,
    validate_endpoint,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import (
    ImdsError,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.values import (
    parse_api_versions,
    parse_seconds,
    suggestion,
)

_PLUGIN = "azure_imds.scheduled_events.scheduled_events"
# ansible-rulebook adds it
_OF_THE_ENGINE = ("eda_feedback_queue", "feedback")


class SourceOptions(t.NamedTuple):
    """The arguments of the event source.

    Attributes:
        endpoint: base URL of IMDS, or "auto".
        api_version: versions of Scheduled Events in the order of fall-back.
        interval: seconds between polls.
        timeout: seconds for one answer.
        resource_name: the name of this VM, or None to request it from IMDS.
        due_within: seconds; report an event when it starts within them. None: at once.
    """

    endpoint: str = DEFAULT_ENDPOINT
    api_version: tuple[str, ...] = (API_VERSION,)
    interval: float = 1.0
    timeout: float = 10.0
    resource_name: str | None = None
    due_within: float | None = None


def parse_options(args: t.Mapping[str, t.Any]) -> SourceOptions:
    """Return the checked arguments; raise ValueError with the name of the argument, the problem and the remedy.

    The arguments are as the rulebook has them, with substituted variables. An empty text counts as absent.
    """
    given = {
        name: value for name, value in args.items() if name not in _OF_THE_ENGINE and value is not None and value != ""
    }
    for name in given:
        if name not in SourceOptions._fields:
            near = suggestion(str(name), SourceOptions._fields)
            raise _problem(name, "unknown argument", f"use {near}" if near else "see the documentation of the source")
    if "endpoint" in given:
        given["endpoint"] = _endpoint(given["endpoint"])
    if "api_version" in given:
        given["api_version"] = _versions(given["api_version"])
    if "resource_name" in given and not isinstance(given["resource_name"], str):
        raise _problem("resource_name", f"{given['resource_name']!r} is not a text", "give the name of the VM")
    for name, least, most in (("interval", 1.0, 3600.0), ("timeout", 1.0, 120.0), ("due_within", 1.0, 3.2e7)):
        if name in given:
            given[name] = _seconds(name, given[name], least, most)
    return SourceOptions(**given)


def _endpoint(value: t.Any) -> str:
    try:
        if not isinstance(value, str):
            raise ImdsError(f"{value!r} is not a text")
        return value if value == AUTO else validate_endpoint(value)
    except ImdsError as error:
        raise _problem("endpoint", str(error), "give a base URL such as http://169.254.169.254, or auto") from None


def _versions(value: t.Any) -> tuple[str, ...]:
    try:
        return parse_api_versions(value)
    except ValueError as error:
        raise _problem("api_version", str(error), "give a text such as 2020-07-01, or a list") from None


def _seconds(name: str, value: t.Any, least: float, most: float) -> float:
    try:
        seconds = parse_seconds(value)
    except ValueError as error:
        raise _problem(name, str(error), "give a number of seconds") from None
    if not least <= seconds <= most:
        raise _problem(name, f"{seconds:g} is out of range", f"give {least:g} to {most:g} seconds")
    return seconds


def _problem(name: str, problem: str, remedy: str) -> ValueError:
    return ValueError(f"{_PLUGIN}: {name}: {problem}; {remedy}")
