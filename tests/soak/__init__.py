# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Random lives of the real daemon against the simulator, by seed, and what must hold in each of them."""
