# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Prepares this machine for the tests of hosts: checks what it allows, and makes the root file systems.

python -m support.hosts.prepare [SUITE...]

Exit status: 0 ready, 1 a root could not be made, 3 this machine cannot run hosts, with the reason.
"""

from __future__ import annotations

import sys

from support.hosts import capabilities, rootfs

CANNOT = 3


def main() -> None:
    reason = capabilities.skip_reason()
    if not reason:
        rootfs.main()
        reason = capabilities.skip_reason_of_nspawn(rootfs.location(*sys.argv[1:2]))
    if reason:
        print(f"tests of systemd hosts: {reason}", file=sys.stderr)
        sys.exit(CANNOT)


if __name__ == "__main__":
    main()
