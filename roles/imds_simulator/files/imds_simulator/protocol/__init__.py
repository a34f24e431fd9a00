# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The HTTP contract of the metadata service: requests, documents, replies."""
