# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The findings of `check`, as text and as data."""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple

from azure_scheduled_events.printable import printable

ERROR = "error"
WARNING = "warning"
INFO = "info"
SEVERITIES = (INFO, WARNING, ERROR)


class Finding(NamedTuple):
    """One finding.

    Attributes:
        severity: ERROR (it does not work, or is not safe), WARNING (probably a mistake) or INFO.
        what: the subject, such as "policy", "hooks" or "imds".
        where: a path, an address, or "".
        text: one sentence.
    """

    severity: str
    what: str
    where: str
    text: str


class Report:
    """Findings in the order of the checks, without characters that control a terminal."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = [each._replace(where=printable(each.where), text=printable(each.text)) for each in findings]

    def has_errors(self) -> bool:
        """Return True if a finding is an error."""
        return any(each.severity == ERROR for each in self.findings)

    def as_data(self) -> dict[str, Any]:
        """Return ``ok`` and ``findings``, each with severity, what, where and text."""
        return {"ok": not self.has_errors(), "findings": [each._asdict() for each in self.findings]}

    def as_text(self) -> str:
        """Return a line for each finding, the most severe last, and a summary."""
        lines = []
        for each in sorted(self.findings, key=lambda each: SEVERITIES.index(each.severity)):
            where = "" if each.where in each.text else f"{each.where}: "
            lines.append(f"{each.severity:8} {each.what}: {where}{each.text}")
        counts = [(sum(each.severity == severity for each in self.findings), severity) for severity in (ERROR, WARNING)]
        summary = ", ".join(f"{count} {severity}{'' if count == 1 else 's'}" for count, severity in counts)
        return "\n".join([*lines, summary if any(count for count, _severity in counts) else "all is well"])
