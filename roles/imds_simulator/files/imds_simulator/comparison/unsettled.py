# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Statements that the recording of one VM cannot settle, with the reasons."""

from __future__ import annotations

from typing import NamedTuple


class Unsettled(NamedTuple):
    """A statement that stays open, and why."""

    number: str
    confidence: str
    reason: str


# reason -> "NUMBER CONFIDENCE" of the statements
_BY_REASON = {
    "about the network of the VM": ("1.1.2 D", "1.1.4 D"),
    "record never approves an event": (
        *("1.2.6 O", "1.5.1 D", "1.5.2 D", "1.5.3 D", "1.5.4 A", "1.5.5 A", "1.5.6 A", "1.5.7 A", "1.5.8 D, A"),
        *("1.5.9 A", "1.5.10 D", "1.5.11 A", "1.5.12 O", "1.5.13 A", "1.5.14 D", "1.5.15 A", "1.5.16 D", "1.5.17 D"),
        *("1.5.18 D", "1.5.19 A", "1.5.20 A", "2.5.8 A"),
    ),
    "about documents, not about the service": ("1.2.8 D", "3.1.5 D", "3.1.6 D", "5.10 D"),
    "needs a host that refuses a version for some time": ("1.3.7 O",),
    "needs a VM of Spot Plus": ("1.4.16 D, A",),
    "an order shows no meaning": ("1.4.12 A",),
    "about hosts of 2017 to 2020": ("1.6.11 O",),
    "record sends valid HTTP only": ("1.6.12 A",),
    "record does not probe for other clouds": ("1.7.5 A",),
    "record does not poll with refused requests alone": ("4.1.8 A",),
    "no version is named": ("3.3.16 D, O",),
    "needs a VM of the classic deployment model": ("3.3.6 D, A",),
    "record does not use proxies": ("1.6.10 O",),
    "record does not ask for identity": ("1.7.2 D",),
    "record uses one connection": ("1.7.4 O",),
    "the experience of a single client": ("1.8.2 O", "1.8.3 O", "2.1 (8) O", "2.4.7 O"),
    "a rule for clients": ("1.8.5 A", "2.2.5 D", "2.5.7 O", "3.2.2 O", "3.2.3 O", "3.2.7 A"),
    "the document does not show approvals": ("2.2.2 D", "2.2.3 D", "2.2.4 D, A", "2.2.6 A", "2.2.7 D?"),
    "the recorder ends with the VM": ("2.2.9 D", "2.4.3 O"),
    "needs data about other VMs": (
        *(
            "2.4.9 D",
            "2.4.11 D",
            "2.5.4 O",
            "3.1.1 D",
            "3.1.3 D",
            "3.1.4 O",
            "3.1.7 D",
            "3.1.8 D",
            "3.1.9 A",
            "4.1.6 O",
        ),
    ),
    "the document does not show the cause": (*("2.4.10 D", "4.1.4 A", "5.1 D", "5.2 O", "5.3 D, A", "5.4 D", "5.7 A"),),
    "about names that this VM does not have": ("3.2.5 D", "3.2.6 A"),
    "about Azure's control plane": (
        *(
            "5.9 D",
            "5.11.1 D",
            "5.11.2 D",
            "5.11.3 D?, A",
            "5.11.4 D?",
            "5.11.5 D",
            "5.11.6 D?",
            "5.11.7 D",
            "5.11.8 D",
        ),
        *("5.11.9 D", "5.11.10 A", "5.12.1 D", "5.12.2 D", "5.12.3 D, A", "5.12.4 D, A", "5.12.5 D, A", "5.12.6 A"),
        *("5.12.7 D, A", "5.12.8 D?, O", "5.13.1 D", "5.13.2 D"),
    ),
}


def unsettled() -> list[Unsettled]:
    """Return the statements, grouped by reason."""
    found = []
    for reason, entries in _BY_REASON.items():
        for entry in entries:
            # 2.1 (8) O: the number may have a space
            number, confidence = entry.split(") ") if ") " in entry else entry.split(" ", 1)
            found.append(Unsettled(number + ")" if ") " in entry else number, confidence, reason))
    return found
