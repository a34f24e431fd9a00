# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run the maintenance playbook over real sshd, disturbed by seed, and print violations of the rules.

Exit status: 0 no violation, 1 a seed violated a rule, 2 wrong usage or impossible on this machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

from chaos.one_seed import in_namespaces
from seed_campaign import command_line, run_command
from support.hosts import capabilities, rootfs
from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree

FOLDER = REPOSITORY / ".cache" / "chaos"


def main() -> int:
    parser = command_line("chaos", "Run the maintenance playbook over real sshd, disturbed by seed.")
    parser.set_defaults(seeds=range(1, 101))
    parser.add_argument("--of", type=Path, default=REPOSITORY, help="test the playbook of another checkout")
    options = parser.parse_args()
    if reason := capabilities.skip_reason() or capabilities.skip_reason_of_nspawn(rootfs.ensure()):
        print(f"chaos: cannot run here: {reason}; `.venv/bin/nox -s system` installs missing programs", file=sys.stderr)
        return 2
    copy_tree(options.of.resolve(), FOLDER / "collections")
    return run_command(in_namespaces(FOLDER / "collections"), options, FOLDER)


if __name__ == "__main__":
    sys.exit(main())
