# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Commands that make an interruption real."""

from __future__ import annotations

import time
import tracemalloc

from imds_simulator.testing import Simulator
from support.simulator.raw_http import send_request
from support.wait import wait_until

# seconds: ten times the usual time, for a busy machine, and much less than the minute that the command takes
STOP_LIMIT = 10
# bytes
MUCH_OUTPUT = 32 * 1024 * 1024


def impact(tmp_path, **more):
    # $$ is one $: the shell reads the environment
    words = "$$EVENT_PHASE $$EVENT_TYPE $$VM_NAME $$EVENT_NAME $$GROUP_NAME"
    note = ["sh", "-c", f'echo "{words} $1" >> {tmp_path}/notes; echo done', "sh", "${VM_NAME}:$EVENT_ID"]
    event = {"name": "e", "type": "Reboot", "actual": "Freeze", "impact_for": 5, "resources": ["vm1", "vm2"]}
    return {
        "groups": {"web": {"vms": ["vm1", "vm2"]}},
        "events": [{**event, "starts": "automatic_approval"}],
        "impact": {"Freeze": {"start": note, "end": note}, **more},
    }


def wait_for_lines(sim, count):
    wait_until(lambda: len(sim.log(what="impact-command")) >= count, f"{count} lines")
    return sim.log(what="impact-command")


def test_impact_commands_run_once_per_vm_and_phase(start_simulator, tmp_path):
    sim = start_simulator(impact(tmp_path))
    wait_for_lines(sim, 2)
    sim.advance(5)
    lines = wait_for_lines(sim, 4)
    event_id = sim.get("/events/e")["id"]
    assert sorted((tmp_path / "notes").read_text().splitlines()) == sorted(
        f"{phase} Freeze {vm} e web {vm}:{event_id}" for phase in ("start", "end") for vm in ("vm1", "vm2")
    )
    assert {(line["status"], line["output"]) for line in lines} == {(0, "done\n")}


def test_impact_command_runs_no_code_in_the_name_of_an_event(start_simulator, tmp_path):
    scenario = impact(tmp_path, Freeze={"start": ["sh", "-c", "echo ${EVENT_NAME}; echo $EVENT_ID"]})
    scenario["events"][0]["name"] = f"-e$(touch {tmp_path}/run);touch {tmp_path}/run;`touch {tmp_path}/run`"
    sim = start_simulator(scenario)
    assert [line["status"] for line in wait_for_lines(sim, 2)] == [0, 0]
    assert not (tmp_path / "run").exists()


def test_impact_command_that_hangs_is_killed(start_simulator, tmp_path):
    sim = start_simulator(impact(tmp_path, Freeze={"start": ["sh", "-c", "sleep 60 & sleep 60"]}, timeout="300ms"))
    assert {line["error"] for line in wait_for_lines(sim, 2)} == {"stopped after 0.3 s"}


def test_impact_commands_are_logged_and_never_block(start_simulator, tmp_path):
    sim = start_simulator(impact(tmp_path, Freeze={"start": ["/nonexistent/command"]}))
    assert "No such file" in wait_for_lines(sim, 2)[0]["error"]
    with Simulator(impact(tmp_path, Freeze={"start": ["sleep", "60"]})) as sim:
        began = time.monotonic()
        assert send_request(sim.endpoint).status == 200
    assert time.monotonic() - began < STOP_LIMIT


def test_impact_command_with_much_output_needs_little_memory(start_simulator, tmp_path):
    scenario = impact(tmp_path, Freeze={"start": ["sh", "-c", f"head -c {MUCH_OUTPUT} /dev/zero; echo end"]})
    tracemalloc.start()
    try:
        lines = wait_for_lines(start_simulator(scenario), 2)
        _present, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for line in lines:
        assert (line["status"], len(line["output"]), line["output"][-5:]) == (0, 4096, "\0end\n")
    assert peak < MUCH_OUTPUT / 4
