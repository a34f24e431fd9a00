# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``record``: keeps what IMDS answers, on a real VM. Needs Python and click only."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from ..api_versions import LATEST_EVENTS_VERSION
from ..cli.options import http_address
from ..cli.output import fail, finish_writing, print_err, program_name, start_writing
from ..cli.parsing import Command, option, parse
from ..scenario.groups import Address
from ..times import parse_duration
from .recorder import Clock, Recorder
from .recording_file import Unusable, key_file, open_recording

_ENDPOINT = Address("169.254.169.254", 80)
_NOTICE = """record: sends GET requests to http://{} every {:g} s for {:g} s. It never approves an event.
record: the first request enables Scheduled Events for this VM and its group (availability set, scale set, cloud
record: service). Its answer may take two minutes. From then on a restart or redeploy that a user asks for waits
record: about 15 minutes, unless a client approves it. 24 hours without a request disable Scheduled Events again."""


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code.

    Exit codes: 0, 1 when the file cannot be written any more, 2 for options or files that cannot be used.
    """
    options = parse(_COMMAND, arguments)
    # the recording goes on without a reader of the messages
    start_writing()
    try:
        with open_recording(options.output) as file:
            print_err(_NOTICE.format(options.endpoint, options.interval, vars(options)["for"]))
            # the user reads it before the first request
            finish_writing()
            _run(Recorder(file, options.endpoint, Clock(), lambda line: print_err(f"record: {line}")), options)
    except Unusable as error:
        fail(str(error))
    except OSError as error:
        remedy = "free some space and run the same command to continue it"
        print_err(f"{program_name()}: {options.output}: {error.strerror}; {remedy}")
        return 1
    finally:
        finish_writing()
    return 0


def _run(recorder: Recorder, options: SimpleNamespace) -> None:
    """Record until the time is over, or until SIGINT, SIGTERM or SIGHUP; with nohup SIGHUP is ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    reason = "time"
    try:
        recorder.run(vars(options)["for"], options.interval, options.api_version)
    except KeyboardInterrupt:
        reason = "signal"
    outcomes = ", ".join(f"{count} x {outcome}" for outcome, count in sorted(recorder.outcomes.items()))
    print_err(f"record: {options.output}: this run ended by {reason}: {outcomes or 'no answers'}")
    left_out = ", ".join(f"{path!a} ({count})" for path, count in recorder.allow_list.left_out.most_common(50))
    print_err(f"record: left out, because they identify or are unknown: {left_out or 'nothing'}")
    print_err(f"record: keep {key_file(options.output)} to yourself; with it, guesses of names can be checked")


def _interval(text: str) -> float:
    seconds = parse_duration(text)
    if not 1 <= seconds <= 3600:
        raise ValueError(f"{text!r} is not between 1s and 1h")
    return seconds


_COMMAND = Command(
    "record",
    "Record the answers of IMDS on this VM, with pseudonyms for names and ids. Sends GET requests only and never "
    "approves an event.",
    [
        option("output", "FILE", "the recording; an existing recording is continued", Path, required=True),
        option(
            "for", "DURATION", "how long to record, such as 90s, 1h or 2d (default 1h)", parse_duration, default=3600.0
        ),
        option("interval", "DURATION", "time between polls, 1s to 1h (default 1s)", _interval, default=1.0),
        option("endpoint", "URL", "(default http://169.254.169.254)", http_address, default=_ENDPOINT),
        option(
            "api-version",
            "VERSION",
            f"version of scheduledevents to ask for in each poll; repeatable (default {LATEST_EVENTS_VERSION})",
            multiple=True,
            default=(LATEST_EVENTS_VERSION,),
        ),
    ],
)
