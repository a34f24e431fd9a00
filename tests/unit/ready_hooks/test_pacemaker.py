# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook pacemaker with scripts as the programs of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ready_hooks.core.errors import HookError
from ready_hooks.core.record import Record
from support.ready_hooks.hook_host import HookHost

CLUSTER = """\
<pacemaker-result><summary><current_dc present="true" with_quorum="true"/></summary>
<nodes><node name="a" online="true" pending="false"/></nodes></pacemaker-result>
"""
CONFIGURATION = """\
cat <<END
<cib><configuration><nodes><node uname="a"><instance_attributes>
<nvpair name="standby" value="{}"/>
</instance_attributes></node></nodes></configuration></cib>
END
"""
# scripts of cibadmin
STANDBY, ONLINE = CONFIGURATION.format("on"), CONFIGURATION.format("off")
AS_SET = f"if test -e $FOLDER/standby; then\n{STANDBY}else\n{ONLINE}fi"
NOT_CONNECTED = "echo 'Could not connect to the CIB API: Transport endpoint is not connected' >&2; exit 102"
RECORD = {"node": "a"}
OPTIONS: dict[str, Any] = {"node": "a", "tool": "crm_standby", "stable_timeout": 0}


@pytest.fixture
def host(hook_host: HookHost) -> HookHost:
    hook_host.program("crm_mon", f"cat <<END\n{CLUSTER}END")
    hook_host.program("crm_standby", "")
    return hook_host


@pytest.fixture
def record(host: HookHost) -> Record:
    record = host.record("pacemaker")
    record.save(RECORD)
    return record


@pytest.fixture
def recover(host: HookHost) -> Callable[..., None]:
    """Run recover on node a, with a script for each answer of cibadmin; the last one repeats."""

    def run(*answers: str) -> None:
        cases = "".join(f"{number})\n{answer}\n;;\n" for number, answer in enumerate(answers[:-1], 1))
        asked = "$FOLDER/asked"
        host.program("cibadmin", f"echo >>{asked}\ncase $(wc -l <{asked}) in\n{cases}*)\n{answers[-1]}\n;;\nesac")
        host.hook("pacemaker", **OPTIONS).recover()

    return run


@pytest.mark.parametrize("answer", [NOT_CONNECTED, "", "echo '<cib'", "echo '<cib/>'"])
def test_recover_keeps_the_record_if_the_configuration_is_unknown(
    recover: Callable[..., None], record: Record, answer: str
) -> None:
    with pytest.raises(HookError, match="cibadmin"):
        recover(answer)
    assert record.load() == RECORD


def test_recover_that_cannot_see_its_effect_keeps_the_record(recover: Callable[..., None], record: Record) -> None:
    with pytest.raises(HookError, match="no effect"):
        recover(STANDBY, NOT_CONNECTED)
    assert record.load() == RECORD


def test_recover_asks_again_for_its_effect_after_an_error(recover: Callable[..., None], record: Record) -> None:
    recover(STANDBY, NOT_CONNECTED, STANDBY, ONLINE)
    assert record.load() is None


@pytest.mark.parametrize("on_timeout", ["continue", "fail"])
def test_cluster_that_does_not_answer_any_more_is_as_resources_that_remain(host: HookHost, on_timeout: str) -> None:
    host.program("cibadmin", AS_SET)
    host.program("crm_simulate", "")
    # as while the cluster is restarted
    host.program("crm_standby", "touch $FOLDER/standby; rm $FOLDER/crm_mon")
    hook = host.hook("pacemaker", on_timeout=on_timeout, **OPTIONS)
    if on_timeout == "continue":
        hook.prepare()
    else:
        with pytest.raises(HookError, match="unknown whether resources still run"):
            hook.prepare()
    assert host.record("pacemaker").load() == RECORD


def test_error_after_the_move_is_not_one_of_resources_that_remain(
    host: HookHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.program("cibadmin", AS_SET)
    host.program("crm_simulate", "")
    host.program("crm_standby", ": >$FOLDER/standby")
    host.program("cat", "exec /bin/cat")
    # without crm_resource
    monkeypatch.setenv("PATH", str(host.folder))
    hook = host.hook("pacemaker", on_timeout="continue", **{**OPTIONS, "stable_timeout": 5})
    with pytest.raises(HookError, match="^crm_resource: it cannot be started"):
        hook.prepare()
