# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module on a host whose connection may be lost during a wait."""

from __future__ import annotations

import contextlib
import typing as t

from ansible.errors import AnsibleConnectionFailure

from .._time_limit import TimeLimitExceeded, kill_children, time_limit

# seconds to open the connection and to start PowerShell
_STARTING = 60.0
# seconds to close the connection
_RESETTING = 10.0

Result = t.Dict[str, t.Any]


class ConnectionLost(Exception):
    """The connection to a host ended or hung after the host had returned a result before."""


class HostModule:
    """A module of this collection on one host.

    Args:
        execute: runs the module with these options and returns its result.
        reset: closes the connection; the next run opens another.
    """

    def __init__(self, execute: t.Callable[[Result], Result], reset: t.Callable[[], None]) -> None:
        self._execute = execute
        self._reset = reset
        self._was_reached = False

    def run(self, options: Result, seconds: float) -> Result:
        """Run the module once, with a limit in seconds for its work, and return its result.

        Raises:
            AnsibleConnectionFailure: the first run hangs. Other errors of the first run are those of Ansible.
            ConnectionLost: a later run has no result.
        """
        try:
            with time_limit(seconds + _STARTING):
                result = self._execute(options)
        except TimeLimitExceeded:
            kill_children()
            return self._lost(
                AnsibleConnectionFailure(f"the host did not answer for {seconds + _STARTING:.0f} seconds")
            )
        # connection plugins raise errors of the libraries that they use
        except Exception as error:
            return self._lost(error)
        if result.get("unreachable"):
            return self._lost(AnsibleConnectionFailure(str(result.get("msg"))))
        self._was_reached = True
        return result

    def _lost(self, error: Exception) -> t.NoReturn:
        if not self._was_reached:
            raise error
        with contextlib.suppress(Exception, TimeLimitExceeded), time_limit(_RESETTING):
            self._reset()
        raise ConnectionLost(str(error)) from error
