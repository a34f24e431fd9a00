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
# - unless every minion that it hits has drained without a failure, and its marker says so,
# - while a minion is silent, or does not list the event yet, that it may hit,
# - while it hits VMs that are no minions of this master, except with unknown_resources: approve.
#
# What is not approved starts when its time has come. Then, too, the minions are brought back when it is over, which takes two looks one after the other
# that do not list it. What is sent to the minions is no dry run, though their configuration may say test: True: a drain that was not done would be approved.
{%- set given = salt['pillar.get']('azure_events', {}) %}
{%- set event_id = given['event_id'] %}
{%- set now = salt['saltutil.runner']('azure_events.look', kwarg={'event_id': event_id, 'minion': given.get('minion')}) %}
{%- set event = now['event'] or {} %}
{%- set minions = now['minions'].values() | list %}
{%- set strangers = now['unknown_resources'] if given.get('unknown_resources', 'hold') != 'approve' else [] %}
{%- set hold = now['unready'] or strangers %}

{%- if now['listed'] is none %}

nobody can tell whether the event is over:
  test.fail_without_changes:
    - comment: {{ ('no minion gave a good answer about event ' ~ event_id ~ '; asked: ' ~ now['silent'] | join(', ')) | json }}

{%- elif now['listed'] and not minions %}

the event hits no minion that is known:
  test.succeed_without_changes:
    - comment: {{ ('event ' ~ event_id ~ ' hits ' ~ (now['unknown_resources'] + now['unready']) | join(', ')) | json }}

{%- else %}

{%- if now['listed'] and event['status'] == 'Scheduled' %}

drain:
  salt.state:
    - tgt: {{ minions | json }}
    - tgt_type: list
    - sls: azure_events.drain
    - pillar: {azure_events_event: {{ event_id | json }}}
    - test: false
    - queue: true
    - expect_minions: true

drained indeed:
  salt.state:
    - tgt: {{ minions | json }}
    - tgt_type: list
    - sls: azure_events.drained
    - pillar: {azure_events_event: {{ event_id | json }}}
    - test: false
    - queue: true
    - expect_minions: true
    - require:
        - salt: drain

{%- if not hold %}

approve:
  salt.runner:
    - name: azure_events.approve
    - event_id: {{ event_id | json }}
    - minions: {{ now['minions'] | json }}
    - unknown_resources: {{ given.get('unknown_resources', 'hold') | json }}
    - require:
        - salt: drained indeed
{%- endif %}
{%- endif %}

{%- if now['listed'] and hold and event['status'] == 'Scheduled' %}

not approved, as it hits VMs of which nobody knows whether they are ready:
  test.succeed_without_changes:
    - comment: {{ ('no minions: ' ~ strangers | join(', ') ~ '; silent, or it is not listed there yet: ' ~ now['unready'] | join(', ')) | json }}

{%- else %}

{%- set drained = minions or ([given['minion']] if given.get('minion') else []) %}
{%- if drained %}

it is over:
  salt.runner:
    - name: azure_events.await_end
    - event_id: {{ event_id | json }}
    - minions: {{ drained | json }}
    - event_type: {{ event.get('event_type') | json }}
{%- if now['listed'] %}
    - patience: {{ given.get('patience', 3600) | json }}
{%- else %}
    # whoever told of the end may be wrong once: it is looked at twice more
    - patience: 60
{%- endif %}
{%- if now['listed'] and event['status'] == 'Scheduled' %}
    - require:
        - salt: approve
{%- endif %}

undrain:
  salt.state:
    - tgt: {{ drained | json }}
    - tgt_type: list
    - sls: azure_events.undrain
    - pillar: {azure_events_event: {{ event_id | json }}}
    - test: false
    - queue: true
    # one that is still booting is brought back when its own beacon tells of the end
    - expect_minions: false
    - require:
        - salt: it is over
{%- endif %}
{%- endif %}
{%- endif %}
