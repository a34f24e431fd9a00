# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Keeps the buffers of asyncio's transports in the heap.

A transport allocates 256 KiB for each part that it receives, and shrinks the buffer afterwards. Unless the
end of the heap has room, the C library of GNU asks the kernel for each block above 128 KiB, and gives the
rest back at once; that takes longer than the answer of the simulator. The library raises its limits when a
larger block is freed. Other C libraries ignore this. tests/bench/bench_simulator.py shows the effect.
"""

from __future__ import annotations

# bytes: more than asyncio allocates, and less than the greatest limit of the library, 32 MiB
_BLOCK = 1 << 20


def keep_in_heap() -> None:
    """Raise the limits of the whole process."""
    block = bytes(_BLOCK)
    del block
