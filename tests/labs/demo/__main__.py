# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Compare what maintenance events cost with three handlings of them, one after the other.

Exit status: 0 the hook runner lost nothing, 1 it lost something, or a run did not work, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from demo.handlings import HANDLINGS, OURS
from demo.plan import LONG
from demo.result import events, problems, table
from demo.run import run
from support.hosts import capabilities, rootfs
from support.hosts.namespaces import skip_reason_of_this_process
from support.repository import REPOSITORY

FOLDER = REPOSITORY / ".cache" / "demo-zero-loss"


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description="Compare what events cost with handlings of them.")
    parser.add_argument("handlings", nargs="*", metavar="HANDLING", help=f"of {', '.join(HANDLINGS)} (default: all)")
    names = parser.parse_args().handlings or list(HANDLINGS)
    if unknown := set(names) - set(HANDLINGS):
        parser.error(f"{', '.join(sorted(unknown))}: unknown handling; these are known: {', '.join(HANDLINGS)}")
    if skip_reason_of_this_process():
        if reason := capabilities.skip_reason() or capabilities.skip_reason_of_nspawn(rootfs.ensure()):
            print(f"demo-zero-loss: {reason}", file=sys.stderr)
            return 2
        words = ["-m", "support.hosts.namespaces", sys.executable, "-m", "demo", *names]
        os.execv(sys.executable, [sys.executable, *words])
    shutil.rmtree(FOLDER, ignore_errors=True)
    results = []
    for name in names:
        (FOLDER / name).mkdir(parents=True)
        result = run(HANDLINGS[name], LONG, FOLDER / name)
        print(f"{result.handling}\n{events(result)}", flush=True)
        results.append(result)
    print(f"\n{table(results)}\n")
    bad = [each for each in results if each.errors or (each.handling == HANDLINGS[OURS].name and each.problems())]
    for result in bad:
        print(f"{result.handling}:\n{problems(result)}")
    print(f"all answers are in {FOLDER.relative_to(REPOSITORY)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
