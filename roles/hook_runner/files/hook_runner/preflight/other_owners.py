# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for owners of Scheduled Events from other projects. It reads files, and starts no program."""

from __future__ import annotations

import glob
import json
import os
import re
import stat
from typing import Iterator

from azure_scheduled_events.event_types import EVENT_TYPES, advises
from hook_runner.preflight.report import INFO, WARNING, Report

JETPACK = "opt/cycle/jetpack"
CLUSTER = "var/lib/pacemaker/cib/cib.xml"
KUBELET = "etc/default/kubelet"

# Jetpack has no script for advice
_SCRIPTED = [kind for kind in EVENT_TYPES if not advises(kind)]
_COMMAND = "azure-scheduled-events"
_AGENT = re.compile(r'<(?:primitive|template)\b[^>]{0,2000}\btype="(azure-events(?:-az)?)"')
# a label that AKS gives each of its nodes
_AKS_LABEL = "kubernetes.azure.com/cluster="
# a script with both approves events
_APPROVAL = ("169.254.169.254", "StartRequests")
_PAGE = '"Combine with another handler" in docs/other-handlers.md'
# bytes of a file that are read; the configuration of a cluster may be long
_MOST_BYTES, _MOST_OF_CLUSTER = 1 << 20, 16 << 20

# severity, path and text
_Found = Iterator["tuple[str, str, str]"]


def check_other_owners(approves: str, report: Report, root: str = "/") -> None:
    """Report Jetpack, Pacemaker's agents, AKS, and scripts that approve events.

    Args:
        approves: the severity of an owner that approves events.
        report: gets the findings.
        root: folder below which the files of the host are.
    """
    for find in (_jetpack, _pacemaker, _aks, _scripts):
        try:
            for severity, path, text in find(root, approves):
                report.add(severity, "other handlers", path, text)
        except OSError as error:
            text = f"{error.strerror}: it may belong to another owner of Scheduled Events; run check as root"
            report.add(WARNING, "other handlers", str(error.filename), text)


def _jetpack(root: str, approves: str) -> _Found:
    folder = os.path.join(root, JETPACK)
    configuration = os.path.join(folder, "config", "node.json")
    is_switched_off = _is_switched_off(_text(configuration))
    if not os.path.isdir(folder):
        return
    if is_switched_off:
        text = "CycleCloud's agent Jetpack ignores events: cyclecloud.monitor_scheduled_events is false in %s"
        yield INFO, folder, text % configuration
        return
    scripts = {kind: _text(os.path.join(folder, "scripts", f"on{kind}.sh")) for kind in _SCRIPTED}
    at_once = ", ".join(kind for kind, script in scripts.items() if not script)
    by_script = ", ".join(kind for kind, script in scripts.items() if script and _COMMAND not in script)
    does = []
    if at_once:
        does.append(f"approves at once events for which it has no script ({at_once})")
    if by_script:
        does.append(f"approves events when a script that does not ask the hook runner has succeeded ({by_script})")
    if does:
        text = (
            "CycleCloud's agent Jetpack %s; set cyclecloud.monitor_scheduled_events = false for the node, or install"
            " the script for these types, see %s"
        )
        yield approves, folder, text % (" and ".join(does), _PAGE)
    else:
        yield INFO, folder, "CycleCloud's agent Jetpack approves events after scripts that ask the hook runner"


def _is_switched_off(configuration: str) -> bool:
    """Return True if Jetpack's configuration has false for the monitoring of events, by its present or its old name."""
    try:
        settings = json.loads(configuration)["cyclecloud"]
        value = settings.get("monitor_scheduled_events", settings.get("monitor_spot_eviction"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False
    return str(value).lower() == "false"


def _pacemaker(root: str, approves: str) -> _Found:
    path = os.path.join(root, CLUSTER)
    for agent in sorted(set(_AGENT.findall(_text(path, _MOST_OF_CLUSTER)))):
        text = (
            f"the cluster has a resource of Pacemaker's agent {agent}, which moves the resources away and approves the"
            " event, and does not wait for hooks; delete the resource, or run the hook runner without prepare hooks,"
            f" see {_PAGE}"
        )
        yield approves, path, text


def _aks(root: str, _approves: str) -> _Found:
    path = os.path.join(root, KUBELET)
    if _AKS_LABEL in _text(path):
        text = (
            "the host is a node of AKS, which drains it for Redeploy and Preempt, and where configured also for Freeze"
            f" and Terminate; leave the node to AKS, or prepare only for other types, see {_PAGE}"
        )
        yield WARNING, path, text


def _scripts(root: str, approves: str) -> _Found:
    found: dict[str, str] = {}
    for process in sorted(glob.glob(os.path.join(glob.escape(root), "proc", "[0-9]*"))):
        try:
            script = _script_of(process, root)
            text = _text(script) if script not in found else ""
        except (OSError, ValueError):
            continue  # the process has ended, or belongs to another user
        if all(word in text for word in _APPROVAL):
            found[script] = os.path.basename(process)
    for script, number in sorted(found.items()):
        text = (
            f"process {number} runs this script, which sends approvals (StartRequests) and does not wait for hooks;"
            f" end it together with the unit or crontab that starts it, see {_PAGE}"
        )
        yield approves, script, text


def _script_of(process: str, root: str) -> str:
    """Return the path of the script that an interpreter runs: its first argument that is not an option."""
    with open(os.path.join(process, "cmdline"), "rb") as file:
        words = file.read(_MOST_BYTES).split(b"\0")[1:]
    script = os.fsdecode(next((word for word in words if word and not word.startswith(b"-")), b""))
    if not os.path.isabs(script):
        return os.path.join(os.path.realpath(os.path.join(process, "cwd")), script)
    return os.path.join(root, script.lstrip("/"))


def _text(path: str, most: int = _MOST_BYTES) -> str:
    """Return the beginning of a file; empty if it is missing or is not an ordinary file.

    Only ordinary files are opened: opening a device can act on it, and opening a pipe can wait for ever.
    """
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or not found.st_size:
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(most)
    except (FileNotFoundError, NotADirectoryError):
        return ""
