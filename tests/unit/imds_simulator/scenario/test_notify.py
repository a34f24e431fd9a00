# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import pytest

from imds_simulator.scenario.files import ScenarioError, parse

URL = "http://127.0.0.1:5000/endpoint"
GROUPS = "groups: {web: {vms: {vm1: }}}\n"


def notify_of(text):
    return parse(GROUPS + "notify: " + text, "s.yaml").notify


def test_scenario_sets_all_keys():
    notify = notify_of(
        f"{{url: '{URL}', schema: cloudevents, token: t, headers: {{X-A: 1}}, duplicates: 0.5, disorder: 1m, seed: 7, "
        "attempts: 2, validate: true}"
    )
    assert (notify.url, notify.schema, notify.duplicates, notify.disorder) == (URL, "cloudevents", 0.5, 60)
    assert notify.headers == {"X-A": "1", "Authorization": "Bearer t"}
    assert (notify.seed, notify.attempts, notify.validate) == (7, 2, True)


def test_without_the_key_nothing_is_published():
    assert parse(GROUPS, "s.yaml").notify is None


@pytest.mark.parametrize(
    ("text", "key"),
    [
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


def test_missing_url_is_reported():
    with pytest.raises(ScenarioError, match="s.yaml:2: notify: the key url is missing"):
        notify_of("{}")
