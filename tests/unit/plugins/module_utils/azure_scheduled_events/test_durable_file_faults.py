# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whichever call of the operating system fails, a file is as it was before or after the action."""

from __future__ import annotations

import errno
import os
import tempfile
from functools import partial

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import durable_file

hypothesis = pytest.importorskip("hypothesis", reason="ansible-test's own Python has no hypothesis")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

# contents to write, or None to remove the file, and the number of the call that fails; 0 for none
ACTIONS = st.lists(st.tuples(st.none() | st.binary(max_size=20), st.integers(0, 8)), min_size=4, max_size=8)


@given(ACTIONS)
def test_file_is_as_before_or_after_an_action_in_which_a_call_fails(actions):
    until_failure = 0

    def failing(call, *args, **more):
        nonlocal until_failure
        until_failure -= 1
        if until_failure == 0:
            raise OSError(errno.EIO, "as a broken disk")
        return call(*args, **more)

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = os.path.join(folder, "file")
        for name in ("open", "fchmod", "fsync", "replace", "unlink", "listdir"):
            patch.setattr(os, name, partial(failing, getattr(os, name, None)), raising=False)
        held = None
        for content, until_failure in actions:
            possible = [held, content]
            try:
                durable_file.remove(path) if content is None else durable_file.write(path, content)
                possible = [content]
            except OSError:
                pass
            until_failure = 0
            held = durable_file.read(path) if os.path.exists(path) else None
            assert held in possible and set(os.listdir(folder)) <= {"file"}
