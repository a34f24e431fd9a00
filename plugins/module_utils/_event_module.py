# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The shared part of the event modules: options, the session with IMDS, warnings and errors."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    EventDocument,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.endpoint import (
    DEFAULT_ENDPOINT,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import ImdsError
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.imds import API_VERSION
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.selection import (
    Selection,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.session import (
    ConnectionOptions,
    ImdsSession,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.transport import (
    REQUESTS_IMPORT_ERROR,
)

# a document may have thousands of defects
_WARNINGS_SHOWN = 10
_SELECTION_OPTIONS = ("event_ids", "types", "statuses", "sources", "affects")


def event_module(
    timeout: float, options: dict[str, t.Any] | None = None, needs_requests: bool = True, **kwargs: t.Any
) -> AnsibleModule:
    """Return an AnsibleModule with the shared options.

    Args:
        timeout: default of the option of that name, in seconds.
        options: further options.
        needs_requests: whether to fail if the library is missing; else the session raises ImdsError.
        **kwargs: further arguments of AnsibleModule.

    Returns:
        The module.
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
        module.fail_json(msg=f"timeout has to be more than 0 seconds, not {module.params['timeout']:g}")
    return module


def parse_selection(module: AnsibleModule) -> Selection:
    """Return the selection of the module's options; fail if a value is unusable."""
    try:
        selection, unknown_types = Selection.parse({name: module.params[name] for name in _SELECTION_OPTIONS})
    except ValueError as error:
        fail_json(module, error)
    for unknown in unknown_types:
        module.warn(unknown.text)
    return selection


def open_session(module: AnsibleModule, interval: float = 1.0) -> ImdsSession:
    """Return the session that the module's options describe, polled at the interval; raise ImdsError."""
    params = module.params
    options = ConnectionOptions(
        params["endpoint"], tuple(params["api_version"]), params["resource_name"] or None, params["timeout"]
    )
    return ImdsSession(options, interval)


def warn_about(module: AnsibleModule, document: EventDocument | None) -> None:
    """Warn the user about defects of the document."""
    warnings = document.warnings if document is not None else ()
    for text in warnings[:_WARNINGS_SHOWN]:
        module.warn("scheduled events: " + text)
    if len(warnings) > _WARNINGS_SHOWN:
        module.warn(f"scheduled events: {len(warnings) - _WARNINGS_SHOWN} more defects of the document")


def fail_json(module: AnsibleModule, error: Exception, **result: t.Any) -> t.NoReturn:
    """End the module with the error; an ImdsError is returned as ``imds_error`` too."""
    if isinstance(error, ImdsError):
        result["imds_error"] = error.as_dict()
    module.fail_json(msg=str(error), **result)
    raise AssertionError("AnsibleModule.fail_json returned")
