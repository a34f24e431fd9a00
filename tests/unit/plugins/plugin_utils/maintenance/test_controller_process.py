# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The identity of a maintenance run, and whether it has surely ended."""

from __future__ import annotations

import multiprocessing
import os
import time

import pytest
from ansible.errors import AnsibleError
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.controller_process import (
    has_ended,
    this_run,
)

FORK = multiprocessing.get_context("fork")


def say_who(answers):
    answers.put(this_run())


def run_that_has_ended():
    """The identity of a run whose process has ended."""
    answers = FORK.Queue()
    process = FORK.Process(target=be_a_run, args=(answers,))
    process.start()
    run = answers.get(timeout=60)
    process.join(60)
    return run


def be_a_run(answers):
    worker = FORK.Process(target=say_who, args=(answers,))
    worker.start()
    worker.join(60)


def test_workers_of_one_run_are_the_same_run():
    answers = FORK.Queue()
    for _dummy in range(2):
        worker = FORK.Process(target=say_who, args=(answers,))
        worker.start()
    first, second = answers.get(timeout=60), answers.get(timeout=60)
    assert first == second and first["pid"] == os.getpid() and first["id"]
    assert not has_ended(first)


def test_run_whose_process_has_gone_has_ended():
    ended = run_that_has_ended()
    assert ended["pid"] != os.getpid() and has_ended(ended)


def be_a_run_that_dies(answers):
    has_identity = FORK.Event()
    worker = FORK.Process(target=outlive, args=(os.getpid(), has_identity, answers))
    worker.start()
    has_identity.wait(60)
    os._exit(0)


def outlive(run, has_identity, answers):
    own = this_run()
    has_identity.set()
    # Linux gives a child to another parent shortly before it shows the old one as ended
    until = time.monotonic() + 60
    while (os.getppid() == run or not has_ended(own)) and time.monotonic() < until:
        time.sleep(0.01)
    with pytest.raises(AnsibleError, match="has ended"):
        this_run()
    answers.put((own["pid"] == run, has_ended(own)))


def test_worker_notices_that_its_run_was_killed():
    answers = FORK.Queue()
    run = FORK.Process(target=be_a_run_that_dies, args=(answers,))
    run.start()
    assert answers.get(timeout=90) == (True, True)
    run.join(60)


def test_process_that_has_the_same_number_is_another_run():
    assert has_ended(dict(this_run(), start="another time"))


@pytest.mark.parametrize(
    "change", [{"host": "elsewhere"}, {"pid_namespace": "pid:[1]"}, {"pid": None}, {"pid": "4711"}, {"start": ""}]
)
def test_run_on_another_controller_has_not_surely_ended(change):
    assert not has_ended(dict(run_that_has_ended(), **change))


def test_reboot_of_this_machine_ends_a_run_only_outside_of_containers():
    run = dict(this_run(), boot="another boot")
    is_known = bool(run["machine"]) and run["pid_namespace"] == "pid:[4026531836]"
    assert has_ended(run) is is_known
    assert not has_ended(dict(run, machine="another machine"))


def test_run_of_any_shape_is_no_error():
    assert not has_ended({})
