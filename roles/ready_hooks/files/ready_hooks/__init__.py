# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Hooks that prepare common workloads for an interruption of the VM, and undo exactly that."""
