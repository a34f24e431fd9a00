# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Pushes the changes of events to an HTTP endpoint, such as eda.builtin.webhook of ansible-rulebook."""
