# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Stand-ins for the programs of systemd: units that run, outlive their caller and keep their result."""

from __future__ import annotations

import shutil
from pathlib import Path

_PROGRAMS = Path(__file__).parent / "fake_systemd"


class SystemdPrograms:
    """systemd-run, systemctl and journalctl of one host in a folder of its own, to be found on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "systemd"
        if not self.folder.exists():
            shutil.copytree(_PROGRAMS, self.folder)
            (self.folder / "units").mkdir()

    def units(self) -> list[str]:
        """Return the names of all units."""
        return sorted(path.name for path in (self.folder / "units").iterdir())

    def arguments(self, unit: str) -> list[str]:
        """Return the arguments of systemd-run for a unit."""
        return (self.folder / "units" / unit / "arguments").read_text(encoding="utf-8").splitlines()

    def forget(self) -> None:
        """Forget all units, as a reboot does; the caller has ended their processes."""
        for path in (self.folder / "units").iterdir():
            shutil.rmtree(path)

    def set_clock(self, monotonic: float) -> None:
        """Let hooks begin and end at this time, in monotonic seconds."""
        self._set("clock", str(int(monotonic * 1e6)))

    def refuse(self, reason: str) -> None:
        """Refuse each unit with this reason; "" to accept them again."""
        self._set("refusal", reason)

    def set_unit_state(self, unit: str, active: str, sub: str) -> None:
        """Let `systemctl show` print this state of a unit without processes."""
        folder = self.folder / "units" / unit
        folder.mkdir()
        values = {"Id": unit, "ActiveState": active, "SubState": sub, "Result": "success"}
        numbers = ("MainPID", "ExecMainCode", "ExecMainStatus", "ExecMainStartTimestampMonotonic")
        values.update(dict.fromkeys((*numbers, "ExecMainExitTimestampMonotonic"), "0"))
        text = "".join(f"{name}={value}\n" for name, value in values.items())
        (folder / "state").write_text(text, encoding="utf-8")

    def set_host_state(self, state: str) -> None:
        """Let `systemctl is-system-running` print this state."""
        self._set("host-state", state)

    def _set(self, name: str, text: str) -> None:
        if text:
            (self.folder / name).write_text(text + "\n", encoding="utf-8")
        else:
            (self.folder / name).unlink(missing_ok=True)
