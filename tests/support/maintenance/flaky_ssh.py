# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A substitute for ssh: runs the command on this machine, and fails by files in DOWN_FOLDER.

HOST: the connection breaks, and the command is killed, as at a reboot. HOST.cut: the connection
breaks, and the command continues. HOST.hangs: the connection does not answer, and no command runs,
as if the host had died without closing it. A call that fails at its begin creates HOST.missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

BROKEN = 255


def main() -> int:
    host, command = sys.argv[-2:]
    down, cut, hangs = (os.path.join(os.environ["DOWN_FOLDER"], host + kind) for kind in ("", ".cut", ".hangs"))
    if any(map(os.path.exists, (down, cut, hangs))):
        with open(down + ".missed", "w", encoding="ascii"):
            pass
        wait_while(hangs)
        return BROKEN
    with subprocess.Popen(["/bin/sh", "-c", command], start_new_session=True) as process:
        while process.poll() is None:
            if os.path.exists(cut):
                os._exit(BROKEN)
            if os.path.exists(down) or os.path.exists(hangs):
                os.killpg(process.pid, 9)
                wait_while(hangs)
                return BROKEN
            time.sleep(0.02)
        return process.returncode


def wait_while(path: str) -> None:
    """Wait while the file and the calling process exist."""
    caller = os.getppid()
    while os.path.exists(path) and os.getppid() == caller:
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
