# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""What all ready hooks share: options, time limit, record, commands. Knows no workload."""
