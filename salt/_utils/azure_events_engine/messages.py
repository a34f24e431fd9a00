# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Inputs and actions of the reducer."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Union

from .state import Maintenance


class Known(NamedTuple):
    """The minions that take part, and the names of their VMs in the pillar."""

    accepted: frozenset[str]
    pillar: Mapping[str, str] = {}


class Hint(NamedTuple):
    """A beacon's event, or the start of a minion. Its data are not used: the minion is polled."""

    minion: str
    started: bool = False


class Returned(NamedTuple):
    """The answer of one minion to one job."""

    job: int
    minion: str
    answer: Any


class PublishFailed(NamedTuple):
    """A job that could not be published."""

    job: int
    reason: str


class Request(NamedTuple):
    """An operator's request through the runner. ``at`` is its time as text."""

    request_id: str
    do: str
    event_id: str = ""
    by: str = ""
    at: str = ""
    force: bool = False


class Tick(NamedTuple):
    """Time has passed. ``at`` is in seconds since 1970."""

    at: float


Input = Union[Known, Hint, Returned, PublishFailed, Request, Tick]


class PublishJob(NamedTuple):
    """Publish a job of the execution module to these minions."""

    job: int
    function: str
    minions: tuple[str, ...]
    kwargs: Mapping[str, Any]


class Announce(NamedTuple):
    """Send a bus event of the engine's own."""

    event_id: str
    step: str
    data: Mapping[str, Any]


class Save(NamedTuple):
    """Write a maintenance; None removes it."""

    key: str
    maintenance: Maintenance | None


class SaveName(NamedTuple):
    """Write the name that a minion first reported for its VM."""

    minion: str
    vm: str


class Reply(NamedTuple):
    """Answer a request."""

    request_id: str
    data: Mapping[str, Any]


Action = Union[PublishJob, Announce, Save, SaveName, Reply]
