# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook kubernetes with a script as kubectl."""

from __future__ import annotations

from typing import Any

import pytest

from ready_hooks.core.errors import HookError
from support.ready_hooks.hook_host import HookHost

KUBECTL = """case $* in
    *can-i*patch*) echo '{answer}'; exit 1 ;;
    *can-i*) echo yes ;;
    *get*) echo '{{"kind": "Node", "metadata": {{"name": "a"}}}}' ;;
esac"""


@pytest.fixture
def options(hook_host: HookHost) -> dict[str, Any]:
    kubeconfig = hook_host.folder / "kubeconfig"
    kubeconfig.touch(0o600)
    return {"kubeconfig": str(kubeconfig), "node": "a"}


@pytest.mark.parametrize("answer", ["no", "no - RBAC: clusterrole.rbac.authorization.k8s.io not found"])
def test_check_names_the_permission_that_is_missing(hook_host: HookHost, options: dict[str, Any], answer: str) -> None:
    hook_host.program("kubectl", KUBECTL.format(answer=answer))
    hook = hook_host.hook("kubernetes", **options)
    with pytest.raises(HookError, match="^a: the user of the kubeconfig may not: patch nodes$"):
        list(hook.check())


def test_recover_at_the_end_of_its_time_says_that_the_node_is_not_ready(
    hook_host: HookHost, options: dict[str, Any]
) -> None:
    hook_host.program("kubectl", KUBECTL.format(answer="yes"))
    hook_host.record("kubernetes").save({"node": "a", "cordoned": True, "reports_boot": False})
    with pytest.raises(HookError, match="^a: it is not ready; it stays cordoned$"):
        hook_host.hook("kubernetes", seconds=10, **options).recover()
