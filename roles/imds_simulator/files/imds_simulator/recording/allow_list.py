# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The part of an answer that a recording has: only listed members, with pseudonyms for values that identify."""

from __future__ import annotations

import hashlib
import math
import re
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any, Callable

from ..http_reply import parse_json
from ..instance_members import MEMBERS_SINCE

# members of instance metadata, at any depth, whose values do not identify a VM or its owner
_PLAIN_MEMBERS = frozenset(
    (
        *("azEnvironment", "bytesPerSecondThrottle", "caching", "createOption", "disablePasswordAuthentication"),
        *("diskCapacityBytes", "diskSizeGB", "enabled", "encryptionAtHost", "evictionPolicy", "hibernationEnabled"),
        *("isHostCompatibilityLayerVm", "isSharedDisk", "isUltraDisk", "licenseType", "location", "lun", "option"),
        *("opsPerSecondThrottle", "osType", "physicalZone", "platformFaultDomain", "platformSubFaultDomain"),
        *("platformUpdateDomain", "priority", "provider", "secureBootEnabled", "securityType", "size"),
        *("storageAccountType", "virtualTpmEnabled", "vmSize", "writeAcceleratorEnabled", "zone"),
    )
)
# words, numbers and dates
_PLAIN = re.compile(r"[\w .,:;=/+-]{1,64}", re.ASCII)
# texts of Description and error, and names of servers, that Azure was seen to send; others may have names in them
_KNOWN_TEXT = re.compile(
    r"Host server is undergoing (maintenance|an emergency repair)\."
    r"|Virtual machine has encountered a failure\."
    r"|Virtual machine is being paused because of a memory-preserving Live Migration operation\."
    r"|Virtual machine is going to be (redeployed|restarted) as requested by authorized user\."
    r"|Bad request(: )?\. Required metadata header not specified"
    r"|Bad request\. api-version (is invalid or )?was not specified in the request\. "
    r"For more information refer to aka\.ms/azureimds"
    r"|Not found\. Invalid version requested|Too many requests"
    r"|(IMDS|Microsoft-IIS|Microsoft-HTTPAPI)/[0-9.]{1,40}"
)
# in api-version 2017-03-01 an underscore precedes a name
_INSTANCE_NUMBER = re.compile(r"(?<=[^_])_[0-9]{1,6}\Z")


class AllowList:
    """Reduces answers to listed members.

    Pseudonyms are a keyed hash: equal values have equal ones, in any letter case, wherever the ``key`` is the same.
    ``left_out`` counts the values that were left out by the path of their member.
    """

    def __init__(self, key: bytes) -> None:
        self.left_out: Counter[str] = Counter()
        self._key = key

    def body(self, body: bytes) -> Any:
        """Return the JSON object that a recording has of ``body``, "" if it is empty, None if it is not from IMDS."""
        if not body:
            return ""
        data = parse_json(body)
        return self._listed(data, "") or None if isinstance(data, dict) else None

    def headers(self, headers: Mapping[str, str]) -> Any:
        """Return the headers that a recording has; names are in lower case."""
        return self._listed(headers, "header")

    def plain(self, value: Any) -> Any:
        """Return a word, number or date as it is; any other text, and a number that JSON lacks, as ``text``."""
        is_in_json = not isinstance(value, float) or math.isfinite(value)
        return value if is_in_json and _PLAIN.fullmatch(str(value)) else self.text(value)

    def text(self, value: Any) -> str:
        """Return a text that is known as it is."""
        return str(value) if _KNOWN_TEXT.fullmatch(str(value)) else f"text-{self._hash(value)[:8]}"

    def name(self, value: Any) -> str:
        """Return a name with a pseudonym for each part between underscores, so that VM and scale set stay related."""
        return re.sub("[^_]+", lambda part: f"name-{self._hash(part[0])[:8]}", str(value))

    def vm_name(self, value: Any) -> str:
        """Return the name of a VM, with the number of an instance of a scale set."""
        number = _INSTANCE_NUMBER.search(str(value))
        return self.name(str(value)[: number.start()]) + number[0] if number else self.name(value)

    def identifier(self, value: Any) -> str:
        """Return another GUID in the same letter case."""
        found = str(uuid.UUID(self._hash(value)))
        return found if value == str(value).lower() else found.upper()

    def _hash(self, value: Any) -> str:
        text = str(value).casefold().encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._key, digest_size=16).hexdigest()

    def _listed(self, data: Any, path: str) -> Any:
        if isinstance(data, Mapping):
            below = {name: f"{path}.{name}" if path else name for name in data}
            return {name: self._listed(data[name], each) for name, each in below.items() if self._is_listed(each)}
        if isinstance(data, list):
            return [self._listed(each, f"{path}[]") for each in data if self._is_listed(f"{path}[]")]
        if data is None or data == "" or isinstance(data, bool):
            return data
        treatment: Callable[[AllowList, Any], Any] = _TREATMENTS.get(path, AllowList.text)
        return treatment(self, data)

    def _is_listed(self, path: str) -> bool:
        is_listed = path in _LISTED
        if not is_listed:
            self.left_out[path] += 1
        return is_listed


_TREATMENTS: Mapping[str, Callable[[AllowList, Any], Any]] = {
    **dict.fromkeys(
        ("Events[].EventId", "compute.placementGroupId", "compute.subscriptionId", "compute.vmId"),
        AllowList.identifier,
    ),
    **dict.fromkeys(("Events[].Resources[]", "compute.name"), AllowList.vm_name),
    **dict.fromkeys(
        ("compute.osProfile.computerName", "compute.resourceGroupName", "compute.vmScaleSetName"), AllowList.name
    ),
    **dict.fromkeys(("Events[].Description", "error", "header.server"), AllowList.text),
    **dict.fromkeys(
        (
            *("DocumentIncarnation", "Events[].DurationInSeconds", "Events[].EventSource", "Events[].EventStatus"),
            *("Events[].EventType", "Events[].NotBefore", "Events[].ResourceType", "newest-versions[]"),
            *("header.content-type", "header.date", "header.retry-after"),
            *(path for path in MEMBERS_SINCE if path.rpartition(".")[2] in _PLAIN_MEMBERS),
        ),
        AllowList.plain,
    ),
}
# with the objects and lists that lead to these members
_LISTED = frozenset(path[: end.start()] for path in _TREATMENTS for end in re.finditer(r"\[\]|\.|$", path))
