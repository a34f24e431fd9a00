# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the answers of Redis and Sentinel, and decides whether a failover loses no write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ready_hooks.core.address import host_and_port

MASTER = "master"
# Sentinel promotes no replica with one of these flags
_DOWN = {"s_down", "o_down", "disconnected"}


class Replica(NamedTuple):
    """A replica as its master knows it; the offset is the end of the data that it has confirmed."""

    address: str
    is_online: bool
    offset: int


class Instance(NamedTuple):
    """An instance as INFO describes it.

    Attributes:
        run_id: changes with each start.
        version: such as (7, 0).
        role: master or slave.
        master: of a replica, host:port.
        link_is_up: whether a replica is in sync with its master.
        offset: end of the data.
        replicas: of a master.
    """

    run_id: str
    version: tuple[int, ...]
    role: str
    master: str
    link_is_up: bool
    offset: int
    replicas: tuple[Replica, ...]


class Known(NamedTuple):
    """A replica as Sentinel knows it."""

    address: str
    is_down: bool
    priority: int

    @property
    def can_be_promoted(self) -> bool:
        """Whether Sentinel may choose it."""
        return not self.is_down and self.priority > 0


class Persistence(NamedTuple):
    """The state of the files of an instance."""

    is_saving: bool
    is_rewriting: bool
    last_save_succeeded: bool
    is_loading: bool


def fields(text: str) -> dict[str, str]:
    """Return the fields of an answer to INFO."""
    lines = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, colon, value in lines if colon}


def pairs(flat: Sequence[object]) -> dict[str, str]:
    """Return the mapping of a list of alternate names and values."""
    return {str(name): str(value) for name, value in zip(flat[::2], flat[1::2])}


def instance_of(info: Mapping[str, str]) -> Instance:
    """Return the instance of the fields of INFO."""
    role = info.get("role", "")
    replicas = []
    for name, value in info.items():
        if name.startswith("slave") and name[5:].isdigit():
            found = dict(part.partition("=")[::2] for part in value.split(","))
            address = host_and_port(found.get("ip", ""), found.get("port", ""))
            replicas.append(Replica(address, found.get("state") == "online", number(found.get("offset"))))
    return Instance(
        run_id=info.get("run_id", ""),
        version=tuple(number(part) for part in info.get("redis_version", "").split(".")),
        role=role,
        master=host_and_port(info.get("master_host", ""), info.get("master_port", "")),
        link_is_up=info.get("master_link_status") == "up",
        offset=number(info.get("master_repl_offset")),
        replicas=tuple(replicas),
    )


def known_of(answer: Sequence[Sequence[object]]) -> list[Known]:
    """Return the replicas of an answer to SENTINEL REPLICAS."""
    return [
        Known(
            host_and_port(found.get("ip", ""), found.get("port", "")),
            bool(_DOWN & set(found.get("flags", "").split(","))),
            number(found.get("slave-priority")),
        )
        for found in map(pairs, answer)
    ]


def persistence_of(info: Mapping[str, str]) -> Persistence:
    """Return the state of the files of the fields of INFO."""
    return Persistence(
        info.get("rdb_bgsave_in_progress") == "1",
        "1" in (info.get("aof_rewrite_in_progress"), info.get("aof_rewrite_scheduled")),
        info.get("rdb_last_bgsave_status") == "ok",
        info.get("loading") == "1",
    )


def refusal(master: Instance, known: Sequence[Known], most_lag: int) -> str | None:
    """Return why a failover could lose writes, or None.

    Sentinel decides which replica it promotes. Therefore each one that it may choose must be
    connected, and must be able to catch up soon.
    """
    candidates = [each for each in known if each.can_be_promoted]
    if not candidates:
        return "Sentinel knows no healthy replica that it may promote"
    for each in candidates:
        replica = _replica(master, each)
        if replica is None:
            return f"Sentinel may promote {each.address}, which is not connected"
        if master.offset - replica.offset > most_lag:
            return f"Sentinel may promote {each.address}, which lags {master.offset - replica.offset} bytes behind"
    return None


def caught_up(master: Instance, known: Sequence[Known], offset: int) -> bool:
    """Return True if each replica that Sentinel may promote has confirmed the data up to the offset."""
    replicas = [_replica(master, each) for each in known if each.can_be_promoted]
    return bool(replicas) and all(replica is not None and replica.offset >= offset for replica in replicas)


def number(text: str | None) -> int:
    """Return the number that a text begins with; -1 for others."""
    digits = text or ""
    return int(digits) if digits.isascii() and digits.isdigit() else -1


def _replica(master: Instance, known: Known) -> Replica | None:
    return next((each for each in master.replicas if each.address == known.address and each.is_online), None)
