# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs one seed in a process with namespaces of its own.

    python -m chaos.one_seed SEED FOLDER SOCKETS COLLECTIONS

SOCKETS is a folder with a short path, for sockets of ssh. COLLECTIONS has the collection under test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from chaos.plan import draw_plan
from chaos.plan_execution import execute
from seed_campaign import Lab, Outcome, Violation
from support.hosts.namespaces import UNSHARE_COMMAND
from support.repository import REPOSITORY

PATHS = ("tests", "tests/labs", ".", "plugins/module_utils", "roles/imds_simulator/files")
# seconds; each run of a seed has its own, shorter limit
SEED_TIMEOUT = 1200.0


def in_namespaces(collections: Path) -> Lab:
    """Return a lab that runs the playbook of these collections."""

    def run(seed: int, folder: Path) -> Outcome:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(REPOSITORY / path) for path in PATHS)}
        with tempfile.TemporaryDirectory(prefix="chaos-") as sockets, (folder / "harness").open("w") as log:
            words = ["-m", "chaos.one_seed", str(seed), str(folder), sockets, str(collections)]
            subprocess.run(
                [*UNSHARE_COMMAND, sys.executable, *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=SEED_TIMEOUT,
                check=False,
            )
        assert (folder / "outcome").exists(), (folder / "harness").read_text()
        _seed, violations, lines, counts = json.loads((folder / "outcome").read_text())
        return Outcome(seed, [Violation(*violation) for violation in violations], lines, counts)

    return run


def main() -> None:
    seed, folder, sockets, collections = int(sys.argv[1]), *map(Path, sys.argv[2:])
    outcome = execute(seed, draw_plan(seed), folder, sockets, collections)
    (folder / "outcome").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
