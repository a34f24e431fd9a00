# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Fails unless azure_events.drain has come to its end in this boot for the event whose id is in the pillar azure_events_event. It is asked for before an
# approval, since a run that only tells what it would do succeeds as well.
{%- import 'azure_events/marker.jinja' as marker with context %}
{%- if marker.state == 'drained' and marker.boot == marker.this_boot and marker.event_id and marker.event_id | lower in marker.known %}

drained indeed:
  test.nop

{%- else %}

not drained for this event:
  test.fail_without_changes:
    - comment: {{ ('%s says %s' % (marker.path, marker.lines | join(', ') or 'nothing')) | json }}
{%- endif %}
