# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Replaces a file, also while a reader on Windows has it open."""

from __future__ import annotations

import os
import time
from typing import Callable

# seconds for a reader to close the file
_TIMEOUT = 1.0
_PAUSE = 0.01
# ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION: what Windows answers while the file is open
_IN_USE = (5, 32)


def replace_file(
    draft: str,
    path: str,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Rename a file to the path of another one, which it replaces at once.

    Windows refuses that while another process has the file open. The function then tries again for a second.

    Args:
        draft: path of the new file.
        path: path of the file to replace; it may be missing.
        clock: monotonic seconds.
        sleep: waits some seconds.

    Raises:
        OSError: the file cannot be replaced; both files remain.
    """
    ends = clock() + _TIMEOUT
    while True:
        try:
            os.replace(draft, path)
        except PermissionError as error:
            # other systems have no such code
            if getattr(error, "winerror", None) not in _IN_USE or clock() >= ends:
                raise
        else:
            return
        sleep(_PAUSE)
