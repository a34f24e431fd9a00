# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for the push: secrets, and a connection to the endpoint. It sends no request."""

from __future__ import annotations

from hook_runner.config.settings import Settings
from hook_runner.preflight.report import ERROR, INFO, WARNING, Report
from hook_runner.push.credentials import secret_problems
from hook_runner.push.exchange import Exchange, NoReply


def check_push(settings: Settings, owners: frozenset[int], report: Report, offline: bool) -> None:
    """Check the settings of the push.

    Args:
        settings: as configured.
        owners: uids that may own the secrets.
        report: gets the findings.
        offline: do not connect to the endpoint.
    """
    if not settings.push_url:
        return
    exchange = Exchange(settings.push_url, settings.push_ca_file, settings.push_timeout)
    where = exchange.address.shown()
    for problem in secret_problems(settings, owners):
        report.add(ERROR, "push", where, f"nothing is pushed: {problem}")
    if not settings.push_token_file and not settings.push_hmac_file:
        text = "neither push_token_file nor push_hmac_file is set; the endpoint cannot know who sends the changes"
        report.add(WARNING, "push", where, text)
    if not exchange.address.is_tls:
        text = "the URL is not https: others on the network can read and change what is sent, the token too"
        report.add(WARNING, "push", where, text)
    if offline:
        return
    try:
        exchange.try_connection()
    except NoReply as error:
        report.add(ERROR, "push", where, f"{error}; changes wait in the spool")
    else:
        text = "it accepts a connection{}".format(", and its certificate is valid" if exchange.address.is_tls else "")
        report.add(INFO, "push", where, text + "; no request was sent")
