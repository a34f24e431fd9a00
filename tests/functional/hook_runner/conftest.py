# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Simulated VMs, with a daemon or its parts."""

from __future__ import annotations

from support.daemon.fixtures import (  # noqa: F401  # pylint: disable=unused-import
    _simulator,
    azure,
    make_daemon,
    make_vm,
    vm,
)
from support.daemon.small_disk import disk  # noqa: F401  # pylint: disable=unused-import
