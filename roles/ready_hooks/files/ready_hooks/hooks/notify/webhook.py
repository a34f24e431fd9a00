# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Sends a notification to a web hook, and again after an error that may pass."""

from __future__ import annotations

import json
import math
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from ready_hooks.core.hook import INFO, WARNING, Finding, Run
from ready_hooks.core.report import NAMES
from ready_hooks.core.secret import read_secret
from ready_hooks.hooks.notify import template, web_request
from ready_hooks.hooks.notify.notify_options import is_header_text
from ready_hooks.hooks.notify.web_request import Address

JSON, TEXT = "application/json", "text/plain; charset=utf-8"
_FIRST_PAUSE, _PAUSE_FACTOR, _LONGEST_PAUSE = 0.5, 2.0, 10.0
_CHECK_SECONDS = 5.0
_ALL_VALUES = {name: "{%s}" % name for name in NAMES}


class WebHook:
    """The web hook of the options."""

    def __init__(self, run: Run) -> None:
        self._run, self._options = run, run.options

    def check(self) -> Iterator[Finding]:
        """Yield errors of the options and files, and whether the server can be reached."""
        address, context = self._address(), web_request.tls_context(self._options["ca_file"])
        self._headers("")
        if not address.is_protected:
            yield Finding(WARNING, f"{address.origin}: others can read the notifications; use https")
        limit = min(_CHECK_SECONDS, self._run.deadline.left())
        try:
            web_request.connect(address, context, self._options["proxy"], limit)
            yield Finding(INFO, f"{address.origin}: it accepts connections")
        except HookError as error:
            yield Finding(WARNING, str(error))

    def send(self, values: Mapping[str, Any], limit: Deadline) -> None:
        """Send a notification of these values, or of this record; in a dry run, print it. Raises HookError."""
        address, context = self._address(), web_request.tls_context(self._options["ca_file"])
        content, kind = self._content(values)
        description = f"send to {address.origin}: {content}"
        raw = content.encode("utf-8", "replace")
        self._run.act(description, self._post, address, raw, self._headers(kind), context, limit)

    def _post(
        self, address: Address, content: bytes, headers: Mapping[str, str], context: ssl.SSLContext, limit: Deadline
    ) -> None:
        pause, left = _FIRST_PAUSE, math.inf if self._options["required"] else self._options["retries"]
        while True:
            problem, wanted = self._attempt(address, content, headers, context, limit)
            if problem is None:
                return
            if wanted is None or left == 0 or limit.left() <= max(pause, wanted):
                raise problem
            self._run.warn(f"{problem}; trying again")
            limit.pause(max(pause, wanted))
            pause, left = min(pause * _PAUSE_FACTOR, _LONGEST_PAUSE), left - 1

    def _attempt(
        self, address: Address, content: bytes, headers: Mapping[str, str], context: ssl.SSLContext, limit: Deadline
    ) -> tuple[HookError | None, float | None]:
        """Return the error or None, and the least seconds before another attempt or None for no other one."""
        timeout = min(self._options["request_timeout"], limit.left())
        try:
            answer = web_request.post(address, content, headers, context, self._options["proxy"], timeout)
        except web_request.NotVerified as error:
            return error, None
        except HookError as error:
            return error, 0.0
        if 200 <= answer.status < 300:
            return None, None
        may_pass = answer.status >= 500 or answer.status in web_request.RETRIED_STATUS
        redirect = "; redirects are not followed" if 300 <= answer.status < 400 else ""
        problem = HookError(address.origin, f"it answers with status {answer.status}{redirect}")
        return problem, (answer.retry_after or 0.0) if may_pass else None

    def _content(self, values: Mapping[str, Any]) -> tuple[str, str]:
        """Return the body and its type."""
        if self._options["change_record"]:
            return json.dumps(values), JSON
        body: Any = self._options["body"] or _ALL_VALUES
        if isinstance(body, str):
            return template.fill_text(body, values), TEXT
        return json.dumps(template.fill(body, values), ensure_ascii=False), JSON

    def _address(self) -> Address:
        path = self._options["url_file"]
        if path is None:
            found: Address = self._options["url"]
            return found
        try:
            return web_request.parse_url(read_secret(path))
        except ValueError as error:
            raise HookError(path, str(error)) from None

    def _headers(self, kind: str) -> dict[str, str]:
        found = {"Content-Type": kind, "User-Agent": "azure-scheduled-events", **(self._options["headers"] or {})}
        for name, path in (self._options["header_files"] or {}).items():
            found[name] = read_secret(path)
            if not is_header_text(found[name]):
                raise HookError(path, "it has a character that a header cannot have", "write one line of ASCII")
        return found
