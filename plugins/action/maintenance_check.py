# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validates the options of the role maintenance before the role contacts a host."""

from __future__ import annotations

import os
import time
import typing as t

from ansible.errors import AnsibleError
from ansible.playbook.role.include import RoleInclude
from ansible.plugins.action import ActionBase

from ..module_utils.azure_scheduled_events.options import parse_event_types, parse_option, suggestion, type_warnings
from ..plugin_utils._maintenance.announced import listings_of, read_announced
from ..plugin_utils._maintenance.caller_files import caller_folders, find_file, find_role, names_a_file
from ..plugin_utils._maintenance.control_plane_options import (
    ARM,
    CONTROL_PLANE_OPTIONS,
    HOSTS,
    arm_options,
    problems_of_control_plane,
    problems_of_facts,
)
from ..plugin_utils._maintenance.limits import parse_limits
from ..plugin_utils._ready_hooks import runs

# strategies under which a host begins a task only after all others have ended the one before
_LOCKSTEP = ("linear", "debug")
# the strategy under which a host occupies a fork until the end of the play
_PINNED = "host_pinned"
_PREPARE = "prepare_and_approve"
_COORDINATE = "coordinate"
_APPROVING = (_PREPARE, _COORDINATE)
# the role's own variables, some of which resemble options
_OWN_VARIABLES = "maintenance__"
# maintenance_down with two letters exchanged has 0.937
_SIMILAR_NAME = 0.93
# value of maintenance_leader: the hook runners of the hosts prepare and recover
_EXTERNAL = "external"


class ActionModule(ActionBase):
    """The action plugin maintenance_check."""

    _supports_check_mode = True
    _requires_connection = False
    _VALID_ARGS = (
        frozenset(("entry_point", "prepare", "recover", "ready_hooks", "types", "leader", "limits"))
        | CONTROL_PLANE_OPTIONS
    )

    def run(self, tmp: None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Return the task files or roles to include, or the problems."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        entry_point = self._task.args["entry_point"]
        problems = self._misspelt(variables) + self._strategy(entry_point) + self._leader(entry_point, variables)
        found: dict[str, dict[str, str]] = {}
        for option in ("prepare", "recover"):
            found[option], missing = self._find("maintenance_" + option, self._task.args.get(option) or "", variables)
            problems += missing
        ready_hooks = self._task.args.get("ready_hooks") or []
        problems += _problems_of(ready_hooks) + _problems_of_limits(self._task.args.get("limits") or {}, variables)
        types, wrong_types = _types(self._task.args.get("types") or [])
        problems += wrong_types
        problems += problems_of_control_plane(self._task.args)
        result["approve_by"] = self._task.args.get("approve_by", "module")
        if entry_point in _APPROVING:
            problems += problems_of_facts(result["approve_by"], variables.get("ansible_facts", {}))
        result.update(changed=False, at=time.time(), ready_hooks=bool(ready_hooks), types=types, **found)
        # the values that count for all hosts, which a host cannot change by facts from now on
        result["announced"] = self._task.args.get("announced", [])
        result["removed_after"] = (self._task.args.get("limits") or {}).get("removed_after")
        if problems:
            result.update(failed=True, msg="; ".join(problems))
            return result
        listed = listings_of(read_announced(result["announced"])).values()
        result["expected"] = [event for events in listed for event in events]
        if result["approve_by"] == ARM:
            # from now on the host itself cannot change them
            result["arm"] = arm_options(self._task.args)
        if entry_point == _COORDINATE:
            # the modules of the other entry points warn of unknown types
            result["warnings"] = _options_without_effect(variables) + type_warnings("maintenance_types", types)
        elif entry_point != _PREPARE:
            result["warnings"] = self._forks(variables)
        return result

    def _misspelt(self, variables: t.Mapping[str, t.Any]) -> list[str]:
        specs = self._loader.load_from_file(os.path.join(variables["role_path"], "meta", "argument_specs.yml"))[
            "argument_specs"
        ]
        options = {"maintenance_hosts"}.union(*(spec["options"] for spec in specs.values()))
        known = sorted(options)
        near = {
            name: suggestion(name, known, _SIMILAR_NAME)
            for name in sorted(map(str, variables))
            if name not in options and not name.startswith(_OWN_VARIABLES)
        }
        return [
            f"{name}: no such option; did you mean {option}?"
            for name, option in near.items()
            # a variable of the user may have an option's name with an ending, such as maintenance_recovered
            if option is not None and abs(len(name) - len(option)) < 2
        ]

    def _strategy(self, entry_point: str) -> list[str]:
        strategy = str(self._task.get_play().strategy)
        if entry_point not in _APPROVING or strategy.rpartition(".")[2] in _LOCKSTEP:
            return []
        return [
            f"strategy: under {strategy} one host could approve before the others have prepared;"
            " set strategy to ansible.builtin.linear"
        ]

    def _leader(self, entry_point: str, variables: t.Mapping[str, t.Any]) -> list[str]:
        """Return what is wrong if hook runners prepare the hosts."""
        if entry_point == _COORDINATE:
            return _problems_of_coordination(self._task.args, variables)
        if entry_point != _PREPARE or self._task.args.get("leader") != _EXTERNAL:
            return []
        return [
            "maintenance_leader: the hook runners prepare and recover these hosts;"
            " use the entry point coordinate, or set maintenance_leader to role"
        ]

    def _forks(self, variables: t.Mapping[str, t.Any]) -> list[str]:
        """Return a warning if hosts have to wait for other hosts, as under host_pinned with fewer forks than hosts."""
        hosts, forks = len(variables["ansible_play_hosts"]), int(variables["ansible_forks"])
        late = hosts - forks
        if late <= 0 or str(self._task.get_play().strategy).rpartition(".")[2] != _PINNED:
            return []
        return [
            f"strategy: under {_PINNED} with {forks} forks, {late} of {hosts} hosts begin to wait only after others"
            " have recovered; set strategy to ansible.builtin.free"
        ]

    def _find(self, option: str, name: str, variables: t.Mapping[str, t.Any]) -> tuple[dict[str, str], list[str]]:
        """Return the ``tasks`` and the ``role`` to include, of which at least one is "", and the problems."""
        folders = caller_folders(variables["playbook_dir"])
        nothing = {"tasks": "", "role": ""}
        if not name:
            return nothing, []
        if names_a_file(name):
            path, places = find_file(name, folders)
            return dict(nothing, tasks=path), [] if path else [
                f"{option}: no file {name}; searched for {', '.join(places)}"
            ]
        error = self._role_error(name)
        if error is None:
            return dict(nothing, role=name), []
        path, places = find_role(name, folders)
        return dict(nothing, role=path), [] if path else [f"{option}: {error}; also searched for {', '.join(places)}"]

    def _role_error(self, name: str) -> str | None:
        """Return why Ansible itself does not find the role, or None."""
        try:
            RoleInclude.load(
                name,
                play=self._task.get_play(),
                variable_manager=self._task.get_variable_manager(),
                loader=self._loader,
                collection_list=self._task.collections,
            )
        except AnsibleError as error:
            return str(error.message)
        return None


def _problems_of(ready_hooks: t.Any) -> list[str]:
    """Return what is wrong with the list of ready hooks; the hooks themselves check their options."""
    try:
        runs(ready_hooks, "maintenance_ready_hooks")
    except ValueError as error:
        return [str(error)]
    return []


def _options_without_effect(variables: t.Mapping[str, t.Any]) -> list[str]:
    """Return a warning for each step of the role that is set although the hook runners prepare and recover."""
    return [
        f"{option}: the hook runners prepare and recover these hosts, so the option has no effect;"
        " make it a hook of the hook runner"
        for option in ("maintenance_prepare", "maintenance_recover", "maintenance_ready_hooks")
        if variables.get(option)
    ]


def _problems_of_coordination(options: t.Mapping[str, t.Any], variables: t.Mapping[str, t.Any]) -> list[str]:
    """Return which options would have no effect although they promise something about the hosts."""
    try:
        limits = parse_limits(options.get("limits") or {}, variables["ansible_play_hosts_all"], variables["groups"])
    except ValueError:
        # reported with the other problems
        return []
    problems = [
        f"maintenance_{name}: each hook runner prepares at its own time, which the role cannot limit; remove the option"
        for name, given in (
            ("at_most", limits.at_most is not None),
            ("one_fault_domain", limits.one_fault_domain),
            ("deadline", limits.deadline > 0),
        )
        if given
    ]
    if options.get("events_from", HOSTS) != HOSTS:
        problems.append("maintenance_events_from: the hook runners read the events themselves; set it to hosts")
    return problems


def _types(given: t.Any) -> tuple[list[str], list[str]]:
    """Return the types in Azure's spelling, and what is wrong with them."""
    # as Ansible converts a text for an option that is a list
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else given
    try:
        return list(parse_option("maintenance_types", names, parse_event_types)), []
    except ValueError as error:
        return [], [str(error)]


def _problems_of_limits(options: t.Mapping[str, t.Any], variables: t.Mapping[str, t.Any]) -> list[str]:
    """Return what is wrong with the limits, and whether a batch hides hosts that they have to count."""
    hosts = variables["ansible_play_hosts_all"]
    try:
        limits = parse_limits(options, hosts, variables["groups"])
    except ValueError as error:
        return [str(error)]
    if not limits.restrict or len(variables["ansible_play_batch"]) == len(hosts):
        return []
    return ["serial: the limits count the hosts of all batches, which a batch cannot see; remove serial from the play"]
