# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

# An orchestration for each event of a beacon, as a user would write it.
{% if data.get('change') in ('scheduled', 'gone') %}
maintenance:
  runner.state.orchestrate:
    - args:
        - mods: {{ data['change'] }}
        - pillar:
            event_id: {{ data['event_id'] | json }}
            minions: {{ data['resources'] | json }}
{% endif %}
