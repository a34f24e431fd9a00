# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

# The smallest reaction: the minion that sent the event runs test.echo.
{% if data.get('event_id') %}
say_it:
  local.test.echo:
    - tgt: {{ data['id'] | json }}
    - args:
        - text: {{ data['event_id'] | json }}
{% endif %}
