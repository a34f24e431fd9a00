# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Calls for steps that are functions; another process can import them."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from azure_events_steps.configuration import Step


@dataclass(frozen=True)
class Returns:
    """Return a result, after something is printed."""

    succeeded: bool
    text: str

    def __call__(self, step: Step, variables: Mapping[str, str]) -> tuple[bool, str]:
        print(f"{step.name} prints \u6f22", flush=True)
        os.write(1, b"as a program does\n")
        return self.succeeded, f"{self.text} {variables['EVENT_ID']} {step.args}"


def raises(step: Step, variables: Mapping[str, str]) -> NoReturn:
    raise LookupError("why")


def hangs(step: Step, variables: Mapping[str, str]) -> NoReturn:
    while True:
        time.sleep(60)


def dies(step: Step, variables: Mapping[str, str]) -> NoReturn:
    os._exit(3)


def exits(step: Step, variables: Mapping[str, str]) -> NoReturn:
    sys.exit("why")


def leaves_a_thread(step: Step, variables: Mapping[str, str]) -> tuple[bool, str]:
    """Return while a thread goes on that a Python would wait for."""
    threading.Thread(target=time.sleep, args=(60,)).start()
    return True, "done"


class Unsendable:
    """A call that has its own kind of error when it is pickled."""

    def __reduce__(self) -> NoReturn:
        raise RuntimeError("no state")

    def __call__(self, step: Step, variables: Mapping[str, str]) -> tuple[bool, str]:
        return True, "done"
