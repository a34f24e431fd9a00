# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Scenario files: problems with file, line and key; knobs; the shipped library from start to end."""

from __future__ import annotations

import math
import re
from typing import Any

import jsonschema
import pytest
import yaml

from imds_simulator.keys import Problems
from imds_simulator.model import events as life
from imds_simulator.model.simulation import Simulation
from imds_simulator.scenario.files import LIBRARY, ScenarioError, load_with_warnings, schema, shipped_names, summary
from imds_simulator.scenario.knobs import Knobs, changed_knobs, describe_knobs
from support.simulator.simulations import T0, parse

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


def errors(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse(text)
    return str(caught.value).splitlines()


# a key in place of "at: 1h30m" in line 9, and the problem that it has
WRONG_KEYS = """
att: 1h | events[0].att: unknown key (did you mean at?)
at: soon | events[0].at: 'soon' is not a duration: a number of seconds, or text like 30s, ...; or a time like 2030-
at: -5 | events[0].at: -5 is not a duration: ...
at: 2126-01-31T12:00:00 | events[0].at: '2126-01-31T12:00:00' is not a time with a time zone; write a time such
at: "2126-01-31T12:00:00" | events[0].at: '2126-01-31T12:00:00' is not a time with a time zone
at: !!timestamp 2126-01-31T12:00:00 | events[0].at: '2126-01-31T12:00:00' is not a time with a time zone
at: 2126-01-31 | events[0].at: '2126-01-31' is not a time with a time zone
at: 2126-1-31 7:00:00 -5 | events[0].at: '2126-1-31 7:00:00 -5' is not a time with a time zone
at: 2126-01-31T12:00:00 CET | events[0].at: '2126-01-31T12:00:00 CET' is not a time
at: 2126-01-31T12:00.5Z | events[0].at: '2126-01-31T12:00.5Z' is not a time
at: 2126-01-31T12:00:00+01:60 | events[0].at: '2126-01-31T12:00:00+01:60' is not a time
at: 2126-01-31T12:00:00+25:00 | events[0].at: '2126-01-31T12:00:00+25:00' is not a time: ...
at: 2126-02-31T12:00:00Z | events[0].at: '2126-02-31T12:00:00Z' is not a time: ...
at: 2020-01-31T12:00:00Z | events[0].at: 2020-01-31T12:00:00.000Z is in the past: ...; write a later time
notice: .inf | events[0].notice: inf is not a duration between 0 and 100 years
notice: [1] | events[0].notice: [1] is not a duration: a number of seconds, or text like 30s, 15m, 2h, 5d, 1h30m
hold: maybe | events[0].hold: 'maybe' is not a duration, or true for 'until released or NotBefore'
after: x | events[0].after: there is no event x; there are e
after: "x\\e[31m\\L" | events[0].after: there is no event x\\x1b[31m\\u2028; there are e
after: e | events[0].after: these events wait for each other
id: nonsense | events[0].id: 'nonsense' is not an event id: a GUID
actual: Freez | events[0].actual: 'Freez' is not one of Freeze, Reboot, ... (did you mean Freeze?)
duration: 1.5 | events[0].duration: 1.5 is not whole seconds, or -1 for unknown
batch: '' | events[0].batch: '' is not text of at least one character
not_before: 30s | events[0].not_before: '30s' is a duration, but not_before is the text that ...; write notice: 30s
not_before: 90 | events[0].not_before: 90 is a duration, but ...; write notice: 90
not_before: [1] | events[0].not_before: [1] is not text
extra: {a: [!!binary aGk=]} | events[0].extra: JSON has no binary data, NaN or infinity; write text
extra: {a: [.nan]} | events[0].extra: JSON has no binary data, NaN or infinity; write text
at: !!int abc | events[0].at: not YAML: invalid literal for int() with base 10: 'abc'
changes: [{after: 1, after_start: 1, notice: 1}] | events[0].changes[0].after_start: give either after or after_start
changes: [{after: 1}] | events[0].changes[0]: the change is empty; give an action or a member to change
changes: [{action: impact}] | events[0].changes[0]: the key impact_for is missing; an impact needs a duration
changes: [{action: cancel, type: Reboot}] | events[0].changes[0].type: action cancel does not take type
changes: [{after: 1, notise: 1}] | events[0].changes[0].notise: unknown key (did you mean notice?)
changes: [{action: impact, impact_for: soon}] | events[0].changes[0].impact_for: 'soon' is not a duration: ...
changes: [[]] | events[0].changes[0]: [] is not a mapping
"""
# what replaces a part of GOOD, and the first problem that it has
WRONG_PARTS = r"""
: availability_set => : availabilty_set | 4: groups.web.kind: 'availabilty_set' is not one of ... (did you mean avail
type: Freeze, => | 9: events[0]: the key type is missing; only an event with starts: hardware_failure needs no type
resources: [vm1], => | 9: events[0]: the key resources is missing
[vm1] => [vm3] | 9: events[0].resources[0]: there is no VM vm3 (did you mean vm2?)
[vm1] => vm1 | 9: events[0].resources: 'vm1' is not a list
[vm1] => [vm1, vm1] | 9: events[0].resources[1]: vm1 is in the list twice
[vm1] => [] | 9: events[0].resources: the list is empty
[vm1] => [vm1]}\n  - {name: e, type: Freeze, resources: [vm2] | 10: events[1].name: events[0] has the name e already
vm2: {zone: 1} => VM1: | 7: groups.web.vms.VM1: vm1 has the name VM1 already; ... in any letter case (reference 3.2.4)
{zone: 1} => {resource_name: VM1} | 7: groups.web.vms.vm2: vm1 has the name VM1 already; ...case (reference 3.2.4)
vm1:\n => vm1:\n      vm1:\n | 7: groups.web.vms.vm1: duplicate key; it is on line 6 already
1h30m} => 1h}\n  - {type: Freeze, resources: [vm1], after: e, at: 2126-01-31T12:00Z} | 10: events[1].at: ...; with after
1h30m} => 2126-01-31T12:00:00Z}\nbegin: first_request | 9: events[0].at: ...is an absolute time; with begin: first_requ
at: 1h30m => at: \a | 1: not YAML: unacceptable character #x0007: special characters are not allowed
{zone: 1} => {listen: here} | 7: groups.web.vms.vm2.listen: 'here' is not an address HOST:PORT
{zone: 1} => {source: here} | 7: groups.web.vms.vm2.source: 'here' does not appear to be an IPv4 or IPv6 address
{zone: 1} => {listen: 'a:1', source: 10.0.0.1} | 7: groups.web.vms.vm2.source: give either listen or source, not both
{zone: 1} => {placement_group: a} | 7: groups.web.vms.vm2.placement_group: only an instance of a uniform scale_set has
{zone: 1} => {instance: {compute: {userData: !!binary aGk=}}} | 7: groups.web.vms.vm2.instance: JSON has no binary data
{zone: 1} => {instance: {compute: name}} | 7: groups.web.vms.vm2.instance.compute: 'name' is not a mapping or nothing
    vms:\n      vm1:\n      vm2: {zone: 1} =>     vms: [] | 5: groups.web.vms: the list is empty
    vms:\n      vm1:\n      vm2: {zone: 1} =>     vms: 7 | 5: groups.web.vms: 7 is not a mapping or a list of names
kind: availability_set => orchestration: flexible | 4: groups.web.orchestration: only a scale_set has orchestration
vm1:\n      vm2: {zone: 1} => - vm1\n      - vm1 | 7: groups.web.vms[1]: vm1 is in the list twice
vm1:\n      vm2: {zone: 1} => - vm1\n      - 3 | 7: groups.web.vms[1]: 3 is not text of at least one character
vm1:\n      vm2: {zone: 1} => - vm1\n      - '' | 7: groups.web.vms[1]: '' is not text of at least one character
vm1:\n      vm2: {zone: 1} => - vm1\n      - | 7: groups.web.vms[1]: None is not text of at least one character
vm1:\n      vm2: {zone: 1} => - vm1\n      - vm2: {zone: 1} | 7: groups.web.vms[1]: {'vm2': {'zone': 1}} is not text
vm1:\n      vm2: {zone: 1} => - vm1\n      - [vm2] | 7: groups.web.vms[1]: ['vm2'] is not text of at least one character
groups: => default_vm: vm9\ngroups: | 2: default_vm: there is no VM vm9 (did you mean vm2?)
groups: => speed: 0\ngroups: | 2: speed: 0 is not a finite number of at least 0.000001
groups: => speed: 9.0e-7\ngroups: | 2: speed: 9e-07 is not a finite number of at least 0.000001
groups: => speed: .nan\ngroups: | 2: speed: nan is not a finite number of at least 0.000001
groups: => knobs: {etag: 7}\ngroups: | 2: knobs.etag: 7 is not true or false, on or off
groups: => knobs: {etagg: off}\ngroups: | 2: knobs.etagg: unknown key (did you mean etag?)
groups: => knobs: {unknown_event_status: 500}\ngroups: | 2: knobs.unknown_event_status: 500 is not one of 400, 200, 404
groups: => knobs: {rate_limit: -1}\ngroups: | 2: knobs.rate_limit: -1 is not a whole number from 0, or off
groups: => knobs: {rate_limit: true}\ngroups: | 2: knobs.rate_limit: True is not a whole number from 0, or off
groups: => knobs: {enable_delay: x}\ngroups: | 2: knobs.enable_delay: 'x' is not a duration such as 30s or 2h, or off
groups: => knobs: {notice_overrides: {Freez: 1}}\ngroups: | 2: knobs.notice_overrides.Freez: ...(did you mean Freeze?)
groups: => knobs: {notice_overrides: {Freeze: soon}}\ngroups: | 2: knobs.notice_overrides.Freeze: 'soon' is not a durat
groups: => knobs: {notice_overrides: 7}\ngroups: | 2: knobs.notice_overrides: 7 is not a mapping
groups: => knobs: {extra_api_versions: 5}\ngroups: | 2: knobs.extra_api_versions: 5 is not a list of names
groups: => knobs: {arm_token: a b}\ngroups: | 2: knobs.arm_token: a token has ASCII characters only, without
groups: => knobs: {xff_status: 399}\ngroups: | 2: knobs.xff_status: 399 is not an error status from 400 to 599
groups: => knobs: {xff_status: 600}\ngroups: | 2: knobs.xff_status: 600 is not an error status from 400 to 599
groups: => knobs: {event_order: x}\ngroups: | 2: knobs.event_order: the knob event_order was removed; ... see 1.4.12
groups: => begin: first_request\nfaults: [{kind: gone, to: 2126-01-31T12:00Z}]\ngroups: | 3: faults[0].to: ...with begin
groups: => incarnations: [{group: web, add: 1, at: 2020-01-31T12:00Z}]\ngroups: | 2: incarnations[0].at: ...is in the pa
groups: => incarnations: [{group: web}]\ngroups: | 2: incarnations[0]: give either to, or an add other than 0
groups: => incarnations: [{group: web, to: 7, add: 1}]\ngroups: | 2: incarnations[0]: give either to, or an add
groups: => incarnations: [{group: wab, to: 7}]\ngroups: | 2: incarnations[0].group: there is no group wab
groups: => impact: {Freeze: {start: x}}\ngroups: | 2: impact.Freeze.start: 'x' is not a command as a list: program and
groups: => answers: [{path: /a, json: [.nan]}]\ngroups: | 2: answers[0].json: JSON has no binary data, ...; write body_
groups: => answers: [{path: x}]\ngroups: | 2: answers[0].path: 'x' is not a path such as ..., without query
groups: => answers: [{path: '/x?y=1'}]\ngroups: | 2: answers[0].path: '/x?y=1' is not a path such as
groups: => answers: [{path: /Metadata/instance/a}]\ngroups: | 2: answers[0].path: the simulator answers ... itself; use
groups: => answers: [{path: /a/*/b}]\ngroups: | 2: answers[0].path: '/a/*/b' has a * that is not its last part, as in
groups: => answers: [{path: /x, vm: vm11}]\ngroups: | 2: answers[0].vm: there is no VM vm11 (did you mean vm1?)
groups: => answers: [{path: /x, group: [wb]}]\ngroups: | 2: answers[0].group: there is no group wb (did you mean web?)
groups: => answers: [{path: /x, vm: vm1, group: web}]\ngroups: | 2: answers[0].group: give either vm or group, not both
groups: => answers: [{path: /x, name: instance}]\ngroups: | 2: answers[0].name: 'instance' is a route of the simulator
groups: => answers: [{path: /x, body: a, json: 1}]\ngroups: | 2: answers[0].json: give only one of body, json, body_b
groups: => answers: [{path: /x, status: 204, body: a}]\ngroups: | 2: answers[0].body: an answer with status 204 has no
groups: => answers: [{path: /x, headers: {content-length: 3}}]\ngroups: | 2: answers[0].headers: content-length: the si
groups: => answers: [{path: /x, name: wire}]\nfaults: [{kind: gone, route: wyre}]\ngroups: | 3: faults[0].route: ...wire
groups: => notify: {}\ngroups: | 2: notify: the key url is missing
groups: => notify: {url: 'ftp://host/'}\ngroups: | 2: notify.url: 'ftp://host/' is not an http or https address
groups: => notify: {url: 'http://'}\ngroups: | 2: notify.url: 'http://' is not an http or https address
groups: => notify: {url: 'http://host:0/'}\ngroups: | 2: notify.url: 'http://host:0/' is not an http or https address
groups: => notify: {url: 'http://host:99999/'}\ngroups: | 2: notify.url:
groups: => notify: {url: 'http://a/', token: a b}\ngroups: | 2: notify.token: a token has ASCII characters only, without
groups: => notify: {url: 'http://a/', token: "a\tb"}\ngroups: | 2: notify.token: a token has ASCII characters only, with
groups: => notify: {url: 'http://a/', headers: {X A: a}}\ngroups: | 2: notify.headers: 'X A' is not the name of a header
groups: => notify: {url: 'http://a/', duplicates: 1.5}\ngroups: | 2: notify.duplicates: 1.5 is not a share from 0 to 1
groups: => notify: {url: 'http://a/', attempts: 0}\ngroups: | 2: notify.attempts: 0 is not a whole number from 1 to 30
"""
# a fault, and the problem that it has
WRONG_FAULTS = r"""
kind: emty | .kind: ...did you mean empty?
kind: empty, bodi: x | .bodi: ...did you mean body?
kind: empty, status: 500 | .status: fault empty does not take status (it takes headers)
kind: refuse, requests: 3 | .requests: fault refuse does not take requests (it takes vm, from,
kind: gone, vm: vm7 | .vm: there is no VM vm7 (did you mean vm2?)
kind: status, status: 99 | .status: 99 is not a whole number from 200 to 599
kind: trickle, bytes_per_second: 0 | .bytes_per_second: 0 is not a finite number above 0
kind: date-skew, skew: fast | .skew: 'fast' is not a duration that may begin with a minus sign
kind: gone, to: 5, for: 5 | .for: give either to or for
kind: body, body: a, body_base64: YQ== | .body_base64: give either body or body_base64, not both
kind: gone, from: 6, to: 5 | .to: the fault ends before it begins
kind: gone, from: 2126-01-02T12:00:00Z, to: 2126-01-01T12:00:00Z | .to: the fault ends before it begins
kind: gone, from: 1m, to: 2126-01-31T12:00:00Z | .to: from and to are a duration and a time
kind: gone, from: 2020-01-31T12:00:00Z | .from: 2020-01-31T12:00:00.000Z is in the past
kind: gone, requests: 5-3 | .requests: the last request comes before the first
kind: gone, requests: first | .requests: 'first' is not a request number from 1, or text like 3, 3- or 3-5
kind: unavailable, route: notify | .kind: ...lost-request, lost-answer
kind: lost-answer, route: notify, method: GET | .method: route notify has POST requests only
kind: body, body_base64: '?' | .body_base64: not base64
kind: empty, headers: {X-A: "1\r\x0AX-B: 2"} | .headers: the value of X-A has more than one line
kind: empty, headers: {"X-A: 1\r\x0AX-B": '2'} | .headers: ...is not the name of a header
kind: empty, headers: {content-length: x} | .headers: the value of content-length is not a number of bytes
kind: redirect, location: "http://a/\x0AX-B: 2" | .location: the text has more than one line
kind: body, content_type: "text/plain\r" | .content_type: the text has more than one line
"""


def rows(table: str) -> list[tuple[str, str]]:
    return [(left, right) for left, _bar, right in (line.rpartition(" | ") for line in table.strip().splitlines())]


def matches(line: str, problem: str) -> bool:
    return re.match("f.yaml:" + re.escape(problem).replace(re.escape("..."), ".*"), line) is not None


@pytest.mark.parametrize(("key", "problem"), rows(WRONG_KEYS))
def test_wrong_key_of_an_event_has_file_line_and_key(key: str, problem: str) -> None:
    (line,) = errors(GOOD.replace("at: 1h30m", key))
    assert matches(line, f"9: {problem}"), line


@pytest.mark.parametrize(("change", "problem"), rows(WRONG_PARTS))
def test_wrong_part_of_a_scenario_has_file_line_and_key(change: str, problem: str) -> None:
    old, _arrow, new = change.replace("\\n", "\n").replace("\\a", "\a").partition(" =>")
    (line,) = errors(GOOD.replace(old, new.removeprefix(" ")))
    assert matches(line, problem), line


@pytest.mark.parametrize(("fault", "problem"), rows(WRONG_FAULTS))
def test_wrong_fault_has_file_line_and_key(fault: str, problem: str) -> None:
    (line,) = errors(f"{GOOD}faults:\n  - {{{fault}}}\n")
    assert matches(line, f"11: faults[0]{problem}"), line


LISTED = GOOD.replace("      vm1:\n      vm2: {zone: 1}\n", "      - vm1\n      - vm2\n")


def test_list_of_vms_has_the_vms_of_a_mapping_without_values() -> None:
    assert parse(LISTED) == parse(GOOD.replace(" {zone: 1}", ""))


def test_problem_of_a_vm_in_a_list_has_the_line_of_its_name() -> None:
    name = "the name of an instance of a uniform scale set is web_NUMBER (reference 3.2)"
    assert errors(LISTED.replace("availability_set", "scale_set")) == [
        f"f.yaml:6: groups.web.vms.vm1: {name}",
        f"f.yaml:7: groups.web.vms.vm2: {name}",
    ]


@pytest.mark.parametrize("shown", ["", "soon", "1800000000", "Mon, 19 Sep 2016 18:29:47 GMT", "2030-01-31T12:00:00Z"])
def test_not_before_is_any_other_text(shown: str) -> None:
    assert parse(GOOD.replace("at: 1h30m", f"not_before: '{shown}'")).events[0].not_before == shown


def test_all_problems_are_reported_together_in_the_order_of_the_file() -> None:
    text = GOOD.replace("[vm1]", "[vm9]").replace("Freeze", "F").replace("at: 1h30m", "att: 1, notice: soon, after: x")
    more = "titel: y\nfaults:\n  - {kind: emty}\n  - {kind: refuse, requests: 3}\ndefault_vm: vm8\n"
    assert [line.split(": ")[:2] for line in errors(text + more)] == [
        ["f.yaml:9", "events[0].att"],
        ["f.yaml:9", "events[0].type"],
        ["f.yaml:9", "events[0].notice"],
        ["f.yaml:9", "events[0].resources[0]"],
        ["f.yaml:9", "events[0].after"],
        ["f.yaml:10", "titel"],
        ["f.yaml:12", "faults[0].kind"],
        ["f.yaml:13", "faults[1].requests"],
        ["f.yaml:14", "default_vm"],
    ]


TWO_GROUPS = """
groups:
  a: {vms: {a1: {listen: 'h:1'}, a2: {source: 10.0.0.1}}}
  b: {vms: {b1: {listen: 'h:1'}, b2: {source: 10.0.0.1}, a1: }}
  c: {kind: standalone, vms: {c1: , c2: }}
events:
  - {type: Freeze, resources: [a2, b1]}
  - {type: Freeze, resources: [c1, c2]}
  - {type: Freeze, resources: [a2], changes: [{after: 1, resources: [b1]}]}
faults:
  - {kind: refuse, vm: [b1, a2]}
"""


def test_cross_checks_report_references_and_duplicates() -> None:
    assert errors(TWO_GROUPS) == [
        "f.yaml:4: groups.b.vms.a1: group a has a VM of this name already; use resource_name for equal Azure names",
        "f.yaml:4: groups.b.vms.b1.listen: a1 has the address h:1 already",
        "f.yaml:4: groups.b.vms.b2.source: a2 has the address 10.0.0.1 already",
        "f.yaml:7: events[0].resources[1]: b1 is in group b, but a2 in group a; "
        "an event affects VMs of one group (reference 3.1.1)",
        "f.yaml:8: events[1].resources: "
        "VMs of a standalone group do not share events; write one event for each VM (reference 3.1.1)",
        "f.yaml:9: events[2].changes[0].resources: an event cannot move to another group",
        "f.yaml:11: faults[0].vm: a2 is identified by source address; its connections cannot be refused; use reset",
    ]


NO_SCENARIO = ["", "[]", "just text", "groups: [", "a: &a [*a]", "? [x]\n: y", GOOD.partition("  - ")[0], "events: {}"]
NO_GROUPS = ["groups: {}", "groups: {a: {vms: {}}}", "groups: {a: b}", "groups: {a: {vms: {b: c}}}"]


@pytest.mark.parametrize("text", [*NO_SCENARIO, *NO_GROUPS])
def test_parse_of_nonsense_reports_a_line(text: str) -> None:
    assert all(re.match(r"f\.yaml:\d+: ", line) for line in errors(text))


def test_values_that_python_cannot_handle_are_problems() -> None:
    assert "f.yaml:2: speed: " in errors(GOOD.replace("groups:", "speed: 1" + "0" * 400 + "\ngroups:"))[0]
    (line,) = errors(GOOD.replace("vm1:", "vm1: {fault_domain: 0x" + "f" * 5000 + "}"))
    assert line.startswith("f.yaml:6: groups.web.vms.vm1.fault_domain: not YAML: ")
    assert errors("title: " + "[" * 5000)[0] == "f.yaml:1: not YAML: lists or mappings are nested too deeply"


def test_escape_that_is_no_character_is_an_error() -> None:
    for escape in ("\\UFFFFFFFF", "\\U00110000"):
        expected = "f.yaml:2: not YAML: an escape such as \\UFFFFFFFF is not a character"
        assert errors(f'version: 1\ntitle: "{escape}"')[0] == expected


@pytest.mark.parametrize("name", ["cancelled-maintenance", "sick-imds"])
def test_damaged_scenario_has_a_line_for_each_problem(name: str) -> None:
    """As a file that is read while an editor writes it."""
    text = (LIBRARY / f"{name}.yaml").read_text(encoding="utf-8")
    for end in range(1, len(text), 7):
        try:
            parse(text[:end])
            parse(text[:end] + "\ufffd" + text[end + 5 :])
        except ScenarioError as error:
            assert all(re.match(r"f\.yaml:\d+: ", line) for line in str(error).splitlines())


def test_aliases_that_mean_billions_of_values_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]" for number in range(1, 10)]
    assert errors("\n".join(lines)) == ["f.yaml:1: not YAML: it has more than 500000 values; use fewer aliases"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("localhost:8931", "127.0.0.1:8931"),
        ("0.0.0.0:8931", "10.0.0.1:8931"),
        ("10.0.0.1:8931", "[::]:8931"),
        ("[::1]:8931", "[0:0:0:0:0:0:0:1]:8931"),
    ],
)
def test_two_forms_of_one_address_are_refused(first: str, second: str) -> None:
    vms = f"{{vm1: {{listen: '{first}'}}, vm2: {{listen: '{second}'}}, vm3: {{listen: '127.0.0.2:8932'}}}}"
    problem = f"f.yaml:1: groups.web.vms.vm2.listen: vm1 has the address {first} already"
    assert errors(f"groups: {{web: {{kind: availability_set, vms: {vms}}}}}\n") == [problem]


@pytest.mark.parametrize(
    ("written", "meant"), [("0:0:0:0:0:0:0:1", "::1"), ("::FFFF:10.0.0.1", "10.0.0.1"), ("10.0.0.1", "10.0.0.1")]
)
def test_source_address_is_canonical(written: str, meant: str) -> None:
    text = GOOD.replace("{zone: 1}", f"{{source: '{written}'}}")
    assert parse(text).groups[0].vms[1].source == meant
    twice = text.replace("      vm1:\n", f"      vm1: {{source: '{meant}'}}\n")
    assert errors(twice) == [f"f.yaml:7: groups.web.vms.vm2.source: vm1 has the address {meant} already"]


# -- knobs, from scenarios, JSON and the text of a command line


def set_knobs(changes: Any) -> Knobs:
    return changed_knobs(Knobs(), changes, (), Problems())


@pytest.mark.parametrize(
    ("knob", "given", "value"),
    [
        ("etag", "off", False),
        ("rate_limit", "off", 0),
        ("rate_limit", False, 0),
        ("approve_hold", "on", float("inf")),
        ("approve_hold", True, float("inf")),
        ("unknown_event_status", "404", 404),
        ("partial_batch", "Apply_Valid", "apply_valid"),
        ("extra_api_versions", "2031-01-01, 2032-01-01", ("2031-01-01", "2032-01-01")),
        ("extra_api_versions", "", ()),
        ("idle_disable", "2h", 7200),
        ("xff_status", "503", 503),
        ("xff_status", 599, 599),
        ("xff_status", 400, 400),
    ],
)
def test_knob_has_the_same_value_from_text_and_from_yaml(knob: str, given: Any, value: Any) -> None:
    assert getattr(set_knobs({knob: given}), knob) == value


def test_knob_by_type_keeps_the_other_types() -> None:
    for given in ("Freeze:5m,Reboot:1m", {"Freeze": 300, "Reboot": "1m"}):
        notice = set_knobs({"notice_overrides": given}).notice_overrides
        assert (notice["Freeze"], notice["Reboot"], notice["Preempt"]) == (300, 60, 30)


def test_described_knobs_can_be_set() -> None:
    knobs = set_knobs({"approve_hold": True, "extra_api_versions": ["2031-01-01"]})
    assert describe_knobs(knobs)["approve_hold"] == "on"
    assert set_knobs(describe_knobs(knobs)) == knobs


# -- the library


def test_schema_accepts_the_library_and_refuses_wrong_scenarios() -> None:
    validator = jsonschema.Draft7Validator(schema())
    for name in shipped_names():
        assert [*validator.iter_errors(yaml.safe_load((LIBRARY / f"{name}.yaml").read_text(encoding="utf-8")))] == []
    good = yaml.safe_load(GOOD)
    assert validator.is_valid(good)
    assert validator.is_valid(yaml.safe_load(LISTED))
    wrong: list[dict[str, Any]] = [{"titel": "x"}, {"groups": {}}, {"speed": 0}, {"knobs": {"etagg": True}}]
    wrong += [{"events": [{"type": "Freeze", "resources": ["vm1"], **more}]} for more in ({"at": "soon"}, {"att": 1})]
    wrong += [
        {"faults": [{"kind": "emty"}]},
        {"notify": {}},
        {"notify": {"url": "http://a/", "attempts": 0}},
        {"answers": [{"path": "a"}]},
    ]
    no_vms: list[Any] = [[], ["a", "a"], [3], [""], [{"a": {}}], 7, {}]
    wrong += [{"groups": {"web": {"vms": vms}}} for vms in no_vms]
    assert [each for each in wrong if validator.is_valid({**good, **each})] == []


@pytest.mark.parametrize("name", sorted(file.stem for file in LIBRARY.glob("*.yaml")))
def test_library_scenario_runs_to_its_end(name: str) -> None:
    scenario, warnings = load_with_warnings(name)
    assert scenario.title and warnings == [] and "Learn: " in summary(name)
    simulation = Simulation(scenario)
    simulation.begin(T0)
    lines = simulation.advance_to(T0 + 30 * 86400)
    assert simulation.world.events == [] and {event.status for event in simulation.world.ended} == {life.ENDED}
    assert simulation.next_due == math.inf
    assert len(simulation.world.ended) == len(scenario.events)
    assert [line.moment for line in lines] == sorted(line.moment for line in lines)
