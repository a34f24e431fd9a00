# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options as users write them."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.event_types import (
    EVENT_TYPES,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.options import (
    check_key,
    parse_boolean,
    parse_choice,
    parse_event_type,
    parse_event_types,
    parse_integer,
    parse_option,
    parse_options,
    parse_seconds,
    parse_text,
    parse_texts,
    type_warnings,
)

hypothesis = pytest.importorskip("hypothesis", reason="ansible-test's own Python has no hypothesis")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

WORDS = ("first", "external", "self-only")
# a value of any type, as YAML and JSON have them
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda each: st.one_of(st.lists(each, max_size=3), st.dictionaries(st.text(max_size=5), each, max_size=3)),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (5, 5),
        (0, 0),
        (0.5, 0.5),
        ("5", 5),
        ("36500d", 3153600000),
        ("1.5s", 1.5),
        ("15m", 900),
        ("2h", 7200),
        ("5d", 432000),
        (" 3 m ", 180),
    ],
)
def test_seconds_reads_a_number_and_a_text_with_a_unit(value, seconds):
    found = parse_seconds(value)
    assert found == seconds and isinstance(found, float)


TEXTS = [
    "",
    "m",
    "5 weeks",
    "40000d",
    "15 minutes",
    "250ms",
    "-5s",
    "1:30",
    "1h30m",
    "1e3",
    "nan",
    "9" * 400,
    "99999999d",
    "\u0665s",
]
NOT_TYPES = [
    "Preempt, Terminate",
    "Reboot,Redeploy",
    "*",
    "",
    " ",
    "Reboot\x1b[2J",
    "\x00",
    "Réboot",
    " Reboot",
    None,
    5,
]


@pytest.mark.parametrize(
    ("parse", "expected", "values"),
    [
        (
            parse_seconds,
            "seconds as a number, or a text like 30s, 15m, 2h or 5d",
            [*TEXTS, None, [], True, float("nan"), float("inf"), 10**400, {"s": 5}],
        ),
        (
            parse_integer,
            "a whole number, at least 0",
            [1.5, 5.0, "5.0", "", " 5", "x", True, None, [5], -1, "-1", "\u0665", "9" * 19],
        ),
        (parse_boolean, "true or false", ["true", "yes", 1, 0, None, []]),
        (parse_texts, "a text", [3, None, [3], {"a": "b"}, ["a", None]]),
        (parse_event_type, "an event type such as Reboot", NOT_TYPES),
    ],
)
def test_other_values_are_refused(parse, expected, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^expected {expected}, not "):
            parse(value)


@pytest.mark.parametrize(
    ("parse", "read"),
    [
        (parse_integer, [(5, 5), ("5", 5), ("007", 7), (0, 0), (10**20, 10**20)]),
        (parse_boolean, [(True, True), (False, False)]),
        (partial(parse_choice, known=WORDS), [("first", "first"), ("FIRST", "first"), ("First", "first")]),
        (parse_texts, [("a", ["a"]), (["a", "b"], ["a", "b"]), (("a",), ["a"]), ([], [])]),
        (parse_event_types, [("reboot", ("Reboot",)), (["REBOOT", "freeze"], ("Reboot", "Freeze"))]),
        # twice, unknown, none
        (parse_event_types, [(["Reboot", "reboot"], ("Reboot",)), ("Hibernate", ("Hibernate",)), ([], ())]),
    ],
)
def test_values_are_read(parse, read):
    for value, expected in read:
        found = parse(value)
        assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "limits", "text"),
    [
        (-1, {}, "expected at least 0 seconds, not -1"),
        ("5s", {"least": 10}, "expected at least 10 seconds, not '5s'"),
        ("2h", {"least": 0.2, "most": 60}, "expected 0.2 to 60 seconds, not '2h'"),
        ("31d", {"most": 30 * 86400}, "expected 0 to 2592000 seconds, not '31d'"),
    ],
)
def test_seconds_out_of_range_are_refused_with_the_range(value, limits, text):
    with pytest.raises(ValueError) as caught:
        parse_seconds(value, **limits)
    assert str(caught.value) == text


@given(
    number=st.decimals(0, 1000, places=3),
    unit=st.sampled_from([("", 1), ("s", 1), ("m", 60), ("h", 3600), ("d", 86400)]),
)
def test_seconds_of_a_text_are_the_number_times_the_unit(number, unit):
    assert parse_seconds(f"{number}{unit[0]}") == pytest.approx(float(number) * unit[1])


@given(value=ANYTHING, least=st.floats(0, 100), most=st.floats(100, 1e6))
def test_seconds_are_within_the_range_or_refused(value, least, most):
    try:
        seconds = parse_seconds(value, least, most)
    except ValueError:
        return
    assert least <= seconds <= most


@given(value=ANYTHING, least=st.integers(-100, 100), most=st.integers(100, 10**6))
def test_integers_are_within_the_range_or_refused(value, least, most):
    try:
        number = parse_integer(value, least, most)
    except ValueError as error:
        assert str(error) == f"expected a whole number, {least} to {most}, not {value!r}"
        return
    assert least <= number <= most and type(number) is int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("frist", "unknown value 'frist'; did you mean first?"),
        ("FRIST", "unknown value 'FRIST'; did you mean first?"),
        ("nobody", "unknown value 'nobody'; there are: first, external, self-only"),
        (None, "unknown value None; there are: first, external, self-only"),
        (["first"], "unknown value ['first']; did you mean first?"),
    ],
)
def test_choice_that_is_unknown_is_refused_with_the_nearest(value, text):
    with pytest.raises(ValueError) as caught:
        parse_choice(value, WORDS)
    assert str(caught.value) == text


def test_key_has_the_letter_case_of_the_known_one():
    check_key("first", WORDS)
    with pytest.raises(ValueError, match=r"^unknown key 'First'; did you mean first\?$"):
        check_key("First", WORDS)


def test_long_list_of_known_values_is_cut():
    with pytest.raises(ValueError) as caught:
        check_key("x", [f"server-{number}" for number in range(1000)])
    assert len(str(caught.value)) < 1000


def test_event_type_that_is_similar_to_a_known_one_is_refused():
    with pytest.raises(ValueError, match=r"^unknown event type 'Rebot'; did you mean Reboot\?$"):
        parse_event_types(["Freeze", "Rebot"])


@given(known=st.sampled_from(EVENT_TYPES), upper=st.lists(st.booleans(), min_size=30, max_size=30))
def test_event_type_has_any_letter_case(known, upper):
    written = "".join(each.upper() if high else each.lower() for each, high in zip(known, upper))
    assert parse_event_type(written) == known


def test_option_has_its_name_before_the_error():
    with pytest.raises(ValueError, match="^timeout: expected true or false, not 5$"):
        parse_option("timeout", 5, parse_boolean)


def test_options_are_parsed_by_key():
    parsers = {"name": parse_text, "wait": partial(parse_seconds, least=1)}
    assert parse_options({"wait": "2m"}, parsers) == {"wait": 120.0}
    with pytest.raises(ValueError, match=r"^unknown key 'wiat'; did you mean wait\?$"):
        parse_options({"wiat": 1}, parsers)
    with pytest.raises(ValueError, match="^wait: expected at least 1 seconds, not 0$"):
        parse_options({"wait": 0}, parsers)


def test_bounds_belong_to_the_range():
    assert [parse_seconds(value, 0.2, 60) for value in (0.2, "1m")] == [0.2, 60.0]
    assert [parse_integer(value, 1, 7) for value in (1, "7")] == [1, 7]


def test_unknown_type_has_a_warning_and_a_known_one_has_none():
    (text,) = type_warnings("types", ["REBOOT", "Hibernate"])
    assert text.startswith("types: event type 'Hibernate' is unknown; no rule approves it. There are: ")
