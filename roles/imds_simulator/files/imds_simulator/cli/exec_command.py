# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``exec``: runs a command while a simulator serves."""

from __future__ import annotations

from collections.abc import Sequence

from ..simulator import RunningSimulator
from .commands import EXEC
from .output import discard, print_err
from .parsing import fail
from .place import place_of
from .running import environment_of, parse_with_command, run_command
from .serve_command import print_addresses, run


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code of the command."""
    options, command = parse_with_command(EXEC, arguments)
    if options.imds_vm and not options.imds_address:
        fail("--imds-vm: only with --imds-address")
    log = discard if options.quiet else print_err

    async def execute(simulator: RunningSimulator) -> int:
        print_addresses(simulator, log)
        place = place_of(options, simulator)
        if options.imds_address:
            vm = next(name for name, url in place.endpoints.items() if url == place.endpoint)
            log(f"listening {place.endpoint} for {vm}, in the network of the command")
        environment = environment_of(place.endpoint, place.endpoints, place.control, options.control_token)
        return await run_command(place.start, command, environment)

    return run(options, execute, log)
