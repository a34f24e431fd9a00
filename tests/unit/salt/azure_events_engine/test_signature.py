# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A request on the bus counts only if the master itself has signed it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from azure_events_engine.signature import REQUEST_LIFETIME, is_genuine, read_secret, sign

SECRET = b"s" * 32
REQUEST = {"request_id": "1", "do": "approve", "event_id": "A1", "force": True, "by": "alice", "time": 1000.0}


def signed(**changes: Any) -> dict[str, Any]:
    return {**REQUEST, "signature": sign(REQUEST, SECRET), "_stamp": "added by the bus", **changes}


def test_secret_is_made_once_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "azure_events" / "secret"
    secret = read_secret(str(path))
    assert len(secret) == 32 and read_secret(str(path)) == secret
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600 and stat.S_IMODE(os.stat(path.parent).st_mode) == 0o700
    assert os.listdir(path.parent) == ["secret"]


def test_signed_request_is_genuine() -> None:
    assert is_genuine(signed(), SECRET, 1010.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"force": False},
        {"event_id": "B2"},
        {"request_id": "2"},
        {"by": "bob"},
        {"time": 1001.0},
        {"signature": ""},
        {"signature": None},
    ],
)
def test_changed_request_is_not_genuine(changes: dict[str, Any]) -> None:
    assert not is_genuine(signed(**changes), SECRET, 1010.0)


def test_old_request_is_not_genuine() -> None:
    assert not is_genuine(signed(), SECRET, 1001.0 + REQUEST_LIFETIME)


def test_empty_secret_proves_nothing() -> None:
    assert not is_genuine({**REQUEST, "signature": sign(REQUEST, b"")}, b"", 1000.0)
