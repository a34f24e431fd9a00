# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Compare what maintenance events cost with three handlings of them, and draw it.

Exit status: 0 the hook runner lost nothing, 1 it lost something, or a run did not work, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from demo.handlings import HANDLINGS, OURS
from demo.plot import drawing
from demo.report import events, problems, table
from demo.result import Result
from demo.side_by_side import RunFailed, run_all
from support.hosts import capabilities, rootfs
from support.repository import REPOSITORY

FOLDER = REPOSITORY / ".cache" / "demo-zero-loss"
IMAGE = REPOSITORY / "docs" / "images" / "zero-loss.svg"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    parser.add_argument("handlings", nargs="*", metavar="HANDLING", help=f"of {', '.join(HANDLINGS)} (default: all)")
    parser.add_argument("--image", type=Path, default=IMAGE, help="file for the drawing (default: %(default)s)")
    parser.add_argument("--draw", action="store_true", help="run nothing; print and draw the last results again")
    options = parser.parse_args(arguments)
    names = options.handlings or list(HANDLINGS)
    if unknown := set(names) - set(HANDLINGS):
        parser.error(f"{', '.join(sorted(unknown))}: unknown handling; these are known: {', '.join(HANDLINGS)}")
    if options.draw:
        return report([Result.read(FOLDER / name / "result") for name in names], options.image)
    if reason := capabilities.skip_reason() or capabilities.skip_reason_of_nspawn(rootfs.ensure()):
        print(f"demo-zero-loss: {reason}", file=sys.stderr)
        return 2
    shutil.rmtree(FOLDER, ignore_errors=True)
    began = time.monotonic()
    try:
        results = run_all(names, FOLDER)
    except RunFailed as error:
        print(f"demo-zero-loss: {error}", file=sys.stderr)
        return 1
    status = report(results, options.image)
    print(f"\n{time.monotonic() - began:.0f} s; all answers are in {FOLDER.relative_to(REPOSITORY)}")
    return status


def report(results: Sequence[Result], image: Path) -> int:
    """Print the figures, write the drawing, and return the exit status."""
    for result in results:
        print(f"{result.handling}\n{events(result)}")
    print(f"\n{table(results)}\n")
    image.parent.mkdir(exist_ok=True)
    image.write_text(drawing(results), encoding="utf-8")
    ours = [result for result in results if result.handling == HANDLINGS[OURS].name]
    broken = [result for result in results if result.errors and result not in ours]
    for result in ours + broken:
        if found := problems(result):
            print(f"{result.handling}:\n{found}")
    return 1 if broken or any(result.problems() for result in ours) else 0


if __name__ == "__main__":
    sys.exit(main())
