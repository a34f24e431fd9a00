# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The time lines of docs/images and docs/time-lines.md are those of the recorded runs."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from support.repository import REPOSITORY
from tools.pictures.time_lines.drawing import NAMES, Scale, drawing, pictures, placed, table
from tools.pictures.time_lines.recording import FOLDER, Lane, Recording, Step, Work, read

pytestmark = pytest.mark.short
PAGE = (REPOSITORY / "docs" / "time-lines.md").read_text(encoding="utf-8")
IMAGES = REPOSITORY / "docs" / "images"
SVG = "{http://www.w3.org/2000/svg}"
STEPS = ["seen", "prepared", "approved", "started", "over", "recovered"]


def recorded(name: str) -> Recording:
    return read(FOLDER / f"{name}.json")


def test_committed_pictures_are_those_of_the_recordings() -> None:
    for name, content in pictures().items():
        assert (IMAGES / name).read_text(encoding="utf-8") == content, "make pictures PICTURES=time-lines"


def test_each_recording_and_each_drawing_has_a_picture() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(NAMES)
    assert {path.name for path in IMAGES.glob("time-line-*")} == set(pictures())


@pytest.mark.parametrize("name", NAMES)
def test_page_has_the_table_of_the_recording(name: str) -> None:
    section = PAGE.split(f"(images/time-line-{name}.svg)")[1].split("\n## ")[0]
    assert re.findall(r"^\|.*\n", section, re.MULTILINE) == table(recorded(name)).splitlines(keepends=True)


@pytest.mark.parametrize("name", NAMES)
def test_no_recorded_step_precedes_its_cause(name: str) -> None:
    azure, *others = recorded(name).lanes
    vms = [lane for lane in others if lane.name != "master"]
    for lane in vms:
        steps = [step.step for step in lane.steps]
        assert steps == [step for step in STEPS if step != "approved" or "approved" in steps]
        assert lane.at("started") >= azure.at("started") and lane.at("over") >= azure.at("over")
    approved = [step.at for lane in vms for step in lane.steps if step.step == "approved"]
    assert max(lane.at("prepared") for lane in vms) <= min(approved) <= azure.at("started")


@pytest.mark.parametrize("name", NAMES)
def test_recording_names_the_versions(name: str) -> None:
    versions = recorded(name).versions
    assert {"host": {"Python"}, "playbook": {"Python", "ansible-core"}, "salt": {"Python", "Salt"}}[name] == set(
        versions
    ) - {"azure_imds.scheduled_events"}


@pytest.mark.parametrize("name", NAMES)
def test_recording_is_the_same_after_it_was_written(name: str) -> None:
    assert recorded(name).as_json() == (FOLDER / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_picture_describes_itself_and_refers_to_nothing(name: str) -> None:
    text = (IMAGES / f"time-line-{name}.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    recording = recorded(name)
    assert root.findtext(f"{SVG}title") == recording.title
    description = root.findtext(f"{SVG}desc") or ""
    assert all(f"{step.step} at {step.at:.1f} s" in description for lane in recording.lanes for step in lane.steps)
    assert "prefers-color-scheme: dark" in text
    assert not {element.tag for element in root.iter()} & {f"{SVG}{tag}" for tag in ("script", "image", "a", "use")}
    assert not re.search(r"href|url\(|@import", text)


@pytest.mark.parametrize("name", NAMES)
def test_labels_of_a_lane_do_not_overlap(name: str) -> None:
    recording = recorded(name)
    for lane in recording.lanes:
        heights = [label.y for label in placed(lane, Scale(recording.end, 140), 0)]
        assert all(lower - upper >= 16 for upper, lower in pairwise(heights))


def test_labels_move_down_when_steps_are_simultaneous() -> None:
    lane = Lane("vm1", (Step(1.0, "prepared"), Step(1.0, "approved")), (Work(0.0, 0.1, "short"), Work(2, 4, "long")))
    labels = list(placed(lane, Scale(10.0, 140), 0))
    assert [(label.words, label.time) for label in labels] == [
        ("prepared", " 1.0"),
        ("approved", " 1.0"),
        ("long", ""),
    ]
    assert labels[0].y < labels[1].y < labels[2].y


def test_drawing_escapes_the_names_of_the_recording() -> None:
    azure = Lane("Azure", (Step(0.0, "announced"), Step(2.0, "started"), Step(3.0, "over")))
    text = drawing(Recording("A & B", {"<x>": "1"}, 900, (azure, Lane("<vm>", (Step(1.0, "seen"),)))))
    names = [element.text for element in ElementTree.fromstring(text).iter(f"{SVG}text")]
    assert {"A & B", "<x> 1", "<vm>"} <= set(names)
