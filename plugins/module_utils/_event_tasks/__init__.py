# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The options and the work of the event modules, for the modules and for their action plugins."""
