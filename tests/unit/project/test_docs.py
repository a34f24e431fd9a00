# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Examples, tables, paths and links of the documents agree with the repository."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from azure_scheduled_events.conditions import CONDITIONS, PolicyContext
from azure_scheduled_events.document import ScheduledEvent, parse_document
from azure_scheduled_events.policy import APPROVALS, PRESETS, Decision, Policy
from support import simulator_process
from support.daemon.documents import blocks
from tools.repository.markdown import anchors, links

pytestmark = pytest.mark.all

DOCS = Path(__file__).resolve().parents[3] / "docs"
POLICIES = (DOCS / "policies.md").read_text(encoding="utf-8")
GUIDE = (DOCS / "hook-runner.md").read_text(encoding="utf-8")
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("text", blocks(POLICIES, "yaml"))
def test_a_policy_that_is_shown_is_one(text: str) -> None:
    assert Policy.from_yaml(text, "policies.md").name


def test_the_preset_is_shown_as_it_is() -> None:
    assert yaml.safe_load(blocks(POLICIES, "yaml")[0])["rules"] == PRESETS["documented"]


def test_every_condition_and_effect_is_documented_and_no_other() -> None:
    table, effects = POLICIES.split("## Conditions")[1].split("## Advice")[0].split("## Approve and hold")
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(CONDITIONS)
    assert set(APPROVALS) <= set(re.findall(r"`(?:approve: )?(\w+)`", effects))
    shown = re.findall(r"^\| `(.+?)`.* \|", effects, re.MULTILINE)
    assert Policy.from_mapping({"rules": [yaml.safe_load(effect.replace("...", "after_prepare")) for effect in shown]})


def test_the_mistake_that_is_shown_is_what_one_gets() -> None:
    (shown,) = blocks(POLICIES, "text")
    with pytest.raises(ValueError, match=re.escape(shown.strip())):
        Policy.from_yaml("rules:\n- when:\n    tipe: Freeze\n", "policy.yml")


def decision_on(kind: str, policy: Policy) -> Decision:
    """Return the decision about an event of this VM alone that is announced five days ahead."""
    event = ScheduledEvent(
        *("A", kind, "Scheduled", ("vm1",), "VirtualMachine", NOW + timedelta(days=5), "", "Platform", None)
    )
    return policy.decide(event, PolicyContext(now=NOW, own_name="vm1"))


def test_no_example_delays_the_approval_of_a_predicted_failure() -> None:
    cluster = Policy.from_yaml(blocks(POLICIES, "yaml")[1], "policies.md")
    (patient,) = [block for block in blocks(GUIDE, "yaml") if "patient" in block]
    hook_runner = Policy.from_mapping(yaml.safe_load(patient)["policy"])
    for policy in (cluster, hook_runner):
        decision = decision_on("Redeploy", policy)
        assert (decision.approval, decision.hold) == ("after_prepare", False)
    assert decision_on("Reboot", hook_runner).hold


def test_the_program_of_the_helper_runs() -> None:
    (program,) = blocks((DOCS / "helper.md").read_text(encoding="utf-8"), "python")
    event = {"type": "Freeze", "resources": ["vm1"]}
    scenario = {"groups": {"one": {"kind": "standalone", "vms": {"vm1": {}}}}, "events": [event]}
    with simulator_process.start(scenario) as azure:
        text = program.replace("Imds()", f"Imds({azure.endpoints['vm1']!r})").replace("time.sleep(", "time.sleep(0 * ")
        environment = {"PYTHONPATH": str(DOCS.parent / "plugins" / "module_utils")}
        ran = subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    assert ran.stdout.splitlines() == ["appeared Freeze ('vm1',)"], ran.stderr


def test_the_document_of_the_reference_is_read_as_it_says() -> None:
    (shown,) = blocks((DOCS / "reference" / "scheduled-events.md").read_text(encoding="utf-8"), "json")
    document = parse_document(shown)
    (event,) = document.events
    assert (document.incarnation, document.warnings, document.complete) == (7, (), True)
    assert (event.event_type, event.status, event.resources, event.duration) == (
        "Freeze",
        "Scheduled",
        ("web_0", "web_3"),
        timedelta(seconds=5),
    )


LINKING = [
    DOCS.parent / "CONTRIBUTING.md",
    DOCS.parent / "SECURITY.md",
    *sorted(DOCS.rglob("*.md")),
    *sorted((DOCS.parent / "tests").glob("**/README.md")),
]


@pytest.mark.parametrize("path", LINKING, ids=lambda path: path.relative_to(DOCS.parent).as_posix())
def test_links_lead_to_files_and_headings(path: Path) -> None:
    for link in links(path.read_text(encoding="utf-8")):
        target, _separator, anchor = link.partition("#")
        if not link.startswith("https://"):
            found = path.parent / target if target else path
            assert found.exists(), link
            assert not anchor or anchor in anchors(found.read_text(encoding="utf-8")), link


def test_paths_of_the_architecture_exist() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:docs|extensions|playbooks|plugins|roles|salt|tests|tools)/[^` ]*)`", text)
    assert named and [path for path in named if not (DOCS.parent / path).exists()] == []


def test_every_file_of_the_helper_is_listed() -> None:
    table = (DOCS / "helper.md").read_text(encoding="utf-8").partition("| file | content |")[2]
    listed = {
        name for row in re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    package = DOCS.parent / "plugins" / "module_utils" / "azure_scheduled_events"
    assert listed == {file.stem for file in package.glob("*.py")} - {"__init__"}
