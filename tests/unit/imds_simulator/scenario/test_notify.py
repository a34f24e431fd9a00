# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The key ``notify`` of a scenario, and the options of the same names."""

from __future__ import annotations

import pytest

from imds_simulator.cli.options import serve_parser
from imds_simulator.cli.serve_command import UsageError, server_options
from imds_simulator.scenario.files import ScenarioError, parse

URL = "http://127.0.0.1:5000/endpoint"
GROUPS = "groups: {web: {vms: {vm1: }}}\n"


def notify_of(text):
    return parse(GROUPS + "notify: " + text, "s.yaml").notify


def options(*arguments, scenario=None):
    given = ["--scenario", str(scenario)] if scenario else []
    return server_options(serve_parser().parse_args([*given, *arguments])).scenario.notify


def test_scenario_sets_all_keys():
    notify = notify_of(
        f"{{url: '{URL}', schema: cloudevents, token: t, headers: {{X-A: 1}}, duplicates: 0.5, disorder: 1m, seed: 7, "
        "attempts: 2, validate: true}"
    )
    assert (notify.url, notify.schema, notify.duplicates, notify.disorder) == (URL, "cloudevents", 0.5, 60)
    assert notify.headers == {"X-A": "1", "Authorization": "Bearer t"}
    assert (notify.seed, notify.attempts, notify.validate) == (7, 2, True)


def test_without_the_key_and_the_options_nothing_is_published():
    assert options() is None


def test_options_have_precedence_over_the_scenario(tmp_path):
    scenario = tmp_path / "s.yaml"
    scenario.write_text(GROUPS + f"notify: {{url: '{URL}', token: old, headers: {{X-A: a}}, seed: 7}}\n")
    assert options(scenario=scenario).headers == {"X-A": "a", "Authorization": "Bearer old"}
    changed = options("--notify-token", "new", "--notify-header", "X-B=b", "--notify-seed", "8", scenario=scenario)
    assert (changed.url, changed.seed) == (URL, 8)
    assert changed.headers == {"X-A": "a", "X-B": "b", "Authorization": "Bearer new"}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{}", "url"),
        ("{url: 'ftp://host/'}", "url"),
        ("{url: 'http://'}", "url"),
        ("{url: 'http://host:0/'}", "url"),
        ("{url: 'http://host:99999/'}", "url"),
        (f"{{url: '{URL}', token: 'a b'}}", "token"),
        (f'{{url: "{URL}", token: "a\\nb"}}', "token"),
        (f'{{url: "{URL}", headers: {{X-A: "a\\nb"}}}}', "headers"),
        (f"{{url: '{URL}', headers: {{'X A': a}}}}", "headers"),
        (f"{{url: '{URL}', duplicates: 1.5}}", "duplicates"),
        (f"{{url: '{URL}', duplicates: .nan}}", "duplicates"),
        (f"{{url: '{URL}', attempts: 0}}", "attempts"),
        (f"{{url: '{URL}', disorder: soon}}", "disorder"),
        (f"{{url: '{URL}', schema: cloudevent}}", "schema"),
    ],
)
def test_invalid_value_is_reported_with_its_line_and_key(text, key):
    with pytest.raises(ScenarioError) as caught:
        notify_of(text)
    assert [line.split(": ")[:2] for line in str(caught.value).splitlines()] == [["s.yaml:2", f"notify.{key}"]]


def test_unknown_key_names_the_nearest_one():
    with pytest.raises(ScenarioError, match="did you mean duplicates"):
        notify_of(f"{{url: '{URL}', duplicate: 1}}")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--notify-token", "x"], "--notify-url"),
        (["--notify-url", "host"], "--notify-url"),
        (["--notify-url", URL, "--notify-schema", "cloudevent"], "--notify-schema"),
        (["--notify-url", URL, "--notify-duplicates", "nan"], "--notify-duplicates"),
        (["--notify-url", URL, "--notify-header", "X A=b"], "--notify-header"),
        (["--notify-url", URL, "--notify-attempts", "31"], "--notify-attempts"),
    ],
)
def test_invalid_option_is_named(arguments, named):
    with pytest.raises(UsageError) as caught:
        options(*arguments)
    assert str(caught.value).startswith(named + ": ")


@pytest.mark.parametrize(
    ("fault", "key"),
    [
        ("{kind: unavailable, route: notify}", "kind"),
        ("{kind: lost-answer, route: notify, method: GET}", "method"),
        ("{kind: unavailable, route: arm, method: GET}", "method"),
        ("{kind: refuse, route: arm}", "kind"),
        ("{kind: unavailable, route: army}", "route"),
    ],
)
def test_fault_that_a_route_cannot_have_is_reported(fault, key):
    with pytest.raises(ScenarioError) as caught:
        parse(GROUPS + f"faults: [{fault}]\n", "s.yaml")
    assert f"faults[0].{key}: " in str(caught.value)
