# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

recover:
  salt.state:
    - tgt: {{ pillar['minions'] | json }}
    - tgt_type: list
    - sls: recover
    - queue: true
