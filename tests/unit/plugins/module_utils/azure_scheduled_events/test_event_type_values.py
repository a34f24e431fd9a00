# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of event types as users write them."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.values import (
    parse_event_type,
)


@pytest.mark.parametrize(
    "value",
    ["Preempt, Terminate", "Reboot,Redeploy", "*", "", " ", "Reboot\x1b[2J", "\x00", "Réboot", " Reboot", None, 5],
)
def test_text_that_is_no_name_is_refused(value):
    with pytest.raises(ValueError, match="expected an event type such as Reboot"):
        parse_event_type(value)


def test_known_name_gets_the_spelling_of_azure_and_a_new_one_stays():
    assert [parse_event_type(value) for value in ("reboot", "Hibernate")] == ["Reboot", "Hibernate"]
