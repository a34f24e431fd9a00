# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Pseudonyms: the same value always has the same one, also when a recording is continued.

A second file maps values to pseudonyms. It stays with the user.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path

from .reader import Unusable
from .writer import CannotWrite

NAME = "name"
EVENT_ID = "event"

_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_MAC = re.compile(r"[0-9A-Fa-f]{12}|(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
# the number of an instance of a uniform scale set, or the eight characters of a flexible one
_INSTANCE = re.compile(r"(_?)(.+?)(?:(_\d{1,6})|_([0-9A-Za-z]{8}))?", re.DOTALL)
_RESOURCE_ID = re.compile(
    r"(/subscriptions/)([^/]+)(?:(/resourceGroups/)([^/]+))?(/providers/Microsoft\.[A-Za-z]{1,40})((?:/[A-Za-z]{1,40}/[^/]+)+)",
    re.IGNORECASE,
)
_GUID_PREFIXES = {EVENT_ID: "aaaaaaaa", "subscription": "bbbbbbbb"}


class Pseudonyms:
    """The map from values to pseudonyms. ``file`` is None if it is not kept."""

    def __init__(self, file: Path | None, known: dict[str, dict[str, str]] | None = None) -> None:
        self._file = file
        self._known = known or {}
        # a new file is written at once: without it the recording cannot be continued
        self._is_changed = not self._known
        self._folded: dict[str, dict[str, str]] = {}
        for kind, values in self._known.items():
            for value, pseudonym in values.items():
                self._folded.setdefault(kind, {}).setdefault(value.casefold(), pseudonym)

    def save(self) -> None:
        """Write the map if it has changed; do that before a pseudonym is written anywhere else.

        Raises:
            CannotWrite: the disk is full, for example.
        """
        if self._file is None or not self._is_changed:
            return
        new = self._file.with_name(self._file.name + ".new")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as opened:
                json.dump(self._known, opened, indent=1)
                opened.flush()
                os.fsync(opened.fileno())
            os.replace(new, self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                new.unlink()
            raise CannotWrite(f"{self._file}: {error.strerror}; free some space and run the same command") from None
        self._is_changed = False

    def name(self, value: str) -> str:
        """Return the pseudonym of the name of a VM.

        The parts that relate names to each other stay: a first underscore, and the number of an instance.
        """
        match = _INSTANCE.fullmatch(value)
        if match is None:
            return value
        last = match[3] or ""
        if match[4]:
            # eight characters may also be a word
            number = len(self._known.get("instance", {})) + 1
            last = "_" + self._of("instance", match[4], f"x{number:07d}")
        return match[1] + self._of(NAME, match[2]) + last

    def whole_name(self, value: str) -> str:
        """Return the pseudonym of the name of a scale set, disk or other resource."""
        return self._of(NAME, value)

    def host_name(self, value: str, instance: str) -> str:
        """Return the pseudonym of a host name.

        The last six characters stay if they are the number of ``instance`` (a name) in base 36.
        """
        number = instance.rpartition("_")[2]
        prefix, digits = value[:-6], value[-6:]
        is_number = number.isascii() and number.isdigit() and re.fullmatch(r"[0-9A-Za-z]{6}", digits) is not None
        if prefix and is_number and int(digits, 36) == int(number):
            return self._of(NAME, prefix) + digits
        return self._of(NAME, value)

    def guid(self, value: str, kind: str) -> str:
        """Return the pseudonym of a GUID in the same letter case, or of any other id."""
        if not _GUID.fullmatch(value):
            return self._of(kind, value)
        number = len(self._known.get(kind, {})) + 1
        pseudonym = self._of(
            kind, value.lower(), f"{_GUID_PREFIXES.get(kind, 'cccccccc')}-0000-4000-8000-{number:012x}"
        )
        return pseudonym if value == value.lower() else pseudonym.upper()

    def address(self, value: str) -> str:
        """Return the pseudonym of an IP or MAC address, which is an address of the same form."""
        kind = "mac" if _MAC.fullmatch(value) else "address"
        number = len(self._known.get(kind, {})) + 1
        if kind == "mac":
            return self._of(kind, value, f"02000000{number % 65536:04X}")
        if _IPV4.fullmatch(value):
            # 198.18.0.0/15 is reserved for tests
            return self._of(kind, value, f"198.18.{number // 256 % 256}.{number % 256}")
        return self._of(kind, value, f"2001:db8::{number % 65536:x}")

    def other(self, kind: str, value: str) -> str:
        """Return the pseudonym ``KIND-NUMBER``."""
        return self._of(kind, value)

    def resource_id(self, value: str) -> str:
        """Return a resource id with pseudonyms for subscription, resource group and names."""
        match = _RESOURCE_ID.fullmatch(value)
        if match is None:
            return self.other("value", value)
        parts = match[6].split("/")
        for index in range(2, len(parts), 2):
            # the number of an instance stays, as in its name
            if parts[index - 1].lower() != "virtualmachines":
                parts[index] = self.whole_name(parts[index])
            elif index == 2 or not re.fullmatch(r"[0-9]{1,6}", parts[index]):
                parts[index] = self.name(parts[index])
        group = match[3] + self.other("group", match[4]) if match[3] else ""
        return match[1] + self.guid(match[2], "subscription") + group + match[5] + "/".join(parts)

    def found(self, value: str) -> str:
        """Return the pseudonym that ``value`` has already in any letter case, or an empty text."""
        key = value.casefold()
        return next((kind[key] for kind in self._folded.values() if key in kind), "")

    def _of(self, kind: str, value: str, pseudonym: str = "") -> str:
        """Return the pseudonym of ``value``, in upper case if it differs from the first one by letter case only."""
        if not value:
            return value
        known = self._known.setdefault(kind, {})
        if value in known:
            return known[value]
        folded = self._folded.setdefault(kind, {})
        first = folded.get(value.casefold())
        known[value] = first.upper() if first is not None else pseudonym or f"{kind}-{len(known) + 1}"
        folded.setdefault(value.casefold(), known[value])
        self._is_changed = True
        return known[value]


def pseudonyms_file(recording: Path) -> Path:
    """Return the file with the pseudonyms of ``recording``."""
    return recording.with_name(recording.name + ".names")


def load(recording: Path, is_continued: bool) -> Pseudonyms:
    """Return the pseudonyms of a recording.

    Raises:
        Unusable: the recording is continued, and its file of pseudonyms is missing or damaged.
    """
    file = pseudonyms_file(recording)
    try:
        known = json.loads(file.read_text(encoding="ascii"))
        if isinstance(known, dict) and all(map(_is_map, known.values())):
            return Pseudonyms(file, known)
        problem = "not a map of pseudonyms"
    except FileNotFoundError:
        if not is_continued:
            return Pseudonyms(file)
        problem = "missing"
    except (OSError, ValueError, RecursionError) as error:
        problem = str(error)
    raise Unusable(f"{file}: {problem}; {recording} needs its pseudonyms to be continued, choose another --output")


def _is_map(kind: object) -> bool:
    return isinstance(kind, dict) and all(isinstance(value, str) for value in kind.values())
