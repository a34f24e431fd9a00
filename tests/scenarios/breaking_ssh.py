# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Stands in for ssh: runs the command on this machine, and breaks off, as when the host reboots, while DOWN_FOLDER/HOST exists.

Who calls in vain leaves DOWN_FOLDER/HOST.missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

BROKEN = 255


def main() -> int:
    host, command = sys.argv[-2:]
    down = os.path.join(os.environ["DOWN_FOLDER"], host)
    if os.path.exists(down):
        with open(down + ".missed", "w", encoding="ascii"):
            return BROKEN
    with subprocess.Popen(["/bin/sh", "-c", command], start_new_session=True) as process:
        while process.poll() is None:
            if os.path.exists(down):
                os.killpg(process.pid, 9)
                return BROKEN
            time.sleep(0.02)
        return process.returncode


if __name__ == "__main__":
    sys.exit(main())
