# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Gives a daemon's process another boot id, another wall clock and another disk than those of this machine."""

from __future__ import annotations

import threading
from pathlib import Path

from hook_runner import record_files
from support.daemon.small_disk import program_on_full_disk

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
    """Boot id, clock error and records of a host, which may change while the daemon runs.

    Attributes:
        has_lost_records: whether their content was destroyed.
    """

    def __init__(self, folder: Path, records: Path, skew: int = 0) -> None:
        self._boot_file, self._skew_file, self._full_file = folder / "boot", folder / "skew", folder / "full"
        self._records = records
        self._timers: list[threading.Timer] = []
        self.has_lost_records = False
        self.boots = 0
        self.set_clock(skew)
        self.reboot()

    def program(self) -> str:
        """Return Python code for the argument ``first`` of `Daemon.start`."""
        host = _PROGRAM % {"boot": str(self._boot_file), "skew": str(self._skew_file)}
        return host + program_on_full_disk(str(self._records), str(self._full_file))

    def reboot(self) -> None:
        """Change the boot id."""
        self.boots += 1
        _replace(self._boot_file, f"00000000-0000-4000-8000-{self.boots:012d}\n")

    def set_clock(self, skew: int) -> None:
        """Set the error of the host's clock, in seconds."""
        _replace(self._skew_file, f"{int(skew)}")

    def fill_disk(self, seconds: float) -> None:
        self._full_file.touch()
        timer = threading.Timer(seconds, self._full_file.unlink, [True])
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def heal_disk(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._full_file.unlink(missing_ok=True)

    def overwrite_records(self, junk: bytes | None) -> None:
        """Replace the content of all records; None removes them."""
        self.has_lost_records = True
        for path in self._records.glob("**/*.json"):
            if junk is None:
                path.unlink(missing_ok=True)
            elif path.exists():
                path.write_bytes(junk)

    def recorded_events(self) -> set[str]:
        """Return the ids of the events in the records, in lower case."""
        try:
            stored = record_files.stored(str(self._records))
        except OSError:
            return set()
        found = {record.key for record in (*stored.state.observed.values(), *stored.state.past)}
        return found | {record.key for maintenance in stored.maintenances for record in maintenance.events}


def _replace(path: Path, text: str) -> None:
    # a renamed file is never half written
    draft = path.with_name(path.name + ".new")
    draft.write_text(text)
    draft.replace(path)
