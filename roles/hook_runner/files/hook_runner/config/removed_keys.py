# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The keys that config.yml no longer has, each with what an operator does instead."""

from __future__ import annotations

REMOVED_KEYS: dict[str, str] = {}
