# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets a task of one host wait without one of Ansible's forks."""

from __future__ import annotations

import contextlib
import multiprocessing
import os


def release_fork() -> None:
    """Continue the task in a child of this worker process, and end the worker, so that its fork is free.

    A fork is in use while the process of its worker exists. The result of a task comes through a queue, and the child
    sends it as the worker would have. Until then Ansible begins no other task of the host, and the play does not end.

    Under the strategy host_pinned a host keeps its place among the active hosts, whose number is that of the forks.
    """
    if multiprocessing.parent_process() is None:
        return
    # without a further process the task waits in the worker
    with contextlib.suppress(OSError):
        if os.fork():
            os._exit(0)
