# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policy files: errors name file, line and key."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import ScheduledEvent
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.conditions import (
    PolicyContext,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.policy import Policy
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.yaml_lines import (
    read_text,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
FREEZE = ScheduledEvent(
    "A", "Freeze", "Scheduled", ("vm1",), "VirtualMachine", NOW, "", "Platform", timedelta(seconds=5)
)

# the sample of Microsoft's documentation as a policy
SAMPLE = """
name: as documented
rules:
  - {when: {status: Started}}
  - {when: {source: User}, approve: now}
  - name: short freeze
    when: {type: Freeze, duration: {min: 0, lt: 9}}
    approve: now
  - {when: {}}
"""


def test_a_file_is_read(tmp_path):
    path = tmp_path / "policy.yml"
    path.write_text(SAMPLE, encoding="utf-8")
    policy = Policy.from_yaml(read_text(str(path), "policy file"), str(path))
    decision = policy.decide(FREEZE, PolicyContext(NOW))
    assert (policy.name, decision.code) == ("as documented", None)
    assert decision.reason.startswith("rule 'short freeze' (") and "policy.yml:6" in decision.reason


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("", "p.yml: it is empty; write some of the keys name, preset, rules$"),
        (
            "rules:\n- when:\n    tipe: Freeze\n",
            r"p.yml:3: rules\[0\].when.tipe: unknown key 'tipe'; did you mean type\?",
        ),
        (
            "rules:\n- approve:\n    when: now\n    delai: 5s\n",
            r"p.yml:4: rules\[0\].approve.delai: .*did you mean delay\?",
        ),
        ("rules:\n- when: {}\n  when: {}\n", "p.yml:3: the key 'when' is repeated"),
        ("rules: [\n", "p.yml:2: not YAML"),
        ("rules: !!python/object:os.system {}\n", "p.yml:1"),
        ("- when: {}\n", "expected a mapping"),
        ("rules:\n- ? [a, b]\n  : 1\n", "p.yml:2: a key has to be a scalar"),
        ("rules:\n- when: {api_version_min: 2019-08-01}\n  approve: nou\n", "p.yml:3"),
        ("text: \x00", "p.yml"),
        (r'text: "\UFFFFFFFF"', "p.yml: not YAML: an escape"),
        (
            "rules:\n- when: &all {type: Freeze}\n- when: *all\n",
            "p.yml:2: an alias refers to this value; write the value out",
        ),
        ("rules:\n- &all when: {*all : 1}\n", "p.yml:2: an alias refers to this value"),
        ("rules:\n- when: {0x" + "f" * 20 + ": 1}\n", "p.yml:2: .* an integer has at most 64 bits"),
        ("# " + "x" * 65536 + SAMPLE, "p.yml: a policy of more than 64 KiB"),
        ("rules:\n- hold: !!int ''\n", "p.yml:2: '' is not a valid value"),
        ("rules:\n- hold: !!timestamp now\n", "p.yml:2: 'now' is not a valid value"),
        ("rules:\n- hold: 1" + ":59" * 300 + ".5\n", "p.yml:2: .* is not a valid value"),
        ("rules: " + "[" * 3000 + "]" * 3000, "p.yml: nested too deeply"),
        ("rules:\n- when: {api_version_min: 2020-13-45}\n", "p.yml:2: '2020-13-45' is not a valid value"),
    ],
)
def test_invalid_file_is_refused_with_file_line_and_key(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        Policy.from_yaml(text, "p.yml")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ValueError, match="policy file .*absent.yml cannot be read"):
        read_text(str(tmp_path / "absent.yml"), "policy file")
    binary = tmp_path / "binary.yml"
    binary.write_bytes(b"\xff\xfe\x00rules")
    with pytest.raises(ValueError, match="binary.yml cannot be read"):
        read_text(str(binary), "policy file")


def test_version_may_be_unquoted():
    policy = Policy.from_yaml("rules:\n- when: {api_version_min: 2019-08-01}\n  approve: now\n", "p.yml")
    assert policy.decide(FREEZE, PolicyContext(NOW)).code is None
    assert policy.decide(FREEZE, PolicyContext(NOW, api_version="2019-04-01")).code == "no_rule"
