# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the health probe of a load balancer fail by a file, and restores the file."""

from __future__ import annotations

from ready_hooks.hooks.health_file.hook import HealthFile

HOOK = HealthFile
