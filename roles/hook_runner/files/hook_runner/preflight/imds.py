# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for IMDS: whether it answers, and with which name of this VM."""

from __future__ import annotations

from azure_scheduled_events.errors import ImdsError, ImdsUnreachable
from azure_scheduled_events.identity import resource_name_of
from azure_scheduled_events.imds import Imds
from hook_runner.config.settings import Settings
from hook_runner.preflight.report import ERROR, INFO, WARNING, Report

# seconds; a slower answer means that Azure is switching the service on, which may take two minutes
IMDS_TIMEOUT = 10.0


def check_imds(settings: Settings, report: Report) -> None:
    """Report whether IMDS answers, and with which name of this VM.

    1. If IMDS cannot be reached, this is an error; if it does not answer in time, a warning.
    2. Any other failure is a warning if it may pass, else an error.
    3. It is an error if neither IMDS nor the settings have a name of this VM, and a warning if their names differ.
    4. The warnings of the document are warnings.
    """
    imds = Imds(settings.endpoint, settings.api_version, settings.timeout, min(settings.first_timeout, IMDS_TIMEOUT))
    try:
        name = resource_name_of(imds.instance())
        if name is None and not settings.resource_name:
            report.add(
                ERROR,
                "imds",
                imds.endpoint,
                "it does not return this VM's name (compute.name), and resource_name is not set",
            )
        elif name is not None and settings.resource_name not in ("", name):
            report.add(
                WARNING,
                "imds",
                imds.endpoint,
                f"the name of this VM is {name}, but resource_name is {settings.resource_name};"
                " remove resource_name unless Resources of events has that name",
            )
        document = imds.events()
    except ImdsUnreachable as error:
        if error.connected:
            text = (
                "no answer in time: events are unknown, and Azure may be switching the service on, which takes up to"
                f" two minutes ({error})"
            )
            report.add(WARNING, "imds", imds.endpoint, text)
        else:
            report.add(ERROR, "imds", imds.endpoint, str(error))
        return
    except ImdsError as error:
        report.add(WARNING if error.retryable else ERROR, "imds", imds.endpoint, str(error))
        return
    finally:
        imds.close()
    for warning in document.warnings:
        report.add(WARNING, "imds", imds.endpoint, warning)
    about = (settings.resource_name or name, len(document.events))
    report.add(INFO, "imds", imds.endpoint, "it answers: this VM is %s; events now: %d" % about)
