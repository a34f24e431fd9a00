# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Salt's loader with the modules of this checkout, against a simulated Azure, without processes."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from support.repository import REPOSITORY
from support.salt.steps import append, variable
from support.salt.steps_minion import Outcomes
from support.salt.ticks import Ticks, state_text, wait_until_written

ROOT = REPOSITORY / "salt"
# as on a minion after a sync
sys.path.insert(0, str(ROOT / "_utils"))

salt_loader = pytest.importorskip("salt.loader", reason="runs in the Python of a Salt: nox -s 'salt(3008)' does")
salt_beacons = pytest.importorskip("salt.beacons")
salt_config = pytest.importorskip("salt.config")

# before its configuration Salt keeps log lines until the end, when pytest has closed the stream
pytest.importorskip("salt._logging").shutdown_temp_handler()


def _find_spec(finder: Any, name: str, path: Any = None, _target: Any = None) -> ModuleSpec | None:
    """Find a module with an import hook that has only `find_module`, as Python 3.11 does."""
    loader = finder.find_module(name, path)
    return None if loader is None else importlib.util.spec_from_loader(name, loader)


# pytest's import mode importlib calls find_spec of all hooks, and those of Salt have none
for _finder in sys.meta_path:
    if not hasattr(_finder, "find_spec"):
        setattr(type(_finder), "find_spec", _find_spec)


class Minion:
    """The configuration of a minion, and Salt's loaders for it."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.opts = salt_config.DEFAULT_MINION_OPTS.copy()
        self.opts.update(
            id="minion1",
            root_dir=str(folder),
            cachedir=str(folder / "cache"),
            extension_modules=str(folder / "ext"),
            file_client="local",
            test=False,
            grains={"kernel": "Linux", "os": "Debian", "os_family": "Debian", "osrelease_info": [12]},
            pillar={},
            azure_events={"endpoint": endpoint},
        )
        for kind in ("module", "states", "beacons", "grains"):
            self.opts[kind + "_dirs"] = [str(ROOT / ("_modules" if kind == "module" else "_" + kind))]
        self.reload()
        # of one run of states
        self.context: dict[str, Any] = {}

    def reload(self) -> None:
        """Load the functions with the present configuration."""
        self.functions = salt_loader.minion_mods(self.opts, context={})

    def call(self, function: str, *args: Any, **kwargs: Any) -> Any:
        return self.functions["azure_events." + function](*args, **kwargs)

    def state(self, function: str, name: str = "x", test: bool = False, **kwargs: Any) -> dict[str, Any]:
        opts = dict(self.opts, test=test)
        ret: dict[str, Any] = salt_loader.states(
            opts, self.functions, salt_loader.utils(opts), None, context=self.context
        )["azure_events." + function](name, **kwargs)
        assert set(ret) - {"warnings"} == {"name", "result", "changes", "comment"}
        return ret

    @property
    def seen(self) -> Path:
        return Path(self.opts["cachedir"], "azure_events", "seen-azure_events.json")

    def seen_text(self) -> str:
        return state_text(self.seen)


class CountingMinion(Minion, Outcomes):
    """A minion whose steps write a line into a file."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        super().__init__(folder, endpoint)
        self.log = folder / "ran"
        event_id = variable("EVENT_ID")
        steps = {word: [append(f"{word} {event_id}", self.log)] for word in ("prepare", "recover")}
        self.configure(**steps)

    def configure(self, **section: Any) -> None:
        self.opts["azure_events"].update(section)
        self.reload()

    def use_states(self, *roots: Path) -> None:
        """Set what states and functions that start programs need; the last file root is this checkout's."""
        shell = "cmd.exe" if sys.platform == "win32" else "/bin/sh"
        self.opts["grains"].update(shell=shell, path=os.environ["PATH"])
        pillar = Path(self.opts["root_dir"]) / "pillar"
        file_roots = [*map(str, roots), str(ROOT)]
        self.opts.update(file_roots={"base": file_roots}, pillar_roots={"base": [str(pillar)]}, __role="minion")


class Beacons(Ticks):
    """Ticks the beacons as a minion's loop does; ``refresh`` is a refresh of beacons or pillar."""

    def __init__(self, minion: Minion, options: list[dict[str, Any]]) -> None:
        self._minion = minion
        self._opts = dict(minion.opts, beacons={"azure_events": options})
        self.slowest = 0.0
        self._last_sequence = 0
        self._fresh()

    def _fresh(self) -> None:
        functions = salt_loader.minion_mods(self._opts, context={})
        self._salt = salt_beacons.Beacon(self._opts, functions)
        # Salt loads modules at their first use; that time must not count as the beacon's
        self._salt.beacons["azure_events.validate"]([])

    def tick(self) -> list[dict[str, Any]]:
        began = time.perf_counter()
        fired = self._salt.process(self._opts["beacons"], {}) or []
        self.slowest = max(self.slowest, time.perf_counter() - began)
        self._last_sequence = max([self._last_sequence, *(event["data"].get("sequence", 0) for event in fired)])
        return fired

    def refresh(self) -> None:
        self.close()
        self._fresh()

    def wait_until_written(self) -> None:
        wait_until_written(self._minion.seen, self._last_sequence)

    def close(self) -> None:
        # as Salt 3006.28 and later on a refresh
        self._salt.beacons["azure_events.close"](
            self._opts["beacons"]["azure_events"] + [{"_beacon_name": "azure_events"}]
        )


def changes(fired: list[dict[str, Any]]) -> list[str]:
    return [event["data"]["change"] for event in fired]
