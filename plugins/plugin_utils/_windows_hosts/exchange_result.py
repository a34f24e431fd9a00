# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of module imds_exchange, of which nothing is trusted."""

from __future__ import annotations

import base64
import binascii
import typing as t

from ...module_utils.azure_scheduled_events.errors import ImdsError, ImdsUnreachable, ImdsUnreadable
from ...module_utils.azure_scheduled_events.transport import Response

# characters of a text from the host that an error shows
_SHOWN = 300
# requests that one call can have sent: one each second, and repeats on a new connection
_MOST_REQUESTS = 200

Result = t.Mapping[str, t.Any]


class Headers(t.Mapping[str, str]):
    """The headers of an answer; names in any letter case. The last of several values counts."""

    def __init__(self, pairs: t.Iterable[tuple[str, str]]) -> None:
        self._values = {name.lower(): value for name, value in pairs}

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> t.Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def requests_sent(result: Result) -> int:
    """Return how many requests the host has sent; 1 where the result does not say it."""
    sent: t.Any = result.get("requests_sent")
    return int(sent) if _is_int(sent) and 0 <= sent <= _MOST_REQUESTS else 1


def read_response(result: Result, about: str, endpoint: str, max_bytes: int, has_worked: bool = False) -> Response:
    """Return the answer in a result of the module, whatever its status.

    ``about`` is the request, for error texts, and ``endpoint`` its base URL. ``has_worked`` says whether the module
    has returned an answer before. A failure is then one of the moment, such as the end of Windows during a run, and
    does not say whether the request was sent.

    Raises:
        ImdsError: the module failed; retryable if it has worked before.
        ImdsUnreachable: no answer came, from IMDS or from the module.
        ImdsUnreadable: the answer is incomplete, too long, or the result is not one of this module.
    """
    if "module_stdout" in result:
        # the result of Ansible where the output is not JSON, also after the end of the connection
        output = _shown(result.get("module_stderr") or result["module_stdout"] or "no output")
        raise ImdsUnreachable(f"{about}: the module on the host returned no result: {output}", connected=True)
    if result.get("failed"):
        text = f"{about}: the module on the host failed: {_shown(result.get('msg'))}"
        raise ImdsError(text, retryable=has_worked)
    if "failure" in result:
        raise _failure(result["failure"], about)
    status: t.Any = result.get("status")
    headers: t.Any = result.get("headers")
    body = result.get("body")
    if not (_is_int(status) and 100 <= status <= 599 and isinstance(body, str) and _is_pairs(headers)):
        raise ImdsUnreadable(f"{about}: the module on the host returned neither an answer nor a failure")
    if len(body) > (max_bytes + 2) // 3 * 4:
        raise ImdsUnreadable(f"the answer of {endpoint} is longer than {max_bytes} bytes and was not read")
    try:
        content = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImdsUnreadable(f"{about}: the body that the host returned is not base64", status=status) from error
    return Response(status, Headers((name, value) for name, value in headers), content)


def _failure(failure: t.Any, about: str) -> ImdsError:
    if not isinstance(failure, dict):
        return ImdsUnreadable(f"{about}: the module on the host returned a failure without a kind")
    message = _shown(failure.get("message"))
    if failure.get("kind") == "unreadable":
        return ImdsUnreadable(f"{about}: {message}")
    if failure.get("connected") is True:
        return ImdsUnreachable(f"{about}: {message}", connected=True)
    return ImdsUnreachable(f"{about}: no connection ({message}); is this an Azure VM, and is the endpoint right?")


def _is_int(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pairs(value: t.Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in value
    )


def _shown(text: t.Any) -> str:
    return " ".join(str(text).split())[:_SHOWN]
