# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Scenario files: errors with file, line and key; the shipped library from start to end."""

from __future__ import annotations

import re

import pytest
import yaml

from imds_simulator.api_versions import EVENT_TYPES
from imds_simulator.model import events as life
from imds_simulator.model.rules import Rules
from imds_simulator.model.simulation import Simulation
from imds_simulator.model.world import World
from imds_simulator.scenario import fault_kinds, groups
from imds_simulator.scenario.files import LIBRARY, ScenarioError, default_scenario, load, parse, shipped_names, summary
from imds_simulator.scenario.knobs import KnobError, Knobs, change_knobs, describe_knobs, knob_fields
from imds_simulator.scenario.schema_check import schema
from imds_simulator.times import parse_duration
from support.simulator.simulations import T0, sequential_ids

NOT_JSON = "JSON has no binary data, NaN or infinity"
WHEN = "a duration: a number of seconds, or text like 30s, 15m, 2h, 5d, 1h30m; or a time like 2030-01-31T12:00:00Z"
GOOD = """
groups:
  web:
    kind: availability_set
    vms:
      vm1:
      vm2: {zone: 1}
events:
  - {name: e, type: Freeze, resources: [vm1], at: 1h30m}
"""

REQUIRED = {
    "live-migration",
    "user-reboot",
    "redeploy",
    "spot-preempt",
    "terminate",
    "hardware-failure",
    "cancelled-maintenance",
    "predicted-failure",
    "two-at-once",
    "serialised-fault-domains",
    "sick-imds",
}


def errors(text):
    with pytest.raises(ScenarioError) as caught:
        parse(text, "f.yaml")
    return str(caught.value).splitlines()


def test_parse_of_valid_file_returns_a_scenario():
    scenario = parse(GOOD, "f.yaml")
    assert [vm.name for vm in scenario.groups[0].vms] == ["vm1", "vm2"] and scenario.groups[0].vms[1].zone == "1"
    assert scenario.events[0].at == 5400 and scenario.speed == 1 and scenario.begin == "start"


@pytest.mark.parametrize(
    "change, expected",
    [
        (
            ("kind: availability_set", "kind: availabilty_set"),
            "f.yaml:4: groups.web.kind: 'availabilty_set' is not one of standalone, "
            "availability_set, scale_set, cloud_service (did you mean availability_set?)",
        ),
        (
            ("type: Freeze", "type: Freez"),
            "f.yaml:9: events[0].type: 'Freez' is not one of Freeze, Reboot, Redeploy, Preempt, Terminate, "
            "SpotRebalanceRecommendation (did you mean Freeze?)",
        ),
        (("at: 1h30m", "att: 1h"), "f.yaml:9: events[0].att: unknown key (did you mean at?)"),
        (
            ("at: 1h30m", "at: soon"),
            f"f.yaml:9: events[0].at: 'soon' is not {WHEN}",
        ),
        (
            ("type: Freeze, ", ""),
            "f.yaml:9: events[0]: the key type is missing; only an event with starts: hardware_failure needs no type",
        ),
        (("resources: [vm1], ", ""), "f.yaml:9: events[0]: the key resources is missing"),
        (
            ("resources: [vm1]", "resources: [vm3]"),
            "f.yaml:9: events[0].resources[0]: there is no VM vm3 (did you mean vm2?)",
        ),
        (("resources: [vm1]", "resources: vm1"), "f.yaml:9: events[0].resources: 'vm1' is not a list"),
        (
            ("resources: [vm1]", "resources: [vm1], after: x"),
            "f.yaml:9: events[0].after: there is no event x; there are e",
        ),
        (
            ("resources: [vm1]", "resources: [vm1], after: e"),
            "f.yaml:9: events[0].after: these events wait for each other",
        ),
        (
            ("resources: [vm1]", "resources: [vm1], id: nonsense"),
            "f.yaml:9: events[0].id: 'nonsense' is not an event id: a GUID",
        ),
        (
            ("resources: [vm1]", "resources: [vm1], changes: [{after: 1, after_start: 1, notice: 1}]"),
            "f.yaml:9: events[0].changes[0].after_start: give either after or after_start, not both",
        ),
        (
            ("resources: [vm1]", "resources: [vm1], changes: [{after: 1}]"),
            "f.yaml:9: events[0].changes[0]: the change is empty; give an action or a member to change",
        ),
        (
            ("      vm1:\n", "      vm1:\n      vm1:\n"),
            "f.yaml:7: groups.web.vms.vm1: duplicate key; it is on line 6 already",
        ),
        (
            ("vm2: {zone: 1}", "vm2: {listen: here}"),
            "f.yaml:7: groups.web.vms.vm2.listen: 'here' is not an address HOST:PORT",
        ),
        (
            ("vm2: {zone: 1}", "vm2: {source: here}"),
            "f.yaml:7: groups.web.vms.vm2.source: 'here' does not appear to be an IPv4 or IPv6 address",
        ),
        (
            ("vm2: {zone: 1}", "vm2: {listen: 'a:1', source: 10.0.0.1}"),
            "f.yaml:7: groups.web.vms.vm2.source: give either listen or source, not both",
        ),
        (
            ("kind: availability_set", "kind: standalone\n    orchestration: flexible"),
            "f.yaml:5: groups.web.orchestration: only a scale_set has orchestration",
        ),
        (
            ("vm2: {zone: 1}", "vm2: {placement_group: first}"),
            "f.yaml:7: groups.web.vms.vm2.placement_group: "
            "only an instance of a uniform scale_set has a placement_group",
        ),
        (
            ("vm2: {zone: 1}", "vm2: {placement_grup: first}"),
            "f.yaml:7: groups.web.vms.vm2.placement_grup: unknown key (did you mean placement_group?)",
        ),
        (
            ("vm2: {zone: 1}", "vm2: {instance: {compute: name}}"),
            "f.yaml:7: groups.web.vms.vm2.instance.compute: 'name' is not a mapping or nothing",
        ),
        (
            ("kind: availability_set", "kind: scale_set"),
            "f.yaml:6: groups.web.vms.vm1: "
            "the name of an instance of a uniform scale set is web_NUMBER (reference 3.2)",
        ),
        (
            ("resources: [vm1]", "resources: [vm1]}\n  - {name: e, type: Freeze, resources: [vm2]"),
            "f.yaml:10: events[1].name: events[0] has the name e already",
        ),
        (
            ("groups:", "knobs: {etagg: off}\ngroups:"),
            "f.yaml:2: knobs.etagg: there is no knob 'etagg' (did you mean etag?)",
        ),
        (("groups:", "knobs: {etag: 7}\ngroups:"), "f.yaml:2: knobs.etag: knob etag: 7 is not on or off"),
        (("groups:", "default_vm: vm9\ngroups:"), "f.yaml:2: default_vm: there is no VM vm9 (did you mean vm2?)"),
        (("groups:", "faults: [{kind: emty}]\ngroups:"), None),
        (
            ("groups:", "faults: [{kind: gone, vm: vm7}]\ngroups:"),
            "f.yaml:2: faults[0].vm: there is no VM vm7 (did you mean vm2?)",
        ),
        (
            ("groups:", "incarnations: [{group: wab, to: 1}]\ngroups:"),
            "f.yaml:2: incarnations[0].group: there is no group wab (did you mean web?)",
        ),
        (
            ("groups:", "impact: {Freeze: {start: reboot}}\ngroups:"),
            "f.yaml:2: impact.Freeze.start: 'reboot' is not a command as a list: program and arguments",
        ),
        (("groups:", "speed: 0\ngroups:"), "f.yaml:2: speed: 0 is less than or equal to the minimum of 0"),
        (("  web:", "  web: ["), None),
    ],
)
def test_errors_name_file_line_and_key(change, expected):
    found = errors(GOOD.replace(*change))
    if expected is None:
        assert re.match(r"f\.yaml:\d+: ", found[0])
    else:
        assert expected in found


def test_errors_are_reported_together_in_file_order():
    found = errors(
        GOOD.replace("kind: availability_set", "kind: availability_set\n    incarnation: x").replace(
            "type: Freeze", "type: F"
        )
        + "titel: y\nfaults:\n  - {kind: empty, status: 3}\n"
    )
    assert [line.split(":")[1] for line in found] == ["5", "10", "11", "13"]
    good_groups = errors(
        GOOD.replace("[vm1]", "[vm1, vm9]").replace("Freeze", "F") + "faults:\n  - {kind: refuse, requests: 3}\n"
    )
    assert [line.split(":")[1] for line in good_groups] == ["9", "9", "11"]


TWO_GROUPS = """
groups:
  a: {vms: {a1: {listen: 'h:1'}, a2: {source: 10.0.0.1}}}
  b: {vms: {b1: {listen: 'h:1'}, b2: {source: 10.0.0.1}, a1: }}
  c: {kind: standalone, vms: {c1: , c2: }}
events:
  - {type: Freeze, resources: [a1, b1]}
  - {type: Freeze, resources: [c1, c2]}
  - {type: Freeze, resources: [a1], changes: [{after: 1, resources: [b1]}]}
faults:
  - {kind: refuse, vm: [a1, a2]}
"""


def test_cross_checks_report_references_and_duplicates():
    assert errors(TWO_GROUPS) == [
        "f.yaml:4: groups.b.vms.b1.listen: a1 has the address h:1 already",
        "f.yaml:4: groups.b.vms.b2.source: a2 has the address 10.0.0.1 already",
        "f.yaml:4: groups.b.vms.a1: group a has a VM of this name already; use resource_name for equal Azure names",
        "f.yaml:8: events[1].resources: "
        "VMs of a standalone group do not share events; write one event for each VM (reference 3.1.1)",
        "f.yaml:11: faults[0].vm: a2 is identified by source address; its connections cannot be refused; use reset",
    ]


def test_cross_checks_report_events_of_two_groups():
    text = TWO_GROUPS.replace(", a1: }}", "}}").replace("listen: 'h:1'}, b2: {source: 10.0.0.1}", "listen: 'h:2'}")
    found = errors(text)
    assert found[0] == (
        "f.yaml:7: events[0].resources[1]: b1 is in group b, but a1 in group a; "
        "an event affects VMs of one group (reference 3.1.1)"
    )
    assert "f.yaml:9: events[2].changes[0].resources: an event cannot move to another group" in found


@pytest.mark.parametrize(
    "text", ["", "[]", "just text", "groups: {}", "groups: {a: {vms: {}}}", "a: &a [*a]", "? [x]\n: y"]
)
def test_parse_of_nonsense_reports_a_line(text):
    assert re.match(r"f\.yaml:\d+: ", errors(text)[0])


@pytest.mark.parametrize(
    "change, expected",
    [
        (
            ("events:\n  - {name: e, type: Freeze, resources: [vm1], at: 1h30m}", "events:"),
            ["f.yaml:8: events: None is not a list"],
        ),
        (
            ("at: 1h30m", "at: 40000d"),
            [f"f.yaml:9: events[0].at: '40000d' is not {WHEN}"],
        ),
        (
            ("at: 1h30m", "at: .nan"),
            [f"f.yaml:9: events[0].at: nan is not {WHEN}"],
        ),
        (
            ("at: 1h30m", "hold: .inf"),
            ["f.yaml:9: events[0].hold: inf is not a duration, or true for 'until released or NotBefore'"],
        ),
        (
            ("at: 1h30m", "at: \x07"),
            ["f.yaml:1: not YAML: unacceptable character #x0007: special characters are not allowed"],
        ),
        (
            ("at: 1h30m", "at: !!int abc"),
            ["f.yaml:9: events[0].at: not YAML: invalid literal for int() with base 10: 'abc'"],
        ),
        *(
            (("at: 1h30m", f"extra: {{a: [{value}]}}"), ["f.yaml:9: events[0].extra: " + NOT_JSON + "; write text"])
            for value in ("!!binary aGk=", ".nan", "-.inf")
        ),
        (
            ("groups:", "answers: [{path: /a, json: {a: !!binary aGk=}}]\ngroups:"),
            ["f.yaml:2: answers[0].json: " + NOT_JSON + "; write body_base64, or text"],
        ),
        (("groups:", "speed: .inf\ngroups:"), ["f.yaml:2: speed: inf is not a finite number"]),
        (("groups:", "speed: .nan\ngroups:"), ["f.yaml:2: speed: nan is not a finite number"]),
        (
            ("groups:", "faults: [{kind: trickle, bytes_per_second: .inf}]\ngroups:"),
            ["f.yaml:2: faults[0].bytes_per_second: inf is not a finite number"],
        ),
        (
            ("groups:", "faults: [{kind: date-skew, skew: .nan}]\ngroups:"),
            ["f.yaml:2: faults[0].skew: nan is not a duration that may begin with a minus sign"],
        ),
        (
            (
                "- {name: e, type: Freeze, resources: [vm1], at: 1h30m}",
                "- {name: a, at: 10s, typ: Freeze, resource: [vm1]}",
            ),
            [
                "f.yaml:9: events[0]: the key resources is missing",
                "f.yaml:9: events[0].resource: unknown key (did you mean resources?)",
                "f.yaml:9: events[0].typ: unknown key (did you mean type?)",
            ],
        ),
    ],
)
def test_parse_of_odd_values_reports_their_lines(change, expected):
    found = errors(GOOD.replace(*change))
    assert [line for line in expected if line not in found] == [], found
    assert all(re.match(r"f\.yaml:\d+: ", line) for line in found)


def test_load_of_a_directory_is_an_error(tmp_path):
    with pytest.raises(ScenarioError, match=f"^{re.escape(str(tmp_path))}: is a directory, not a scenario file$"):
        load(str(tmp_path))


@pytest.mark.parametrize(
    "written, meant", [("0:0:0:0:0:0:0:1", "::1"), ("::FFFF:10.0.0.1", "10.0.0.1"), ("10.0.0.1", "10.0.0.1")]
)
def test_source_address_is_canonical(written, meant):
    scenario = parse(GOOD.replace("{zone: 1}", f"{{source: '{written}'}}"), "f.yaml")
    assert scenario.groups[0].vms[1].source == meant
    twice = GOOD.replace("      vm1:\n", f"      vm1: {{source: '{meant}'}}\n").replace(
        "{zone: 1}", f"{{source: '{written}'}}"
    )
    assert errors(twice) == [f"f.yaml:7: groups.web.vms.vm2.source: vm1 has the address {meant} already"]


@pytest.mark.parametrize(
    "status, good",
    [(399, False), (400, True), (403, True), (599, True), (600, False), (-1, False), ("503", True), (True, False)],
)
def test_xff_status_must_be_an_error_status(status, good):
    if good:
        assert change_knobs(Knobs(), {"xff_status": status}).xff_status == int(status)
    else:
        with pytest.raises(KnobError, match="knob xff_status: "):
            change_knobs(Knobs(), {"xff_status": status})


def test_load_of_missing_file_or_misspelt_name_is_an_error():
    with pytest.raises(
        ScenarioError, match=r"no such file, and no shipped scenario of that name \(did you mean live-migration\?\)"
    ):
        load("live-migratoin")


def test_default_scenario_has_one_vm():
    assert [vm.name for vm in default_scenario().groups[0].vms] == ["vm1"]
    assert [vm.name for vm in default_scenario("solo").groups[0].vms] == ["solo"]


def test_schema_matches_the_names_in_the_code():
    definitions = schema()["$defs"]
    assert set(definitions["fault"]["properties"]["kind"]["enum"]) == set(fault_kinds.KINDS)
    assert tuple(definitions["eventType"]["enum"]) == EVENT_TYPES
    assert tuple(definitions["group"]["properties"]["kind"]["enum"]) == groups.KINDS
    options = set(definitions["fault"]["properties"]) - {
        "kind",
        "route",
        "method",
        "vm",
        "requests",
        "from",
        "to",
        "for",
    }
    assert options == set(fault_kinds.OPTION_KEYS)


@pytest.mark.parametrize(
    "text, seconds",
    [
        (5, 5),
        (0.5, 0.5),
        ("90", 90),
        ("30s", 30),
        ("15m", 900),
        ("2h", 7200),
        ("5d", 432000),
        ("1h30m", 5400),
        ("250ms", 0.25),
        (" 3M ", 180),
    ],
)
def test_parse_duration_returns_seconds(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "5 m", "-5", -5, "1e3", "5w", None, True, [], "9999999d"])
def test_parse_duration_of_other_text_is_an_error(text):
    with pytest.raises(ValueError):
        parse_duration(text)


@pytest.mark.parametrize(
    "values",
    [
        {"nope": 1},
        {"unknown_event_status": 500},
        {"etag": "maybe"},
        {"rate_limit": -1},
        {"rate_limit": True},
        {"enable_delay": "x"},
        {"notice_overrides": {"Freez": 1}},
        {"notice_overrides": 7},
        {"extra_api_versions": 5},
        {"post_body": True},
    ],
)
def test_change_knobs_with_bad_value_is_an_error(values):
    with pytest.raises(KnobError, match=next(iter(values))):
        change_knobs(Knobs(), values)


def test_removed_knob_of_a_scenario_is_an_error_with_line_and_remedy():
    with pytest.raises(ScenarioError) as caught:
        parse("groups: {web: {vms: {vm1: }}}\nknobs:\n  etag: off\n  event_order: newest_first\n", "s.yaml")
    assert str(caught.value) == (
        "s.yaml:4: knobs.event_order: the knob event_order was removed; leave it out, and see 1.4.12 "
        "in docs/reference/scheduled-events.md for the behaviour"
    )


def test_describe_knobs_round_trips_and_accepts_text():
    assert change_knobs(Knobs(), describe_knobs(Knobs())) == Knobs()
    text = {
        "etag": "off",
        "rate_limit": "off",
        "approve_hold": "on",
        "unknown_event_status": "404",
        "notice_overrides": "Freeze:5m,Reboot:1m",
        "extra_api_versions": "2031-01-01",
        "idle_disable": "2h",
    }
    knobs = change_knobs(Knobs(), text)
    assert (knobs.etag, knobs.rate_limit, knobs.approve_hold, knobs.unknown_event_status) == (
        False,
        0,
        float("inf"),
        404,
    )
    assert (knobs.notice_overrides["Freeze"], knobs.notice_overrides["Preempt"], knobs.idle_disable) == (300, 30, 7200)
    assert describe_knobs(knobs)["approve_hold"] == "on"


def test_knobs_of_the_reference_exist():
    asked = {
        "unknown_event_status",
        "partial_batch",
        "hardware_failure_type",
        "not_before_format",
        "post_body",
        "etag",
        "enable_delay",
        "empty_body_until_enabled",
        "idle_disable",
        "incarnation_step",
        "incarnation_reset",
        "approve_hold",
        "error_wording",
        "xff_status",
        "type_gating",
        "zone_split",
        "started_duration",
        "notice_overrides",
    }
    assert asked <= set(knob_fields())


# -- the library


def test_library_is_complete_and_has_summaries():
    assert set(shipped_names()) >= REQUIRED
    for name in shipped_names():
        assert "Learn: " in summary(name), name


@pytest.mark.parametrize("name", sorted(file.stem for file in LIBRARY.glob("*.yaml")))
def test_library_scenario_runs_to_its_end(name):
    scenario = load(name)
    assert yaml.safe_load((LIBRARY / (name + ".yaml")).read_text())["title"]
    simulation = Simulation(
        World(scenario.groups, Rules(scenario.knobs), new_id=sequential_ids()),
        scenario.events,
        scenario.incarnations,
        T0,
    )
    lines = simulation.advance_to(T0 + 30 * 86400)
    assert simulation.world.events == [] and {event.status for event in simulation.world.ended} == {life.ENDED}
    assert len(simulation.world.ended) == len(scenario.events)
    assert [line.moment for line in lines] == sorted(line.moment for line in lines)


def test_library_live_migration_has_two_vms_of_one_set():
    (group,) = load("live-migration").groups
    assert (group.kind, [vm.name for vm in group.vms]) == ("availability_set", ["vm1", "vm2"])
