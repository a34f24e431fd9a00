# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hypothesis limits no time, because a test does not depend on how busy the machine is."""

from __future__ import annotations

try:
    from hypothesis import HealthCheck, settings
except ImportError:
    pass  # ansible-test's own Python has no hypothesis
else:
    settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy machine")
