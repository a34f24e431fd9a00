# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for other programs that prepare this host for events, or approve them.

It reads files, and starts no program.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from datetime import datetime, timedelta, timezone
from typing import Iterable, Iterator

from azure_scheduled_events.event_types import EVENT_TYPES, advises
from azure_scheduled_events.receipts import DEFAULT_FOLDER, Receipts
from azure_scheduled_events.timestamps import parse_time
from hook_runner.preflight.report import ERROR, INFO, WARNING, Finding

_ADVICE = 'one component has to own a host, see "One owner for each host" in docs/hook-runner.md'
_PAGE = '"Combine with another handler" in docs/other-handlers.md'


# programs that a line of their configuration shows: patterns of files below the root; what such a file has outside of
# comments, with the group that is {name} in the text; ERROR for a program that approves; the text
HANDLERS = (
    (
        ("etc/salt/minion", "etc/salt/minion.d/*.conf"),
        re.compile(r"^\s+(?:-\s+)?(azure_events)\s*:", re.MULTILINE),
        WARNING,
        "Salt's beacon {name} is configured here, and its reactions may prepare or approve as well; " + _ADVICE,
    ),
    (
        ("var/lib/pacemaker/cib/cib.xml",),
        re.compile(r'<(?:primitive|template)\b[^>]{0,2000}\btype="(azure-events(?:-az)?)"'),
        ERROR,
        "the cluster has a resource of Pacemaker's agent {name}, which moves the resources away and approves the event,"
        " and does not wait for hooks; delete the resource, or run the hook runner without prepare hooks, see " + _PAGE,
    ),
    (
        ("etc/default/kubelet",),
        # a label that AKS gives each of its nodes
        re.compile(r"(kubernetes\.azure\.com/cluster)="),
        WARNING,
        "the host is a node of AKS, which drains it for Redeploy and Preempt, and where configured also for Freeze and"
        " Terminate; leave the node to AKS, or prepare only for other types, see " + _PAGE,
    ),
)
JETPACK = "opt/cycle/jetpack"
# approvals by a playbook count for so long
RECENT = timedelta(days=7)

_COMMENT = re.compile(r"<!--.*?-->|^[ \t]*#[^\n]*", re.DOTALL | re.MULTILINE)
_COMMAND = "azure-scheduled-events"
# the setting of Jetpack, a boolean or a text; the second name is that of earlier versions
_MONITORING = [re.compile(rf'"monitor_{name}"\s*:\s*"?(\w+)') for name in ("scheduled_events", "spot_eviction")]
_INTERPRETER = re.compile(r"-?(?:python|bash|dash|sh|ksh|zsh|perl|ruby|node|nodejs|pwsh)[0-9.]*")
# a script with both approves events
_APPROVAL = ("169.254.169.254", "StartRequests")
# bytes of a file that are read; a configuration may be long
_MOST_BYTES = 16 << 20

# severity, path and text
_Found = Iterator["tuple[str, str, str]"]


def check_other_handlers(endpoint: str, approves: bool, severity: str, root: str = "/") -> Iterator[Finding]:
    """Report HANDLERS, Jetpack, scripts that approve, and recent approvals by playbooks.

    Args:
        endpoint: base URL of IMDS; approvals at another one do not count.
        approves: whether the daemon itself approves. If not, approvals by a playbook are expected.
        severity: of a handler that approves events.
        root: folder below which the files of the host are.
    """
    approvals = [_approvals(os.path.join(root, DEFAULT_FOLDER.lstrip("/")), endpoint)] if approves else []
    for found in (*approvals, *(_configured(root, *each) for each in HANDLERS), _jetpack(root), _scripts(root)):
        try:
            for usual, path, text in found:
                yield Finding(severity if usual == ERROR else usual, "other handlers", path, text)
        except OSError as error:
            text = f"{error.strerror}: it may belong to another owner of Scheduled Events; run check as root"
            yield Finding(WARNING, "other handlers", str(error.filename), text)


def _approvals(folder: str, endpoint: str) -> _Found:
    given = [parse_time(str(each.get("approved_at", ""))) for each in Receipts(folder, endpoint).read().values()]
    recent = sum(at is not None and datetime.now(timezone.utc) - at < RECENT for at in given)
    if recent:
        text = f"{recent} approvals of event_approve were given on this host within a week; {_ADVICE}"
        yield WARNING, folder, text


def _configured(root: str, patterns: Iterable[str], sign: re.Pattern[str], severity: str, text: str) -> _Found:
    for pattern in patterns:
        # glob does not say that this user may not read a folder; reading the file does
        for path in sorted(glob.glob(os.path.join(glob.escape(root), pattern))) or [os.path.join(root, pattern)]:
            for name in sorted(set(sign.findall(_without_comments(path)))):
                yield severity, path, text.format(name=name)


def _jetpack(root: str) -> _Found:
    """Find CycleCloud's agent, which approves events unless each of its scripts asks the hook runner."""
    folder = os.path.join(root, JETPACK)
    configuration = os.path.join(folder, "config", "node.json")
    # before `isdir`, which does not raise PermissionError
    text = _text(configuration)
    if not os.path.isdir(folder):
        return
    setting = next(filter(None, (name.search(text) for name in _MONITORING)), None)
    if setting is not None and setting[1].lower() == "false":
        text = "CycleCloud's agent Jetpack ignores events: cyclecloud.monitor_scheduled_events is false in"
        yield INFO, folder, f"{text} {configuration}"
        return
    # Jetpack has no script for advice, and approves at once without a script
    scripts = {
        kind: _without_comments(os.path.join(folder, "scripts", f"on{kind}.sh"))
        for kind in EVENT_TYPES
        if not advises(kind)
    }
    unasked = ", ".join(kind for kind, script in scripts.items() if _COMMAND not in script)
    if unasked:
        text = (
            f"CycleCloud's agent Jetpack approves {unasked} without asking the hook runner, at once or after its own"
            " script; set cyclecloud.monitor_scheduled_events = false for the node, or install the script for these"
            f" types, see {_PAGE}"
        )
        yield ERROR, folder, text
    else:
        yield INFO, folder, "CycleCloud's agent Jetpack approves events after scripts that ask the hook runner"


def _scripts(root: str) -> _Found:
    found: dict[str, str] = {}
    hidden = []
    for process in sorted(glob.glob(os.path.join(glob.escape(root), "proc", "[0-9]*"))):
        number = os.path.basename(process)
        try:
            script = _approving_script(process, root)
        except (PermissionError, BlockingIOError):
            hidden.append(number)
        except (OSError, ValueError):
            continue  # the process has ended
        else:
            if script:
                found.setdefault(script, number)
    for script, number in sorted(found.items()):
        text = (
            f"process {number} runs this script, which sends approvals (StartRequests) and does not wait for hooks;"
            f" end it together with the unit or crontab that starts it, see {_PAGE}"
        )
        yield ERROR, script, text
    if hidden:
        text = f"the scripts of the processes {', '.join(hidden[:10])} cannot be read; run check as root"
        yield WARNING, os.path.join(root, "proc"), text


def _approving_script(process: str, root: str) -> str:
    """Return the path of the script that an interpreter runs, if it approves events, or "".

    The script is the first argument that is a file; the value of an option is none. The files are found as the process
    finds them, which may be in a container.
    """
    with open(os.path.join(process, "cmdline"), "rb") as file:
        program, *words = map(os.fsdecode, file.read(_MOST_BYTES).split(b"\0"))
    if not _INTERPRETER.fullmatch(os.path.basename(program)):
        return ""
    for word in words:
        is_absolute, name = os.path.isabs(word), word.lstrip("/")
        place = os.path.join(process, "root" if is_absolute else "cwd", name)
        text = "" if not name or word.startswith("-") else _text(place)
        if text:
            folder = root if is_absolute else os.path.realpath(os.path.join(process, "cwd"))
            return os.path.join(folder, name) if all(each in text for each in _APPROVAL) else ""
    return ""


def _without_comments(path: str) -> str:
    return _COMMENT.sub("", _text(path))


def _text(path: str) -> str:
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
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None
    finally:
        os.close(place)
