# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Drains this node of a Slurm cluster, and resumes it."""

from __future__ import annotations

from ready_hooks.hooks.slurm.hook import Slurm

HOOK = Slurm
