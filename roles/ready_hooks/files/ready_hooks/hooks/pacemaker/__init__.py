# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Puts this node of a Pacemaker cluster in standby, and takes it out again."""

from __future__ import annotations

from ready_hooks.hooks.pacemaker.hook import Pacemaker

HOOK = Pacemaker
