# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Output of Pacemaker 2.1 and Corosync 3.1, shortened."""

from __future__ import annotations

import pytest

from ready_hooks.hooks.pacemaker import limits, state

NODE = '<node name="{}" online="{}" standby="{}" standby_onfail="false" maintenance="false" pending="false" \
unclean="{}" type="member"/>'
RESOURCES = """\
<resource id="address" resource_agent="ocf:heartbeat:IPaddr2" role="Started" active="true" blocked="false" \
managed="true"><node name="a"/></resource>
<clone id="database-clone">
  <resource id="database:0" resource_agent="ocf:pacemaker:Stateful" role="Promoted" active="true" blocked="false" \
managed="true"><node name="a"/></resource>
  <resource id="database:1" resource_agent="ocf:pacemaker:Stateful" role="Unpromoted" active="true" blocked="false" \
managed="true"><node name="b"/></resource>
</clone>
<resource id="fence-b" resource_agent="stonith:fence_azure_arm" role="Started" active="true" blocked="false" \
managed="true"><node name="a"/></resource>
"""
AFTER = """\
<resource id="address" resource_agent="ocf:heartbeat:IPaddr2" role="{}" active="{}"/>
<clone id="database-clone"><resource id="database:1" role="{}" active="true"><node name="b"/></resource></clone>
"""
CONFIGURATION = """\
<cib epoch="9"><configuration><nodes>
<node id="1" uname="a"/>
<node id="2" uname="b"><instance_attributes id="nodes-2">{}</instance_attributes></node>
</nodes></configuration><status/></cib>
"""
VOTES = """\
Quorum provider:  corosync_votequorum
Quorate:          Yes
Expected votes:   3
Total votes:      {}
Quorum:           2
Flags:            {}

    Nodeid      Votes Name
         1          1 a (local)
         2          1 b
"""


def cluster(
    nodes: str = NODE.format("a", "true", "false", "false") + NODE.format("b", "true", "false", "false"),
    resources: str = RESOURCES,
    quorum: str = "true",
    options: str = 'maintenance-mode="false" no-quorum-policy="stop"',
) -> state.Cluster:
    summary = f'<summary><current_dc present="true" with_quorum="{quorum}"/><cluster_options {options}/></summary>'
    text = f"<pacemaker-result>{summary}<nodes>{nodes}</nodes><resources>{resources}</resources></pacemaker-result>"
    found = state.parse_cluster(text)
    assert found is not None
    return found


def test_parse_cluster_returns_nodes_and_resources() -> None:
    found = cluster()
    assert list(found.nodes) == ["a", "b"]
    assert [(each.name, each.promoted) for each in found.on("a")] == [
        ("address", False),
        ("database", True),
        ("fence-b", False),
    ]
    assert (found.has_controller, found.quorum, found.maintenance) == (True, True, False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "crm_mon: Connection to cluster failed: Connection refused",
        '<pacemaker-result><status code="102" message="Not connected"/></pacemaker-result>',
    ],
)
def test_parse_cluster_that_does_not_run_is_none(text: str) -> None:
    assert state.parse_cluster(text) is None


def test_remaining_on_has_a_resource_whose_stop_has_not_ended() -> None:
    found = cluster(resources='<resource id="slow" role="Stopping" active="false" managed="true"/>')
    assert found.on("a") == []
    assert [each.name for each in found.remaining_on("a")] == ["slow"]


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("", False),
        ('<nvpair id="x" name="standby" value="on"/>', True),
        ('<nvpair id="x" name="standby" value="True"/>', True),
        ('<nvpair id="x" name="standby" value="off"/>', False),
        ('<nvpair id="x" name="maintenance" value="on"/>', False),
    ],
)
def test_parse_standby_reads_the_permanent_attribute(pair: str, expected: bool) -> None:
    assert state.parse_standby(CONFIGURATION.format(pair), "b") is expected


@pytest.mark.parametrize("node", ["a", "b"])
def test_with_standby_changes_only_this_node(node: str) -> None:
    assumed = state.with_standby(CONFIGURATION.format('<nvpair id="x" name="standby" value="off"/>'), node)
    assert [each for each in "ab" if state.parse_standby(assumed, each)] == [node]


def test_with_standby_of_an_unknown_node_is_an_error() -> None:
    with pytest.raises(ValueError):
        state.with_standby(CONFIGURATION.format(""), "c")
    assert state.parse_standby(CONFIGURATION.format(""), "c") is None


def test_parse_votes_returns_those_of_this_node() -> None:
    assert state.parse_votes(VOTES.format(3, "Quorate")) == state.Votes(3, 1, 2, False)
    assert state.parse_votes(VOTES.format(2, "2Node Quorate")) == state.Votes(2, 1, 2, True)
    assert state.parse_votes("Cannot initialize CMAP service\n") is None


def test_reasons_against_standby_of_a_healthy_cluster_are_none() -> None:
    assert limits.reasons_against_standby(cluster(), "a", state.Votes(3, 1, 2, False)) == []


@pytest.mark.parametrize(
    ("found", "votes", "words"),
    [
        (cluster(quorum="false"), None, "no quorum"),
        (cluster(options='maintenance-mode="true"'), None, "maintenance mode"),
        (cluster(resources=RESOURCES.replace('managed="true"', 'managed="false"', 1)), None, "address is unmanaged"),
        (cluster(resources=RESOURCES.replace('blocked="false"', 'blocked="true"', 1)), None, "address is blocked"),
        (cluster(), state.Votes(2, 1, 2, False), "loses quorum"),
    ],
)
def test_reasons_against_standby_name_the_limit(found: state.Cluster, votes: state.Votes | None, words: str) -> None:
    (reason,) = limits.reasons_against_standby(found, "a", votes)
    assert words in reason


@pytest.mark.parametrize(
    ("online", "standby", "unclean", "count"),
    [("true", "true", "false", 1), ("false", "false", "false", 1), ("false", "false", "true", 2)],
)
def test_reasons_against_standby_without_a_usable_peer(online: str, standby: str, unclean: str, count: int) -> None:
    nodes = NODE.format("a", "true", "false", "false") + NODE.format("b", online, standby, unclean)
    assert len(limits.reasons_against_standby(cluster(nodes=nodes), "a", None)) == count


def test_reasons_against_standby_ignore_votes_that_the_cluster_does_not_need() -> None:
    votes = state.Votes(2, 1, 2, False)
    assert limits.reasons_against_standby(cluster(options='no-quorum-policy="ignore"'), "a", votes) == []
    assert limits.reasons_against_standby(cluster(), "a", votes._replace(survives_alone=True)) == []


@pytest.mark.parametrize(
    ("address", "active", "database", "expected"),
    [
        ("Started", "true", "Promoted", []),
        ("Stopped", "false", "Promoted", ["resource address cannot run on another node"]),
        ("Started", "true", "Unpromoted", ["resource database cannot be promoted on another node"]),
    ],
)
def test_lost_services_compares_with_the_simulation(
    address: str, active: str, database: str, expected: list[str]
) -> None:
    resources = AFTER.format(address, active, database)
    text = f"<r><revised_cluster_status><resources>{resources}</resources></revised_cluster_status></r>"
    after = state.parse_simulated(text)
    assert after is not None
    assert limits.lost_services(cluster().resources, after, "a") == expected


def test_parse_simulated_without_a_result_is_none() -> None:
    assert state.parse_simulated("<pacemaker-result/>") is None


def test_rival_agents_are_those_that_approve_events() -> None:
    resources = RESOURCES.replace("ocf:heartbeat:IPaddr2", "ocf:heartbeat:azure-events-az")
    assert limits.rival_agents(cluster(resources=resources)) == ["address"]
    assert limits.rival_agents(cluster()) == []
