# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The live page in a real browser (docs/simulator/live-page.md)."""

from __future__ import annotations

from datetime import datetime

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import alert_is_present
from selenium.webdriver.support.wait import WebDriverWait

from support import simulator_process
from support.simulator.raw_http import send_request

TOKEN = "a-token-of-tests"
HTML = '<img src=x onerror="document.title=1"><b>name</b>'


def statuses(simulator, vm="vm1"):
    return [each["EventStatus"] for each in send_request(simulator.endpoints[vm]).json["Events"]]


def advance(page, text):
    page.fill("#advance-seconds", text)
    page.find("#advance button").click()


def test_event_is_scheduled_approved_started_and_ends(page, start):
    simulator = start()
    page.open(simulator.control)
    page.choose(page.find("#schedule-type"), "Reboot")
    page.fill("#schedule-resources", "vm1, vm2")
    page.find("#schedule summary").click()
    page.fill("#schedule-name", "patch")
    page.find("#schedule button").click()
    page.wait_for_part("patch", ".left", "15:00")
    assert page.part("patch", ".status").text == "Scheduled" and page.part("patch", ".approved").text == "not yet"
    assert statuses(simulator) == ["Scheduled"]
    advance(page, "61s")
    page.wait_for_part("patch", ".left", "13:59")
    page.choose(page.part("patch", "select"), "vm2")
    page.part("patch", ".approve").click()
    page.wait_for_part("patch", ".approved", "by vm2 at ")
    page.wait_for("#news", "approved by vm2")
    advance(page, "1")
    page.wait_for_part("patch", ".status", "Started")
    page.wait_for_part("patch", ".left", "10:00")
    assert statuses(simulator) == ["Started"]
    advance(page, "10m")
    page.wait_for("#ended-count", "1")
    page.find("#ended summary").click()
    assert "by vm2 at 1:01" in page.part("patch", ".approved").text and page.part("patch", ".status").text == "ended"
    assert page.find("#no-events").is_displayed() and statuses(simulator) == []
    assert "finished" in page.text("#log")
    assert page.errors() == []


def test_requests_of_vms_are_shown_with_status_and_fault(page, start):
    simulator = start()
    page.open(simulator.control)
    row = ".row[data-vm='db1'] .request"
    assert page.text(row) == "no request yet"
    send_request(simulator.endpoints["db1"])
    page.wait_for(row, "GET scheduledevents 200")
    page.wait(lambda: any("1 asked" in each.text for each in page.find_all(".group .facts")), "1 asked")
    page.choose(page.find("#inject-kind"), "unavailable")
    page.fill("#inject-vm", "db1")
    page.find("#inject button").click()
    page.wait_for("#faults", "until cleared")
    assert send_request(simulator.endpoints["db1"]).status == 503
    page.wait_for(row, "503 (fault unavailable)")
    page.wait_for("#faults", "1 matching request")
    page.find("#faults button").click()
    page.wait(lambda: page.find("#no-faults").is_displayed(), "the end of the fault")
    assert send_request(simulator.endpoints["db1"]).status == 200
    assert page.errors() == []


@pytest.mark.all
def test_errors_of_the_api_are_shown_at_their_form(page, start):
    page.open(start().control)
    page.fill("#schedule-resources", "vm9")
    page.find("#schedule button").click()
    page.wait_for("#schedule-error", "there is no VM vm9")
    assert page.find("#schedule-error").get_attribute("role") == "alert"
    advance(page, "soon")
    page.wait_for("#advance-error", "not a duration")
    page.choose(page.find("#inject-kind"), "status")
    page.find("#inject button").click()
    page.wait_for("#inject-error", "the key status is missing")


@pytest.mark.all
def test_keyboard_alone_schedules_approves_and_cancels(page, start):
    page.open(start().control)
    keys = ActionChains(page.driver, duration=0)

    def press(*pressed):
        keys.send_keys(*pressed).perform()

    def go_to(selector):
        for _number in range(80):
            press(Keys.TAB)
            visible = page.evaluate(
                "const now = document.activeElement, style = getComputedStyle(now);"
                "return [now.matches(arguments[0]), now.matches(':focus-visible'), style.outlineStyle,"
                "style.outlineWidth]",
                selector,
            )
            assert visible[1:] == [True, "solid", "3px"]
            if visible[0]:
                return
        raise AssertionError(f"the key Tab does not lead to {selector}")

    go_to(".skip")
    go_to("#schedule-type")
    press("Red")
    go_to("#schedule-resources")
    # the key Tab selects the text of a field
    press("vm2", Keys.ENTER)
    page.wait_for_part("control1", ".status", "Scheduled")
    assert page.part("control1", ".type").text == "Redeploy"
    page.find("#title").click()
    go_to(".event select")
    press("vm1")
    go_to(".event .approve")
    press(Keys.ENTER)
    page.wait_for_part("control1", ".approved", "by vm1 at")
    go_to(".event .cancel")
    press(Keys.SPACE)
    page.wait_for("#ended-count", "1")
    # the focus stays near the card that is gone
    assert page.evaluate("return document.activeElement.id") == "events"


@pytest.mark.all
def test_every_control_has_a_label_and_ids_are_unique(page, start):
    simulator = start()
    simulator.post("/events", {"type": "Freeze", "resources": ["vm1"]})
    page.open(simulator.control)
    unnamed = page.evaluate(
        "return [...document.querySelectorAll('input, select, button')].filter((each) => !each.labels?.length"
        " && !each.getAttribute('aria-label') && !each.textContent.trim()).map((each) => each.outerHTML)"
    )
    assert unnamed == []
    ids = page.evaluate("return [...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.all
@pytest.mark.parametrize("width", [360, 1280])
def test_page_has_no_horizontal_scroll_bar(page, start, width):
    long = "a-very-long-name-of-a-virtual-machine-that-has-no-space-000001"
    simulator = start({"title": long, "groups": {long: {"vms": {long: {}, long + "-2": {}}}}})
    simulator.post("/events", {"type": "Redeploy", "resources": [long, long + "-2"], "name": long, "description": long})
    simulator.post("/faults", {"kind": "too-many-requests", "vm": long, "requests": "1-3"})
    simulator.post(f"/events/{long}/approve", {"as": long})
    send_request(simulator.endpoints[long])
    page.show(width, 800)
    page.open(simulator.control)
    page.fill("#schedule-resources", "vm9")
    page.find("#schedule-resources").send_keys(Keys.ENTER)
    page.wait_for("#schedule-error", "vm9")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    page.wait_for(f".row[data-vm='{long}'] .request", "429")
    outside = page.evaluate(
        "return [...document.querySelectorAll('main *')].filter((each) => each.offsetParent &&"
        " each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML.slice(0, 80))"
    )
    assert outside == [] and page.broken_words() == []
    assert page.evaluate("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.all
def test_colours_follow_the_preference_and_are_legible(page, start):
    simulator = start()
    for kind in ("Freeze", "Reboot"):
        simulator.post("/events", {"type": kind, "resources": ["vm1"], "name": kind})
    simulator.post("/events/Freeze/change", {"status": "Started"})
    send_request(simulator.endpoints["vm1"])
    send_request(simulator.endpoints["vm2"], "/nowhere")
    backgrounds = []
    for scheme in ("light", "dark"):
        page.show(scheme=scheme)
        page.open(simulator.control)
        page.wait_for(".row[data-vm='vm2'] .request", "404")
        backgrounds.append(page.evaluate("return getComputedStyle(document.body).backgroundColor"))
        assert page.evaluate(LOW_CONTRAST) == []
    assert backgrounds[0] != backgrounds[1]


# the texts of the page whose contrast with their background is below 4.5 (WCAG 2, AA)
LOW_CONTRAST = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (rgb) => rgb.slice(0, 3).map((each) => each / 255)
  .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
  .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
const background = (node) => {
  for (let each = node; each; each = each.parentElement) {
    const colour = parse(getComputedStyle(each).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
};
return [...document.querySelectorAll('body *')].filter((each) => each.offsetParent && each.tagName !== 'OPTION'
    && [...each.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
  .filter((each) => {
    const [one, other] = [light(parse(getComputedStyle(each).color)), light(background(each))].sort();
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) < 4.5;
  }).map((each) => each.outerHTML.slice(0, 120));
"""


@pytest.mark.all
def test_page_connects_again_to_a_simulator_that_was_restarted(page, start):
    with simulator_process.reserved_port() as port:
        first = start(control=f"127.0.0.1:{port}")
        first.post("/events", {"type": "Freeze", "resources": ["vm1"], "name": "before"})
        page.open(first.control)
        page.wait_for_part("before", ".status", "Scheduled")
        first.stop()
        page.wait_for("#connection", "lost")
        second = start(control=f"127.0.0.1:{port}")
        page.wait_for("#connection", "open")
        page.wait_for("#news", "started again")
        assert page.find_all(".event") == []
        second.post("/events", {"type": "Reboot", "resources": ["vm1"], "name": "after"})
        page.wait_for_part("after", ".status", "Scheduled")


def test_names_from_scenarios_are_text(page, start):
    simulator = start({"title": HTML, "groups": {"g": {"vms": {HTML: {}}}}})
    simulator.post("/events", {"type": "Freeze", "resources": [HTML], "name": HTML, "description": HTML + "\u202e"})
    simulator.post("/faults", {"kind": "status", "status": 503, "vm": HTML, "body": HTML})
    # a member of every object of JavaScript
    simulator.post("/notes", {"vm": HTML, "what": "constructor", "event": HTML})
    page.open(simulator.control)
    page.card(HTML)
    page.wait_for("#log", HTML)
    assert page.part(HTML, ".resources").text == page.text("#title") == page.text(".row .name") == HTML
    # a character that changes the direction of the text
    assert HTML + "\ufffd" in page.part(HTML, ".details").text
    assert page.evaluate("return document.querySelectorAll('img, main b').length") == 0
    assert page.evaluate("return document.title") != "1"
    assert page.errors() == []


# the second click of a double click, after the answer to the first one
SECOND_CLICK = """
arguments[0].dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true, detail: 2}));
"""


def test_double_click_acts_once_also_where_another_button_appears(page, start):
    simulator = start()
    page.open(simulator.control)
    page.fill("#schedule-resources", "vm1")
    ActionChains(page.driver).double_click(page.find("#schedule button")).perform()
    page.wait_for_part("control1", ".status", "Scheduled")
    page.evaluate(SECOND_CLICK, page.find("#schedule button"))
    advance(page, "1m")
    page.wait_for("#simulated", "1:00")
    page.evaluate(SECOND_CLICK, page.find("#advance button"))
    send_request(simulator.endpoints["vm1"])
    page.part("control1", ".approve").click()
    page.wait_for_part("control1", ".approved", "by vm1")
    advance(page, "1")
    page.wait(lambda: page.part("control1", ".complete").is_displayed(), "the start")
    page.evaluate(SECOND_CLICK, page.part("control1", ".complete"))
    # a single click, whose answer comes after those of the others
    page.evaluate("arguments[0].click()", page.find("#advance button"))
    page.wait_for("#simulated", "1:02")
    whats = [line["what"] for line in simulator.get("/log")["lines"]]
    assert [whats.count(each) for each in ("scheduled", "advanced", "approved", "finished")] == [1, 3, 1, 0]
    assert page.errors() == []


@pytest.mark.all
def test_countdown_follows_the_speed_and_not_the_clock_of_the_browser(page, start):
    simulator = start(args=("--speed", "60"))
    made = simulator.post("/events", {"type": "Freeze", "resources": ["vm1"], "name": "far", "notice": "100h"})
    script = page.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": "Date.now = () => 0; setInterval = setInterval;"}
    )
    try:
        page.open(simulator.control)
        page.wait_for_part("far", ".until", "until NotBefore (")
        expected = 60 * (datetime.fromisoformat(made["not_before"]).timestamp() - simulator.get("/state")["unix"])
        days, clock = page.part("far", ".left").text.split(" d ")
        hours, minutes, seconds = map(int, clock.split(":"))
        shown = int(days) * 86400 + hours * 3600 + minutes * 60 + seconds
        # one real minute of a busy machine
        assert expected - 3600 < shown < expected + 3600
        page.wait(lambda: page.part("far", ".left").text.split(" d ")[1] != clock, "a shorter countdown")
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


@pytest.mark.all
def test_thousand_vms_stay_usable(page, start):
    vms = {f"vm{number}": {"source": f"10.0.{number // 250}.{number % 250 + 1}"} for number in range(1000)}
    simulator = start({"groups": {"fleet": {"kind": "availability_set", "vms": vms}}})
    simulator.post("/events", {"type": "Freeze", "resources": list(vms), "name": "all"})
    page.open(simulator.control)
    assert "1000 VMs" in page.text(".group .facts") and len(page.find_all(".row[data-vm]")) == 12
    page.wait_for_part("all", ".resources", "and 988 more")
    page.find("#more-vms").click()
    page.wait(lambda: len(page.find_all(".row[data-vm]")) == 112, "100 more rows")
    page.fill("#filter", "10.0.3.7")
    page.wait(lambda: page.text("#vms-count") == "11 of 1000 VMs", "the VMs of the filter")
    page.fill("#filter", "vm999")
    page.wait_for(".row[data-vm]", "vm999")
    page.find(".row[data-vm] input").click()
    assert page.find("#schedule-resources").get_attribute("value") == "vm999"


@pytest.mark.all
def test_token_of_the_address_opens_the_page_and_leaves_the_address(page, start):
    simulator = start(token=TOKEN)
    page.open(f"{simulator.control}/#token={TOKEN}")
    page.wait_for("#connection", "open")
    advance(page, "1m")
    page.wait_for("#simulated", "1:00")
    assert TOKEN not in page.driver.current_url


@pytest.mark.all
def test_page_without_the_token_asks_for_it_until_it_is_right(page, start):
    control = start(token=TOKEN).control
    page.driver.get(control)
    WebDriverWait(page.driver, 60).until(alert_is_present()).dismiss()
    page.wait_for("#connection", "the token is missing")
    page.driver.refresh()
    for asked, given in (("The token of", "not-the-token"), ("This is not the token", TOKEN)):
        prompt = WebDriverWait(page.driver, 60).until(alert_is_present())
        assert prompt.text.startswith(asked)
        prompt.send_keys(given)
        prompt.accept()
    page.wait_for("#connection", "open")
    page.driver.refresh()
    page.wait_for("#connection", "open")
