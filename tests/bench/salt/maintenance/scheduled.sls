# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

prepare:
  salt.state:
    - tgt: {{ pillar['minions'] | json }}
    - tgt_type: list
    - sls: prepare
    - queue: true

approve:
  salt.function:
    - name: azure_events.approve
    - tgt: {{ pillar['minions'][0] | json }}
    - kwarg:
        event_ids: {{ pillar['event_id'] | json }}
        release_others: true
    - require:
        - salt: prepare
