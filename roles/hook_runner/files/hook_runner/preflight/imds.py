# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for IMDS: whether it answers, and with which name of this VM."""

from __future__ import annotations

from typing import Iterator

from azure_scheduled_events.errors import ImdsError, ImdsUnreachable
from azure_scheduled_events.identity import resource_name_of
from azure_scheduled_events.imds import Imds
from hook_runner.config.settings import Settings
from hook_runner.preflight.report import ERROR, INFO, WARNING, Finding

# seconds; a slower answer means that Azure is switching the service on, which may take two minutes
IMDS_TIMEOUT = 10.0


def check_imds(settings: Settings) -> Iterator[Finding]:
    """Report whether IMDS answers, and with which name of this VM; a failure that may pass is a warning."""
    imds = Imds(settings.endpoint, settings.api_version, settings.timeout, min(settings.first_timeout, IMDS_TIMEOUT))
    try:
        for severity, text in _answers(imds, settings.resource_name):
            yield Finding(severity, "imds", imds.endpoint, text)
    except ImdsUnreachable as error:
        text = "no answer in time: events are unknown, and Azure may be switching the service on, which takes up to"
        if error.connected:
            yield Finding(WARNING, "imds", imds.endpoint, f"{text} two minutes ({error})")
        else:
            yield Finding(ERROR, "imds", imds.endpoint, str(error))
    except ImdsError as error:
        yield Finding(WARNING if error.retryable else ERROR, "imds", imds.endpoint, str(error))
    finally:
        imds.close()


def _answers(imds: Imds, own_name: str) -> Iterator[tuple[str, str]]:
    name = resource_name_of(imds.instance())
    if name is None and not own_name:
        yield ERROR, "it does not return this VM's name (compute.name), and resource_name is not set"
    elif name is not None and own_name not in ("", name):
        text = f"the name of this VM is {name}, but resource_name is {own_name}; remove resource_name unless Resources"
        yield WARNING, f"{text} of events has that name"
    document = imds.events()
    for warning in document.warnings:
        yield WARNING, warning
    yield INFO, f"it answers: this VM is {own_name or name}; events now: {len(document.events)}"
