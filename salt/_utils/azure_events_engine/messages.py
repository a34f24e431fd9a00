# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Inputs and actions of the reducer."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Union

from .state import Maintenance


class Known(NamedTuple):
    """The minions that take part, and the names of their VMs that the pillar has."""

    accepted: frozenset[str]
    pillar: Mapping[str, str] = {}


class Hint(NamedTuple):
    """A beacon's event, or the start of a minion. Its contents do not count: the minion is asked."""

    minion: str
    started: bool = False


class Returned(NamedTuple):
    """The answer of one minion to one question."""

    job: int
    minion: str
    answer: Any


class PublishFailed(NamedTuple):
    """A question that could not be published."""

    job: int
    reason: str


class Saved(NamedTuple):
    """The record of an approval is on disk."""

    key: str


class SaveFailed(NamedTuple):
    """A record could not be written."""

    key: str
    reason: str


class Request(NamedTuple):
    """What an operator asks for with the runner. ``at`` is the time as text, for the records."""

    request_id: str
    do: str
    event_id: str = ""
    by: str = ""
    at: str = ""
    force: bool = False


class Tick(NamedTuple):
    """Time has passed; decide what to do."""


Input = Union[Known, Hint, Returned, PublishFailed, Saved, SaveFailed, Request, Tick]


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
    """Write a maintenance; ``needed``: answer with Saved or Unsaved. None removes it."""

    key: str
    maintenance: Maintenance | None
    needed: bool = False


class SaveName(NamedTuple):
    """Write what a minion said about its VM when it was first observed."""

    minion: str
    vm: str


class Reply(NamedTuple):
    """Answer a request."""

    request_id: str
    data: Mapping[str, Any]


Action = Union[PublishJob, Announce, Save, SaveName, Reply]
