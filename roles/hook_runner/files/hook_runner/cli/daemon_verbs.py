# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verbs that ask the daemon. Each returns its result, or raises CommandError."""

from __future__ import annotations

import argparse
from typing import Any

from azure_scheduled_events.printable import printable
from hook_runner.cli.output import NO_SUCH_EVENT, NOT_RUNNING, OK, PROBLEM, CommandError, Result
from hook_runner.config.settings import load_settings
from hook_runner.reporting import status
from hook_runner.service.control_socket import send_request

# the options that every verb has, and the attributes that say which verb it is
_NOT_REQUESTED = ("verb", "name", "config", "json")
_NOT_FOUND = {
    "approve": "there is no event {event_id} now; `azure-scheduled-events status` lists them",
    "recover": "the open maintenance is not {id}, and has no such event; see `azure-scheduled-events status`",
}
# what follows for a verb
_NOT_RUNNING = {"history": "; without it only root may read the history"}


def show_status(options: argparse.Namespace) -> Result:
    """Run the verb `status`."""
    try:
        data = ask(options, "status")
    except CommandError as error:
        if error.status != NOT_RUNNING:
            raise
        return Result(NOT_RUNNING, {"running": False}, str(error))
    return Result(OK if status.is_healthy(data) else PROBLEM, {"running": True, **data}, status.to_text(data))


def order(options: argparse.Namespace) -> Result:
    """Run a verb that the daemon carries out: approve, recover, pause or resume. Its options are the request."""
    request = {name: value for name, value in vars(options).items() if name not in _NOT_REQUESTED}
    answer = ask(options, options.name, **request)
    if "candidates" in answer:
        text = f"several events begin so: {', '.join(answer['candidates'])}; give more of the id"
        raise CommandError(NO_SUCH_EVENT, f"{options.event_id}: {text}", **answer)
    if not answer.get("found", True):
        raise CommandError(NO_SUCH_EVENT, _NOT_FOUND[options.name].format(**request), **answer)
    is_done = answer["accepted"] and not answer["withheld"]
    return Result(OK if is_done else PROBLEM, answer, printable(answer["text"]))


def ask(options: argparse.Namespace, verb: str, **request: object) -> dict[str, Any]:
    """Return the answer of the daemon.

    Raises:
        ConfigError: the configuration is not usable.
        CommandError: the daemon does not run, or its answer is an error.
        PermissionError: this user may not ask it.
        OSError: it does not answer.
    """
    try:
        answer = send_request(load_settings(options.config).run_directory, {"ask": verb, **request})
    except (FileNotFoundError, ConnectionRefusedError):
        text = "the service does not run" + _NOT_RUNNING.get(verb, "")
        raise CommandError(NOT_RUNNING, text, running=False) from None
    if "error" in answer:
        raise CommandError(PROBLEM, answer["error"])
    return answer
