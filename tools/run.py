# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run the stages of the tests: the short form of all, all of them whole, or those that are named."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tools.environment import Environment, open_environment
from tools.process_reaper import run_and_reap
from tools.runner import run_stages
from tools.stage import Stage
from tools.stages.catalogue import LONG, ON_REQUEST, STAGES

REPOSITORY = Path(__file__).resolve().parents[1]
EVERY = (*STAGES, *LONG, *ON_REQUEST)


def main() -> int:
    """Read the arguments, run the stages, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [stage.name for stage in EVERY]
    parser.add_argument("stages", nargs="*", choices=[*names, []], metavar="STAGE", help=", ".join(names))
    parser.add_argument("--all", action="store_true", help="run all stages whole, instead of the short form")
    parser.add_argument("--short", action="store_true", help="run the short form of the stages that are named")
    # one more than cores, because some stages wait
    parser.add_argument(
        "--jobs",
        type=int,
        default=(os.cpu_count() or 1) + 1,
        help="number of stages that run side by side (default: %(default)s)",
    )
    parser.add_argument("--list", action="store_true", help="print the stages and what each shows")
    options = parser.parse_args()
    if options.list:
        print_stages()
        return 0
    stages = chosen(options.stages, options.all, options.short)
    return run_and_reap(partial(run, open_environment(REPOSITORY), stages, options.jobs))


def chosen(names: Sequence[str], everything: bool, short: bool) -> list[Stage]:
    """Return the stages to run: those that are named, or all of the short or of the whole run."""
    if names:
        stages = [stage for stage in EVERY if stage.name in names]
    else:
        stages = [*STAGES, *LONG] if everything else list(STAGES)
    use_short = short or not (names or everything)
    return [replace(stage, run=stage.short) if use_short and stage.short else stage for stage in stages]


def run(environment: Environment, stages: Sequence[Stage], side_by_side: int) -> int:
    """Run the stages, and return 130 if a signal ended the run."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # the code refuses folders that other users can change, and stages make some
    os.umask(0o022)
    try:
        return run_stages(environment, stages, side_by_side)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        return 130


def print_stages() -> None:
    """Print a line per stage."""
    forms = {stage.name: "short form in make test" for stage in STAGES if stage.short}
    forms |= {stage.name: "make test-all" for stage in LONG}
    forms |= {stage.name: "only by its name" for stage in ON_REQUEST}
    for stage in sorted(EVERY, key=lambda stage: stage.name):
        form = f" ({forms[stage.name]})" if stage.name in forms else ""
        print(f"{stage.name:<24} {stage.summary}{form}")


if __name__ == "__main__":
    sys.exit(main())
