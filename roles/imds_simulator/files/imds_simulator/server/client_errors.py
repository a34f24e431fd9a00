# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Keeps the errors of clients, which get an answer with the reason, out of the log of aiohttp.

Aiohttp prints a traceback for each: older versions also for a browser that is sent to https:// instead of http://.
"""

from __future__ import annotations

import logging

from aiohttp import web
from aiohttp.http import HttpProcessingError


def hide_client_errors() -> None:
    """Leave these errors out from now on, in all servers of this process."""
    logging.getLogger("aiohttp.server").addFilter(_is_ours)


def _is_ours(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], (HttpProcessingError, web.RequestPayloadError))
