# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Draw the states of an event and of a maintenance, as runs of the code show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from imds_simulator.model.events import ENDED, PLANNED
from tools.pictures.graphs.drawing import drawing
from tools.pictures.graphs.graph import Edge, Graph, Node
from tools.pictures.graphs.layout import layout_of
from tools.pictures.states import observed_azure, observed_daemon, observed_engine
from tools.pictures.states.transitions import Transitions

# texts in place of the simulator's names of causes
CAUSES = {
    "scheduled": "announced",
    "automatic_approval": "started for a user",
    "hardware_failure": "failed hardware",
    "changed": "back",
    "NotBefore reached": "NotBefore has passed",
}
OVER = "nothing; it is over"


def pictures() -> dict[str, str]:
    """Return name of the file -> SVG."""
    return {f"{name}.svg": drawing(graph, layout_of(name, graph)) for name, graph in graphs().items()}


def graphs() -> dict[str, Graph]:
    """Return name of the picture -> its content."""
    return {name: make() for name, make in GRAPHS.items()}


def event_graph() -> Graph:
    """Return the states of an event in the document of IMDS."""
    found = observed_azure.event_states()
    shown = {
        pair: [CAUSES.get(cause, cause) for cause in sorted(causes)]
        + [f"→ {kind}" for kind in sorted(found.changes.causes.get(pair, ()))]
        for pair, causes in found.transitions.causes.items()
        # one step of the observed time may be longer than the life of an event
        if pair in found.changes.causes
    }
    names = {PLANNED: "not in the document", ENDED: "gone from the document"}
    return _graph(
        "States of an event in the document of IMDS",
        shown,
        [PLANNED, "Scheduled", "Started", ENDED],
        lambda state: names.get(state, state),
        outside=(PLANNED, ENDED),
    )


def daemon_graph() -> Graph:
    """Return the phases of an event in the hook runner."""
    found = observed_daemon.phases()
    order = [observed_daemon.NOT_LISTED, "watched", "prepare", "started", "emergency", "recover", "closed"]
    return _graph("Phases of an event in the hook runner", _words(found), order, outside=(order[0], order[-1]))


def approval_graph() -> Graph:
    """Return the states of an approval in the hook runner."""
    found = observed_daemon.approvals()
    order = [observed_daemon.NOT_REQUESTED, "sent", "refused", "accepted", observed_daemon.ENDED]
    return _graph("States of an approval in the hook runner", _words(found), order, outside=order[-1:])


def engine_graph() -> Graph:
    """Return the values of waiting_for of Salt's engine."""
    found = observed_engine.engine_states()
    order = [
        observed_engine.NOT_LISTED,
        "preparation",
        "release by the operator",
        "approval",
        "answer to the approval",
        "start",
        "end",
        "the event",
        "recovery",
        OVER,
    ]
    return _graph("A maintenance in Salt's engine", _words(found), order, outside=(order[0], OVER), in_column=True)


def _words(found: Transitions) -> dict[tuple[str, str], list[str]]:
    return {pair: sorted(causes) for pair, causes in found.causes.items()}


def _graph(
    title: str,
    edges: dict[tuple[str, str], list[str]],
    order: list[str],
    label: Callable[[str], str] = str,
    outside: Iterable[str] = (),
    in_column: bool = False,
) -> Graph:
    """Return a graph whose states are in this order from the top.

    Raises:
        ValueError: a state is in no order.
    """
    states = {state for pair in edges for state in pair}
    if states != set(order):
        raise ValueError(f"{title}: the states {sorted(states ^ set(order))} differ; mend their order")
    nodes = tuple(Node(state, (label(state),), "outside" if state in outside else "") for state in order)
    arrows = tuple(
        Edge(before, after, tuple(edges[before, after]), *_style(is_forward=order.index(before) < order.index(after)))
        for before, after in sorted(edges, key=lambda pair: (order.index(pair[0]), order.index(pair[1])))
    )
    steps = "; ".join(
        f"{label(edge.tail)} to {label(edge.head)}" + (f" ({', '.join(edge.lines)})" if edge.lines else "")
        for edge in arrows
    )
    rows = tuple((state,) for state in order) if in_column else ()
    return Graph(title, f"Transitions: {steps}.", nodes, arrows, rows)


def _style(is_forward: bool) -> tuple[str, bool]:
    """Return the kind of an edge, and whether its head is above its tail."""
    return ("", False) if is_forward else ("rare", True)


GRAPHS: dict[str, Callable[[], Graph]] = {
    "event-states": event_graph,
    "maintenance-states": daemon_graph,
    "approval-states": approval_graph,
    "maintenance-states-salt": engine_graph,
}
