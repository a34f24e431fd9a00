# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook kubernetes with a script as kubectl."""

from __future__ import annotations

import pytest

from ready_hooks.core.errors import HookError
from support.ready_hooks.hook_host import HookHost

KUBECTL = """case $* in
    *can-i*patch*) echo '{answer}'; exit 1 ;;
    *can-i*) echo yes ;;
    *get*) echo '{{"kind": "Node", "metadata": {{"name": "a"}}}}' ;;
esac"""


@pytest.mark.parametrize("answer", ["no", "no - RBAC: clusterrole.rbac.authorization.k8s.io not found"])
def test_check_names_the_permission_that_is_missing(hook_host: HookHost, answer: str) -> None:
    hook_host.program("kubectl", KUBECTL.format(answer=answer))
    kubeconfig = hook_host.folder / "kubeconfig"
    kubeconfig.touch(0o600)
    hook = hook_host.hook("kubernetes", kubeconfig=str(kubeconfig), node="a")
    with pytest.raises(HookError, match="^a: the user of the kubeconfig may not: patch nodes$"):
        list(hook.check())
