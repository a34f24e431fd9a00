# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Replaces a file as a whole, and reads one that another process replaces.

Windows refuses to replace a file while a reader has it open, and to open it in the moment of its
replacement. Both functions then try again for up to a second. On other systems they try once.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from typing import Callable, TypeVar

# seconds for the other process to close the file
_TIMEOUT = 1.0
_PAUSE = 0.01

_Result = TypeVar("_Result")


def replace_file(draft: str, path: str) -> None:
    """Rename ``draft`` to ``path``, where it replaces a file, if there is one, at once.

    Raises:
        OSError: the file cannot be replaced; both files remain.
    """
    retried(lambda: os.replace(draft, path))


def read_file(path: str, encoding: str) -> str:
    """Return the text of a file, as it was before or after another process replaced it.

    Raises:
        OSError: the file cannot be read.
        ValueError: the text is not in this encoding.
    """

    def read() -> str:
        with open(path, encoding=encoding) as file:
            return file.read()

    return retried(read)


def is_in_use(error: OSError) -> bool:
    """Return whether an action on a file has failed because another process uses the file; only on Windows."""
    # open() has the same number for a file in use and for one that the user may not read
    return sys.platform == "win32" and error.errno == errno.EACCES


def retried(
    action: Callable[[], _Result],
    repeats: Callable[[OSError], bool] = is_in_use,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> _Result:
    """Return the result of an action on a file, repeated for up to a second while the file is in use.

    Args:
        action: takes effect as a whole, or raises OSError without an effect.
        repeats: returns True for the error of a file that another process uses.
        clock: monotonic seconds.
        sleep: waits some seconds.

    Raises:
        OSError: the error of the last attempt.
    """
    ends = clock() + _TIMEOUT
    while True:
        try:
            return action()
        except OSError as error:
            if not repeats(error) or clock() >= ends:
                raise
        sleep(_PAUSE)
