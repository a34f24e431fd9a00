# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The common part of all ready hooks: options, time limit, record, commands. Knows no workload."""
