# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for other programs that prepare this host for events, or approve them."""

from __future__ import annotations

import glob
import os
import re
from datetime import datetime, timedelta, timezone

from azure_scheduled_events.receipts import DEFAULT_FOLDER, Receipts
from azure_scheduled_events.timestamps import parse_time
from hook_runner.preflight.report import WARNING, Report

SALT_CONFIGURATION = ("/etc/salt/minion", "/etc/salt/minion.d/*.conf")
# a beacon in a minion's configuration, as a key of `beacons` or as an item of a list
_BEACON = re.compile(r"^\s+(?:-\s+)?azure_events\s*:", re.MULTILINE)
# older approvals are ignored
RECENT = timedelta(days=7)
_ADVICE = 'one component has to own a host, see "One owner for each host" in docs/hook-runner.md'


def check_other_handlers(endpoint: str, approves: bool, report: Report, root: str = "/") -> None:
    """Report a configured Salt beacon and recent approvals by playbooks.

    Args:
        endpoint: base URL of IMDS; approvals at another one do not count.
        approves: whether the daemon itself approves. If not, approvals by a playbook are expected.
        report: gets a warning for each.
        root: folder below which the files of the host are.
    """
    for pattern in SALT_CONFIGURATION:
        for path in sorted(glob.glob(os.path.join(root, pattern.lstrip("/")))):
            if _BEACON.search(_text(path)):
                text = (
                    "Salt's beacon azure_events is configured here, and its reactions may prepare or approve as well;"
                    f" {_ADVICE}"
                )
                report.add(WARNING, "other handlers", path, text)
    if not approves:
        return
    folder = os.path.join(root, DEFAULT_FOLDER.lstrip("/"))
    given = [parse_time(str(each.get("approved_at", ""))) for each in Receipts(folder, endpoint).read()]
    recent = sum(at is not None and datetime.now(timezone.utc) - at < RECENT for at in given)
    if recent:
        text = "%d approvals of event_approve or of Salt were given on this host within a week; %s" % (recent, _ADVICE)
        report.add(WARNING, "other handlers", folder, text)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return _without_comments(file.read(1 << 20))
    except OSError:
        return ""  # unreadable for this user


def _without_comments(text: str) -> str:
    return "\n".join(line.split("#", 1)[0] for line in text.splitlines())
