# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""What the event modules share: options, the guard for requests, patience with IMDS, and errors as fail_json."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    EVENT_SOURCES,
    EVENT_STATUSES,
    EVENT_TYPES,
    EventDocument,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import (
    ImdsError,
    ImdsUnreachable,
    OwnNameUnknown,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import own_name
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.imds import (
    API_VERSION,
    Imds,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.discovery import (
    DEFAULT_ENDPOINT,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.pacing import Pacer
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.predicates import one_of
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.selection import (
    Selection,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.transport import (
    REQUESTS_IMPORT_ERROR,
)

# seconds for one answer, once IMDS has answered at all, and before it ever has (spec 1.8)
ONE_ANSWER = 10.0
FIRST_ANSWER = 130.0
# for what a module can do without
UNNEEDED_ANSWER = 2.0
# a document may be odd in thousands of places
_WARNINGS_SHOWN = 10

T = t.TypeVar("T")


def event_module(
    timeout: float, options: dict[str, t.Any] | None = None, needs_requests: bool = True, **kwargs: t.Any
) -> AnsibleModule:
    """An AnsibleModule with the shared options and ``options``.

    timeout: default of the option of that name, in seconds.
    needs_requests: whether to fail where the library is missing; else the conversation raises ImdsError.
    """
    spec: dict[str, t.Any] = dict(
        endpoint=dict(type="str", default=DEFAULT_ENDPOINT),
        api_version=dict(type="list", elements="str", default=[API_VERSION]),
        timeout=dict(type="float", default=timeout),
        resource_name=dict(type="str"),
        event_ids=dict(type="list", elements="str"),
        types=dict(type="list", elements="str"),
        statuses=dict(type="list", elements="str"),
        sources=dict(type="list", elements="str"),
        affects=dict(type="list", elements="str", default=["self"]),
    )
    spec.update(options or {})
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True, **kwargs)
    if needs_requests and REQUESTS_IMPORT_ERROR is not None:
        module.fail_json(msg=missing_required_lib("requests"), exception=REQUESTS_IMPORT_ERROR)
    if module.params["timeout"] <= 0:
        module.fail_json(msg="timeout has to be more than 0 seconds, not %g" % module.params["timeout"])
    return module


def selection(module: AnsibleModule) -> Selection:
    """The selection that the module's options describe. A misspelt word would select nothing, which looks like peace."""
    for option, known in (("statuses", EVENT_STATUSES), ("sources", EVENT_SOURCES), ("types", EVENT_TYPES)):
        for word in module.params[option] or ():
            try:
                one_of(word, known, "word")
            except ValueError as error:
                if option != "types":
                    module.fail_json(msg="%s: %s" % (option, error))
                module.warn("types: %s" % error)  # and yet Azure may have types that are not known here
    words = ("event_ids", "types", "statuses", "sources", "affects")
    return Selection.of(**{word: module.params[word] for word in words})


class Conversation:
    """IMDS as one module run uses it: paced, and limited in time as a whole.

    Args:
        module: gives endpoint, api_version, timeout and resource_name.
        interval: seconds between polls.
    ``known_name`` is this VM's resource name as far as it is known. Raises ImdsError for an endpoint that is none.
    """

    def __init__(self, module: AnsibleModule, interval: float = 1.0) -> None:
        params = module.params
        timeout = params["timeout"]
        self.imds = Imds(params["endpoint"], params["api_version"], min(ONE_ANSWER, timeout), min(FIRST_ANSWER, timeout))
        self.pacer = Pacer(self.imds, interval)
        self._deadline = self.pacer.clock() + timeout
        self.known_name: str | None = params["resource_name"] or None

    def left(self) -> float:
        """Seconds that remain of the module's time."""
        seconds: float = self._deadline - self.pacer.clock()
        return max(0.1, seconds)

    def ask(self, question: t.Callable[..., T], *args: object) -> T:
        """Ask until a good answer comes or the time is up; then the last error is raised.

        A host where nobody listens and a request that cannot succeed are not asked twice.
        """
        while True:
            try:
                return self.pacer.call(question, *args, within=self.left())
            except ImdsError as error:
                nobody = isinstance(error, ImdsUnreachable) and not error.connected
                delay = 0.0 if error.retryable and error.status == 400 else self.pacer.delay(event_known=True)
                if nobody or not error.retryable or delay >= self.left():
                    raise
                self.pacer.sleep(delay)

    def read(self, name_required: bool) -> tuple[str | None, EventDocument]:
        """This VM's resource name, and its events.

        The name is the option, else ``compute.name``. Where it is not required it is asked for once, after the events,
        and None where IMDS does not tell it. Raises ImdsError.
        """
        if self.known_name is None and name_required:
            self._learn_name(self.ask(self.imds.instance))
        document = self.ask(self.imds.events)
        if self.known_name is None:
            try:
                self.known_name = own_name(self.pacer.call(self.imds.instance, within=min(UNNEEDED_ANSWER, self.left())))
            except ImdsError:
                pass  # what was asked for is known
        return self.known_name, document

    def poll(self, name_required: bool) -> t.Callable[[float], EventDocument]:
        """A poll for wait_for: one attempt at the document, and at the name as long as that is missing."""

        def once(within: float) -> EventDocument:
            ends = self.pacer.clock() + within
            if self.known_name is None and name_required:
                self._learn_name(self.pacer.call(self.imds.instance, within=within))
            return self.pacer.call(self.imds.events, within=max(0.1, ends - self.pacer.clock()))

        return once

    def _learn_name(self, instance: dict[str, t.Any]) -> None:
        self.known_name = own_name(instance)
        if self.known_name is None:
            raise OwnNameUnknown()


def warn_of(module: AnsibleModule, document: EventDocument | None) -> None:
    """Tell the user what was odd about the document."""
    warnings = document.warnings if document is not None else ()
    for text in warnings[:_WARNINGS_SHOWN]:
        module.warn("scheduled events: " + text)
    if len(warnings) > _WARNINGS_SHOWN:
        module.warn("scheduled events: %d more oddities in the document" % (len(warnings) - _WARNINGS_SHOWN))


def describe(error: ImdsError) -> dict[str, t.Any]:
    """An error as return value."""
    return {
        "kind": type(error).__name__,
        "message": str(error),
        "status": error.status,
        "retryable": error.retryable,
    }


def fail(module: AnsibleModule, error: ImdsError, **result: t.Any) -> None:
    """End the module because of IMDS."""
    module.fail_json(msg=str(error), imds_error=describe(error), **result)
