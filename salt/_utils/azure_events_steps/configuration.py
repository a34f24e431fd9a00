# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Parses the section ``azure_events`` of the minion's configuration and pillar. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Mapping, NamedTuple

from azure_events_watch import settings
from azure_scheduled_events.options import check_key, parse_boolean, parse_option
from azure_scheduled_events.selection import SELF, Selection

from .ready_hook_steps import USE, parse_ready_hook

SECTION = "azure_events"
COMMAND = "command"
FUNCTION = "function"
SLS = "sls"
READY_HOOKS = "ready_hooks"
KINDS = (COMMAND, FUNCTION, SLS, USE)
DEFAULT_TIMEOUT = 300.0

_SELECTION_KEYS = ("types", "sources", "statuses")
_CONNECTION = ("endpoint", "api_version", "resource_name")
_LISTS = ("ready_hooks", "prepare", "recover")
_KNOWN = (*_CONNECTION, *_SELECTION_KEYS, "minimum_notice", *_LISTS, "receipts", "allow_paths")
_OF_KIND: dict[str, tuple[str, ...]] = {COMMAND: (), FUNCTION: ("args", "kwargs"), SLS: ("pillar",)}
_MAX_STEPS = 100
_MAX_NAME = 80


class Step(NamedTuple):
    """One step of a preparation or a recovery.

    Attributes:
        name: for the result; by default the beginning of the command, the function, the SLS file or the
            ready hook.
        kind: one of KINDS.
        action: the command (text for the shell, or tuple of arguments), or the name of the function,
            the SLS file or the ready hook.
        args: of a function.
        kwargs: of a function, or the options of a ready hook.
        pillar: of an SLS file.
        timeout: seconds after which all processes of the step are ended.
    """

    name: str
    kind: str
    action: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    pillar: dict[str, Any]
    timeout: float


class Configuration(NamedTuple):
    """The configuration of preparation, recovery and approval.

    Attributes:
        prepare, recover: the steps with those of ``ready_hooks``; None without such a key, which
            differs from an empty list.
        selections: that of the section and that of the beacon ``azure_events``; an event has to
            meet all of them.
        minimum_notice: seconds that must be left until NotBefore when a preparation begins.
        resource_name: this VM's name; None reads it from IMDS.
    """

    prepare: tuple[Step, ...] | None
    recover: tuple[Step, ...] | None
    selections: tuple[Selection, ...]
    minimum_notice: float
    endpoint: str
    api_versions: tuple[str, ...]
    resource_name: str | None


def parse_configuration(section: Any, beacon: Any = None) -> Configuration:
    """Return the configuration; raise ValueError, which names the key, if it is invalid.

    ``section`` is the merged mapping of pillar and minion configuration, ``beacon`` the configuration of
    the beacon ``azure_events`` as Salt has it. Either is None if there is none.
    """
    if section is not None and not isinstance(section, Mapping):
        raise ValueError(f"{SECTION}: expected a mapping, not {type(section).__name__}")
    given = dict(section or {})
    try:
        for key in given:
            check_key(key, _KNOWN)
        selections = (_selection(given), *_of_beacon(beacon))
        connection = settings.parse_connection(given, {})
        notice = settings.parse_duration("minimum_notice", given.get("minimum_notice", 0), 0.0)
        _check_paths(given)
        prepare, recover = _lists(given)
    except ValueError as error:
        raise ValueError(f"{SECTION}: {error}") from None
    return Configuration(prepare, recover, selections, notice, *connection)


def parse_steps(key: str, value: Any) -> tuple[Step, ...]:
    """Return the steps of a list; raise ValueError, which names the item, if the list is invalid."""
    if not isinstance(value, list):
        raise ValueError(
            f"{key}: expected a list of steps, not {type(value).__name__}; an empty list has nothing to do"
        )
    if len(value) > _MAX_STEPS:
        raise ValueError(f"{key}: expected at most {_MAX_STEPS} steps, not {len(value)}")
    steps: list[Step] = []
    for number, item in enumerate(value, 1):
        try:
            step = _step(item)
            if key == READY_HOOKS and step.kind != USE:
                raise ValueError(f"expected a mapping with use; put other steps into prepare and recover: {item!r}")
            steps.append(step)
        except ValueError as error:
            raise ValueError(f"{key}: step {number}: {error}") from None
    return tuple(steps)


def _lists(given: Mapping[str, Any]) -> tuple[tuple[Step, ...] | None, tuple[Step, ...] | None]:
    """Return the steps of the preparation and the recovery.

    The ready hooks prepare before the steps of ``prepare``, and recover in reverse order after those of
    ``recover``.
    """
    hooks = parse_steps(READY_HOOKS, given[READY_HOOKS]) if READY_HOOKS in given else None
    own = {key: parse_steps(key, given[key]) if key in given else None for key in ("prepare", "recover")}
    prepare, recover = own["prepare"], own["recover"]
    if hooks is not None:
        prepare, recover = (*hooks, *(prepare or ())), (*(recover or ()), *reversed(hooks))
    for key, steps in (("prepare", prepare), ("recover", recover)):
        names = [step.kwargs["name"] for step in steps or () if step.kind == USE]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{key}: two ready hooks have the name {name!r}; set another name in one of them")
    return prepare, recover


def refuse_ready_hooks(configuration: Configuration) -> None:
    """Raise ValueError if a step is a ready hook, for a system that cannot run them."""
    for step in (*(configuration.prepare or ()), *(configuration.recover or ())):
        if step.kind == USE:
            raise ValueError(
                f"{SECTION}: the step {step.name!r} is a ready hook, which runs on Linux only; "
                "replace it by a command, a function or an SLS file"
            )


def digest(steps: tuple[Step, ...], event_type: str | None = None) -> str:
    """Return a digest of the steps, and of the type of event that they run for."""
    return hashlib.sha256(
        json.dumps([steps, event_type], default=repr, sort_keys=True).encode("utf-8", "backslashreplace")
    ).hexdigest()


def _step(item: Any) -> Step:
    if isinstance(item, str):
        item = {COMMAND: item}
    if not isinstance(item, Mapping):
        raise ValueError(f"expected a command, or a mapping with one of {', '.join(KINDS)}, not {item!r}")
    if USE in item:
        hook = parse_ready_hook(item)
        return Step(hook.name, USE, hook.use, (), hook.options, {}, _timeout(hook.timeout))
    kind = _kind(item)
    action = _action(kind, item[kind])
    name = item.get("name")
    if name is None:
        name = (action if isinstance(action, str) else " ".join(action))[:_MAX_NAME]
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"name: expected a text, not {name!r}")
    args = item.get("args", [])
    if not isinstance(args, list):
        raise ValueError(f"args: expected a list, not {type(args).__name__}")
    kwargs, pillar = _text_mapping("kwargs", item), _text_mapping("pillar", item)
    return Step(name[:_MAX_NAME], kind, action, tuple(args), kwargs, pillar, _timeout(item.get("timeout")))


def _timeout(value: Any) -> float:
    return settings.parse_duration("timeout", DEFAULT_TIMEOUT if value is None else value, 0.1)


def _kind(item: Mapping[Any, Any]) -> str:
    """Return the kind of a step, after a check of its keys."""
    every = (*KINDS, "name", "timeout", *(option for options in _OF_KIND.values() for option in options))
    for key in item:
        check_key(key, every)
    kinds = [kind for kind in KINDS if kind in item]
    if len(kinds) != 1:
        raise ValueError(f"expected exactly one of {', '.join(KINDS)}, not {', '.join(kinds) or 'none'}")
    for other, options in _OF_KIND.items():
        for option in options:
            if other != kinds[0] and option in item:
                raise ValueError(f"{option} does not belong to a step of the kind {kinds[0]}")
    return kinds[0]


def _text_mapping(option: str, item: Mapping[Any, Any]) -> dict[str, Any]:
    value = item.get(option, {})
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError(f"{option}: expected a mapping with texts as keys, not {value!r}")
    return dict(value)


def _action(kind: str, value: Any) -> Any:
    if kind == COMMAND and isinstance(value, list):
        if not value or not all(isinstance(part, str) for part in value) or not value[0]:
            raise ValueError(f"command: expected a text, or a list of texts that begins with a program, not {value!r}")
        return tuple(value)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{kind}: expected a text, not {value!r}")
    if "\0" in value:
        raise ValueError(f"{kind}: a null character cannot be part of it")
    if kind == FUNCTION and "." not in value:
        raise ValueError(f"function: expected MODULE.FUNCTION, not {value!r}")
    return value


def _check_paths(given: Mapping[str, Any]) -> None:
    receipts = given.get("receipts")
    if receipts is not None and not (isinstance(receipts, str) and receipts):
        raise ValueError(f"receipts: expected the path of a folder, not {receipts!r}")
    parse_option("allow_paths", given.get("allow_paths", False), parse_boolean)


def _selection(given: Mapping[str, Any]) -> Selection:
    for key in _SELECTION_KEYS:
        if given.get(key) in ([], ()):
            raise ValueError(f"{key}: an empty list selects no event at all; leave the key out for all")
    return settings.parse_selection({key: given.get(key) for key in _SELECTION_KEYS})


def _of_beacon(beacon: Any) -> tuple[Selection, ...]:
    """Return the beacon's selection as far as it concerns this VM: without ``affects``."""
    if not isinstance(beacon, list):
        return ()
    given = {
        key: value
        for item in beacon
        if isinstance(item, Mapping)
        for key, value in item.items()
        if key in _SELECTION_KEYS
    }
    try:
        return (_selection(given)._replace(affects=SELF),) if given else ()
    except ValueError as error:
        raise ValueError(f"beacon {settings.BEACON}: {error}") from None
