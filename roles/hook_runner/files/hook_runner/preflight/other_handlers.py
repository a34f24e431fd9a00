# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for other programs that prepare this host for events, or approve them.

It reads files, and starts no program.
"""

from __future__ import annotations

import glob
import json
import os
import re
import stat
from datetime import datetime, timedelta, timezone
from typing import Iterator

from azure_scheduled_events.event_types import EVENT_TYPES, advises
from azure_scheduled_events.receipts import DEFAULT_FOLDER, Receipts
from azure_scheduled_events.timestamps import parse_time
from hook_runner.preflight.report import INFO, WARNING, Report

SALT_CONFIGURATION = ("etc/salt/minion", "etc/salt/minion.d/*.conf")
RECENT = timedelta(days=7)
JETPACK = "opt/cycle/jetpack"
CLUSTER = "var/lib/pacemaker/cib/cib.xml"
KUBELET = "etc/default/kubelet"

# Jetpack has no script for advice
_BEACON = re.compile(r"^\s+(?:-\s+)?azure_events\s*:", re.MULTILINE)
_ADVICE = 'one component has to own a host, see "One owner for each host" in docs/hook-runner.md'
_SCRIPTED = [kind for kind in EVENT_TYPES if not advises(kind)]
_COMMAND = "azure-scheduled-events"
_AGENT = re.compile(r'<(?:primitive|template)\b[^>]{0,2000}\btype="(azure-events(?:-az)?)"')
# a label that AKS gives each of its nodes
_AKS_LABEL = "kubernetes.azure.com/cluster="
_XML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_INTERPRETER = re.compile(r"-?(?:python|bash|dash|sh|ksh|zsh|perl|ruby|node|nodejs|pwsh)[0-9.]*")
# a script with both approves events
_APPROVAL = ("169.254.169.254", "StartRequests")
_PAGE = '"Combine with another handler" in docs/other-handlers.md'
# bytes of a file that are read; a configuration may be long
_MOST_BYTES, _MOST_OF_CONFIGURATION = 1 << 20, 16 << 20

# severity, path and text
_Found = Iterator["tuple[str, str, str]"]


def check_other_handlers(endpoint: str, approves: bool, severity: str, report: Report, root: str = "/") -> None:
    """Report Salt's beacon, recent approvals by playbooks, Jetpack, Pacemaker's agents, AKS, and scripts that approve.

    Args:
        endpoint: base URL of IMDS; approvals at another one do not count.
        approves: whether the daemon itself approves. If not, approvals by a playbook are expected.
        severity: of an owner from another project that approves events.
        report: gets the findings.
        root: folder below which the files of the host are.
    """
    if approves:
        _check_receipts(os.path.join(root, DEFAULT_FOLDER.lstrip("/")), endpoint, report)
    for find in (_salt, _jetpack, _pacemaker, _aks, _scripts):
        try:
            for each, path, text in find(root, severity):
                report.add(each, "other handlers", path, text)
        except OSError as error:
            text = f"{error.strerror}: it may belong to another owner of Scheduled Events; run check as root"
            report.add(WARNING, "other handlers", str(error.filename), text)


def _check_receipts(folder: str, endpoint: str, report: Report) -> None:
    given = [parse_time(str(each.get("approved_at", ""))) for each in Receipts(folder, endpoint).read()]
    recent = sum(at is not None and datetime.now(timezone.utc) - at < RECENT for at in given)
    if recent:
        text = f"{recent} approvals of event_approve or of Salt were given on this host within a week; {_ADVICE}"
        report.add(WARNING, "other handlers", folder, text)


def _salt(root: str, _severity: str) -> _Found:
    for pattern in SALT_CONFIGURATION:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            if _BEACON.search(_commands(_text(path))):
                text = "Salt's beacon azure_events is configured here, and its reactions may prepare or approve as well"
                yield WARNING, path, f"{text}; {_ADVICE}"


def _jetpack(root: str, approves: str) -> _Found:
    """Find CycleCloud's agent.

    1. Without its folder there is nothing to report.
    2. An agent that does not monitor events is information.
    3. An agent approves events if it has no script for a type, or one that does not ask the hook runner.
    4. Otherwise its scripts ask the hook runner, which is information.
    """
    folder = os.path.join(root, JETPACK)
    configuration = os.path.join(folder, "config", "node.json")
    is_switched_off = _is_switched_off(_text(configuration, _MOST_OF_CONFIGURATION))
    if not os.path.isdir(folder):
        return
    if is_switched_off:
        text = "CycleCloud's agent Jetpack ignores events: cyclecloud.monitor_scheduled_events is false in %s"
        yield INFO, folder, text % configuration
        return
    scripts = {kind: _commands(_text(os.path.join(folder, "scripts", f"on{kind}.sh"))) for kind in _SCRIPTED}
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
        settings = json.loads(configuration.lstrip("\ufeff"))["cyclecloud"]
        value = settings.get("monitor_scheduled_events", settings.get("monitor_spot_eviction"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False
    return str(value).lower() == "false"


def _pacemaker(root: str, approves: str) -> _Found:
    path = os.path.join(root, CLUSTER)
    cluster = _XML_COMMENT.sub("", _text(path, _MOST_OF_CONFIGURATION))
    for agent in sorted(set(_AGENT.findall(cluster))):
        text = (
            f"the cluster has a resource of Pacemaker's agent {agent}, which moves the resources away and approves the"
            " event, and does not wait for hooks; delete the resource, or run the hook runner without prepare hooks,"
            f" see {_PAGE}"
        )
        yield approves, path, text


def _aks(root: str, _approves: str) -> _Found:
    path = os.path.join(root, KUBELET)
    if _AKS_LABEL in _commands(_text(path)):
        text = (
            "the host is a node of AKS, which drains it for Redeploy and Preempt, and where configured also for Freeze"
            f" and Terminate; leave the node to AKS, or prepare only for other types, see {_PAGE}"
        )
        yield WARNING, path, text


def _scripts(root: str, approves: str) -> _Found:
    found: dict[str, str] = {}
    hidden = []
    for process in sorted(glob.glob(os.path.join(glob.escape(root), "proc", "[0-9]*"))):
        try:
            script = _approving_script(process, root)
        except (PermissionError, BlockingIOError):
            hidden.append(os.path.basename(process))
        except (OSError, ValueError):
            continue  # the process has ended
        else:
            if script:
                found.setdefault(script, os.path.basename(process))
    for script, number in sorted(found.items()):
        text = (
            f"process {number} runs this script, which sends approvals (StartRequests) and does not wait for hooks;"
            f" end it together with the unit or crontab that starts it, see {_PAGE}"
        )
        yield approves, script, text
    if hidden:
        text = f"the scripts of the processes {', '.join(hidden[:10])} cannot be read; run check as root"
        yield WARNING, os.path.join(root, "proc"), text


def _approving_script(process: str, root: str) -> str:
    """Return the path of the script that an interpreter runs, if it approves events, or "".

    The script is the first argument that is a file; the value of an option is none. The files are found as the process
    finds them, which may be in a container.
    """
    with open(os.path.join(process, "cmdline"), "rb") as file:
        program, *words = file.read(_MOST_BYTES).split(b"\0")
    if not _INTERPRETER.fullmatch(os.path.basename(os.fsdecode(program))):
        return ""
    for word in words:
        name = os.fsdecode(word)
        base, folder = (
            ("root", root) if os.path.isabs(name) else ("cwd", os.path.realpath(os.path.join(process, "cwd")))
        )
        text = "" if not name or name.startswith("-") else _text(os.path.join(process, base, name.lstrip("/")))
        if text:
            return os.path.join(folder, name.lstrip("/")) if all(each in text for each in _APPROVAL) else ""
    return ""


def _commands(text: str) -> str:
    """Return the lines that are no comments."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def _text(path: str, most: int = _MOST_BYTES) -> str:
    """Return the beginning of a file; empty if it is missing or is not an ordinary file.

    A local user may choose the path. Only ordinary files are opened: opening a device can act on it, and opening a
    pipe, or a file with a lease, can wait.
    """
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    try:
        found = os.fstat(place)
        if not stat.S_ISREG(found.st_mode) or not found.st_size:
            return ""
        opened = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(opened, encoding="utf-8", errors="replace") as file:
            return file.read(most)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None
    finally:
        os.close(place)
