# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.misspelt import (
    is_one_mistake_away,
    misspelt,
)


@pytest.mark.parametrize(
    "given",
    ["prepar", "repare", "preppare", "xprepare", "preparex", "prapare", "prepaer", "rpepare", "prepraer"[:6] + "e"],
)
def test_one_mistake_is_noticed(given):
    assert is_one_mistake_away(given, "prepare")


@pytest.mark.parametrize("given", ["prepare", "prep", "preparation", "perpaer", "prepaare2", "erapper", "", "recover"])
def test_no_or_several_mistakes_are_ignored(given):
    assert not is_one_mistake_away(given, "prepare")


def test_option_is_never_misspelt():
    assert misspelt(["typs", "type", "types", "window"], {"type", "types"}) in ({"typs": "types"}, {"typs": "type"})
