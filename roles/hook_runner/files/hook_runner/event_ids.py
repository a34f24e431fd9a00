# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Event ids as an operator types them: in any letter case, and possibly only the beginning."""

from __future__ import annotations

from typing import Iterable

# an error names no more candidates than these
MAX_CANDIDATES = 10


def matching_ids(asked: str, known: Iterable[str]) -> list[str]:
    """Return the id that equals `asked`, or all ids that begin with it, in the order of `known`."""
    folded = asked.casefold()
    found = [each for each in dict.fromkeys(known) if folded and each.casefold().startswith(folded)]
    return [each for each in found if each.casefold() == folded][:1] or found[:MAX_CANDIDATES]
