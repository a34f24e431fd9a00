# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks data that the simulator sends as JSON: YAML also has binary data, NaN and infinity."""

from __future__ import annotations

import json
from typing import Any


def is_json_data(value: Any) -> bool:
    """Return True if JSON can represent ``value``."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
