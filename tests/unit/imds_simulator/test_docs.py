# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""docs/simulator.md matches the code, and its commands run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from imds_simulator.__main__ import main
from imds_simulator.cli.control_commands import VERBS
from imds_simulator.faults.kinds import KINDS, OPTIONS
from imds_simulator.keys import keys_of
from imds_simulator.scenario.answers import Answer
from imds_simulator.scenario.files import schema
from imds_simulator.scenario.groups import Group, Vm
from imds_simulator.scenario.knobs import Knobs
from imds_simulator.scenario.notify import Notify
from imds_simulator.scenario.plans import EventPlan, Scenario
from support.simulator.simulations import parse
from support.simulator.webhook import Webhook

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
# a statement (1.8.5), a section (1.8) or a transition (2.1 (4a)) as a citation has it
NUMBER = r"\d+(?:\.\d+)*(?: \(\d[a-z]?\))?"
CITED = re.compile(rf"\breference(?:/scheduled-events\.md)?[\s#]+({NUMBER}(?:(?:, | and | to ){NUMBER})*)")
PACKAGE = ROOT / "roles" / "imds_simulator" / "files" / "imds_simulator"


def table(heading, index=0):
    """Return the cells of a table below a heading, the first one by default."""
    part = TEXT.split(f"\n{heading}\n")[1].split("\n#")[0]
    rows = re.findall(r"(?:^\|.*\n)+", part + "\n", re.MULTILINE)[index].splitlines()
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[2:]]


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def items(heading):
    """Return the words in backquotes of the list below a heading."""
    part = TEXT.split(f"\n{heading}\n")[1].split("\n#")[0]
    return re.findall(r"`([\w-]+)`", "".join(re.findall(r"^- .*\n(?:  .*\n)*", part, re.MULTILINE)))


def test_docs_list_of_knobs_matches_the_code():
    assert sorted(items("## Knobs")) == sorted(keys_of(Knobs))
    for name, knob in keys_of(Knobs).items():
        (statement,) = re.findall(rf"`{name}`(?:,\s+`\w+`)*\s+\(([\d.]+)\)", TEXT)
        assert statement == knob.statement.split(" ")[0]


def test_docs_list_of_faults_matches_the_code():
    assert sorted(items("## Faults")) == sorted(KINDS)
    options = table("### Options of faults")
    assert [name for row in options for name in re.findall(r"`(\w+)`", row[0])] == list(OPTIONS)
    for names, kinds, _meaning in options:
        if "to `" not in kinds:
            expected = [kind for kind, each in KINDS.items() if set(re.findall(r"`(\w+)`", names)) <= set(each.options)]
            assert re.findall(r"`([\w-]+)`", kinds) == expected


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
    followed = TEXT.split("\n## Simulated behaviour\n")[1].split("\n#")[0]
    listed = set(re.findall(r"\b\d+(?:\.\d+)+\b", followed))
    source = "\n".join(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    cited = {number for found in CITED.findall(source) for number in re.findall(NUMBER, found) if "." in number}
    cited |= {knob.statement.split(" ")[0] for knob in keys_of(Knobs).values()}
    sections = {number.rpartition(".")[0] for number in listed}
    assert cited - listed - sections == set()


def test_docs_example_of_warnings_is_printed(tmp_path, monkeypatch, capsys):
    (block,) = [block for block in blocks("console") if "--check pool.yaml" in block]
    command, *printed = block.splitlines()
    event = "\n  - {type: Terminate, resources: [pool_1], notice: 1m}\n"
    (tmp_path / "pool.yaml").write_text("groups:\n  pool: {kind: scale_set, vms: {pool_1: {}}}\n\nevents:" + event)
    monkeypatch.chdir(tmp_path)
    assert main(command.split("imds_simulator ")[1].split()) == 0
    out, err = capsys.readouterr()
    assert (err + out).splitlines() == printed


def test_docs_example_scenarios_are_valid():
    assert len(blocks("yaml")) >= 2
    for text in blocks("yaml"):
        parse(text if "groups:" in text else "groups: {web: {vms: {vm1: }}}\n" + text, "docs")


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples use curl")
def test_docs_commands_run(start_simulator, run_printed):
    sim = start_simulator("live-migration")
    sim.advance(10)
    known = {
        "http://127.0.0.1:8169": sim.endpoints["vm1"],
        "http://127.0.0.1:8170": sim.endpoints["vm2"],
        "http://127.0.0.1:8168": sim.control,
    }
    lines = "".join(blocks("bash")).splitlines()
    assert len(lines) >= 20
    for line in lines:
        for address, real in known.items():
            line = line.replace(address, real)
        run_printed(line, IMDS_SIMULATOR_CONTROL=sim.control)


def test_docs_scenario_that_publishes_notifications_does_so(start_simulator):
    (text,) = [text for text in blocks("yaml") if "notify: {url" in text]
    with Webhook() as hook:
        sim = start_simulator(text.replace("http://127.0.0.1:5000/endpoint", hook.url), clock="real")
        sim.post("/advance", {"seconds": "1m"})
        assert hook.wait_for(1)[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("heading", "index", "keys"),
    [
        ("## Scenario files", 0, Scenario),
        ("### Groups and VMs", 0, Group),
        ("### Groups and VMs", 1, Vm),
        ("### Events", 0, EventPlan),
        ("### Static answers", 0, Answer),
        ("## Notifications", 0, Notify),
    ],
)
def test_docs_table_of_keys_matches_the_code(heading, index, keys):
    assert {key for row in table(heading, index) for key in re.findall(r"`(\w+)`", row[0])} == set(keys_of(keys))


def test_role_describes_all_its_variables():
    role = ROOT / "roles" / "imds_simulator"
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"][
        "main"
    ]["options"]
    assert {name: spec["default"] for name, spec in specs.items()} == defaults
    documented = set(re.findall(r"^\| `(\w+)` \|", (role / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert documented == set(defaults)
