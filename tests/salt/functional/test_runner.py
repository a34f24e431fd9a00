# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The runner and the engine in Salt's loader; tests/salt/live runs them."""

from __future__ import annotations

import inspect
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from salt.config import DEFAULT_MASTER_OPTS
from salt.loader import engines, runner, utils

from azure_events_engine.settings import Settings
from salt import cache as salt_cache
from support.ready_hooks.web_server import Answer, WebServer
from support.salt.loaded import ROOT

PUBLIC = ("status", "fleet", "prepare", "recover", "approve", "hold", "release", "push")


@pytest.fixture
def opts(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = DEFAULT_MASTER_OPTS.copy()
    folders = {
        "root_dir": tmp_path,
        "cachedir": tmp_path / "cache",
        "extension_modules": tmp_path / "ext",
        "conf_file": tmp_path / "master",
    }
    found.update({name: str(path) for name, path in folders.items()}, sock_dir=str(tmp_path), __role="master")
    found.update(
        runner_dirs=[str(ROOT / "_runners")], engines_dirs=[str(ROOT / "_engines")], utils_dirs=[str(ROOT / "_utils")]
    )
    return found


@pytest.fixture
def runners(opts: dict[str, Any]) -> Any:
    return runner(opts)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_function_shows_how_it_is_called_and_what_it_returns(runners: Any, name: str) -> None:
    text = inspect.getdoc(runners["azure_events." + name]) or ""
    assert "CLI Example:\n\n.. code-block:: bash\n\n    salt-run azure_events." + name in text
    assert "Returns" in text


def test_there_are_no_other_functions(runners: Any) -> None:
    assert {name for name in runners if name.startswith("azure_events.")} == {"azure_events." + name for name in PUBLIC}


def test_engine_is_loaded(opts: dict[str, Any]) -> None:
    assert "azure_events.start" in engines(opts, {}, {}, utils(opts))


def test_damaged_cache_of_a_minion_does_not_hide_the_pillars_of_others(opts: dict[str, Any], tmp_path: Path) -> None:
    opts.update(id="master", pki_dir=str(tmp_path / "pki"))
    (tmp_path / "pki" / "minions").mkdir(parents=True)
    cache = salt_cache.factory(opts)
    for minion in ("web1", "web2"):
        (tmp_path / "pki" / "minions" / minion).write_text("key")
        # the first one in 3006, the second in 3008
        cache.store("minions/" + minion, "data", {"grains": {}, "pillar": {"vm": minion}})
        cache.store("pillar", minion, {"vm": minion})
    for file in (tmp_path / "cache").rglob("*.p"):
        if "web2" in (file.stem, file.parent.name):
            file.write_bytes(b"\xc1")
    start = engines(opts, {}, {}, utils(opts))["azure_events.start"]
    master = inspect.unwrap(getattr(start, "func", start)).__globals__["_Master"]
    known = master(None, Settings(mapping_pillar="vm")).known()
    assert (known.accepted, known.pillar) == ({"web1", "web2"}, {"web1": "web1"})


@pytest.fixture
def fleet(runners: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function fleet of the runner, which waits for an engine for a moment only."""
    function = runners["azure_events.fleet"]
    monkeypatch.setitem(inspect.unwrap(getattr(function, "func", function)).__globals__, "_WAIT", 0.1)
    return function


def test_runner_without_an_engine_names_the_remedy(fleet: Any) -> None:
    answer = fleet()
    assert answer["retcode"] == 1 and "add 'azure_events: {}' to 'engines'" in answer["error"]


def test_push_that_fails_has_a_return_code(runners: Any) -> None:
    for report in ("x", "[1]", 7, '{"id": "web1", "event_id": "A", "change": "started"}'):
        answer = runners["azure_events.push"]("http://127.0.0.1:9/", "/dev/null", report)
        assert answer["retcode"] == 1 and answer["error"]


@pytest.mark.parametrize("backend", ["tornado", "requests"])
def test_push_that_is_redirected_fails(opts: dict[str, Any], backend: str) -> None:
    push = runner(dict(opts, backend=backend))["azure_events.push"]
    report = {"id": "web1", "event_id": "A", "change": "started"}
    with WebServer() as endpoint:
        for status, headers in ((302, {"Location": "/login"}), (200, {})):
            endpoint.answers = [Answer(status, headers=headers)]
            answer = push(endpoint.url, "/dev/null", report)
            assert answer == {"body": ""} if status == 200 else "it redirects the push to" in answer["error"]


def test_secret_of_runner_and_engine_is_private(fleet: Any, opts: dict[str, Any]) -> None:
    assert fleet()["retcode"] == 1
    path = os.path.join(opts["cachedir"], "azure_events", "secret")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
