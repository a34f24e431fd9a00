# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A transport of the helper whose exchanges are runs of module imds_exchange on a host."""

from __future__ import annotations

import base64
import hashlib
import typing as t

from ...module_utils.azure_scheduled_events.errors import ImdsUnreachable
from ...module_utils.azure_scheduled_events.transport import Request, Response
from .exchange_result import read_response, requests_sent
from .host_module import ConnectionLost, HostModule, Result

# seconds; the longest time that the module repeats a request
LONGEST_HOLD = 50.0
# seconds for an exchange, however little time is left: the starts of PowerShell may have used up a short time limit
_SHORTEST = 1.0


class HostTransport:
    """Exchanges with the server of an endpoint, from a host.

    Args:
        module: imds_exchange on the host.
        endpoint: base URL, ``http://HOST[:PORT]``.
        max_bytes: longest body that is read; a longer one raises ImdsUnreadable.
        connect_timeout: seconds for setting up a connection from the host to the endpoint.
    """

    def __init__(self, module: HostModule, endpoint: str, max_bytes: int, connect_timeout: float) -> None:
        self._module = module
        self._endpoint = endpoint
        self._max_bytes = max_bytes
        self._connect_timeout = connect_timeout
        self._has_worked = False
        self.requests_sent = 0

    def exchange(self, request: Request, total: float, rest: float) -> Response:
        """Send one request from the host, or the same one each second while the answer is ``request.known``.

        The answer is returned whatever its status. ``total`` is in seconds until an answer begins, ``rest`` in seconds
        for all that follows its first byte; at least 1 is used of each.

        Raises:
            ImdsError: the module failed; retryable if it has worked before.
            ImdsUnreachable: no whole answer came in time, or the connection to the host was lost.
            ImdsUnreadable: the answer was cut short, or is longer than ``max_bytes``.
        """
        total, rest = max(total, _SHORTEST), max(rest, _SHORTEST)
        about = f"{request.method} {self._endpoint}{request.path}"
        options = self._options(request, total, rest)
        try:
            result = self._module.run(options, options.get("repeat_for", 0.0) + total + rest)
        except ConnectionLost as error:
            self.requests_sent += 1
            text = f"{about}: the connection to the host was lost: {error}"
            raise ImdsUnreachable(text, connected=True) from error
        self.requests_sent += requests_sent(result)
        response = read_response(result, about, self._endpoint, self._max_bytes, self._has_worked)
        self._has_worked = True
        return response

    def close(self) -> None:
        """Do nothing: Ansible closes its connection to the host."""

    def _options(self, request: Request, total: float, rest: float) -> Result:
        options: dict[str, t.Any] = {
            "url": self._endpoint + request.path,
            "method": request.method,
            "headers": dict(request.headers),
            "connect_timeout": min(self._connect_timeout, total),
            "timeout": total,
            "rest_timeout": rest,
            "max_bytes": self._max_bytes,
        }
        if request.body is not None:
            options["body"] = base64.b64encode(request.body).decode("ascii")
        if request.known is not None and request.hold > 0:
            options["known_hash"] = hashlib.sha256(request.known).hexdigest()
            options["repeat_for"] = min(request.hold, LONGEST_HOLD)
        return options
