# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The findings of `check`, as text and as data."""

from __future__ import annotations

from typing import Any, NamedTuple

from azure_scheduled_events.printable import printable

ERROR = "error"
WARNING = "warning"
INFO = "info"
SEVERITIES = (ERROR, WARNING, INFO)


class Finding(NamedTuple):
    """One finding.

    Attributes:
        severity: "error" (it does not work, or is not safe), "warning" (probably a mistake) or
            "info".
        what: the subject: configuration, policy, hooks, state_directory, run_directory,
            control_group, status_group, metrics, libraries, other handlers or imds.
        where: a path, an address, or "".
        text: one sentence.
    """

    severity: str
    what: str
    where: str
    text: str


class Report:
    """Findings in order of time."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def add(self, severity: str, what: str, where: str, text: str) -> None:
        """Add a finding; the arguments are the attributes of `Finding`."""
        self.findings.append(Finding(severity, what, printable(where), printable(text)))

    def has_errors(self) -> bool:
        """Return True if a finding is an error."""
        return any(finding.severity == ERROR for finding in self.findings)

    def as_data(self) -> dict[str, Any]:
        """Return ``ok`` and ``findings``, each with severity, what, where and text."""
        return {"ok": not self.has_errors(), "findings": [finding._asdict() for finding in self.findings]}

    def as_text(self) -> str:
        """Return a line for each finding, the most severe last, and a summary."""
        found = sorted(self.findings, key=lambda finding: -SEVERITIES.index(finding.severity))
        lines = [
            "%-8s %s: %s"
            % (each.severity, each.what, each.text if each.where in each.text else f"{each.where}: {each.text}")
            for each in found
        ]
        counts = [sum(each.severity == severity for each in found) for severity in (ERROR, WARNING)]
        summary = "%d error%s, %d warning%s" % (
            counts[0],
            "" if counts[0] == 1 else "s",
            counts[1],
            "" if counts[1] == 1 else "s",
        )
        return "\n".join([*lines, "all is well" if counts == [0, 0] else summary])
