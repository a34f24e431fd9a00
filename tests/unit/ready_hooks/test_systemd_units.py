# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The pure parts of the ready hook systemd-units, and the hook with a script as systemctl."""

from __future__ import annotations

import math

import pytest

from ready_hooks.hooks.systemd_units import start_order, time_span, unit_name, unit_of
from support.ready_hooks.hook_host import HookHost

SHOWN = {"Id": "a.service", "LoadState": "loaded", "ActiveState": "active", "CanStart": "yes", "Transient": "no"}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("nginx", "nginx.service"),
        ("nginx.service", "nginx.service"),
        ("app@1", "app@1.service"),
        ("app@1.2", "app@1.2.service"),
        ("srv-data.mount", "srv-data.mount"),
    ],
)
def test_unit_name_adds_the_type_service(given: str, name: str) -> None:
    assert unit_name(given) == name


@pytest.mark.parametrize("given", ["app@", "app@.service", "app*", "a b", "a;b", "a/b", "", None, ["a"]])
def test_unit_name_refuses_templates_and_wildcards(given: object) -> None:
    with pytest.raises(ValueError):
        unit_name(given)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1min 30s", 90), ("5s", 5), ("100ms", 0.1), ("1h 2min 3.5s", 3723.5), ("0", 0), ("", 0), ("infinity", math.inf)],
)
def test_time_span_reads_what_systemctl_prints(value: str, expected: float) -> None:
    assert time_span(value) == pytest.approx(expected)


@pytest.mark.parametrize("state", ["active", "activating", "reloading", "inactive", "failed", "deactivating"])
def test_unit_is_running_in_some_states(state: str) -> None:
    assert unit_of({**SHOWN, "ActiveState": state}).is_running is (state in ("active", "activating", "reloading"))


@pytest.mark.parametrize(
    ("changes", "usable"),
    [
        ({}, True),
        ({"LoadState": "not-found", "ActiveState": "inactive"}, False),
        ({"LoadState": "bad-setting"}, False),
        ({"LoadState": "masked", "ActiveState": "inactive", "CanStart": "no"}, True),
        ({"LoadState": "masked", "CanStart": "no"}, False),
        ({"CanStart": "no"}, False),
        ({"Transient": "yes"}, False),
    ],
)
def test_unit_that_cannot_start_again_has_a_problem(changes: dict[str, str], usable: bool) -> None:
    assert (unit_of({**SHOWN, **changes}).problem is None) is usable


def test_dependents_are_those_that_stop_with_the_unit() -> None:
    shown = {**SHOWN, "RequiredBy": "b.service a.target", "BoundBy": "c.service", "ConsistsOf": "b.service"}
    assert unit_of(shown).dependents == ("b.service", "a.target", "c.service")


def test_start_order_is_reversed_with_sockets_before_their_services() -> None:
    triggered = {"a.socket": ("a.service",), "a.service": (), "other.socket": ("b.service",)}
    assert start_order(["a.socket", "a.service", "b.service"], triggered) == ["b.service", "a.socket", "a.service"]


# a unit runs while there is a file with its name; others say that it is masked, and which units need it
SYSTEMCTL = """for name do :; done
unit=$FOLDER/$name
case $1 in
    show)
        test -e $unit && state=active || state=inactive
        test -e $unit.masked && load=masked || load=loaded
        printf 'Id=%s\nLoadState=%s\nActiveState=%s\nCanStart=yes\n' $name $load $state
        ! test -e $unit.needed || echo "RequiredBy=$(cat $unit.needed)" ;;
    stop) rm $unit ;;
    start) test ! -e $unit.masked && touch $unit ;;
esac"""


def test_recover_leaves_a_unit_alone_that_an_operator_has_masked(hook_host: HookHost) -> None:
    hook_host.program("systemctl", SYSTEMCTL)
    one, other = (hook_host.folder / name for name in ("one.service", "other.service"))
    one.touch()
    other.touch()
    hook = hook_host.hook("systemd-units", units=["one", "other"])
    hook.prepare()
    assert not one.exists() and not other.exists()
    one.with_name("one.service.masked").touch()
    hook.recover()
    assert (one.exists(), other.exists(), hook_host.record("systemd-units").load()) == (False, True, None)


def test_service_that_systemd_stops_by_a_target_is_started_again(hook_host: HookHost) -> None:
    """The target needs the listed unit, and the service needs the target."""
    hook_host.program("systemctl", SYSTEMCTL)
    folder = hook_host.folder
    for name in ("app.service", "site.target", "other.service"):
        (folder / name).touch()
    (folder / "app.service.needed").write_text("site.target", encoding="utf-8")
    (folder / "site.target.needed").write_text("other.service", encoding="utf-8")
    hook = hook_host.hook("systemd-units", units="app")
    hook.prepare()
    assert hook_host.record("systemd-units").load() == {"units": ["other.service", "app.service"]}
    hook.recover()
    assert (folder / "other.service").exists() and (folder / "app.service").exists()
