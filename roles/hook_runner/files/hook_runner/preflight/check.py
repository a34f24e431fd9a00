# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verb `check`: finds mistakes before an event comes. It changes nothing, and runs before the installation too."""

from __future__ import annotations

import os

from azure_scheduled_events.errors import ImdsError, ImdsUnreachable
from azure_scheduled_events.identity import resource_name_of
from azure_scheduled_events.imds import Imds
from azure_scheduled_events.policy import AFTER_PREPARE, NOW
from hook_runner.config.settings import (
    DEFAULT_PATH,
    NO_APPROVAL_WARNING,
    ConfigError,
    ConfigPermissionError,
    Settings,
    load_settings,
)
from hook_runner.hooks.discovery import Hook
from hook_runner.lifecycle.leader import EXTERNAL
from hook_runner.permissions import trusted_owners
from hook_runner.preflight.hook_checks import check_hooks_themselves
from hook_runner.preflight.hook_records import FOLDER, check_hook_records
from hook_runner.preflight.hooks import check_hooks
from hook_runner.preflight.host import check_host
from hook_runner.preflight.other_handlers import check_other_handlers
from hook_runner.preflight.other_owners import check_other_owners
from hook_runner.preflight.report import ERROR, INFO, WARNING, Report
from hook_runner.records import PREPARE, RECOVER, STAGES

# seconds; a slower answer means that Azure is switching the service on, which may take two minutes
IMDS_TIMEOUT = 10.0


def run_checks(
    config_path: str,
    hooks_directory: str | None = None,
    offline: bool = False,
    owners: frozenset[int] | None = None,
    root: str = "/",
    ask_hooks: bool | None = None,
) -> Report:
    """Check configuration, hooks, permissions and IMDS.

    Args:
        config_path: the configuration.
        hooks_directory: hooks of another directory than that of the configuration.
        offline: do not send requests to IMDS. A request switches its Scheduled Events on for this
            VM.
        owners: uids whose files are trusted; by default those of root and of this process.
        root: folder below which the files of other programs are.
        ask_hooks: whether to run the checks of the hooks themselves, and to compare the records of
            ready hooks with the recover hooks; by default not if `offline`,
            because a stopped workload must not prevent the reload of the daemon.
    """
    report = Report()
    owners = trusted_owners() if owners is None else owners
    settings = _settings(config_path, owners, report)
    if settings is None:
        return report
    hooks = check_hooks(hooks_directory or settings.hooks_directory, settings, owners, report)
    for text in settings.warnings():
        report.add(WARNING, "configuration", config_path, text)
    _check_policy(settings, hooks, report)
    check_host(settings, owners, report)
    check_other_handlers(settings.endpoint, settings.leader != EXTERNAL, report, root)
    # the role and the reload of the daemon check offline, and a daemon may watch beside another owner
    check_other_owners(WARNING if offline else ERROR, report, root)
    if ask_hooks or (ask_hooks is None and not offline):
        check_hooks_themselves((hook for stage in STAGES for hook in hooks[stage]), settings, report)
        check_hook_records(os.path.join(root, FOLDER.lstrip("/")), hooks[RECOVER], report)
    if not offline:
        _check_imds(settings, report)
    return report


def _settings(path: str, owners: frozenset[int], report: Report) -> Settings | None:
    """Return the settings with which the other checks go on; None if there are none.

    1. If the default file is missing, the defaults hold. Any other missing file is an error.
    2. A file that users who are not trusted could change is an error, and is read nevertheless.
    3. A configuration that is not usable is an error.
    """
    if not os.path.lexists(path):
        if path == DEFAULT_PATH:
            report.add(INFO, "configuration", path, "there is no such file; the defaults hold")
            return Settings()
        report.add(ERROR, "configuration", path, "there is no such file")
        return None
    try:
        return load_settings(path, owners)
    except ConfigPermissionError as error:
        report.add(ERROR, "configuration", path, str(error))
    except ConfigError as error:
        report.add(ERROR, "configuration", path, str(error))
        return None
    try:
        return load_settings(path)  # the other checks need the settings even if they are not trusted
    except ConfigError:
        return None


def _check_policy(settings: Settings, hooks: dict[str, tuple[Hook, ...]], report: Report) -> None:
    name = settings.policy.name
    if not settings.policy.may_approve():
        report.add(WARNING, "policy", name, NO_APPROVAL_WARNING % name)
    elif settings.dry_run:
        report.add(WARNING, "policy", name, "dry_run is set; nothing is approved")
    if NOW in settings.policy.approval_times() and hooks[PREPARE]:
        text = (
            "the policy has `approve: now` and there are prepare hooks: the approval does not wait for them;"
            " use `approve: after_prepare`"
        )
        report.add(WARNING, "policy", name, text)
    if AFTER_PREPARE in settings.policy.approval_times() and not settings.policy.is_preset and not hooks[PREPARE]:
        report.add(
            WARNING,
            "policy",
            name,
            "the policy approves after preparation, but there is no prepare hook: it approves at once",
        )


def _check_imds(settings: Settings, report: Report) -> None:
    """Report whether IMDS answers, and with which name of this VM.

    1. If IMDS cannot be reached, this is an error; if it does not answer in time, a warning.
    2. Any other failure is a warning if it may pass, else an error.
    3. It is an error if neither IMDS nor the settings have a name of this VM, and a warning if their names differ.
    4. The warnings of the document are warnings.
    """
    imds = Imds(settings.endpoint, settings.api_version, settings.timeout, min(settings.first_timeout, IMDS_TIMEOUT))
    try:
        name = resource_name_of(imds.instance())
        if name is None and not settings.resource_name:
            report.add(
                ERROR,
                "imds",
                imds.endpoint,
                "it does not return this VM's name (compute.name), and resource_name is not set",
            )
        elif name is not None and settings.resource_name not in ("", name):
            report.add(
                WARNING,
                "imds",
                imds.endpoint,
                f"the name of this VM is {name}, but resource_name is {settings.resource_name};"
                " remove resource_name unless Resources of events has that name",
            )
        document = imds.events()
    except ImdsUnreachable as error:
        if error.connected:
            text = (
                "no answer in time: events are unknown, and Azure may be switching the service on, which takes up to"
                f" two minutes ({error})"
            )
            report.add(WARNING, "imds", imds.endpoint, text)
        else:
            report.add(ERROR, "imds", imds.endpoint, str(error))
        return
    except ImdsError as error:
        report.add(WARNING if error.retryable else ERROR, "imds", imds.endpoint, str(error))
        return
    finally:
        imds.close()
    for warning in document.warnings:
        report.add(WARNING, "imds", imds.endpoint, warning)
    about = (settings.resource_name or name, len(document.events))
    report.add(INFO, "imds", imds.endpoint, "it answers: this VM is %s; events now: %d" % about)
