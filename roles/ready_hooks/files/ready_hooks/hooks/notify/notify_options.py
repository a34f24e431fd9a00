# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The options of the hook notify."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ready_hooks.core import arguments
from ready_hooks.core.arguments import Option
from ready_hooks.core.hook import STAGES
from ready_hooks.core.options import parse_integer
from ready_hooks.hooks.notify import template, web_request
from ready_hooks.hooks.notify.web_request import Address


def is_header_text(value: str) -> bool:
    """Return True if a header can have this value."""
    return re.fullmatch(r"[ -~]+", value) is not None


def _url(value: object) -> Address:
    return web_request.parse_url(arguments.text(value))


def _proxy(value: object) -> Address:
    found = _url(value)
    if found.scheme != "http" or found.target != "/":
        raise ValueError("expected a URL such as http://proxy.example.com:3128")
    return found


def _headers(value: object) -> dict[str, str]:
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping of names and texts")
    for name, each in value.items():
        if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", str(name)):
            raise ValueError(f"not the name of a header: {name!r}")
        if not is_header_text(arguments.text(each)):
            raise ValueError(f"the value of {name} has a character that a header cannot have")
    return {str(name): str(each) for name, each in value.items()}


def _header_files(value: object) -> dict[str, str]:
    return {name: arguments.path(path) for name, path in _headers(value).items()}


OPTIONS = (
    Option("url", _url, "URL of the web hook"),
    Option("url_file", arguments.path, "file with the URL, if that is a secret; mode 0600"),
    Option("apprise", arguments.path, "configuration of apprise with the URLs of services; mode 0600"),
    Option("body", template.body, "template: a mapping or a list for JSON, or a text; by default all values"),
    Option("change_record", arguments.boolean, "send the record that rulebooks of Event-Driven Ansible read", False),
    Option("title", template.text, "template of the title, for apprise", "{resource}: {event_type}, {stage}"),
    Option("headers", _headers, "mapping of headers of the request to texts"),
    Option("header_files", _header_files, "mapping of headers to files with their values; mode 0600"),
    Option("stages", arguments.one_of(*STAGES), "stages with a notification; by default all four", many=True),
    Option("ca_file", arguments.path, "certificates of authorities; by default those of the system"),
    Option("proxy", _proxy, "HTTP proxy; by default none, whatever the environment says"),
    Option(
        "required", arguments.boolean, "fail if a notification cannot be sent, and try for the time of the run", False
    ),
    Option("request_timeout", arguments.seconds, "seconds for one request", 5.0),
    Option("retries", parse_integer, "number of further attempts", 3),
    Option("total", arguments.seconds, "seconds for all attempts of a run", 10.0),
)
