# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run one handling in the namespaces of this process; `side_by_side` starts it.

python -m demo.one_run HANDLING FOLDER

When the hosts are ready it creates FOLDER/ready, and waits for FOLDER/go. It writes FOLDER/result.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from demo.handlings import HANDLINGS
from demo.plan import LONG
from demo.run import run

PAUSE = 0.05


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])

    def wait_for_others() -> None:
        (folder / "ready").touch()
        while not (folder / "go").exists():
            time.sleep(PAUSE)

    run(HANDLINGS[name], LONG, folder, wait_for_others).write(folder / "result")


if __name__ == "__main__":
    main()
