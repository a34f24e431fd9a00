# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verb `check`: finds mistakes before an event comes. It changes nothing, and runs before the installation too."""

from __future__ import annotations

import os
from typing import Iterator, Sequence

from azure_scheduled_events.policy import AFTER_PREPARE, NOW, Policy
from hook_runner.config.settings import ConfigError, config_problem, load_settings
from hook_runner.config.values import EXTERNAL
from hook_runner.hooks.discovery import Hook, discover_hooks
from hook_runner.preflight.hook_checks import check_hooks_themselves
from hook_runner.preflight.hook_records import FOLDER, check_hook_records
from hook_runner.preflight.hooks import check_hooks
from hook_runner.preflight.host import check_host
from hook_runner.preflight.imds import check_imds
from hook_runner.preflight.other_handlers import check_other_handlers
from hook_runner.preflight.report import ERROR, INFO, WARNING, Finding, Report
from hook_runner.records import PREPARE, RECOVER


def run_checks(
    config_path: str,
    hooks_directory: str | None = None,
    offline: bool = False,
    root: str = "/",
    ask_hooks: bool = False,
) -> Report:
    """Check configuration, hooks, permissions and IMDS.

    `hooks_directory` replaces that of the configuration; the files of other programs are below `root`. If `offline`,
    IMDS is not asked, because a request switches its Scheduled Events on for this VM. Then hooks check themselves, and
    records of ready hooks are compared with the recover hooks, only with `ask_hooks`: a stopped workload must not
    prevent a reload, which checks offline.
    """
    exists = os.path.lexists(config_path)
    problem = config_problem(config_path) if exists else None
    # the file is read nevertheless
    findings = [] if problem is None else [Finding(ERROR, "configuration", config_path, problem)]
    try:
        settings = load_settings(config_path)
    except ConfigError as error:
        return Report([*findings, *(Finding(ERROR, "configuration", config_path, text) for text in error.problems)])
    if not exists:
        findings.append(Finding(INFO, "configuration", config_path, "there is no such file; the defaults hold"))
    directory = os.path.abspath(hooks_directory or settings.hooks_directory)
    hooks, skipped = discover_hooks(directory, settings)
    findings += check_hooks(directory, hooks, skipped, settings)
    findings += (Finding(WARNING, "configuration", config_path, text) for text in settings.warnings())
    findings += (
        Finding(WARNING, "policy", settings.policy.name, text)
        for text in _policy_warnings(settings.policy, hooks[PREPARE])
    )
    findings += check_host(settings)
    # the role and the reload of the daemon check offline, and a daemon may watch beside another owner
    severity = WARNING if offline else ERROR
    findings += check_other_handlers(settings.endpoint, settings.leader != EXTERNAL, severity, root)
    if ask_hooks or not offline:
        findings += check_hooks_themselves([hook for of_stage in hooks.values() for hook in of_stage], settings)
        findings += check_hook_records(os.path.join(root, FOLDER.lstrip("/")), hooks[RECOVER])
    if not offline:
        findings += check_imds(settings)
    return Report(findings)


def _policy_warnings(policy: Policy, prepare_hooks: Sequence[Hook]) -> Iterator[str]:
    """Yield a sentence for each approval that does not depend on prepare hooks as its rule suggests."""
    if NOW in policy.approval_times() and prepare_hooks:
        yield (
            "the policy has `approve: now` and there are prepare hooks: the approval does not wait for them;"
            " use `approve: after_prepare`"
        )
    if AFTER_PREPARE in policy.approval_times() and not policy.is_preset and not prepare_hooks:
        yield "the policy approves after preparation, but there is no prepare hook: it approves at once"
