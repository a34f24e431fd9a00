# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The common part of the event modules: options, the session with IMDS, warnings and errors."""

from __future__ import annotations

import typing as t
from functools import partial

from ..azure_scheduled_events.document import API_VERSION, EventDocument
from ..azure_scheduled_events.endpoint import DEFAULT_ENDPOINT
from ..azure_scheduled_events.errors import ImdsError
from ..azure_scheduled_events.options import parse_option, parse_seconds
from ..azure_scheduled_events.selection import Selection
from ..azure_scheduled_events.session import ConnectionOptions, ImdsSession

# a document may have thousands of defects
_WARNINGS_SHOWN = 10
# the durations among the options of all modules, with the least value of each
_DURATIONS = {"timeout": 0.1, "poll_interval": 0.25, "within": 0.0}
_SELECTION_OPTIONS = ("event_ids", "types", "statuses", "sources", "affects")

Result = t.Dict[str, t.Any]


class InvalidOptions(Exception):
    """The options cannot be used; the text names the option."""


def shared_options(timeout: float) -> dict[str, t.Any]:
    """Return the argument spec of the shared options; ``timeout`` is the default of that option, in seconds."""
    return dict(
        endpoint=dict(type="str", default=DEFAULT_ENDPOINT),
        api_version=dict(type="list", elements="str", default=[API_VERSION]),
        timeout=dict(type="raw", default=timeout),
        resource_name=dict(type="str"),
        event_ids=dict(type="list", elements="str"),
        types=dict(type="list", elements="str"),
        statuses=dict(type="list", elements="str"),
        sources=dict(type="list", elements="str"),
        affects=dict(type="list", elements="str", default=["self"]),
    )


class EventCall:
    """One call of a module.

    Args:
        params: the values of the options; the shared ones are among them. The attribute has durations in seconds.
        check_mode: whether the call must change nothing.
        warn: shows a warning to the user.
        connect: opens a session that polls at an interval in seconds.

    Raises:
        InvalidOptions: a duration cannot be used.
    """

    def __init__(
        self,
        params: t.Mapping[str, t.Any],
        check_mode: bool,
        warn: t.Callable[[str], None],
        connect: t.Callable[[ConnectionOptions, float], ImdsSession] = ImdsSession,
    ) -> None:
        try:
            seconds = {
                name: parse_option(name, params[name], partial(parse_seconds, least=least))
                for name, least in _DURATIONS.items()
                if name in params
            }
        except ValueError as error:
            raise InvalidOptions(str(error)) from error
        self.params = {**params, **seconds}
        self.check_mode = check_mode
        self.warn = warn
        self._connect = connect

    def selection(self) -> Selection:
        """Return the selection that the options describe; raise InvalidOptions if a value is unusable."""
        try:
            selection = Selection.parse({name: self.params[name] for name in _SELECTION_OPTIONS})
        except ValueError as error:
            raise InvalidOptions(str(error)) from error
        for text in selection.warnings():
            self.warn(text)
        return selection

    def open_session(self, interval: float = 1.0) -> ImdsSession:
        """Return the session that the options describe, polled at the interval; raise ImdsError."""
        params = self.params
        options = ConnectionOptions(
            params["endpoint"], tuple(params["api_version"]), params["resource_name"] or None, params["timeout"]
        )
        return self._connect(options, interval)

    def warn_about(self, document: EventDocument | None) -> None:
        """Warn the user about defects of the document."""
        warnings = document.warnings if document is not None else ()
        for text in warnings[:_WARNINGS_SHOWN]:
            self.warn("scheduled events: " + text)
        if len(warnings) > _WARNINGS_SHOWN:
            self.warn(f"scheduled events: {len(warnings) - _WARNINGS_SHOWN} more defects of the document")


class EventTask(t.NamedTuple):
    """A module as a value.

    Attributes:
        work: returns the result of a call, with ``failed`` and ``msg`` if it fails; raises ImdsError or
            InvalidOptions.
        timeout: default of the option of that name, in seconds.
        options: argument spec of the options that are not shared.
        rules: further arguments of AnsibleModule, which ActionBase.validate_argument_spec takes too.
        needs_requests: whether to fail if the library is missing; else the session raises ImdsError.
    """

    work: t.Callable[[EventCall], Result]
    timeout: float
    options: t.Mapping[str, t.Any] = {}
    rules: t.Mapping[str, t.Any] = {}
    needs_requests: bool = True

    def argument_spec(self) -> dict[str, t.Any]:
        """Return the argument spec of all options."""
        return dict(shared_options(self.timeout), **self.options)


def failure(error: Exception, **result: t.Any) -> Result:
    """Return the result of a call that the error ended; an ImdsError is returned as ``imds_error`` too."""
    if isinstance(error, ImdsError):
        result["imds_error"] = error.as_dict()
    return dict(result, failed=True, msg=str(error))
