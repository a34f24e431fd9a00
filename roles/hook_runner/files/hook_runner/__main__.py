# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`python3 -m hook_runner` is the command azure-scheduled-events."""

import sys

from hook_runner.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
