# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Replaces every word of a free text that is not known to be harmless by a pseudonym."""

from __future__ import annotations

import re

from .pseudonyms import Pseudonyms

_TOKEN = re.compile(r"[^\s,;()\[\]{}<>\"'`]+")
_PUNCTUATION = ".:!?"
# small numbers, times, and versions of the API
_NUMBER = re.compile(r"-?[0-9]{1,3}%?|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?|20[0-9]{2}-[0-9]{2}-[0-9]{2}")
_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
# words of the descriptions and errors that are known (docs/reference/scheduled-events.md 1.4, 1.6)
_WORDS = frozenset(
    " ".join(
        (
            "a about access after aka.ms/azureimds all allowed also an and another any api api-version are as at",
            "authorized auto azure bad be because been before being body but by can cannot client compute could data",
            "days deadline degraded delete deleted deletion deployed deprecated detected does doesn due during each",
            "element emergency error event events evicted eviction exist expected failed failure follow following for",
            "forbidden format format=text found freeze from gateway get going guest hardware has have header headers",
            "host hosts hour hours http id identity imds impact impacted in information initiated instance instances",
            "internal interrupted invalid is isn isolated it its json large later leaf length limit live long lost",
            "machine machines maintenance many may memory memory-preserving metadata method migrated migration minute",
            "minutes missing more must network new no node not of on one only operation or os other parameter",
            "parameters path pause paused perform performed physical planned platform please possible post predicted",
            "preempt preempted process query read reason reboot rebooted rebooting received redeploy redeployed refer",
            "repair request requested requests required resource resources restart restarted retry running scale",
            "scheduled second seconds security server service set shall short shut-down shutdown software specified",
            "spot start started starting stopped storage supported system t temporarily terminate terminated text",
            "than that the there this time timeout to too true try unable unavailable undergo undergoing unexpected",
            "unknown unspecified unsupported until up update updated updates use user using value version versions",
            "virtual vm vms was will with without x-forwarded-for you your zone",
        )
    ).split()
)


def replaced(text: str, names: Pseudonyms) -> str:
    """Return ``text`` with pseudonyms for all words but those that occur in known texts of Azure."""
    return _TOKEN.sub(lambda match: _word(match[0], names), text)


def _word(token: str, names: Pseudonyms) -> str:
    core = token.strip(_PUNCTUATION)
    if not core or core.lower() in _WORDS or _NUMBER.fullmatch(core):
        return token
    first = token.index(core)
    return token[:first] + _pseudonym(core, names) + token[first + len(core) :]


def _pseudonym(core: str, names: Pseudonyms) -> str:
    if core.lower().startswith("/subscriptions/"):
        return names.resource_id(core)
    known = names.found(core)
    if known:
        return known
    if _GUID.fullmatch(core):
        return names.guid(core, "id")
    return names.address(core) if _IPV4.fullmatch(core) else names.name(core)
