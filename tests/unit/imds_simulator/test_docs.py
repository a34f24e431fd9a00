# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""docs/simulator.md matches the code, and its commands run."""

from __future__ import annotations

import re
import shutil

import pytest
import yaml

from imds_simulator.cli.control_commands import VERBS
from imds_simulator.faults.kinds import KINDS, OPTIONS
from imds_simulator.keys import keys_of
from imds_simulator.scenario.answers import Answer
from imds_simulator.scenario.files import schema
from imds_simulator.scenario.groups import Group, Vm
from imds_simulator.scenario.knobs import Knobs
from imds_simulator.scenario.notify import Notify
from imds_simulator.scenario.plans import EventPlan, Scenario
from support.daemon.documents import blocks, column, quoted, rows, section
from support.repository import REPOSITORY
from support.simulator.simulations import parse
from support.simulator.webhook import Webhook

TEXT = (REPOSITORY / "docs" / "simulator.md").read_text(encoding="utf-8")
# a statement (1.8.5), a section (1.8) or a transition (2.1 (4a)) as a citation has it
NUMBER = r"\d+(?:\.\d+)*(?: \(\d[a-z]?\))?"
CITED = re.compile(rf"\breference(?:/scheduled-events\.md)?[\s#]+({NUMBER}(?:(?:, | and | to ){NUMBER})*)")
ROLE = REPOSITORY / "roles" / "imds_simulator"


def items(heading):
    """Return the words in backquotes of the list below a heading."""
    return quoted("".join(re.findall(r"^- .*\n(?:  .*\n)*", section(TEXT, heading), re.MULTILINE)))


def test_docs_list_of_knobs_matches_the_code():
    assert sorted(items("Knobs")) == sorted(keys_of(Knobs))
    for name, knob in keys_of(Knobs).items():
        (statement,) = re.findall(rf"`{name}`(?:,\s+`\w+`)*\s+\(([\d.]+)\)", TEXT)
        assert re.findall(r"\(reference ([\d.]+)[^)]*\)$", knob.meaning) == [statement]


def test_docs_list_of_faults_matches_the_code():
    assert sorted(items("Faults")) == sorted(KINDS)
    options = rows(TEXT, "Options of faults")
    assert [name for row in options for name in quoted(row[0])] == list(OPTIONS)
    for names, kinds, _meaning in options:
        if "to `" not in kinds:
            assert quoted(kinds) == [kind for kind, each in KINDS.items() if set(quoted(names)) <= set(each.options)]


def keys_in(part):
    for key, value in part.get("properties", {}).items():
        yield key
        yield from keys_in(value)
    for inner in ("items", "additionalProperties"):
        if isinstance(part.get(inner), dict):
            yield from keys_in(part[inner])


def test_docs_name_every_verb_and_key():
    words = set(re.findall(r"[\w-]+", TEXT))
    assert (set(keys_in(schema())) | set(VERBS)) - words == set()


def test_docs_list_every_statement_that_the_code_cites():
    listed = set(re.findall(r"\b\d+(?:\.\d+)+\b", section(TEXT, "Simulated behaviour")))
    source = "\n".join(file.read_text(encoding="utf-8") for file in (ROLE / "files").rglob("*.py"))
    source += "\n".join(knob.meaning for knob in keys_of(Knobs).values())
    cited = {number for found in CITED.findall(source) for number in re.findall(NUMBER, found) if "." in number}
    sections = {number.rpartition(".")[0] for number in listed}
    assert cited - listed - sections == set()


def test_docs_example_of_warnings_is_printed(call, tmp_path, monkeypatch):
    (block,) = [block for block in blocks(TEXT, "console") if "--check pool.yaml" in block]
    command, *printed = block.splitlines()
    event = "\n  - {type: Terminate, resources: [pool_1], notice: 1m}\n"
    (tmp_path / "pool.yaml").write_text("groups:\n  pool: {kind: scale_set, vms: {pool_1: {}}}\n\nevents:" + event)
    monkeypatch.chdir(tmp_path)
    done = call(*command.split("imds_simulator ")[1].split())
    assert (done.code, (done.err + done.out).splitlines()) == (0, printed)


def test_docs_example_scenarios_are_valid():
    assert len(blocks(TEXT, "yaml")) >= 2
    for text in blocks(TEXT, "yaml"):
        parse(text if "groups:" in text else "groups: {web: {vms: {vm1: }}}\n" + text)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples use curl")
def test_docs_commands_run(start_simulator, run_printed):
    sim = start_simulator("live-migration")
    sim.advance(10)
    known = {
        "http://127.0.0.1:8169": sim.endpoints["vm1"],
        "http://127.0.0.1:8170": sim.endpoints["vm2"],
        "http://127.0.0.1:8168": sim.control,
    }
    lines = "".join(blocks(TEXT, "bash")).splitlines()
    assert len(lines) >= 20
    for line in lines:
        for address, real in known.items():
            line = line.replace(address, real)
        run_printed(line, IMDS_SIMULATOR_CONTROL=sim.control)


def test_docs_scenario_that_publishes_notifications_does_so(start_simulator):
    (text,) = [text for text in blocks(TEXT, "yaml") if "notify: {url" in text]
    with Webhook() as hook:
        sim = start_simulator(text.replace("http://127.0.0.1:5000/endpoint", hook.url), clock="real")
        sim.post("/advance", {"seconds": "1m"})
        assert hook.wait_for(1)[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("heading", "header", "keys"),
    [
        ("Scenario files", "key", Scenario),
        ("Groups and VMs", "key of a group", Group),
        ("Groups and VMs", "key of a VM", Vm),
        ("Events", "key", EventPlan),
        ("Static answers", "key of an answer", Answer),
        ("Notifications", "key", Notify),
    ],
)
def test_docs_table_of_keys_matches_the_code(heading, header, keys):
    assert set(column(TEXT, heading, header)) == set(keys_of(keys))


def test_role_describes_all_its_variables():
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
    specs = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"][
        "main"
    ]["options"]
    assert {name: spec["default"] for name, spec in specs.items()} == defaults
    documented = set(re.findall(r"^\| `(\w+)` \|", (ROLE / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert documented == set(defaults)
