# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the IMDS of a Windows host by runs of module imds_exchange on it."""

from __future__ import annotations

import base64
import binascii
import time
import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    windows_dhcp_leases,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.discovery import (
    discover_endpoint,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.endpoint import (
    DEFAULT_ENDPOINT,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import (
    ImdsUnreachable,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._windows_hosts.host_module import (
    ConnectionLost,
    HostModule,
    Result,
)

# does not switch Scheduled Events on
_PATH = "/metadata/versions"
# each address costs two runs of the module; a VM has one
_MAX_ADDRESSES = 2


def discover_from_host(module: HostModule, connect_timeout: float, clock: t.Callable[[], float] = time.time) -> str:
    """Return the base URL of the first candidate that accepts a connection from the host, else the usual one.

    ``module`` is imds_exchange on the host. ``connect_timeout`` is in seconds, for all connections from the host to
    candidates; ``clock`` returns Unix seconds.

    Raises:
        ImdsUnreachable: the connection to the host was lost.
    """
    # one run for the usual address, in nearly all cases the only one, and for the leases
    usual = _probe(module, DEFAULT_ENDPOINT, connect_timeout)

    def accepts(endpoint: str, seconds: float) -> bool:
        return _is_accepted(usual if endpoint == DEFAULT_ENDPOINT else _probe(module, endpoint, seconds))

    return discover_endpoint(connect_timeout, lambda: _leased_addresses(usual, clock())[:_MAX_ADDRESSES], accepts)


def _probe(module: HostModule, endpoint: str, seconds: float) -> Result:
    options = {"url": endpoint + _PATH, "connect_timeout": seconds, "timeout": seconds, "dhcp_options": True}
    try:
        return module.run(dict(options, headers={"Metadata": "true"}), seconds)
    except ConnectionLost as error:
        text = f"the connection to the host was lost in the search for IMDS: {error}"
        raise ImdsUnreachable(text, connected=True) from error


def _is_accepted(result: Result) -> bool:
    """Return True if the endpoint accepted a connection, whatever it answered."""
    failure = result.get("failure")
    return "status" in result or (isinstance(failure, dict) and failure.get("connected") is True)


def _leased_addresses(result: Result, now: float) -> list[str]:
    """Return the addresses of option 245 in the result; a value that is not base64 has none."""
    listed: t.Any = result.get("dhcp_options")
    values = []
    for text in listed if isinstance(listed, list) else ():
        try:
            values.append(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError, TypeError):
            continue
    return windows_dhcp_leases.distinct_addresses(values, now)
