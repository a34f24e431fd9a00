// SPDX-License-Identifier: GPL-3.0-or-later
// Copyright: Contributors to the azure_imds.scheduled_events collection
//
// The page of a run: live from the control API, or as a report with the data in the element "data".
// Names and texts come from scenarios and clients; they are shown by textContent only.
"use strict";

const POLL = 1000;  // milliseconds
const TIMEOUT = 10000;
const MAX_KEPT = 5000;  // lines, and groups of answers
const MAX_TAGS = 12;
const MAX_APPROVERS = 200;
const MAX_EVENTS = 200;  // on the time line
const MORE = {vms: 12, events: 100, ended: 20, log: 200};  // rows at first; a button shows more
const ASKING = 60;  // a VM that asked in the last so many seconds counts as asking
const STATUS_ORDER = ["Started", "Scheduled", "Planned"];
const NEWS = new Set(["scheduled", "started", "finished", "cancelled", "approved", "released", "changed",
  "fault-injected", "faults-cleared", "unknown-client", "advanced", "knobs"]);
const FAULT_LINES = new Set(["fault-injected", "faults-cleared", "refusing", "listening-again", "cannot-listen"]);
// kind of mark -> path around (0, 0), and its line in the legend; shapes differ, not colours alone
const MARKS = {
  seen: ["M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z", "a VM first received the event"],
  prepared: ["M-5.5 -4.5h11l-5.5 10z", "prepared"],
  approved: ["M-6 0l2 -2l2.5 2.5l5 -5.5l2 2l-7 7.5z", "approved"],
  recovered: ["M-5.5 4.5h11l-5.5 -10z", "recovered"],
  note: ["M-4.5 -5.5h9v8h-4l-2.5 3v-3h-2.5z", "another note"],
  changed: ["M0 -6l5.5 6l-5.5 6l-5.5 -6z", "the event changed"],
  refused: ["M-6 -3.5l2.5 -2.5l3.5 3.5l3.5 -3.5l2.5 2.5l-3.5 3.5l3.5 3.5l-2.5 2.5l-3.5 -3.5l-3.5 3.5l-2.5 -2.5l3.5 -3.5z", "approval refused"],
  errors: ["M-2 -6.5h4l-.7 8h-2.6zM-1.8 3h3.6v3.5h-3.6z", "answers that were errors, or lost"],
};
const BARS = {
  scheduled: "the event is announced", started: "the event is started", interrupted: "the VM is interrupted",
  expected: "until NotBefore, or the planned end", deadline: "NotBefore (an arrow: later than the picture)", fault: "a fault is in force",
};

const byId = (id) => document.getElementById(id);
const isReport = byId("data") !== null;
const limits = {...MORE};
let state = null;  // the last answer of /state
const emptyLog = () => ({run: null, line: 0, request: 0, lines: [], answers: [], lastOf: new Map(), newest: new Map()});
let log = emptyLog();
// VM, group, event, fault or entry of the log -> its node, which stays while it is shown
const shownNodes = new Map();

// -- small parts of the document

// A name may have characters that change the text around them.
const printable = (text) => String(text).replace(/\p{C}/gu, "\ufffd");

function setText(node, text) {
  const shown = printable(text);
  if (node.textContent !== shown) node.textContent = shown;
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) setText(made, text);
  return made;
}

const fromTemplate = (id) => byId(id).content.firstElementChild.cloneNode(true);

function nodeOf(key, make) {
  if (!shownNodes.has(key)) shownNodes.set(key, make());
  return shownNodes.get(key);
}

// Makes nodes the children of parent; nodes that stay keep focus, selection and scroll position.
function arrange(parent, nodes) {
  const focused = document.activeElement;
  const kept = new Set(nodes);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  nodes.forEach((node, index) => {
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] || null);
  });
  if (document.activeElement === document.body && focused.isConnected) focused.focus();
}

// Gives a select these values; its choice stays if it is one of them.
function setOptions(select, values, textOfEmpty = "") {
  if (values.length === select.length && values.every((value, index) => select.options[index].value === value)) return;
  const chosen = select.value;
  select.replaceChildren(...values.map((value) => new Option(printable(value || textOfEmpty), value)));
  select.value = values.includes(chosen) ? chosen : values[0];
}

function showMore(kind, rest) {
  const button = byId(`more-${kind}`);
  button.hidden = rest <= 0;
  setText(button, `Show ${Math.min(rest, 100)} more of ${rest}`);
}

const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
const listed = (names) => names.slice(0, 6).join(", ") + (names.length > 6 ? ` and ${names.length - 6} more` : "");
const announce = (text) => setText(byId("news"), text);

// -- time: moments are seconds of the simulator's clock; the page shows simulated time

const seconds = (iso) => (iso ? Date.parse(iso) / 1000 : null);
const past = (iso) => (iso && seconds(iso) <= state.unix ? seconds(iso) : null);
const simulated = (moment) => (moment - seconds(state.epoch || state.started)) * state.speed;
const utc = (moment) => `${new Date(moment * 1000).toISOString().slice(11, 19)} UTC`;

// Text such as 0:05, 12:00 or 1:02:03.
function duration(value) {
  const whole = Math.max(0, Math.ceil(value - 0.001));
  const days = Math.floor(whole / 86400), hours = Math.floor(whole / 3600) % 24, minutes = Math.floor(whole / 60) % 60;
  const two = (number) => String(number).padStart(2, "0");
  const clock = hours || days ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
  return days ? `${days} d ${clock}` : clock;
}

// The simulated time of a moment.
function at(moment) {
  const value = Math.round(simulated(moment) * 1000) / 1000;
  return value < 0 ? `−${duration(Math.ceil(-value))}` : duration(Math.floor(value));
}

// -- requests to the control API

// The token is in the address (#token=TOKEN), or the user is asked for it. This tab keeps it.
const asToken = (text) => text.replace(/[^!-~]/g, "");
let isTokenDeclined = false;
if (!isReport && location.hash.startsWith("#token=")) {
  sessionStorage.setItem("token", asToken(location.hash.slice("#token=".length)));
  history.replaceState(null, "", "/");
}

// Like fetch, with the token.
async function send(path, options) {
  const token = sessionStorage.getItem("token");
  const headers = {Accept: "application/json", "Content-Type": "application/json"};
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(path, {...options, headers, signal: AbortSignal.timeout(TIMEOUT)});
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
  const answer = await send(path, {method, body: body === undefined ? undefined : JSON.stringify(body)})
    .catch(() => { throw new Error("the simulator does not answer; check that it runs"); });
  const data = await answer.json().catch(() => ({error: `the simulator answered ${answer.status}`}));
  if (!answer.ok) throw new Error(data.error);
  return data;
}

// Runs one request of a form; its error is shown at the form. Until the answer is there the button does nothing.
async function submit(error, button, request, done) {
  if (button.ariaBusy) return;
  button.ariaBusy = "true";
  try {
    const data = await request();
    setText(error, "");
    if (done) done(data);
  } catch (problem) {
    // also an equal text is an alert again
    error.textContent = printable(problem.message);
  } finally {
    button.ariaBusy = null;
  }
  poll();
}

function onSubmit(form, request, done) {
  form.addEventListener("submit", (submitted) => {
    submitted.preventDefault();
    const {submitter} = submitted;
    submit(form.querySelector(".error"), submitter, () => request(form, submitter.value), done);
  });
}

// The second click of a double click does nothing: the first one was answered, or another button took its place.
document.addEventListener("click", (clicked) => {
  if (clicked.detail < 2 || !clicked.target.closest("button")) return;
  clicked.preventDefault();
  clicked.stopPropagation();
}, true);

const list = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);

// Fills a part of a form with a field for each of these keys of the schema: a choice, or a text.
function keyFields(form, part, keys, names) {
  byId(`${form}-${part}`).replaceChildren(...names.map((name) => {
    const key = keys[name], field = element("div", "field"), label = element("label", "", name.replaceAll("_", " "));
    const input = element(key.enum ? "select" : "input");
    Object.assign(input, {id: `${form}-${name}`, name, title: key.description, spellcheck: false});
    input.setAttribute("aria-describedby", `${form}-error`);
    label.htmlFor = input.id;
    if (key.enum) input.append(...["", ...key.enum].map((value) => new Option(value || "usual", value)));
    field.append(label, input);
    return field;
  }));
}

// The value of a key that a text means: a list of names, a text, or JSON.
function keyValue(key, text) {
  if ([key, ...(key.anyOf || [])].some((each) => each.type === "array")) return list(text);
  if (key.enum || key.type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// The keys that are filled in. A field without text leaves its key to the simulator.
function filled(form, keys) {
  const texts = Object.keys(keys).map((name) => [name, form.elements.namedItem(name)?.value.trim()]);
  return Object.fromEntries(texts.filter(([, text]) => text).map(([name, text]) => [name, keyValue(keys[name], text)]));
}

// -- filters

const vmFilter = () => byId("filter").value.trim().toLowerCase();
const eventFilter = () => byId("filter-event").value;
const address = (vm) => vm.source || vm.endpoint.replace(/^\w+:\/\//, "");

function matches(name) {
  const vm = state.vms[name], text = vmFilter(), event = state.events.find((each) => each.name === eventFilter());
  if (event && !event.resources.includes(name)) return false;
  if (byId("only-affected").checked && !state.events.some((each) => each.status !== "Gone" && each.resources.includes(name))) return false;
  return !text || [name, vm.group, address(vm)].some((each) => each.toLowerCase().includes(text));
}

// -- time line: one row for each VM, with events as bars, steps as marks and faults as bands

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const MARK = 16, BAR = 14, LABEL = 17, MAX_LEVELS = 4;

// The VMs that the form names; a report has no form.
const selectedVms = () => list(byId("schedule-resources")?.value || "");

function hasAppeared(event) {
  const isCancelledBefore = event.gone_at && event.gone_at < event.appears_at;
  return past(event.appears_at) !== null && event.status !== "Planned" && !isCancelledBefore;
}

// Returns the events of the time line, each with its moments.
function shownEvents() {
  const chosen = eventFilter();
  return state.events.filter((each) => (chosen ? each.name === chosen : true) && hasAppeared(each)).slice(-MAX_EVENTS).map((event) => ({
    event, begins: seconds(event.appears_at), started: past(event.started_at), ends: past(event.gone_at),
    notBefore: seconds(event.not_before), planned: seconds(event.status === "Started" ? event.ends_at : event.not_before),
    interruptions: interruptionsOf(event),
  }));
}

const isError = (answer) => answer.status === 0 || answer.status >= 400 || answer.fault !== "";

function answerText(answer) {
  return `${answer.method} ${answer.route} ${answer.status || "no answer"}${answer.fault ? ` (fault ${answer.fault})` : ""}`;
}

// A line of the log -> the VMs that have a mark, its kind, and its text.
const MARK_OF = {
  seen: (line) => [[line.vm], "seen", "first received"],
  note: (line) => [[line.vm], ["prepared", "recovered"].includes(line.note) ? line.note : "note", line.note],
  approved: (line, affected) => [line.by in state.vms ? [line.by] : affected, "approved", `approved by ${line.by}`],
  changed: (line, affected) => [affected, "changed", "changed"],
  released: (line, affected) => [affected, "changed", "released by the other tenants"],
  approval: (line) => [line.status === 200 ? [] : [line.vm], "refused", `approval refused with ${line.status}`],
  "approval-refused": (line) => [[line.vm], "refused", `approval refused with ${line.status}`],
};

// Returns VM -> its marks in the order of time.
function marksOf(shown) {
  const found = new Map(), chosen = eventFilter(), resources = new Map(shown.map(({event}) => [event.name, event.resources]));
  const add = ([vms, kind, text], moment) => {
    for (const vm of vms) {
      if (!found.has(vm)) found.set(vm, []);
      found.get(vm).push({kind, moment, text});
    }
  };
  for (const line of log.lines) {
    if (!Object.hasOwn(MARK_OF, line.what) || (chosen && line.event !== chosen)) continue;
    const [vms, kind, text] = MARK_OF[line.what](line, resources.get(line.event) || []);
    add([vms, kind, line.event ? `${line.event}: ${text}` : text], seconds(line.time));
  }
  for (const answer of chosen ? [] : log.answers.filter(isError)) {
    add([[answer.vm], "errors", `${answerText(answer)}, ${counted(answer.count, "request")}`], answer.from);
  }
  for (const marks of found.values()) marks.sort((one, other) => one.moment - other.moment);
  return found;
}

// Returns the interruptions of VMs by an event; one without an end goes on.
function interruptionsOf(event) {
  const lines = log.lines.filter((line) => line.id === event.id);
  return lines.flatMap((line, index) => {
    if (line.what !== "impact-start") return [];
    const end = lines.slice(index).find((each) => each.what === "impact-end" && each.type === line.type);
    return [{begins: seconds(line.time), ends: end ? seconds(end.time) : null, vms: line.resources || event.resources}];
  });
}

// Returns what the picture shows, and its scale: share(moment) is from 0 to 1.
function pictureOf() {
  const now = state.unix, shown = shownEvents(), marks = marksOf(shown), chosen = eventFilter();
  // a line of the log has the faults that were cleared
  const faults = [...state.faults, ...log.lines.flatMap((line) => line.faults || [])].map(({kind, vms, from, to, exhausted}) => {
    return {kind, vms, begins: seconds(from), ends: Math.min(...[to, exhausted].filter(Boolean).map(seconds))};
  }).filter((each) => each.begins <= now && each.begins < each.ends).map((each) => ({...each, ends: Math.min(each.ends, now)}));
  const moments = [...shown.map((each) => each.begins), ...[...marks.values()].flat().map((each) => each.moment)];
  const over = shown.map((each) => each.ends || now);
  if (!chosen) moments.push(...faults.map((each) => each.begins));
  const span = Number(byId("span").value) / state.speed;
  const first = Math.min(...moments, now), begins = span && !chosen ? Math.max(first, now - span) : first;
  let ends = chosen && over.length ? Math.max(...over, ...moments) : now;
  const expected = shown.filter((each) => !each.ends && each.planned).map((each) => each.planned);
  // at most half of a live picture is the future
  if (!isReport && expected.length) ends = Math.max(ends, Math.min(Math.max(...expected), now + Math.max(now - begins, 30 / state.speed)));
  const length = Math.max(ends - begins, 1 / state.speed), from = begins - length * 0.02, all = length * 1.04;
  const share = (moment) => Math.min(1, Math.max(0, (moment - from) / all));
  return {now, shown, marks, faults, begins: from, ends: from + all, share, width: byId("axis").lastElementChild.clientWidth || 600};
}

function placed(className, left, right, text) {
  const node = element("span", className);
  node.style.left = `${100 * left}%`;
  if (right !== null) node.style.width = `max(3px, ${100 * (right - left)}%)`;
  node.title = printable(text);
  return node;
}

function markShape(kind) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "-8 -8 16 16");
  svg.setAttribute("class", `mark ${kind}`);
  path.setAttribute("d", MARKS[kind][0]);
  svg.append(path);
  return svg;
}

function showAxis(picture) {
  const span = (picture.ends - picture.begins) * state.speed, most = Math.max(2, Math.floor(picture.width / 80));
  const step = STEPS.find((each) => span / each <= most) || Math.ceil(span / most / 86400) * 86400;
  const zero = simulated(picture.begins), labels = [];
  for (let tick = Math.ceil(zero / step) * step; tick <= zero + span; tick += step) {
    const text = step < 1 ? `${tick.toFixed(1)} s` : tick < 0 ? `−${duration(-tick)}` : duration(tick);
    labels.push(placed("tick", (tick - zero) / span, null, ""));
    setText(labels.at(-1), text);
  }
  byId("axis").lastElementChild.replaceChildren(...labels);
  const lines = document.documentElement.style;
  lines.setProperty("--step", `${picture.width * step / span}px`);
  lines.setProperty("--offset", `${picture.width * (Math.ceil(zero / step) * step - zero) / span}px`);
}

// Puts each mark on the first level that is free at its place; returns the nodes and the number of levels.
function markNodes(marks, picture) {
  const ends = [], nodes = [];
  let hidden = 0;
  for (const {kind, moment, text} of marks) {
    if (moment < picture.begins || moment > picture.ends) continue;
    const x = picture.share(moment) * picture.width;
    let level = ends.findIndex((end) => x - end >= MARK);
    if (level < 0) level = ends.length;
    if (level >= MAX_LEVELS) {
      hidden += 1;
      continue;
    }
    ends[level] = x;
    const node = placed(`step ${kind}`, picture.share(moment), null, `${at(moment)} ${text} (${utc(moment)})`);
    node.style.top = `${level * MARK}px`;
    node.append(markShape(kind));
    nodes.push(node);
  }
  return {nodes, height: ends.length * MARK, hidden};
}

function barNodes(vm, {event, begins, started, ends, notBefore, planned, interruptions}, picture) {
  const {share, now} = picture, end = ends || now, nodes = [];
  const bar = (kind, from, to) => {
    if (to < picture.begins || from > picture.ends) return;
    nodes.push(placed(`bar ${kind}`, share(from), share(to), `${event.name}: ${BARS[kind]}, ${at(from)} to ${at(to)}`));
  };
  bar("scheduled", begins, started || end);
  if (started) bar("started", started, end);
  if (!ends && !isReport && planned > now) bar("expected", now, planned);
  for (const each of interruptions) if (each.vms.includes(vm)) bar("interrupted", each.begins, each.ends || end);
  // after a start NotBefore does not matter any more
  if (notBefore && (notBefore <= end || event.status === "Scheduled")) {
    const isLater = notBefore > picture.ends, text = `NotBefore of ${event.name}: ${at(notBefore)} (${utc(notBefore)})`;
    nodes.push(placed(`deadline${isLater ? " later" : ""}`, isLater ? 1 : share(notBefore), null, text));
  }
  return nodes;
}

// Fills the track of a VM; events that would overlap have lines of their own.
function fillTrack(track, vm, picture) {
  const {nodes, height, hidden} = markNodes(picture.marks.get(vm) || [], picture);
  const lines = [], {share, width} = picture, words = [];
  for (const each of picture.shown) {
    const end = each.ends || picture.now;
    if (!each.event.resources.includes(vm) || end < picture.begins || each.begins > picture.ends) continue;
    const {name, type, status} = each.event, x = share(each.begins), right = share(end);
    const text = (name.length + type.length) * 6.8 / width + 30 / width, isLeft = x + text <= 1 || x < 0.4;
    const place = isLeft ? [x, Math.max(right, x + text)] : [Math.min(x, right - text), right];
    let line = lines.findIndex((taken) => taken.every(([from, to]) => to + 8 / width <= place[0] || from - 8 / width >= place[1]));
    if (line < 0) line = lines.push([]) - 1;
    lines[line].push(place);
    const top = height + 3 + line * (BAR + LABEL);
    const label = element("span", "label");
    if (isLeft) label.style.left = `${100 * x}%`;
    else label.style.right = `${100 * (1 - right)}%`;
    label.style.maxWidth = `${100 * (isLeft ? 1 - x : right)}%`;
    label.append(element("span", "", name), " ", element("span", "soft", type));
    for (const node of [...barNodes(vm, each, picture), label]) {
      node.style.top = `${top + (node === label ? BAR : 0)}px`;
      nodes.push(node);
    }
    words.push(`${name} ${type} ${status}`);
  }
  const total = Math.max(26, height + 6 + lines.length * (BAR + LABEL));
  for (const fault of picture.faults) {
    if ((fault.vms.length && !fault.vms.includes(vm)) || fault.ends < picture.begins || fault.begins > picture.ends) continue;
    nodes.unshift(placed("fault", share(fault.begins), share(fault.ends), `fault ${fault.kind}, ${at(fault.begins)} to ${at(fault.ends)}`));
    words.push(`fault ${fault.kind}`);
  }
  if (hidden) nodes.push(element("span", "hidden-marks", `+${hidden}: see the log`));
  track.style.height = `${total}px`;
  track.setAttribute("aria-label", printable(words.join(", ") || "no event"));
  track.replaceChildren(...nodes);
}

function makeRow(name) {
  const node = fromTemplate("vm-template"), vm = state.vms[name];
  const part = (selector) => node.querySelector(selector), box = part("input");
  node.dataset.vm = name;
  box.setAttribute("aria-label", printable(`Select ${name}`));
  box.addEventListener("change", () => {
    const others = selectedVms().filter((each) => each !== name);
    byId("schedule-resources").value = [...others, ...(box.checked ? [name] : [])].join(", ");
  });
  setText(part(".name"), name);
  part(".who").title = printable(`${address(vm)}, resource name ${vm.resource_name}, zone ${vm.zone || "none"}, ` +
    `fault domain ${vm.fault_domain}, document ${vm.scope}`);
  return node;
}

function fillRow(node, name, picture) {
  const part = (selector) => node.querySelector(selector), answer = log.newest.get(name), {removed} = state.vms[name];
  part("input").checked = selectedVms().includes(name);
  part(".answer").hidden = !answer;
  setText(part(".answer"), answer ? answerText(answer) : "");
  part(".answer").dataset.class = answer && isError(answer) ? "bad" : "good";
  node.classList.toggle("deleted", removed);
  setText(part(".age"), removed ? "deleted" : answer ? at(answer.to) : "no request yet");
  fillTrack(part(".track"), name, picture);
}

function groupHeader(name) {
  const node = element("p", "group");
  node.append(element("strong", "", name), " ", element("span", "soft facts"));
  node.dataset.group = name;
  return node;
}

function groupFacts(name, members) {
  const limit = state.unix - ASKING, {kind} = state.groups[name];
  const affected = new Set(state.events.filter((each) => each.status !== "Gone").flatMap((each) => each.resources));
  const asking = members.filter((vm) => log.newest.has(vm) && log.newest.get(vm).to > limit).length;
  const incarnations = Object.values(state.scopes).filter((scope) => scope.group === name).map((scope) => scope.incarnation);
  const facts = [kind.replaceAll("_", " "), counted(members.length, "VM"), `${asking} asked in the last minute`];
  const deleted = members.filter((vm) => state.vms[vm].removed).length;
  if (deleted) facts.push(`${deleted} deleted`);
  const count = members.filter((vm) => affected.has(vm)).length;
  if (count) facts.push(`${count} with an event`);
  if (incarnations.length === 1) facts.push(`incarnation ${incarnations[0]}`);
  return facts.join(" · ");
}

function showTimeline() {
  const picture = pictureOf(), all = Object.keys(state.vms), found = all.filter(matches);
  // VMs with an event are shown first, then those that had one, then those with marks
  const has = (vm, events) => events.some(({event}) => event.resources.includes(vm));
  const present = picture.shown.filter((each) => !each.ends);
  const rank = new Map(found.map((vm) => [vm, has(vm, present) ? 0 : has(vm, picture.shown) ? 1 : picture.marks.has(vm) ? 2 : 3]));
  const shown = new Set([...found].sort((one, other) => rank.get(one) - rank.get(other)).slice(0, limits.vms));
  const lines = [];
  for (const group of Object.keys(state.groups)) {
    const members = all.filter((vm) => state.vms[vm].group === group), names = members.filter((vm) => shown.has(vm));
    if (!names.length) continue;
    lines.push(nodeOf(`group ${group}`, () => groupHeader(group)));
    setText(lines.at(-1).querySelector(".facts"), groupFacts(group, members));
    for (const vm of names) {
      lines.push(nodeOf(`VM ${vm}`, () => makeRow(vm)));
      fillRow(lines.at(-1), vm, picture);
    }
  }
  arrange(byId("timeline"), lines);
  showAxis(picture);
  showLegend();
  showMore("vms", found.length - shown.size);
  setText(byId("vms-count"), found.length === all.length ? counted(all.length, "VM") : `${found.length} of ${counted(all.length, "VM")}`);
  byId("no-vms").hidden = found.length > 0;
  const events = state.events.filter(hasAppeared).length - MAX_EVENTS;
  const requests = log.request - log.answers.reduce((sum, each) => sum + each.count, 0);
  const missing = [[events, "older event"], [log.line - log.lines.length, "older line"], [requests, "older request"]]
    .filter(([number]) => number > 0).map(([number, noun]) => counted(number, noun));
  byId("left-out").hidden = missing.length === 0;
  setText(byId("left-out"), `Left out: ${missing.join(", ")}.`);
}

function showLegend() {
  const kinds = [...Object.keys(BARS), ...Object.keys(MARKS)].filter((kind) => byId("timeline").querySelector(`.track .${kind}`));
  byId("legend").replaceChildren(...kinds.map((kind) => {
    const item = element("li"), sample = element("span", "sample");
    sample.append(kind in MARKS ? markShape(kind) : element("span", kind === "fault" || kind === "deadline" ? kind : `bar ${kind}`));
    item.append(sample, element("span", "", kind in MARKS ? MARKS[kind][1] : BARS[kind]));
    return item;
  }));
}

// -- events

function approvers(event) {
  const others = Object.keys(state.vms).filter((name) => {
    const vm = state.vms[name];
    return vm.group === event.group && !vm.removed && !event.resources.includes(name);
  });
  return [...event.resources, ...others].slice(0, MAX_APPROVERS).concat("control-plane", "other-tenants", "arm");
}

function makeCard(name) {
  const card = fromTemplate("event-template");
  onSubmit(card.querySelector("form"), (form, action) => {
    return call("POST", `/events/${encodeURIComponent(name)}/${action}`, action === "approve" ? {as: form.elements.as.value} : {});
  });
  return card;
}

function approvalText(event) {
  const by = Object.entries(event.approvals).map(([name, moment]) => `by ${name} at ${at(seconds(moment))}`);
  if (!by.length) return event.started_at ? "no; started without an approval" : event.status === "Gone" ? "no" : "not yet";
  if (event.status !== "Scheduled" || past(event.held_until)) return listed(by);
  const end = event.held_until ? at(seconds(event.held_until)) : "released or NotBefore";
  return `${listed(by)}; held by other tenants until ${end}`;
}

function receivedText(event) {
  const seen = log.lines.filter((line) => line.what === "seen" && line.id === event.id);
  if (!seen.length) return event.status === "Planned" ? "" : "by no VM";
  const times = [seen[0], seen.at(-1)].map((line) => at(seconds(line.time)));
  const by = seen.length === 1 ? seen[0].vm : `${seen.length} VMs`;
  return `by ${by} at ${times[0]}${times[0] === times[1] ? "" : ` to ${times[1]}`}`;
}

function fillCard(card, event) {
  const part = (name) => card.querySelector(name), moment = (iso) => (iso ? at(seconds(iso)) : "");
  card.dataset.status = part(".status").dataset.status = event.cancelled ? "Gone" : event.status;
  setText(part(".name"), event.name);
  setText(part(".type"), event.type);
  setText(part(".status"), event.status === "Gone" ? (event.cancelled ? "cancelled" : "ended") : event.status);
  const facts = {
    appeared: hasAppeared(event) ? moment(event.appears_at) : "", received: receivedText(event),
    "not-before": event.not_before ? `${moment(event.not_before)} (${utc(seconds(event.not_before))})` : "",
    approved: event.status === "Planned" ? "" : approvalText(event), started: moment(event.started_at), gone: moment(event.gone_at),
  };
  for (const [name, text] of Object.entries(facts)) {
    setText(part(`.${name}`), text);
    part(`.${name}`).parentNode.hidden = !text;
  }
  setText(part(".details"), [event.source, event.description, event.duration >= 0 ? `${event.duration} s` : ""].filter(Boolean).join(" · "));
  const rest = event.resources.length - MAX_TAGS;
  part(".resources").replaceChildren(...event.resources.slice(0, MAX_TAGS).map((name) => element("span", "tag", name)),
    ...(rest > 0 ? [element("span", "soft", `and ${rest} more`)] : []));
  setOptions(part("select"), approvers(event));
  const isStarted = event.status === "Started";
  for (const [action, isShown] of [["approve", event.status === "Scheduled"], ["cancel", !isStarted], ["complete", isStarted]]) {
    const button = part(`.${action}`);
    button.hidden = !isShown;
    button.setAttribute("aria-label", printable(`${button.textContent} ${event.name}`));
  }
  part("label").hidden = event.status !== "Scheduled";
  part("form").hidden = event.status === "Gone";
  fillCountdown(part(".left"), part(".until"), part("progress"), event);
}

function fillCountdown(remaining, meaning, progress, event) {
  const now = state.unix;
  const [end, until, begin] = {
    Planned: [event.appears_at, "until it appears", null],
    Scheduled: [event.not_before, "until NotBefore", event.appears_at],
    Started: [event.ends_at, "until its end", event.started_at],
  }[event.status] || [null, "", null];
  const left = end ? seconds(end) - now : null;
  remaining.parentNode.hidden = event.status === "Gone";
  progress.hidden = left === null || !begin;
  if (left === null) {
    setText(remaining, "–");
    setText(meaning, event.status === "Planned" ? "after another event" : "no end is planned");
    return;
  }
  setText(remaining, duration(left * state.speed));
  setText(meaning, until + (state.speed !== 1 && !state.manual ? ` (${duration(left)} real)` : ""));
  progress.max = seconds(end) - seconds(begin);
  progress.value = now - seconds(begin);
  progress.setAttribute("aria-label", `time ${until}`);
}

function showCards(parent, events) {
  arrange(parent, events.map((event) => {
    const card = nodeOf(`event ${event.name}`, () => makeCard(event.name));
    fillCard(card, event);
    return card;
  }));
}

function showEvents() {
  const chosen = eventFilter(), text = vmFilter();
  const found = state.events.filter((each) => (!chosen || each.name === chosen) && (!text || each.resources.some(matches)));
  const rank = (event) => STATUS_ORDER.indexOf(event.status);
  const live = found.filter((each) => each.status !== "Gone").sort((one, other) => rank(one) - rank(other));
  const ended = found.filter((each) => each.status === "Gone").reverse();
  const focused = document.activeElement, card = focused.closest(".event");
  showCards(byId("live-events"), live.slice(0, limits.events));
  showCards(byId("ended-events"), ended.slice(0, limits.ended));
  // a hidden button cannot keep the focus
  if (card && !focused.offsetParent) ([...card.querySelectorAll("button, select")].find((each) => each.offsetParent) || byId("events")).focus();
  byId("no-events").hidden = live.length > 0 || (isReport && ended.length > 0);
  setText(byId("no-events"), isReport ? "Nothing happened: there was no event." : "There is no event.");
  showMore("events", live.length - limits.events);
  setText(byId("events-count"), live.length ? live.length : "");
  byId("ended").hidden = ended.length === 0;
  setText(byId("ended-count"), ended.length);
  showMore("ended", ended.length - limits.ended);
}

// -- faults

function showFaults() {
  const now = state.unix;
  const faults = state.faults.filter((fault) => !fault.to || seconds(fault.to) > now);
  arrange(byId("faults"), faults.map((fault) => {
    const row = nodeOf(`fault ${fault.number}`, () => faultRow(fault));
    const until = (iso) => duration((seconds(iso) - now) * state.speed);
    const left = fault.exhausted ? "had its last request" : fault.to ? `${until(fault.to)} left` : "until cleared";
    setText(row.querySelector(".left"), seconds(fault.from) > now ? `begins in ${until(fault.from)}` : left);
    const seen = Object.values(fault.seen).reduce((sum, each) => sum + each, 0);
    setText(row.querySelector(".seen"), `${seen} matching ${seen === 1 ? "request" : "requests"}`);
    return row;
  }));
  byId("no-faults").hidden = faults.length > 0;
  setText(byId("faults-count"), faults.length ? faults.length : "");
}

function faultRow(fault) {
  const row = element("li");
  const requests = fault.first > 1 || fault.last ? ` · requests ${fault.first} to ${fault.last || "…"}` : "";
  const remove = element("button", "", "Remove");
  remove.type = "button";
  remove.setAttribute("aria-label", `Remove fault ${fault.kind}`);
  const clear = () => call("DELETE", `/faults/${fault.number}`);
  remove.addEventListener("click", () => submit(byId("clear-error"), remove, clear, () => byId("inject-kind").focus()));
  row.append(element("strong", "", fault.kind), element("span", "", listed(fault.vms) || "all VMs"),
    element("span", "soft", `route ${fault.route}${fault.method === "any" ? "" : ` ${fault.method}`}${requests}`),
    element("span", "soft left"), element("span", "soft seen"), remove);
  row.title = printable(Object.entries(fault.options).map((option) => option.join(" ")).join(", "));
  return row;
}

let kinds = {};
let schema = {};

const eventKeys = () => schema.properties.events.items.properties;
const faultKeys = () => schema.properties.faults.items.properties;

// The fields of the forms are the keys of a scenario, except for lists of mappings.
async function loadForms() {
  [schema, kinds] = await Promise.all([call("GET", "/schema"), call("GET", "/fault-kinds")]);
  const first = ["type", "notice", "resources", "started_for"], events = eventKeys();
  keyFields("schedule", "first", events, first);
  keyFields("schedule", "more", events, Object.keys(events).filter((name) => !first.includes(name) && events[name].items?.type !== "object"));
  byId("schedule-type").value = "Freeze";
  byId("schedule-resources").required = true;
  keyFields("inject", "first", faultKeys(), ["vm", "for"]);
  keyFields("inject", "more", faultKeys(), ["route", "method", "requests", "from", "to"]);
  byId("inject-vm").setAttribute("list", "vm-names");
  byId("inject-kind").replaceChildren(...[...new Set(Object.values(kinds).map((kind) => kind.group))].map((group) => {
    const options = element("optgroup");
    options.label = group;
    options.append(...Object.keys(kinds).filter((kind) => kinds[kind].group === group).map((kind) => new Option(kind, kind)));
    return options;
  }));
  byId("inject-kind").value = "unavailable";
  showKind();
}

function showKind() {
  const kind = kinds[byId("inject-kind").value];
  setText(byId("inject-meaning"), kind.meaning);
  keyFields("inject", "options", faultKeys(), kind.options);
}

// -- log

function lineEntry(line) {
  const {number, time, what, id, group, event = "", vm = "", by = "", ...rest} = line;
  return {moment: seconds(time), kind: FAULT_LINES.has(what) ? "fault" : "event", what, event, vm: vm || by, vms: rest.resources, rest};
}

function valueText(value) {
  // a list of names, or of faults
  if (Array.isArray(value)) return listed(value.map((each) => each.kind || each));
  return /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? at(seconds(value)) : String(value);
}

function entryText(entry) {
  if (entry.kind === "request") return answerText(entry) + (entry.count > 1 ? `, ${entry.count} times until ${at(entry.to)}` : "");
  return Object.entries(entry.rest).map(([key, value]) => `${key}=${valueText(value)}`).join(" ").slice(0, 600);
}

function keepAnswer(answer) {
  // an answer that equals the last one of its VM, method and route is counted there
  const key = JSON.stringify([answer.vm, answer.method, answer.route]), last = log.lastOf.get(key);
  if (last && last.status === answer.status && last.fault === answer.fault) {
    last.count += answer.count;
    last.to = answer.to;
  } else {
    const isBad = isError(answer);
    Object.assign(answer, {moment: answer.from, kind: "request", event: "", what: isBad ? "error" : "request", isBad});
    log.answers.push(answer);
    log.lastOf.set(key, answer);
  }
  const newest = log.newest.get(answer.vm);
  if (!newest || newest.to <= answer.to) log.newest.set(answer.vm, log.lastOf.get(key));
}

function keepLog(answer) {
  Object.assign(log, {run: answer.run, line: answer.last_line, request: answer.last_request});
  for (const line of answer.lines) log.lines.push(Object.assign(line, {entry: lineEntry(line)}));
  answer.answers.forEach(keepAnswer);
  log.lines = log.lines.slice(-MAX_KEPT);
  log.answers = log.answers.slice(-MAX_KEPT);
}

function makeEntry(entry) {
  const node = element("li");
  node.dataset.kind = entry.isBad ? "fault" : entry.kind;
  node.append(element("time", "soft"), element("strong", "what", entry.what), element("span", "vm", entry.vm),
    element("span", "of", entry.event), element("span", "text"));
  node.firstChild.title = utc(entry.moment);
  return node;
}

function filledEntry(entry) {
  const node = nodeOf(entry, () => makeEntry(entry));
  setText(node.firstChild, at(entry.moment));
  setText(node.lastChild, entryText(entry));
  return node;
}

function showLog() {
  const kind = byId("log-kind").value, chosen = eventFilter(), text = vmFilter();
  const names = new Set(Object.keys(state.vms).filter(matches)), isFiltered = text || byId("only-affected").checked;
  const isShown = (entry) => (!kind || entry.kind === kind || (kind === "fault" && entry.isBad)) && (!chosen || entry.event === chosen) &&
    (!isFiltered || names.has(entry.vm) || (entry.vms || []).some((vm) => names.has(vm)));
  const found = [...log.lines.map((line) => line.entry), ...log.answers].filter(isShown).sort((one, other) => other.moment - one.moment);
  arrange(byId("log"), found.slice(0, limits.log).map(filledEntry));
  setText(byId("log-count"), found.length);
  const filters = [...(isFiltered ? ["the VMs of the filter above"] : []), ...(chosen ? [`the event ${chosen}`] : [])];
  setText(byId("log-filter"), filters.length ? `Only of ${filters.join(" and ")}.` : "");
  showMore("log", found.length - limits.log);
}

function news(lines) {
  const texts = lines.filter((line) => NEWS.has(line.what)).map((line) => {
    const name = line.event || line.kind || line.address || line.set || (line.seconds && `${line.seconds} s`);
    return [name, line.type, line.what, line.by && `by ${line.by}`].filter(Boolean).join(" ");
  });
  if (texts.length) announce(texts.slice(-3).join("; ") + (texts.length > 3 ? ` and ${texts.length - 3} more` : ""));
}

// -- the whole page

function show() {
  if (!state) return;
  setText(byId("now"), `${state.now.slice(0, 10)} ${utc(state.unix)}`);
  setText(byId("simulated"), state.epoch === null ? "begins at the first request" : at(state.unix));
  setText(byId("speed"), state.manual ? `manual, ×${state.speed}` : `×${state.speed}`);
  setOptions(byId("filter-event"), ["", ...new Set(state.events.map((each) => each.name))], "all");
  showTimeline();
  showEvents();
  showFaults();
  showLog();
  for (const [key, node] of shownNodes) if (!node.isConnected) shownNodes.delete(key);
}

function take(answer) {
  const isFirst = log.run === null;
  state = answer;
  keepLog(answer);
  if (isFirst) {
    setText(byId("title"), state.title);
    document.title = printable(state.title ? `${state.title} · IMDS simulator` : "IMDS simulator");
    const names = Object.keys(state.vms);
    byId("vm-names").replaceChildren(...names.slice(0, 1000).map((name) => new Option("", name)));
    if (!isReport && names.length === 1) byId("schedule-resources").value = names[0];
  } else {
    news(answer.lines);
  }
  show();
}

// -- polls

let poll = () => {};  // asks at once instead of after POLL

function setConnection(text, kind) {
  byId("connection").dataset.state = kind;
  setText(byId("connection"), text);
}

async function update() {
  const answer = await call("GET", `/state?after_line=${log.line}&after_request=${log.request}`);
  if (log.run !== null && answer.run !== log.run) {
    announce("The simulator was started again");
    // numbers begin again
    state = null;
    log = emptyLog();
    shownNodes.clear();
    return poll();
  }
  if (log.run === null) await loadForms();
  take(answer);
  setConnection("open", "open");
}

// A tab that is not visible does not ask.
async function updateAgainAndAgain() {
  for (;;) {
    const wanted = new Promise((resolve) => { poll = resolve; });
    if (!document.hidden) await update().catch((problem) => setConnection(`lost: ${problem.message}`, "lost"));
    await Promise.race([wanted, new Promise((resolve) => setTimeout(resolve, POLL))]);
  }
}

// -- forms

onSubmit(byId("advance"), (form) => call("POST", "/advance", {seconds: form.elements.seconds.value.trim()}));
onSubmit(byId("schedule"), (form) => call("POST", "/events", filled(form, eventKeys())), () => { byId("schedule-name").value = ""; });
onSubmit(byId("inject"), (form) => call("POST", "/faults", filled(form, faultKeys())));

byId("schedule").addEventListener("input", show);
byId("inject-kind").addEventListener("change", showKind);
for (const kind of Object.keys(MORE)) {
  byId(`more-${kind}`).addEventListener("click", () => {
    limits[kind] += 100;
    show();
  });
}
for (const id of ["filter", "filter-event", "span", "only-affected", "log-kind"]) byId(id).addEventListener("input", show);
window.addEventListener("resize", () => state && showTimeline());

if (isReport) {
  document.body.classList.add("report");
  byId("ended").open = true;
  take(JSON.parse(byId("data").textContent));
} else {
  document.addEventListener("visibilitychange", () => poll());
  updateAgainAndAgain();
}
