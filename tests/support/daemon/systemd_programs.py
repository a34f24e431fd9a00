# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Stand-ins for the programs of systemd: units that run, outlive their caller and keep their result."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

from support.daemon.hook_scripts import is_alive

_PROGRAMS = Path(__file__).parent / "fake_systemd"


class SystemdPrograms:
    """systemd-run, systemctl and journalctl of one host in a folder of its own, to be found on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "systemd"
        self._ending: list[subprocess.Popen[bytes]] = []
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
        """Let hooks begin and end at this time, in monotonic seconds, and end those whose time limit is up."""
        self._set("clock", str(int(monotonic * 1e6)))
        for unit in (self.folder / "units").iterdir():
            try:
                ends_at = int(_text(unit / "began")) / 1e6 + float(_text(unit / "limit"))
            except FileNotFoundError:  # it has not begun, or is removed now
                continue
            if monotonic >= ends_at and not (unit / "state").exists() and not (unit / "expired").exists():
                (unit / "expired").touch()
                self._ending.append(subprocess.Popen([self.folder / "systemctl", "expire", unit.name]))

    def ends_a_hook(self) -> bool:
        """Return True if the time limit of a hook is up that has not ended."""
        units = (self.folder / "units").iterdir()
        return any((unit / "expired").exists() and not (unit / "state").exists() and _is_kept(unit) for unit in units)

    def refuse(self, reason: str) -> None:
        """Refuse each unit with this reason; "" to accept them again."""
        self._set("refusal", reason)

    def execute_again(self, seconds: float) -> None:
        """Take no question for some seconds, as `systemctl daemon-reexec` does."""
        (self.folder / "away").touch()
        threading.Timer(seconds, (self.folder / "away").unlink).start()

    def start_services_again(self) -> None:
        """Give the target of all services another invocation, as `systemctl soft-reboot` does."""
        self._set("services", "2")

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
            # at once: a unit that ends reads it
            draft = self.folder / f"{name}.new"
            draft.write_text(text + "\n", encoding="utf-8")
            draft.replace(self.folder / name)
        else:
            (self.folder / name).unlink(missing_ok=True)


def _is_kept(unit: Path) -> bool:
    """Return True if the keeper of a unit runs; one that was killed with its hook never writes a state."""
    try:
        return is_alive(int(_text(unit / "keeper")))
    except (FileNotFoundError, ValueError):
        return False


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
