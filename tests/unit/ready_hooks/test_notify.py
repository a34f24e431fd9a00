# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ready_hooks import cli


@pytest.mark.parametrize("body", ["{description}", {"text": "{description}"}, {"{description}": ["{text}"]}])
@pytest.mark.parametrize("text", ["<!channel> stop", "<http://example.org|the portal>", "<@U12345>", "a<!here"])
def test_text_of_an_event_is_no_command_for_slack(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, body: object
) -> None:
    monkeypatch.setenv("EVENT_ID", text)
    monkeypatch.setenv("EVENT_DESCRIPTION", text)
    options = {"url": "http://127.0.0.1:9/", "dry_run": True, "body": body, "state_directory": str(tmp_path)}
    assert cli.main(["notify", "prepare", "--json", json.dumps(options)]) == 0
    said = capsys.readouterr().out
    assert ("would send" in said, set("<>") & set(said)) == (True, set())
    assert text.translate(str.maketrans("<>", "()")) in said
