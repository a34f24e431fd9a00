# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Replaces names, ids, addresses, tags and secrets in answers by pseudonyms.

A text stays only if its member is listed here as harmless: Azure may add members.
"""

from __future__ import annotations

import dataclasses
import json
import re

from .free_text import replaced
from .json_strings import Path, replace_strings
from .lines import Answer
from .pseudonyms import EVENT_ID, Pseudonyms

# bodies that stay: none, and the answers to the probe for osType
_SYSTEMS = (b"", b"Linux", b"Windows")
# members of instance metadata whose texts stay
_HARMLESS = frozenset(
    (
        *("azEnvironment", "location", "osType", "offer", "publisher", "sku", "version", "vmSize", "zone"),
        *("physicalZone", "platformFaultDomain", "platformUpdateDomain", "platformSubFaultDomain", "provider"),
        *("priority", "evictionPolicy", "licenseType", "isHostCompatibilityLayerVm", "isVmInStandbyPool"),
        *("disablePasswordAuthentication", "secureBootEnabled", "virtualTpmEnabled", "encryptionAtHost"),
        *("securityType", "hibernationEnabled", "ultraSSDEnabled", "caching", "createOption"),
        *("storageAccountType", "enabled", "writeAcceleratorEnabled", "option", "prefix", "type"),
        *("apiVersions", "newest-versions"),
    )
)
# members of an event whose texts stay if they are one word, or a date
_EVENT_WORDS = frozenset(("EventStatus", "EventType", "ResourceType", "NotBefore", "EventSource"))
_WORD_OR_DATE = re.compile(r"[A-Za-z]*|[A-Za-z]{3}, \d\d [A-Za-z]{3} \d{4} \d\d:\d\d:\d\d GMT|[\d:.TZ+-]{0,35}")
# texts of other members that cannot identify anything: numbers, switches, versions
_PLAIN = re.compile(r"|true|false|\d{1,6}|\d{4}-\d\d-\d\d", re.IGNORECASE)
_ALWAYS = frozenset(("userData", "customData", "tags", "tagsList", "publicKeys", "keyData"))
_ADDRESSES = frozenset(("privateIpAddress", "publicIpAddress", "address", "macAddress"))
_NAMES = frozenset(("name", "vmScaleSetName", "hostName"))
# their texts are never plain: a VM may have the name 7
_IDENTIFYING = _NAMES | _ADDRESSES | {"computerName", "resourceGroupName", "adminUsername"}
_MEMBER = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
# other products may have the name of a host here
_SERVER = re.compile(r"(?:IMDS|Microsoft-IIS|Microsoft-HTTPAPI|nginx|Apache|squid|envoy)(?:/[0-9.]{1,40})?")
# headers that stay; of the others only the names do, if they are common
_HEADERS = frozenset(
    (
        *("date", "server", "content-type", "content-length", "content-encoding", "transfer-encoding"),
        *("retry-after", "allow", "connection", "keep-alive", "cache-control", "expires", "pragma", "vary"),
    )
)
_COMMON = re.compile(
    r"x-ms-[a-z-]{1,40}|location|via|set-cookie|x-request-id|x-cache|etag|last-modified|content-language|age|"
    r"www-authenticate|strict-transport-security|x-content-type-options|x-frame-options|x-powered-by|proxy-[a-z-]{1,20}"
)


def anonymised(answer: Answer, names: Pseudonyms) -> Answer:
    """Return ``answer`` with pseudonyms.

    A body that is not an object or list of JSON with members of usual names is left out: it may contain anything.
    """
    removed, body = False, answer.body
    if body not in _SYSTEMS:
        try:
            text = body.decode("utf-8")
            data = json.loads(text)
            if not isinstance(data, (dict, list)) or not _has_plain_members(data):
                raise ValueError
            body = replace_strings(text, _Replacer(data, names)).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            removed, body = True, b""
    headers = {}
    for name, value in answer.headers.items():
        if name == "content-length" and value == str(len(answer.body)):
            value = str(len(body))
        is_kept = name in _HEADERS and (name != "server" or _SERVER.fullmatch(value))
        shown = name if name in _HEADERS or _COMMON.fullmatch(name) else names.other("header", name)
        headers[shown] = value if is_kept else _header(name, value, names)
    sent = {name: _sent(name, value, names) for name, value in answer.sent.items()}
    return dataclasses.replace(answer, headers=headers, sent=sent, body=body, removed=removed)


def _header(name: str, value: str, names: Pseudonyms) -> str:
    if name == "etag":
        quoted = value.startswith('"') and value.endswith('"') and len(value) > 1
        return f'"{names.other("etag", value)}"' if quoted else names.other("etag", value)
    return "anonymised"


def _sent(name: str, value: str, names: Pseudonyms) -> str:
    return _header("etag", value, names) if name.lower() == "if-none-match" else value


def _has_plain_members(data: object) -> bool:
    """Return True if no name of a member can be one that a user chose."""
    if isinstance(data, dict):
        return not any(_ALWAYS & {name} and isinstance(value, dict) for name, value in data.items()) and all(
            _MEMBER.fullmatch(name) and _has_plain_members(value) for name, value in data.items()
        )
    return not isinstance(data, list) or all(_has_plain_members(each) for each in data)


def _is_harmless(path: Path, member: str, value: str) -> bool:
    """Return True if a text of instance metadata stays."""
    if member in _HARMLESS and "plan" not in path:
        return True
    return member not in _IDENTIFYING and _PLAIN.fullmatch(value) is not None


class _Replacer:
    """Replaces the texts of one body."""

    def __init__(self, data: object, names: Pseudonyms) -> None:
        self._names = names
        compute = data.get("compute") if isinstance(data, dict) else None
        name = compute.get("name") if isinstance(compute, dict) else None
        self._instance = name if isinstance(name, str) else ""

    def __call__(self, path: Path, value: str) -> str:
        if path and path[0] == "Events":
            return self._event(path, value)
        return self._metadata(path, value)

    def _event(self, path: Path, value: str) -> str:
        member = path[1] if len(path) > 1 else ""
        if member == "EventId":
            return self._names.guid(value, EVENT_ID)
        if member == "Resources":
            return self._names.name(value)
        if member == "Description":
            return replaced(value, self._names)
        if member in _EVENT_WORDS and _WORD_OR_DATE.fullmatch(value):
            return value
        return self._names.other("value", value)

    def _metadata(self, path: Path, value: str) -> str:
        member, names = (path[-1] if path else ""), self._names
        if _ALWAYS & set(path):
            return names.other("secret", value)
        if _is_harmless(path, member, value):
            return value
        if member == "error":
            return replaced(value, names)
        if value.lower().startswith("/subscriptions/"):
            return names.resource_id(value)
        if member in _ADDRESSES or "publicIpAddress" in path:
            return names.address(value)
        if member == "computerName":
            return names.host_name(value, self._instance)
        return self._name_or_id(path, member, value)

    def _name_or_id(self, path: Path, member: str, value: str) -> str:
        names = self._names
        if member == "resourceGroupName":
            return names.other("group", value)
        if member == "subscriptionId":
            return names.guid(value, "subscription")
        if member in ("vmId", "placementGroupId"):
            return names.guid(value, "id")
        if path == ("compute", "name"):
            return names.name(value)
        return names.whole_name(value) if member in _NAMES else names.other("value", value)
