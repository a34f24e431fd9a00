# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A logger for aiohttp without the errors of clients, which get an answer with the reason.

Aiohttp prints a traceback for each: older versions also for a browser that is sent to https:// instead of http://.
"""

from __future__ import annotations

import logging

from aiohttp import web
from aiohttp.http import HttpProcessingError


def _is_ours(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], (HttpProcessingError, web.RequestPayloadError))


LOGGER = logging.getLogger("imds_simulator.http")
LOGGER.addFilter(_is_ours)
