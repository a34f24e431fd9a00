# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import pytest

from hook_runner.config.settings import HookSettings
from hook_runner.hooks.discovery import Hook
from hook_runner.lifecycle.hook_pairs import is_same_preparation, partner


def hooks(prepare: str, recover: str) -> dict[str, list[Hook]]:
    names = {"prepare": prepare.split(), "recover": recover.split()}
    return {
        stage: [Hook(stage, name, f"/hooks.d/{stage}/{name}", HookSettings(), None) for name in sorted(names[stage])]
        for stage in names
    }


@pytest.mark.parametrize(
    "prepare, recover, name, expected",
    [
        ("10-drain", "10-drain", "10-drain", "10-drain"),
        ("21-haproxy", "79-haproxy", "79-haproxy", "21-haproxy"),
        ("drain", "79-drain", "79-drain", "drain"),
        ("21-haproxy", "79-nginx", "79-nginx", None),
        # the same full name has precedence, and its partner has no second one
        ("10-drain 20-drain", "20-drain", "20-drain", "20-drain"),
        ("20-drain", "20-drain 80-drain", "80-drain", None),
        ("10-drain 20-drain", "20-drain 80-drain", "80-drain", "10-drain"),
        # ambiguous
        ("10-drain 20-drain", "80-drain", "80-drain", None),
        ("20-drain", "70-drain 80-drain", "80-drain", None),
        # only a leading number counts
        ("a10-drain", "b10-drain", "b10-drain", None),
        ("10-", "20-", "20-", None),
        (".", ".", ".", "."),
        # a hook that was removed after its run
        ("21-haproxy", "", "79-haproxy", "21-haproxy"),
    ],
)
def test_partner_has_the_same_name_without_its_number(
    prepare: str, recover: str, name: str, expected: str | None
) -> None:
    assert partner(hooks(prepare, recover), "recover", name) == expected
    if expected is not None and name in recover.split():
        assert partner(hooks(prepare, recover), "prepare", expected) == name


def test_hooks_of_other_stages_have_no_partner() -> None:
    assert partner(hooks("10-a", "10-a"), "started", "10-a") is None


@pytest.mark.parametrize(
    "ran, expected", [("21-haproxy", True), ("22-haproxy", True), ("21-nginx", False), ("30-haproxy", False)]
)
def test_run_of_a_hook_counts_for_its_new_number(ran: str, expected: bool) -> None:
    assert is_same_preparation(hooks("21-haproxy 30-haproxy", ""), ran, "21-haproxy") == expected
