# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Sends a notification to the services in a configuration of apprise, with its command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ready_hooks.core import commands
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from ready_hooks.core.hook import EMERGENCY, INFO, RECOVER, Finding, Run
from ready_hooks.core.report import Value
from ready_hooks.core.secret import read_secret
from ready_hooks.hooks.notify import template

PROGRAM = "apprise"
_DEFAULT_BODY = "{text}"
# services show the type as an icon or a colour
_TYPES = {EMERGENCY: "failure", RECOVER: "success"}
_OTHER_TYPE = "warning"


class Apprise:
    """The services of the options."""

    def __init__(self, run: Run) -> None:
        self._run, self._options = run, run.options

    def check(self) -> Iterator[Finding]:
        """Yield whether apprise is installed and reads a service from its configuration."""
        path = self._options["apprise"]
        read_secret(path)
        commands.require(PROGRAM, "install the package apprise")
        self._call("check", "check", "info", self._run.deadline.left(), "--dry-run")
        yield Finding(INFO, f"{path}: {PROGRAM} finds a service in it")

    def send(self, values: Mapping[str, Value], limit: Deadline) -> None:
        """Send a notification; in a dry run, print it. Raises HookError."""
        title = template.fill_text(self._options["title"], values)
        content = template.fill_text(self._options["body"] or _DEFAULT_BODY, values)
        kind = _TYPES.get(str(values["stage"]), _OTHER_TYPE)
        description = f"send to the services of {self._options['apprise']}: {title}: {content}"
        self._run.act(description, self._call, title, content, kind, limit.left())

    def _call(self, title: str, content: str, kind: str, seconds: float, *more: str) -> None:
        """Run apprise. Its output is not used: it may have URLs with secrets. Raises HookError."""
        path = self._options["apprise"]
        read_secret(path)
        words = [PROGRAM, f"--config={path}", f"--title={title}", f"--notification-type={kind}", "--input-format=text"]
        result = commands.run([*words, *more], self._run.deadline, seconds, content, self._environment())
        if result.status != 0:
            remedy = f"run {PROGRAM} with this --config and -vv"
            raise HookError(path, f"{PROGRAM} ended with status {result.status}", remedy)

    def _environment(self) -> dict[str, str]:
        proxy, ca_file = self._options["proxy"], self._options["ca_file"]
        found = {"no_proxy": "" if proxy else "*"}
        if proxy:
            found.update(http_proxy=proxy.origin, https_proxy=proxy.origin)
        found.update({name.upper(): value for name, value in found.items()})
        return {**found, "REQUESTS_CA_BUNDLE": ca_file} if ca_file else found
