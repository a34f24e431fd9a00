# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The execution of one step in processes of its own, on POSIX systems and on Windows."""
