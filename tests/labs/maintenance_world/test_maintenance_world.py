# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The state machine of the hook runner keeps its invariants in random lives of a host."""

from __future__ import annotations

import pytest

from maintenance_world.plan import PROFILES
from maintenance_world.variants import VARIANTS
from maintenance_world.world import live

# lives of each profile in `make test`, and with the tests that are marked `all`
FEW, MANY = 3, 100


@pytest.mark.parametrize("profile", PROFILES)
def test_machine_in_a_few_lives_keeps_its_invariants(profile: str) -> None:
    assert _broken(profile, FEW) == []


@pytest.mark.all
@pytest.mark.parametrize("profile", PROFILES)
def test_machine_in_many_lives_keeps_its_invariants(profile: str) -> None:
    assert _broken(profile, MANY) == []


@pytest.mark.parametrize("name", VARIANTS)
def test_machine_without_a_rule_breaks_an_invariant(name: str) -> None:
    variant = VARIANTS[name]
    assert live(variant.profile, variant.seed, variant.daemon_class).evidence.violations


def _broken(profile: str, lives: int) -> list[str]:
    found = ((seed, live(profile, seed).evidence.violations) for seed in range(1, lives + 1))
    return [f"{profile} {seed}: {violations[0]}" for seed, violations in found if violations]
