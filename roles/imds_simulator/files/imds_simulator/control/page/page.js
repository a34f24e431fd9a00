// SPDX-License-Identifier: GPL-3.0-or-later
// Copyright: Contributors to the azure_imds.scheduled_events collection
//
// The live page. Names and texts come from scenarios and clients; they are shown by textContent only.
"use strict";

const MAX_CARDS = 100;
const MAX_TAGS = 12;
const MAX_APPROVERS = 200;
const ROWS = 100;
const MAX_LINES = 200;
const OPEN_GROUP = 50;  // a group with more VMs is closed at first
const SILENCE = 10000;  // milliseconds without a message until the page connects again
const ASKING = 60;  // a VM that asked in the last so many seconds counts as asking
const TEXT_OPTIONS = ["body", "body_base64", "content_type", "location", "retry_after_format", "part"];
const STATUS_ORDER = ["Started", "Scheduled", "Planned", "Gone"];
const NEWS = new Set(["scheduled", "started", "finished", "cancelled", "approved", "released", "changed",
  "fault-injected", "faults-cleared", "unknown-client", "advanced", "knobs"]);

const byId = (id) => document.getElementById(id);
const state = {run: null, clock: null, received: 0, groups: {}, vms: {}, scopes: {}, events: {}, faults: {}, requests: {}, lines: []};

// -- small parts of the document

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function fromTemplate(id) {
  return byId(id).content.firstElementChild.cloneNode(true);
}

function tags(node, names, make) {
  const shown = names.slice(0, MAX_TAGS).map(make);
  if (names.length > MAX_TAGS) shown.push(element("span", "soft", `and ${names.length - MAX_TAGS} more`));
  node.replaceChildren(...shown);
}

function announce(text) {
  setText(byId("news"), text);
}

// -- time

const elapsed = () => (performance.now() - state.received) / 1000;
const clockNow = () => state.clock.unix + (state.clock.manual ? 0 : elapsed());
const realNow = () => state.clock.real + elapsed();
const seconds = (iso) => Date.parse(iso) / 1000;

function duration(value) {
  const whole = Math.max(0, Math.ceil(value - 0.001));
  const days = Math.floor(whole / 86400), hours = Math.floor(whole / 3600) % 24, minutes = Math.floor(whole / 60) % 60;
  const two = (number) => String(number).padStart(2, "0");
  const clock = hours || days ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
  return days ? `${days} d ${clock}` : clock;
}

function moment(iso) {
  return iso ? iso.slice(11, 19) : "";
}

function age(value) {
  if (value < 1.5) return "now";
  if (value < 120) return `${Math.floor(value)} s ago`;
  if (value < 7200) return `${Math.floor(value / 60)} min ago`;
  return `${Math.floor(value / 3600)} h ago`;
}

// -- requests to the control API

// The token is in the address (#token=TOKEN), or the user is asked for it. This tab keeps it.
const asToken = (text) => text.replace(/[^!-~]/g, "");
let isTokenDeclined = false;
if (location.hash.startsWith("#token=")) {
  sessionStorage.setItem("token", asToken(location.hash.slice("#token=".length)));
  history.replaceState(null, "", "/");
}

// Like fetch, with the token.
async function send(path, options) {
  const token = sessionStorage.getItem("token");
  const headers = {Accept: "application/json", ...options.headers};
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(path, {...options, headers});
  if (answer.status !== 401 || isTokenDeclined) return answer;
  // another request may have asked for it meanwhile
  if (token === sessionStorage.getItem("token")) {
    const given = asToken(prompt(token ? "This is not the token of this simulator. Its token:" : "The token of the control API:") || "");
    isTokenDeclined = !given;
    if (!given) return answer;
    sessionStorage.setItem("token", given);
  }
  return send(path, options);
}

async function call(method, path, body) {
  const answer = await send(path, {
    method,
    headers: {"Content-Type": "application/json"},
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch(() => { throw new Error("the simulator does not answer; check that it runs"); });
  const data = await answer.json().catch(() => ({error: `the simulator answered ${answer.status}`}));
  if (!answer.ok) throw new Error(data.error);
  return data;
}

// Runs one request of a form; its error is shown at the form.
async function submit(error, button, request, done) {
  if (button.disabled) return;
  // a disabled button would lose the focus
  button.setAttribute("aria-busy", "true");
  try {
    const data = await request();
    setText(error, "");
    if (done) done(data);
  } catch (problem) {
    error.textContent = problem.message;
  } finally {
    button.removeAttribute("aria-busy");
  }
}

function filled(form, names) {
  const body = {};
  for (const name of names) {
    const value = form.elements[name].value.trim();
    if (value) body[name] = value;
  }
  return body;
}

const list = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);
const asNumber = (text) => (/^-?\d+$/.test(text) ? Number(text) : text);

function jsonOrText(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// -- events

const cards = new Map();

function approvers(event) {
  const others = (membersOf.get(event.group) || []).filter((name) => !event.resources.includes(name));
  return [...event.resources, ...others].slice(0, MAX_APPROVERS).concat("control-plane", "other-tenants");
}

function makeCard(key) {
  const node = fromTemplate("event-template");
  const part = (name) => node.querySelector(name);
  const card = {node, resources: "", form: part("form"), left: part(".left"), until: part(".until"), progress: part("progress")};
  const error = part(".error");
  const path = (action) => `/events/${encodeURIComponent(state.events[key].id)}/${action}`;
  const act = (button, action, body) => {
    return submit(error, button, () => call("POST", path(action), body ? body() : {}));
  };
  card.form.addEventListener("submit", (submitted) => {
    submitted.preventDefault();
    act(part(".approve"), "approve", () => ({as: card.form.elements.as.value}));
  });
  for (const action of ["cancel", "complete"]) {
    part(`.${action}`).addEventListener("click", (clicked) => act(clicked.currentTarget, action));
  }
  return card;
}

function approvalText(event) {
  const parts = Object.entries(event.approvals).map(([by, at]) => `by ${by} at ${moment(at)}`);
  if (!parts.length) return event.status === "Started" ? "no; started without an approval" : "not yet";
  const isHeld = event.approved && event.status === "Scheduled" && !(event.held_until && seconds(event.held_until) <= clockNow());
  const held = event.held_until ? `until ${moment(event.held_until)}` : "until released or NotBefore";
  return parts.slice(0, 6).join(", ") + (parts.length > 6 ? ` and ${parts.length - 6} more` : "") +
    (event.approved ? "" : "; further approvals are needed") + (isHeld ? `; held by other tenants ${held}` : "");
}

function fillCard(card, event) {
  const part = (name) => card.node.querySelector(name);
  card.node.dataset.status = part(".status").dataset.status = event.status;
  setText(part(".type"), event.type);
  setText(part(".name"), event.name);
  setText(part(".status"), event.status);
  setText(part(".approved"), approvalText(event));
  setText(part(".not-before"), event.not_before ? `${moment(event.not_before)} UTC` : "–");
  setText(part(".details"), [event.source, event.description, event.duration >= 0 ? `${event.duration} s` : ""].filter(Boolean).join(" · "));
  const resources = JSON.stringify([event.resources, event.group]);
  if (card.resources !== resources) {
    card.resources = resources;
    tags(part(".resources"), event.resources, (name) => element("span", "tag", name));
    const selected = card.form.elements.as.value;
    card.form.elements.as.replaceChildren(...approvers(event).map((name) => element("option", "", name)));
    if (selected) card.form.elements.as.value = selected;
    if (!card.form.elements.as.value) card.form.elements.as.selectedIndex = 0;
  }
  for (const [name, shown] of [["approve", event.status === "Scheduled"], ["cancel", event.status !== "Started"], ["complete", event.status === "Started"]]) {
    const button = part(`.${name}`);
    const hadFocus = document.activeElement === button;
    button.hidden = !shown;
    button.setAttribute("aria-label", `${button.textContent} ${event.name}`);
    // a hidden button cannot keep the focus
    if (hadFocus && !shown) focusIn(card.node);
  }
  part("label").hidden = event.status !== "Scheduled";
  for (const name of [".approved", ".not-before"]) part(name).parentNode.hidden = event.status === "Planned";
  fillCountdown(card, event);
}

function focusIn(node) {
  const next = [...node.querySelectorAll("button, select")].find((each) => each.offsetParent !== null && !each.disabled);
  (next || byId("events")).focus();
}

function fillCountdown(card, event) {
  const now = clockNow();
  const [end, until, begin] = {
    Planned: [event.appears_at, "until it appears", null],
    Scheduled: [event.not_before, "until NotBefore", event.appears_at],
    Started: [event.ends_at, "until its end", event.started_at],
  }[event.status] || [null, "", null];
  const left = end ? seconds(end) - now : null;
  const speed = state.clock.speed;
  setText(card.left, left === null ? "–" : duration(left * speed));
  let label = left === null ? (event.status === "Planned" ? "after another event" : "no end is planned") : until;
  if (left !== null && speed !== 1 && !state.clock.manual) label += ` (${duration(left)} real)`;
  setText(card.until, label);
  card.progress.hidden = left === null || !begin;
  if (!card.progress.hidden) {
    const all = seconds(end) - seconds(begin);
    card.progress.value = all > 0 ? Math.min(1, Math.max(0, 1 - left / all)) : 1;
    card.progress.setAttribute("aria-label", `time ${until}`);
  }
}

function endedRow(event) {
  const row = element("li");
  const facts = [event.cancelled ? "cancelled" : "ended", event.gone_at ? `at ${moment(event.gone_at)}` : "",
    Object.keys(event.approvals).length ? `approved ${approvalText({...event, approved: true})}` : "not approved"];
  const resources = event.resources.slice(0, 4).join(", ") + (event.resources.length > 4 ? ", …" : "");
  row.append(element("strong", "", event.type), element("span", "name", event.name), element("span", "soft", resources),
    element("span", "soft", facts.join(" ").trim()));
  return row;
}

function showEvents() {
  const rank = (key) => STATUS_ORDER.indexOf(state.events[key].status);
  const keys = Object.keys(state.events).sort((one, other) => rank(one) - rank(other) || one - other);
  const live = keys.filter((key) => state.events[key].status !== "Gone");
  const ended = keys.filter((key) => state.events[key].status === "Gone").reverse();
  const shown = live.slice(0, MAX_CARDS);
  for (const [key, card] of cards) {
    if (shown.includes(key)) continue;
    const hadFocus = card.node.contains(document.activeElement);
    card.node.remove();
    cards.delete(key);
    if (hadFocus) byId("events").focus();
  }
  const focused = document.activeElement;
  shown.forEach((key, index) => {
    if (!cards.has(key)) cards.set(key, makeCard(key));
    const node = cards.get(key).node, place = byId("live-events").children[index] || null;
    if (place !== node) byId("live-events").insertBefore(node, place);
    fillCard(cards.get(key), state.events[key]);
  });
  // a moved card loses the focus
  if (document.activeElement === document.body && focused.offsetParent) focused.focus();
  byId("no-events").hidden = live.length > 0;
  byId("more-events").hidden = live.length <= MAX_CARDS;
  setText(byId("more-events"), `The page shows ${MAX_CARDS} of ${live.length} events.`);
  setText(byId("events-count"), live.length ? String(live.length) : "");
  byId("ended").hidden = ended.length === 0;
  setText(byId("ended-count"), String(ended.length));
  byId("ended-events").replaceChildren(...ended.map((key) => endedRow(state.events[key])));
  affectedBy.clear();
  for (const key of live) {
    for (const vm of state.events[key].resources) {
      if (!affectedBy.has(vm)) affectedBy.set(vm, []);
      affectedBy.get(vm).push(state.events[key]);
    }
  }
}

// -- VMs

const membersOf = new Map();
const affectedBy = new Map();
const groups = new Map();
const rows = new Map();
const selected = new Set();

function makeGroups() {
  membersOf.clear();
  for (const [name, vm] of Object.entries(state.vms)) {
    if (!membersOf.has(vm.group)) membersOf.set(vm.group, []);
    membersOf.get(vm.group).push(name);
  }
  groups.clear();
  rows.clear();
  for (const name of Object.keys(state.groups)) {
    const node = fromTemplate("group-template");
    const group = {node, limit: ROWS, body: node.querySelector("tbody"), more: node.querySelector(".more"), facts: node.querySelector(".facts")};
    setText(node.querySelector(".name"), name);
    node.open = state.groups[name].vms <= OPEN_GROUP;
    node.addEventListener("toggle", () => showRows(name));
    group.more.addEventListener("click", () => {
      group.limit += ROWS;
      showRows(name);
    });
    groups.set(name, group);
  }
  byId("groups").replaceChildren(...[...groups.values()].map((group) => group.node));
  byId("vm-names").replaceChildren(...Object.keys(state.vms).slice(0, 1000).map((name) => {
    const option = element("option");
    option.value = name;
    return option;
  }));
}

function matches(name, text) {
  const vm = state.vms[name];
  if (byId("only-affected").checked && !affectedBy.has(name)) return false;
  return !text || [name, vm.group, vm.address, vm.resource_name].some((each) => each.toLowerCase().includes(text));
}

function showVms() {
  const text = byId("filter").value.trim().toLowerCase();
  const isFiltered = text !== "" || byId("only-affected").checked;
  let count = 0;
  for (const [name, group] of groups) {
    group.members = (membersOf.get(name) || []).filter((vm) => matches(vm, text));
    group.node.hidden = group.members.length === 0;
    if (isFiltered && group.members.length && !group.node.open) group.node.open = true;
    count += group.members.length;
    showRows(name);
  }
  const all = Object.keys(state.vms).length;
  setText(byId("vms-count"), isFiltered ? `${count} of ${all}` : String(all));
  byId("no-vms").hidden = count > 0;
  showGroupFacts();
}

// Only open groups have rows, because a page with thousands of rows is slow.
function showRows(name) {
  const group = groups.get(name);
  if (!group || !group.members) return;
  const shown = group.node.open ? group.members.slice(0, group.limit) : [];
  for (const row of [...group.body.rows]) {
    if (!shown.includes(row.dataset.vm)) {
      rows.delete(row.dataset.vm);
      row.remove();
    }
  }
  shown.forEach((vm, index) => {
    if (!rows.has(vm)) rows.set(vm, makeRow(vm));
    const row = rows.get(vm);
    if (group.body.rows[index] !== row.node) group.body.insertBefore(row.node, group.body.rows[index] || null);
    fillRow(row, vm);
  });
  const rest = group.members.length - shown.length;
  group.more.hidden = !group.node.open || rest <= 0;
  setText(group.more, `Show ${Math.min(rest, ROWS)} more of ${rest}`);
}

function makeRow(name) {
  const node = fromTemplate("vm-template");
  const vm = state.vms[name];
  const box = node.querySelector("input");
  node.dataset.vm = name;
  box.setAttribute("aria-label", `Select ${name}`);
  box.addEventListener("change", () => {
    if (box.checked) selected.add(name);
    else selected.delete(name);
    byId("schedule-resources").value = [...selected].join(", ");
  });
  setText(node.querySelector(".name"), name);
  setText(node.querySelector("td.address"), vm.address);
  node.title = `resource name ${vm.resource_name}, zone ${vm.zone || "none"}, fault domain ${vm.fault_domain}, document ${vm.scope}`;
  return {node, box, answer: node.querySelector(".answer"), age: node.querySelector(".age"), affected: node.querySelector(".affected"), events: ""};
}

function fillRow(row, name) {
  row.box.checked = selected.has(name);
  fillRequest(row, name);
  const events = affectedBy.get(name) || [];
  const key = JSON.stringify(events.map((each) => [each.name, each.type, each.status]));
  if (row.events === key) return;
  row.events = key;
  tags(row.affected, events, (event) => {
    const tag = element("span", "tag", `${event.type} ${event.name}`);
    tag.dataset.status = event.status;
    tag.title = event.status;
    return tag;
  });
}

function fillRequest(row, name) {
  const request = state.requests[name];
  row.answer.hidden = !request;
  if (!request) {
    setText(row.age, "none yet");
    return;
  }
  const [real, , method, route, status, fault] = request;
  setText(row.answer, `${method} ${route} ${status || "no answer"}${fault ? ` ${fault}` : ""}`);
  row.answer.dataset.class = status >= 200 && status < 400 && !fault ? "good" : "bad";
  setText(row.age, age(realNow() - real));
}

function showGroupFacts() {
  const limit = realNow() - ASKING;
  const incarnations = {};
  for (const [group, incarnation] of Object.values(state.scopes)) (incarnations[group] = incarnations[group] || []).push(incarnation);
  for (const [name, group] of groups) {
    const members = membersOf.get(name) || [];
    const asking = members.reduce((sum, vm) => sum + (state.requests[vm] && state.requests[vm][0] > limit ? 1 : 0), 0);
    const affected = members.reduce((sum, vm) => sum + (affectedBy.has(vm) ? 1 : 0), 0);
    const known = incarnations[name] || [];
    const facts = [state.groups[name].kind.replaceAll("_", " "), `${members.length} ${members.length === 1 ? "VM" : "VMs"}`,
      `${asking} asked in the last minute`];
    if (affected) facts.push(`${affected} with an event`);
    if (known.length === 1) facts.push(`incarnation ${known[0]}`);
    setText(group.facts, facts.join(" · "));
  }
}

// -- faults

function showFaults() {
  const now = clockNow();
  const faults = Object.entries(state.faults).filter(([, fault]) => !fault.to || seconds(fault.to) > now);
  const shown = new Map([...byId("faults").children].map((row) => [row.dataset.number, row]));
  for (const [number, row] of shown) {
    if (!faults.some(([each]) => each === number)) row.remove();
  }
  for (const [number, fault] of faults) {
    if (!shown.has(number)) byId("faults").append(faultRow(number, fault));
    const row = shown.get(number) || byId("faults").lastElementChild;
    const left = fault.to ? `${duration((seconds(fault.to) - now) * state.clock.speed)} left` : "until cleared";
    setText(row.querySelector(".left"), seconds(fault.from) > now ? `begins in ${duration((seconds(fault.from) - now) * state.clock.speed)}` : left);
    setText(row.querySelector(".seen"), `${fault.seen} matching ${fault.seen === 1 ? "request" : "requests"}`);
  }
  byId("no-faults").hidden = faults.length > 0;
  setText(byId("faults-count"), faults.length ? String(faults.length) : "");
}

function faultRow(number, fault) {
  const row = element("li");
  row.dataset.number = number;
  const vms = fault.vms.length ? fault.vms.slice(0, 6).join(", ") + (fault.vms.length > 6 ? ", …" : "") : "all VMs";
  const requests = fault.first > 1 || fault.last ? ` · requests ${fault.first} to ${fault.last || "…"}` : "";
  const remove = element("button", "", "Remove");
  remove.type = "button";
  remove.setAttribute("aria-label", `Remove fault ${fault.kind}`);
  remove.addEventListener("click", () => submit(byId("clear-error"), remove, () => call("DELETE", `/faults/${number}`), () => byId("inject-kind").focus()));
  row.append(element("strong", "", fault.kind), element("span", "", vms),
    element("span", "soft", `route ${fault.route}${fault.method === "any" ? "" : ` ${fault.method}`}${requests}`),
    element("span", "soft left"), element("span", "soft seen"), remove);
  row.title = fault.options;
  return row;
}

let kinds = {};

async function loadKinds() {
  kinds = await call("GET", "/fault-kinds").catch(() => kinds);
  const chosen = byId("inject-kind").value;
  byId("inject-kind").replaceChildren(...Object.keys(kinds).map((name) => element("option", "", name)));
  byId("inject-kind").value = chosen in kinds ? chosen : "unavailable";
  showKind();
}

function showKind() {
  const kind = kinds[byId("inject-kind").value];
  if (!kind) return;
  setText(byId("inject-meaning"), kind.meaning);
  byId("inject-options").replaceChildren(...kind.options.map((name) => {
    const field = element("div", "field");
    const label = element("label", "", name.replaceAll("_", " "));
    const input = element("input");
    input.id = `inject-option-${name}`;
    label.htmlFor = input.id;
    input.dataset.option = name;
    field.append(label, input);
    return field;
  }));
}

// -- log

function addLines(lines) {
  state.lines = [...state.lines, ...lines].slice(-MAX_LINES);
  const log = byId("log");
  for (const line of lines) {
    const row = element("li");
    const time = element("time", "", moment(line.time));
    time.dateTime = line.time;
    const rest = Object.entries(line).filter(([key]) => !["number", "time", "what", "id", "group"].includes(key));
    row.append(time, " ", element("strong", "", line.what), " ", rest.map(([key, value]) => `${key}=${value}`).join(" "));
    log.prepend(row);
  }
  while (log.children.length > MAX_LINES) log.lastElementChild.remove();
}

function news(lines) {
  const texts = lines.filter((line) => NEWS.has(line.what)).map((line) => {
    const subject = [line.type, line.event || line.kind || line.address || line.set || (line.seconds && `clock ${line.seconds} s`)].filter(Boolean).join(" ");
    return `${subject}${subject ? ": " : ""}${line.what}${line.by ? ` by ${line.by}` : ""}`;
  });
  if (texts.length) announce(texts.slice(-3).join("; ") + (texts.length > 3 ? ` and ${texts.length - 3} more` : ""));
}

// -- knobs

let knobs = {};

async function loadKnobs() {
  const error = byId("knob-error");
  try {
    knobs = await call("GET", "/knobs");
    setText(error, "");
  } catch (problem) {
    error.textContent = problem.message;
    return;
  }
  const chosen = byId("knob-name").value;
  byId("knob-name").replaceChildren(...Object.keys(knobs).map((name) => element("option", "", name)));
  if (chosen in knobs) byId("knob-name").value = chosen;
  showKnob();
}

function showKnob() {
  const value = knobs[byId("knob-name").value];
  byId("knob-value").value = typeof value === "string" ? value : JSON.stringify(value);
}

// -- clock

function showClock() {
  if (!state.clock) return;
  const now = clockNow();
  setText(byId("now"), new Date(now * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC");
  setText(byId("simulated"), state.clock.epoch === null ? "begins at the first request" : duration(Math.floor((now - state.clock.epoch) * state.clock.speed)));
  setText(byId("speed"), state.clock.manual ? `manual, ×${state.clock.speed}` : `×${state.clock.speed}`);
  for (const [key, card] of cards) fillCountdown(card, state.events[key]);
  showFaults();
}

function showAges() {
  if (!state.clock) return;
  for (const [name, row] of rows) fillRequest(row, name);
  showGroupFacts();
}

// -- stream

let source = null;
let lastMessage = 0;

function setConnection(text, kind) {
  byId("connection").dataset.state = kind;
  setText(byId("connection"), text);
}

function take(clock) {
  lastMessage = performance.now();
  state.clock = clock;
  state.received = lastMessage;
}

function takeAll(data) {
  const isNew = state.run !== data.run;
  if (state.run !== null && isNew) announce("The simulator was started again");
  else if (state.run !== null) announce("Connected again");
  const old = {...state};
  Object.assign(state, data, {lines: []});
  setText(byId("title"), state.title);
  document.title = state.title ? `${state.title} · IMDS simulator` : "IMDS simulator";
  if (isNew || JSON.stringify(old.vms) !== JSON.stringify(state.vms)) {
    for (const name of selected) if (!(name in state.vms)) selected.delete(name);
    makeGroups();
    if (!byId("schedule-resources").value) byId("schedule-resources").value = Object.keys(state.vms)[0];
  }
  if (isNew) {
    // numbers begin again
    for (const [key, card] of cards) {
      card.node.remove();
      cards.delete(key);
    }
    byId("faults").replaceChildren();
    loadKinds();
    if (byId("knobs").open) loadKnobs();
  }
  byId("log").replaceChildren();
  addLines(data.lines);
  showEvents();
  showVms();
  showClock();
  setConnection("open", "open");
}

function merge(section, changes) {
  for (const [key, item] of Object.entries(changes || {})) {
    if (item === null) delete state[section][key];
    else state[section][key] = item;
  }
}

function takeChanges(data) {
  if (state.run === null) return;
  take(data.clock);
  for (const section of ["vms", "scopes", "events", "faults", "requests"]) merge(section, data[section]);
  if (data.vms) makeGroups();
  if (data.events) showEvents();
  if (data.vms || data.events) showVms();
  for (const name of Object.keys(data.requests || {})) if (rows.has(name)) fillRequest(rows.get(name), name);
  if (data.lines) {
    addLines(data.lines);
    news(data.lines);
  }
  showClock();
}

// Reads the stream until it ends; the watch connects again. EventSource cannot send the token.
async function connect() {
  if (source) source.abort();
  const own = source = new AbortController();
  lastMessage = performance.now();
  const answer = await send("/stream", {signal: own.signal}).catch(() => null);
  if (answer && answer.ok) await readMessages(answer.body.pipeThrough(new TextDecoderStream()).getReader());
  const refusal = answer && !answer.ok ? (await answer.json().catch(() => ({}))).error : "";
  if (source !== own) return;
  source = null;
  setConnection(refusal || "lost; connecting again", "lost");
}

async function readMessages(reader) {
  const takers = {clock: take, snapshot: takeAll, update: takeChanges};
  let rest = "";
  for (;;) {
    const {value, done} = await reader.read().catch(() => ({done: true}));
    if (done) return;
    const messages = (rest + value).split("\n\n");
    rest = messages.pop();
    for (const message of messages) {
      const [, kind, data] = message.match(/^event: (\w+)\ndata: (.*)$/) || [];
      if (kind) takers[kind](JSON.parse(data));
    }
  }
}

// A tab that is not visible needs no stream; browsers also limit the connections to one server.
function watch() {
  if (document.hidden) {
    if (source) source.abort();
    source = null;
  } else if (!source || performance.now() - lastMessage > SILENCE) {
    connect();
  }
}

// -- forms

byId("advance").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  const form = submitted.currentTarget;
  submit(byId("advance-error"), form.querySelector("button"), () => call("POST", "/advance", {seconds: form.elements.seconds.value.trim()}));
});

byId("schedule").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  const form = submitted.currentTarget;
  submit(byId("schedule-error"), form.querySelector("button"), () => {
    const body = filled(form, ["type", "notice", "name", "at", "source", "duration", "starts", "started_for", "description"]);
    if ("duration" in body) body.duration = asNumber(body.duration);
    body.resources = list(form.elements.resources.value);
    if (form.elements.hold.checked) body.hold = true;
    return call("POST", "/events", body);
  }, () => { form.elements.name.value = ""; });
});

byId("schedule-resources").addEventListener("input", (changed) => {
  selected.clear();
  for (const name of list(changed.currentTarget.value)) if (name in state.vms) selected.add(name);
  for (const [name, row] of rows) row.box.checked = selected.has(name);
});

byId("inject").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  const form = submitted.currentTarget;
  submit(byId("inject-error"), form.querySelector("button"), () => {
    const body = filled(form, ["kind", "for", "route", "method", "requests"]);
    const vms = list(form.elements.vm.value);
    if (vms.length) body.vm = vms;
    for (const input of byId("inject-options").querySelectorAll("input")) {
      const text = input.value.trim();
      if (text) body[input.dataset.option] = TEXT_OPTIONS.includes(input.dataset.option) ? text : jsonOrText(text);
    }
    return call("POST", "/faults", body);
  });
});

byId("knob").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  const form = submitted.currentTarget;
  const name = form.elements.name.value;
  submit(byId("knob-error"), form.querySelector("button"), () => call("POST", "/knobs", {[name]: jsonOrText(form.elements.value.value.trim())}), (answer) => {
    knobs = answer;
    showKnob();
  });
});

byId("inject-kind").addEventListener("change", showKind);
byId("knob-name").addEventListener("change", showKnob);
byId("knobs").addEventListener("toggle", () => byId("knobs").open && loadKnobs());
byId("filter").addEventListener("input", showVms);
byId("only-affected").addEventListener("change", showVms);
document.addEventListener("visibilitychange", watch);
setInterval(showClock, 250);
setInterval(showAges, 1000);
setInterval(watch, 2000);
watch();
