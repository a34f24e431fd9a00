# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run every fault and attack against a real master and minions of Salt, and print a table.

Exit status: 0 if all is well, 1 if a case failed, 2 for a wrong command.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tools.environment import open_environment
from tools.stage import Job, Skip, StageFailed
from tools.stages.salt import PYTHONS, install

REPOSITORY = Path(__file__).resolve().parents[1]
# the columns of the table of cases
CASES = ("tests/salt/faults", "tests/salt/live/test_minion.py")


def main() -> int:
    """Read the arguments, run the table for each series, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="salt_faults", description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else ""
    )
    parser.add_argument(
        "--series",
        type=int,
        nargs="+",
        choices=sorted(PYTHONS),
        default=[3006, 3008],
        help="of Salt (default: %(default)s)",
    )
    parser.add_argument("--times", type=int, default=1, help="how often each case runs (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="how many masters side by side (default: %(default)s)")
    parser.add_argument(
        "--only", default="", metavar="EXPRESSION", help="cases whose names fit, as pytest's -k has them"
    )
    options = parser.parse_args()
    environment = open_environment(REPOSITORY)
    failed = []
    for series in options.series:
        with (environment.cache / (f"salt-faults-{series}.log")).open("w+") as log:
            try:
                home = install(Job(environment, log), series)
            except (Skip, StageFailed) as error:
                print(f"salt-faults: Salt {series}: {error}", file=sys.stderr)
                failed.append(series)
                continue
        print(f"Salt {series}", flush=True)
        side_by_side = ("-n", str(options.jobs), "--dist", "loadgroup")
        command = [
            environment.python,
            "-m",
            "pytest",
            "-q",
            *side_by_side,
            *CASES,
            *(("-k", options.only) if options.only else ()),
        ]
        variables = {**environment.variables, "SALT_HOME": str(home), "SALT_FAULTS_TIMES": str(options.times)}
        if subprocess.run(command, cwd=REPOSITORY, env=variables, check=False).returncode:
            failed.append(series)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
