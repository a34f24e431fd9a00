# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs lives from the command line; README.md has examples."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from maintenance_world.host import Daemon
from maintenance_world.plan import PROFILES
from maintenance_world.variants import VARIANTS
from maintenance_world.world import World, live


def main() -> None:
    parser = argparse.ArgumentParser(prog="maintenance_world", description="Lives of a host in virtual time.")
    parser.add_argument("profile", choices=PROFILES)
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("lives", type=int, nargs="?", default=1)
    parser.add_argument(
        "--variant", choices=VARIANTS, help="a daemon that breaks one rule; stops at the first violation"
    )
    parser.add_argument("--show", action="store_true", help="print what happened in the first life")
    given = parser.parse_args()
    daemon = VARIANTS[given.variant].daemon_class if given.variant else Daemon
    if given.show:
        show(live(given.profile, given.first, daemon))
        return
    began, broken, totals = time.process_time(), [], Counter[str]()
    for seed in range(given.first, given.first + given.lives):
        world = live(given.profile, seed, daemon)
        totals.update(world.evidence.counts(), lives=1)
        if world.evidence.violations:
            broken.append(f"{seed}: {world.evidence.violations[0]}")
            if given.variant:
                break
    seconds = time.process_time() - began
    print(f"{given.profile} {given.variant or ''} broken {len(broken)}, {seconds:.1f} s, {dict(totals)}")
    print("".join(f"   {text}\n" for text in broken[:8]), end="")
    sys.exit(bool(broken))


def show(world: World) -> None:
    """Print the configuration and the trace of a life."""
    for hooks in world.plan.hooks.values():
        for hook in hooks:
            print(hook, world.plan.behaviours[(hook.stage, hook.name)])
    print(world.plan.rule, world.plan.settings, world.plan.backends, world.plan.full, sep="\n")
    print("\n".join(world.trace))


if __name__ == "__main__":
    main()
