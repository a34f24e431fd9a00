# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the event source, checked before the first poll."""

from __future__ import annotations

import typing as t
from functools import partial

from ...module_utils.azure_scheduled_events.document import API_VERSION
from ...module_utils.azure_scheduled_events.endpoint import DEFAULT_ENDPOINT, parse_api_versions, parse_endpoint
from ...module_utils.azure_scheduled_events.options import (
    Parser,
    parse_option,
    parse_options,
    parse_seconds,
    parse_text,
)

_PLUGIN = "azure_imds.scheduled_events.scheduled_events"
# ansible-rulebook adds it
_OF_THE_ENGINE = ("eda_feedback_queue", "feedback")


class SourceOptions(t.NamedTuple):
    """The arguments of the event source.

    Attributes:
        endpoint: base URL of IMDS.
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


_PARSERS: t.Mapping[str, Parser] = {
    "endpoint": parse_endpoint,
    "api_version": parse_api_versions,
    "interval": partial(parse_seconds, least=1, most=3600),
    "timeout": partial(parse_seconds, least=1, most=120),
    "resource_name": parse_text,
    "due_within": partial(parse_seconds, least=1, most=366 * 86400),
}


def parse_arguments(args: t.Mapping[str, t.Any]) -> SourceOptions:
    """Return the checked arguments; raise ValueError with the name of the argument, the problem and the remedy.

    The arguments are as the rulebook has them, with substituted variables. An empty text counts as absent.
    """
    given = {
        name: value for name, value in args.items() if name not in _OF_THE_ENGINE and value is not None and value != ""
    }
    return SourceOptions(**parse_option(_PLUGIN, given, partial(parse_options, parsers=_PARSERS)))
