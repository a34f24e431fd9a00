# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets a task of one host wait without one of Ansible's forks."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal

from ansible.errors import AnsibleError


def release_fork() -> None:
    """Continue the task in a further process, and end this worker process, so that its fork is free.

    A fork is in use while the process of its worker exists. The result of a task comes through a queue, and the further
    process sends it as the worker would have. Until then Ansible begins no other task of the host, and the play does
    not end. Ansible does not notice the death of this process. A second one, which only waits for it, therefore fails
    the task in its place. The option ``timeout`` of the task remains in force.

    Under the strategy host_pinned a host keeps its place among the active hosts, whose number is that of the forks.

    Raises:
        AnsibleError: in the second process, if the first one has died.
    """
    if multiprocessing.parent_process() is None:
        return
    # a new process has no timer
    left = signal.getitimer(signal.ITIMER_REAL)
    # without a further process the task waits in the worker
    with contextlib.suppress(OSError):
        if os.fork():
            os._exit(0)
        child = os.fork()
        if child:
            _stand_in_for(child)
    if left[0]:
        signal.setitimer(signal.ITIMER_REAL, *left)


def _stand_in_for(child: int) -> None:
    """Wait for the child; end if it has sent the result of the task, else raise AnsibleError."""
    try:
        status = os.waitpid(child, 0)[1]
    except ChildProcessError:
        # this program was started with SIGCHLD ignored
        status = 0
    if status == 0:
        os._exit(0)
    raise AnsibleError("the process that waited for the host has died; the controller may have too little memory")
