# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Gives a daemon's process another boot id and another wall clock than those of this machine."""

from __future__ import annotations

from pathlib import Path

# code that runs before the daemon's command: the boot id comes from a file of the run, and the time
# is wrong by the seconds in a second file
_PROGRAM = """
import builtins, datetime, io, time
_open, _time = builtins.open, time.time
def _opened(file, *rest, **named):
    return _open(%(boot)r if file == "/proc/sys/kernel/random/boot_id" else file, *rest, **named)
builtins.open = io.open = _opened
def _wrong_time():
    with _open(%(skew)r) as file:
        return _time() + float(file.read() or 0)
time.time = _wrong_time
class _WrongTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)
datetime.datetime = _WrongTime
"""


class EmulatedHost:
    """Boot id and clock error of a host, which may change while the daemon runs."""

    def __init__(self, folder: Path, skew: int) -> None:
        self._boot_file, self._skew_file = folder / "boot", folder / "skew"
        self._boots = 0
        self.set_clock(skew)
        self.reboot()

    def program(self) -> str:
        """Return Python code for the argument ``first`` of `Daemon.start`."""
        return _PROGRAM % {"boot": str(self._boot_file), "skew": str(self._skew_file)}

    def reboot(self) -> None:
        """Change the boot id."""
        self._boots += 1
        _replace(self._boot_file, f"00000000-0000-4000-8000-{self._boots:012d}\n")

    def set_clock(self, skew: int) -> None:
        """Set the error of the host's clock, in seconds."""
        _replace(self._skew_file, f"{int(skew)}")


def _replace(path: Path, text: str) -> None:
    # a renamed file is never half written
    draft = path.with_name(path.name + ".new")
    draft.write_text(text)
    draft.replace(path)
