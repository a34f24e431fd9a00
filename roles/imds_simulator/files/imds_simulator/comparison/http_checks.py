# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks of the endpoint, headers and versions (docs/reference/scheduled-events.md 1.1 to 1.3)."""

from __future__ import annotations

from ..recording.lines import Answer
from .error_checks import has_old_wording
from .evidence import Evidence, decoded
from .verdict import Verdict, by_status, confirms, contradicts, is_open, judged, statement

_ADDED = {"Description": "2019-04-01", "EventSource": "2019-08-01", "DurationInSeconds": "2020-07-01"}
_TYPES = {"Preempt": "2017-11-01", "Terminate": "2019-01-01"}


def _is_200(answer: Answer) -> bool:
    return answer.status == 200


def _is_400(answer: Answer) -> bool:
    return answer.status == 400


@statement("1.1.1", "D")
def answers_get(evidence: Evidence) -> Verdict:
    """GET on /metadata/scheduledevents with an api-version returns the document."""
    refused = [each.line for each in evidence.polls if each.status in (404, 405)]
    times = [each.time for each in evidence.polls if each.line in refused]
    # IMDS may be in an update
    if not evidence.documents and len(refused) > 2 and max(times) - min(times) > 120:
        return contradicts(refused, "no document")
    return judged([each.line for each in evidence.documents], (), "needs a good document")


@statement("1.1.3", "O")
def path_in_any_case(evidence: Evidence) -> Verdict:
    """The path matches in any letter case."""
    return by_status(evidence.probe("path-case"), _is_200, "path-case")


@statement("1.1.5", "A")
def slashes(evidence: Evidence) -> Verdict:
    """One trailing slash is accepted, // is 404."""
    expected = {"trailing-slash": 200, "double-slash": 404}
    return by_status(evidence.probe(*expected), lambda each: each.status == expected[each.purpose], "trailing-slash")


@statement("1.1.6", "O")
def further_parameter(evidence: Evidence) -> Verdict:
    """A further query parameter format=json has no effect."""
    return by_status(evidence.probe("format-json"), _is_200, "format-json")


@statement("1.1.7", "D")
def duplicate_parameter(evidence: Evidence) -> Verdict:
    """A query parameter that occurs twice is rejected."""
    return by_status(
        evidence.probe("duplicate-parameter"), lambda each: 400 <= each.status < 500, "duplicate-parameter"
    )


@statement("1.1.8", "O")
def keep_alive(evidence: Evidence) -> Verdict:
    """Connections may be kept open."""
    # without a number the connection is unknown
    answers = [each for each in evidence.answers if each.status and each.connection]
    pairs = list(zip(answers, answers[1:]))
    # the numbers of connections begin again with each run
    same_run = [(one, two) for one, two in pairs if evidence.run(one) == evidence.run(two)]
    quick = [(one, two) for one, two in same_run if 0 < two.time - one.time < 5]
    kept = [two.line for one, two in quick if one.connection == two.connection]
    if kept:
        return confirms(kept)
    if len(quick) > 2:
        return contradicts([two.line for _one, two in quick], "each answer had a connection of its own")
    return is_open("needs several answers within seconds")


@statement("1.2.1", "D")
def header_is_required(evidence: Evidence) -> Verdict:
    """GET needs the header Metadata: true, without it the answer is 400."""
    return by_status(evidence.probe("no-header"), _is_400, "no-header")


@statement("1.2.2", "O")
def preview_needs_no_header(evidence: Evidence) -> Verdict:
    """Version 2017-03-01 does not need the header."""
    return by_status(evidence.probe("preview-no-header"), _is_200, "preview-no-header")


@statement("1.2.3", "O")
def header_in_any_case(evidence: Evidence) -> Verdict:
    """Name and value of the header match in any letter case."""
    return by_status(evidence.probe("header-case"), _is_200, "header-case")


@statement("1.2.4", "A")
def other_header_value(evidence: Evidence) -> Verdict:
    """Any other value of the header counts as a missing header."""
    return by_status(evidence.probe("header-false"), _is_400, "header-false")


@statement("1.2.5", "D, A")
def forwarded_for(evidence: Evidence) -> Verdict:
    """A request with X-Forwarded-For is rejected with 400."""
    return by_status(evidence.probe("forwarded"), _is_400, "forwarded")


@statement("1.2.7", "O")
def entity_tag(evidence: Evidence) -> Verdict:
    """The service sends ETag and understands If-None-Match."""
    without = [each.line for each in evidence.documents if "etag" not in each.answer.headers]
    if without:
        return contradicts(without, "no ETag")
    for answer in evidence.probe("if-none-match"):
        if answer.status == 304:
            return confirms([answer.line])
        tag = answer.sent.get("If-None-Match")
        if answer.status == 200 and answer.headers.get("etag") == tag:
            return contradicts([answer.line], "200 with the same ETag")
    return is_open("needs an answer to the probe if-none-match")


@statement("1.2.9", "D, A")
def header_before_path(evidence: Evidence) -> Verdict:
    """A path that does not exist is 400 without the header, and 404 with it."""
    expected = {"unknown-path-no-header": 400, "unknown-path": 404}
    return by_status(evidence.probe(*expected), lambda each: each.status == expected[each.purpose], "unknown-path")


@statement("1.3.1", "O")
def members_by_version(evidence: Evidence) -> Verdict:
    """A member of an event is absent in versions older than the one that added it."""
    good: list[int] = []
    bad: list[int] = []
    for sighting in evidence.sightings:
        version = sighting.document.version
        expected = {name for name, since in _ADDED.items() if since <= version}
        if expected != {name for name in _ADDED if name in sighting.event}:
            bad.append(sighting.document.line)
        elif len(expected) < len(_ADDED):
            good.append(sighting.document.line)
    return judged(good, bad, "needs an event in a version before 2020-07-01 (--api-version)")


@statement("1.3.2", "D, A")
def types_by_version(evidence: Evidence) -> Verdict:
    """A version older than 2019-01-01 hides Terminate, one older than 2017-11-01 Preempt."""
    shown = {type_: {each.document.line for each in evidence.sightings if each.event.get("EventType") == type_}
             for type_ in _TYPES}  # fmt: skip
    bad = [
        each.document.line
        for each in evidence.sightings
        if each.document.version < _TYPES.get(str(each.event.get("EventType")), "")
    ]
    good = []
    for one, two, three in zip(evidence.documents, evidence.documents[1:], evidence.documents[2:]):
        for type_, since in _TYPES.items():
            around = one.line in shown[type_] and three.line in shown[type_]
            if around and two.version < since and two.line not in shown[type_]:
                good.append(two.line)
    return judged(good, bad, "needs a Terminate or Preempt and an older version (--api-version)")


@statement("1.3.3", "D, A")
def no_newer_version(evidence: Evidence) -> Verdict:
    """No version of scheduledevents is newer than 2020-07-01; 2021-12-13 is not one."""
    newer = [each.line for each in evidence.documents if each.version > "2020-07-01"]
    if newer:
        return contradicts(newer, f"version {evidence.version[:40]}")
    return by_status(evidence.probe("version-2021-12-13"), _is_400, "version-2021-12-13")


@statement("1.3.4", "D")
def separate_versions(evidence: Evidence) -> Verdict:
    """2020-07-01 is not a version of instance metadata."""
    return by_status(evidence.probe("instance-events-version"), _is_400, "instance-events-version")


@statement("1.3.5", "D")
def latest_is_unknown(evidence: Evidence) -> Verdict:
    """The version {latest} is not supported."""
    return by_status(evidence.probe("latest-version"), _is_400, "latest-version")


@statement("1.3.6", "O")
def version_error(evidence: Evidence) -> Verdict:
    """A missing or unknown version is answered by 400 with a list of the newest versions."""

    def expected(answer: Answer) -> bool:
        data = decoded(answer)
        return answer.status == 400 and isinstance(data, dict) and isinstance(data.get("newest-versions"), list)

    probes = [each for each in evidence.probe("no-version", "unknown-version") if not has_old_wording(each)]
    return by_status(probes, expected, "no-version")


@statement("1.3.8", "D")
def list_of_versions(evidence: Evidence) -> Verdict:
    """/metadata/versions needs no version and returns apiVersions."""

    def expected(answer: Answer) -> bool:
        data = decoded(answer)
        return answer.status == 200 and isinstance(data, dict) and isinstance(data.get("apiVersions"), list)

    return by_status(evidence.probe("versions"), expected, "versions")
