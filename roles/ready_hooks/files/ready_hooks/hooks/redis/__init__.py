# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The ready hook redis."""

from __future__ import annotations

from ready_hooks.hooks.redis.hook import Redis

HOOK = Redis
