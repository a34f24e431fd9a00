# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The engine's logic without Salt: plain Python, values and a simulated fleet."""

from __future__ import annotations

import sys
from pathlib import Path

# where a master finds it once it is synced
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "salt" / "_utils"))
