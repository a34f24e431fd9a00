# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# One event from its announcement to its end: drain every minion that it hits, approve it once, wait until it is over, bring the minions back.
#
#   salt-run azure_events.maintain EVENT_ID
#
# runs it, and so does the reactor; azure_events.maintain sees to it that it runs once at a time. It may be repeated at any moment and goes on where things
# stand: what is drained is not drained again, what is approved is not approved again. Nothing is approved
#
# - unless Azure lists the event as Scheduled when asked now,
# - unless every minion that it hits has drained without a failure,
# - while it hits VMs that are no minions of this master, except with unknown_resources: approve.
#
# What is not approved starts when its time has come. Then, too, the minions are brought back when it is over.
{%- set given = salt['pillar.get']('azure_events', {}) %}
{%- set event_id = given['event_id'] %}
{%- set now = salt['saltutil.runner']('azure_events.look', kwarg={'event_id': event_id, 'minion': given.get('minion')}) %}
{%- set event = now['event'] or {} %}
{%- set minions = now['minions'].values() | list %}
{%- set hold = now['unknown_resources'] and given.get('unknown_resources', 'hold') != 'approve' %}

{%- if now['listed'] is none %}

nobody can tell whether the event is over:
  test.fail_without_changes:
    - comment: {{ ('no minion gave a good answer about event ' ~ event_id ~ '; asked: ' ~ now['silent'] | join(', ')) | json }}

{%- elif now['listed'] and not minions %}

the event hits no minion that is known:
  test.succeed_without_changes:
    - comment: {{ ('event ' ~ event_id ~ ' hits ' ~ now['unknown_resources'] | join(', ')) | json }}

{%- else %}

{%- if now['listed'] and event['status'] == 'Scheduled' %}

drain:
  salt.state:
    - tgt: {{ minions | json }}
    - tgt_type: list
    - sls: azure_events.drain
    - queue: true
    - expect_minions: true

{%- if not hold %}

approve:
  salt.runner:
    - name: azure_events.approve
    - event_id: {{ event_id | json }}
    - minions: {{ now['minions'] | json }}
    - unknown_resources: {{ given.get('unknown_resources', 'hold') | json }}
    - require:
        - salt: drain
{%- endif %}
{%- endif %}

{%- if now['listed'] and hold and event['status'] == 'Scheduled' %}

not approved, as it hits VMs that are no minions:
  test.succeed_without_changes:
    - comment: {{ now['unknown_resources'] | join(', ') | json }}

{%- else %}

{%- if now['listed'] %}

it is over:
  salt.runner:
    - name: azure_events.await_end
    - event_id: {{ event_id | json }}
    - minions: {{ minions | json }}
    - patience: {{ given.get('patience', 3600) }}
{%- if event['status'] == 'Scheduled' %}
    - require:
        - salt: approve
{%- endif %}
{%- endif %}

{%- set drained = minions or ([given['minion']] if given.get('minion') else []) %}
{%- if drained %}

undrain:
  salt.state:
    - tgt: {{ drained | json }}
    - tgt_type: list
    - sls: azure_events.undrain
    - queue: true
    # one that is still booting is brought back when its own beacon tells of the end
    - expect_minions: false
{%- if now['listed'] %}
    - require:
        - salt: it is over
{%- endif %}
{%- endif %}
{%- endif %}
{%- endif %}
