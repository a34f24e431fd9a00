# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of ready hooks that a user gives to a role, as runs on a host and as files of the hook runner."""

from __future__ import annotations

import json
import re
import shlex
import typing as t
from datetime import datetime
from functools import partial

from ..module_utils.azure_scheduled_events.event_types import is_chosen
from ..module_utils.azure_scheduled_events.hook_input import HookInput, step_seconds
from ..module_utils.azure_scheduled_events.options import (
    check_key,
    parse_choice,
    parse_event_types,
    parse_option,
    parse_seconds,
)
from ..module_utils.azure_scheduled_events.outcome import UNKNOWN, outcome_of
from ..module_utils.azure_scheduled_events.timestamps import parse_time
from ..module_utils.azure_scheduled_events.urgency import Urgency, most_severe, most_urgent_first

LIBRARY = "/usr/local/lib/azure-scheduled-events-hooks"
_BOTH = ("prepare", "recover")
_ALL = ("prepare", "emergency", "started", "recover")
# the kinds of ready hooks, and the stages in which each runs
STAGES: dict[str, tuple[str, ...]] = {
    "command": _BOTH,
    "connections": _BOTH,
    "haproxy": _BOTH,
    "health-file": _BOTH,
    "kubernetes": _BOTH,
    "log": _ALL,
    "notify": _ALL,
    "pacemaker": _BOTH,
    "postgresql": _BOTH,
    "redis": _BOTH,
    "slurm": _BOTH,
    "systemd-units": _BOTH,
}
# the first entry of a list has the numbers 21 and 79: recovery is in reverse order
_BEFORE_FIRST, _AFTER_FIRST, MOST_ENTRIES = 20, 80, 29
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# the second line of a hook that the daemon's check may run
_ANSWERS_CHECK = "# azure-scheduled-events: answers check"
# begins the third line of each file, by which the role finds its files again
MARK = "# ready hook of the role hook_runner"
_DEFAULT_SECONDS = 300.0
# exit statuses of timeout(1)
_ENDED_BY_TIMEOUT = (124, 137)
_RUN_SETTINGS = ("timeout", "types")

Event = t.Mapping[str, t.Any]


class Entry(t.NamedTuple):
    """One entry of the list.

    Attributes:
        where: the entry, for messages.
        use: kind of the hook.
        name: of the hook on the host.
        options: of the hook, without their defaults.
        settings: of the caller for this hook.
    """

    where: str
    use: str
    name: str
    options: t.Mapping[str, t.Any]
    settings: t.Mapping[str, t.Any]


def read_entries(entries: t.Any, variable: str) -> list[Entry]:
    """Return the entries of a list; ``variable`` is its name, for messages.

    Raises:
        ValueError: an entry has no valid ``use``, ``name`` or ``settings``, or two have one name.
            The hooks themselves check their options.
    """
    if isinstance(entries, (str, bytes)) or not isinstance(entries, t.Sequence):
        raise ValueError(f"{variable}: not a list; write a list of entries such as {{use: haproxy, server: web/web1}}")
    read = [_entry(entry, f"{variable}[{number}]") for number, entry in enumerate(entries)]
    seen: dict[str, Entry] = {}
    for each in read:
        if each.name in seen:
            message = (
                f"{each.where}: the name {each.name} is that of {seen[each.name].where}, too; set name in one of them"
            )
            raise ValueError(message)
        seen[each.name] = each
    return read


def _entry(entry: t.Any, where: str) -> Entry:
    if not isinstance(entry, t.Mapping):
        raise ValueError(f"{where}: not a mapping; write an entry such as {{use: haproxy, server: web/web1}}")
    use = entry.get("use")
    if use is None:
        raise ValueError(f"{where}: use is missing; set it to one of {', '.join(STAGES)}")
    use = parse_option(f"{where}: use", use, partial(parse_choice, known=tuple(STAGES), kind="ready hook"))
    name = entry.get("name") or use
    if not _NAME.fullmatch(str(name)):
        raise ValueError(f"{where}: {name!r} is not a name; use letters, digits, dot, dash and underscore")
    settings = entry.get("settings") or {}
    if not isinstance(settings, t.Mapping):
        raise ValueError(f"{where}: settings is not a mapping; write it as {{timeout: 2m}}")
    options = {str(key): value for key, value in entry.items() if key not in ("use", "settings")}
    return Entry(where, use, str(name), options, settings)


def hook_files(entries: t.Any, variable: str, python: str) -> list[dict[str, t.Any]]:
    """Return the hooks of the hook runner for a list, with ``stage``, ``name``, ``content`` and ``settings``.

    ``variable`` is the name of the list, for messages. ``python`` is the program that runs the ready hooks; "" for the
    first one that the launcher finds.

    Raises:
        ValueError: see `read_entries`; or there are more than MOST_ENTRIES entries.
    """
    read = read_entries(entries, variable)
    if len(read) > MOST_ENTRIES:
        raise ValueError(f"{variable}: {len(read)} entries; at most {MOST_ENTRIES} have a number")
    return [
        {
            "stage": stage,
            "name": f"{_AFTER_FIRST - number if stage == 'recover' else _BEFORE_FIRST + number:02d}-{entry.name}",
            "content": _script(entry, stage, python),
            **({"settings": dict(entry.settings)} if entry.settings else {}),
        }
        for number, entry in enumerate(read, start=1)
        for stage in STAGES[entry.use]
    ]


def _script(entry: Entry, stage: str, python: str) -> str:
    # one check is enough for the hooks of all stages
    second = _ANSWERS_CHECK if stage == "prepare" else f"# runs the ready hook {entry.use}"
    export = [f'export READY_HOOKS_PYTHON="${{READY_HOOKS_PYTHON:-{python}}}"'] if python else []
    program = f'"${{READY_HOOKS_LIBRARY:-{LIBRARY}}}/{entry.use}"'
    call = f'exec {program} "${{1:-{stage}}}" --json {shlex.quote(_json(entry.options))}'
    return "\n".join(["#!/bin/sh", second, f"{MARK}, which replaces this file", *export, call, ""])


def runs(entries: t.Any, variable: str) -> list[dict[str, t.Any]]:
    """Return the runs of a list on a host, with ``use``, ``name``, ``options``, ``seconds`` and ``types``.

    Raises:
        ValueError: see `read_entries`; or a setting is unknown or invalid.
    """
    return [_run(entry) for entry in read_entries(entries, variable)]


def runs_for(found: t.Iterable[dict[str, t.Any]], events: t.Sequence[Event]) -> list[dict[str, t.Any]]:
    """Return those of `runs` that prepare for one of the events; all if there are no events."""
    types = [str(event.get("event_type") or "") for event in events]
    return [run for run in found if not types or any(is_chosen(kind, run["types"] or None) for kind in types)]


def _run(entry: Entry) -> dict[str, t.Any]:
    # the hook runner has further settings
    for key in entry.settings:
        parse_option(f"{entry.where}: settings", key, partial(check_key, known=_RUN_SETTINGS, kind="setting"))
    timeout, types = entry.settings.get("timeout", _DEFAULT_SECONDS), entry.settings.get("types") or []
    seconds = parse_option(f"{entry.where}: settings.timeout", timeout, partial(parse_seconds, least=1, most=86400))
    return {
        "use": entry.use,
        "name": entry.name,
        "options": dict(entry.options),
        "seconds": int(seconds),
        "types": list(parse_option(f"{entry.where}: settings.types", types, parse_event_types)),
    }


def _json(options: t.Mapping[str, t.Any]) -> str:
    """Return the options in ASCII; a value that Ansible has encrypted is a text."""
    return json.dumps(options, default=str, sort_keys=True)


def event_variables(
    events: t.Sequence[Event],
    types: t.Sequence[str],
    stage: str,
    resource: str,
    timeout: float,
    starts_at: t.Mapping[str, str],
    now: datetime,
) -> dict[str, str]:
    """Return the variables EVENT_* of a hook, and HOOK_SECONDS: for the most urgent event, in recovery the most severe.

    ``events`` are in the form of ``event_info`` or ``maintenance_wait``, and may be empty. Only those of the hook's
    ``types`` count; if none has such a type, all count. The most urgent of all limits HOOK_SECONDS, because the next
    hooks may be for it. ``stage`` is prepare or recover; ``resource`` is the name of this VM, or "". ``timeout`` is
    that of the hook, in seconds. ``starts_at`` has NotBefore of events by key, in ISO 8601, as the clock shows it that
    ``now``, aware, is from; for others NotBefore itself counts.
    """
    chosen = [event for event in events if is_chosen(str(event.get("event_type") or ""), types or None)] or events
    if stage == "recover":
        worst = most_severe(chosen, lambda event: str(event.get("event_type") or ""))
        outcome = "" if worst is None else _outcome(worst)
        return HookInput(worst or {}, stage, resource, outcome, hook_seconds=timeout).variables()
    urgencies = [_urgency(event, starts_at, now) for event in events]
    ordered = most_urgent_first(zip(urgencies, events), lambda each: each[0])
    if not ordered:
        return HookInput({}, stage, resource, hook_seconds=timeout).variables()
    (_type, least, _key), first = ordered[0]
    limit = step_seconds(timeout, least if first.get("not_before") else None)
    (_type, left, _key), event = next(each for each in ordered if each[1] in chosen)
    return HookInput(event, stage, resource, seconds_left=max(0.0, left), hook_seconds=limit).variables()


def _urgency(event: Event, starts_at: t.Mapping[str, str], now: datetime) -> Urgency:
    key = str(event.get("event_id")).casefold()
    not_before = parse_time(str(starts_at.get(key) or event.get("not_before") or ""))
    left = 0.0 if not_before is None else (not_before - now).total_seconds()
    return Urgency(str(event.get("event_type") or ""), left, key)


def _outcome(event: Event) -> str:
    seen_started = bool(event.get("started")) or event.get("status") == "Started"
    return outcome_of(seen_started, event.get("outcome") or UNKNOWN)


def failures(results: t.Sequence[t.Mapping[str, t.Any]], stage: str) -> str:
    """Return the message about the hooks that failed.

    ``results`` are those of a loop over the values of `runs`; ``stage`` is prepare or recover.
    """
    return "; ".join(
        f"ready hook {result['item']['name']}: {stage} failed: {_reason(result)}"
        for result in results
        if result.get("rc", 0) != 0
    )


def _reason(result: t.Mapping[str, t.Any]) -> str:
    if result["rc"] in _ENDED_BY_TIMEOUT:
        return "it did not end within its time limit"
    lines = str(result.get("stderr") or result.get("msg") or "").strip().splitlines()
    return lines[-1] if lines else f"exit status {result['rc']}"
