# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet


@pytest.fixture(scope="module")
def azure(running: Fleet) -> Azure:
    """The fleet's own, which no other minion watches."""
    return running.azure
