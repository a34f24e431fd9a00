# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Takes servers out of HAProxy's load balancing, and puts them back."""

from __future__ import annotations

from ready_hooks.hooks.haproxy.hook import HAProxy

HOOK = HAProxy
