# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The style sheet of the report: light, dark, narrow and printed."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --text: #1f2328; --muted: #59636e; --line: #d1d9e0; --lane: #f6f8fa;
  --scheduled: #9cc9f5; --started: #f2a33a; --interrupted: #a40e26; --fault: #cf222e;
  --seen: #0550ae; --prepared: #6639ba; --approved: #116329; --recovered: #0a7d6c; --note: #59636e; --error: #cf222e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0d1117; --text: #e6edf3; --muted: #9aa5b1; --line: #3d444d; --lane: #161b22;
    --scheduled: #2b5c92; --started: #b9730f; --interrupted: #ff8182; --fault: #ff7b72;
    --seen: #79c0ff; --prepared: #c9a6ff; --approved: #56d364; --recovered: #4fd6c0; --note: #b1bac4; --error: #ff7b72;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 1rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 1.75rem 0 .5rem; }
p { margin: .25rem 0; }
.left-out { border-left: 4px solid var(--started); padding-left: .75rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
.scroll:focus-visible { outline: 2px solid var(--seen); }
svg.timeline { display: block; width: 100%; min-width: 1000px; height: auto;
  font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
svg text { fill: var(--text); }
svg .group { font-weight: 600; }
svg .tick { text-anchor: middle; }
svg .simulated, svg .axis-name, svg .event-label { fill: var(--muted); }
svg .event-label, svg .simulated, svg .axis-name { font-size: 11px; }
svg .lane { fill: transparent; }
svg .lane.odd { fill: var(--lane); }
svg .base, svg .grid { stroke: var(--line); stroke-width: 1; }
svg .grid { stroke-dasharray: 2 4; }
.bar.scheduled { fill: var(--scheduled); }
.bar.started { fill: var(--started); }
.bar.interrupted { fill: var(--interrupted); }
.deadline { fill: var(--text); }
.fault { fill: url(#hatched); }
.hatched { fill: var(--fault); opacity: .35; }
.mark { stroke: var(--page); stroke-width: 1; paint-order: stroke; }
.mark.seen { fill: var(--page); stroke: var(--seen); stroke-width: 2.5; }
.mark.prepared { fill: var(--prepared); }
.mark.approved { fill: var(--approved); }
.mark.recovered { fill: var(--recovered); }
.mark.note, .mark.changed { fill: var(--note); }
.mark.refused, .mark.errors { fill: var(--error); }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .75rem 0; padding: 0;
  list-style: none; font-size: .875rem; }
.legend svg { width: 22px; height: 18px; vertical-align: middle; margin-right: .3rem; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
tr:last-child td { border-bottom: 0; }
td.time, td.number { white-space: nowrap; }
td.name { overflow-wrap: break-word; min-width: 6.5rem; }
@media print {
  :root {
    color-scheme: light;
    --page: #ffffff; --text: #000000; --muted: #444444; --line: #bbbbbb; --lane: #f4f4f4;
    --scheduled: #9cc9f5; --started: #f2a33a; --interrupted: #a40e26; --fault: #cf222e;
    --seen: #0550ae; --prepared: #6639ba; --approved: #116329; --recovered: #0a7d6c; --note: #59636e; --error: #cf222e;
  }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .scroll { overflow: visible; border: 0; }
  svg.timeline { min-width: 0; }
  tr { break-inside: avoid; }
  thead { display: table-header-group; }
}
"""
