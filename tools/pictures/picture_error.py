# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The error for pictures and recordings that cannot be made."""

from __future__ import annotations


class PictureError(Exception):
    """A picture or a recording cannot be made; the text is `SUBJECT: problem; remedy`."""
