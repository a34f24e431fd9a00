# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The error for mistakes in the sources of the site."""

from __future__ import annotations


class SourceError(Exception):
    """A source of the site has a mistake; the text is `SUBJECT: problem; remedy`."""
