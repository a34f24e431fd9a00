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


def show_status(options: argparse.Namespace) -> Result:
    """Run the verb `status`."""
    try:
        data = ask(options, "status")
    except CommandError as error:
        if error.status != NOT_RUNNING:
            raise
        return Result(NOT_RUNNING, {"running": False}, str(error))
    return Result(OK if status.is_healthy(data) else PROBLEM, {"running": True, **data}, status.to_text(data))


def approve_event(options: argparse.Namespace) -> Result:
    """Run the verb `approve`."""
    answer = ask(
        options,
        "approve",
        "; it is the one that approves",
        event_id=options.event_id,
        force=options.force,
        release_others=options.release_others,
    )
    candidates = answer.get("candidates")
    if candidates:
        text = f"{options.event_id}: several events begin so: {', '.join(candidates)}; give more of the id"
        raise CommandError(NO_SUCH_EVENT, text, found=False, candidates=candidates)
    if not answer["found"]:
        text = f"there is no event {options.event_id} now; `azure-scheduled-events status` lists them"
        raise CommandError(NO_SUCH_EVENT, text, found=False)
    return _result(answer)


def recover_host(options: argparse.Namespace) -> Result:
    """Run the verb `recover`."""
    answer = ask(options, "recover", "; it is the one that recovers", id=options.id, give_up=options.give_up)
    if not answer["found"]:
        text = f"the open maintenance is not {options.id}, and has no such event; see `azure-scheduled-events status`"
        raise CommandError(NO_SUCH_EVENT, text, found=False)
    return _result(answer)


def pause_service(options: argparse.Namespace) -> Result:
    """Run the verb `pause`."""
    return _result(ask(options, "pause", "; nothing is paused", until=options.until, reason=options.reason))


def resume_service(options: argparse.Namespace) -> Result:
    """Run the verb `resume`."""
    return _result(ask(options, "resume", "; nothing is resumed"))


def ask(options: argparse.Namespace, verb: str, consequence: str = "", **request: object) -> dict[str, Any]:
    """Return the answer of the daemon.

    `consequence` is the end of the error if it does not run.

    Raises:
        ConfigError: the configuration is not usable.
        CommandError: the daemon does not run, or its answer is an error.
        PermissionError: this user may not ask it.
        OSError: it does not answer.
    """
    try:
        answer = send_request(load_settings(options.config).run_directory, {"ask": verb, **request})
    except (FileNotFoundError, ConnectionRefusedError):
        raise CommandError(NOT_RUNNING, f"the service does not run{consequence}", running=False) from None
    if "error" in answer:
        raise CommandError(PROBLEM, answer["error"])
    return answer


def _result(answer: dict[str, Any]) -> Result:
    is_done = answer["accepted"] and not answer["withheld"]
    return Result(OK if is_done else PROBLEM, answer, printable(answer["text"]))
