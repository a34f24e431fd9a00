# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task that releases its fork continues in another process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest
from ansible.errors import AnsibleError
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils import _worker_process
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._worker_process import release_fork

FORK = multiprocessing.get_context("fork")


def work(answers, goes_on):
    worker = os.getpid()
    release_fork()
    # the result may come long after the worker has ended
    if os.getpid() != worker:
        goes_on.wait(60)
    answers.put((worker, os.getpid()))


def wait_for_end(worker):
    """Wait as Ansible does; join() with a time limit would wait for the child too."""
    end = time.monotonic() + 60
    while worker.is_alive() and time.monotonic() < end:
        time.sleep(0.01)


def test_worker_ends_before_its_task():
    answers, goes_on = FORK.SimpleQueue(), FORK.Event()
    worker = FORK.Process(target=work, args=(answers, goes_on))
    worker.start()
    wait_for_end(worker)
    assert worker.exitcode == 0 and answers.empty()
    goes_on.set()
    first, second = answers.get()
    assert first == worker.pid != second


def work_and_die(answers, end):
    try:
        release_fork()
    except AnsibleError as error:
        answers.put(str(error))
    else:
        end()


@pytest.mark.parametrize("end", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os._exit(1)])
def test_death_of_the_process_fails_the_task(end):
    answers = FORK.SimpleQueue()
    worker = FORK.Process(target=work_and_die, args=(answers, end))
    worker.start()
    assert "has died" in answers.get()
    wait_for_end(worker)
    assert worker.exitcode == 0


def work_with_a_timer(answers):
    signal.signal(signal.SIGALRM, lambda *dummy: answers.put("the time is up"))
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    release_fork()
    signal.pause()


def test_time_limit_of_the_task_remains():
    answers = FORK.SimpleQueue()
    FORK.Process(target=work_with_a_timer, args=(answers,)).start()
    assert answers.get() == "the time is up"


def no_process():
    raise BlockingIOError()


def work_without_a_process(answers):
    _worker_process.os.fork = no_process
    release_fork()
    answers.put(os.getpid())


def test_task_continues_in_its_worker_if_no_process_can_start():
    answers = FORK.SimpleQueue()
    worker = FORK.Process(target=work_without_a_process, args=(answers,))
    worker.start()
    assert answers.get() == worker.pid
    worker.join(60)


def test_outside_of_a_worker_nothing_happens(monkeypatch):
    monkeypatch.setattr(_worker_process.os, "fork", no_process)
    before = os.getpid()
    release_fork()
    assert os.getpid() == before
