#!powershell

# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Ansible runs this file on a Windows host if facts_modules names event_facts: such modules have no action plugin,
# and the part of this collection that reads events on a Windows host is one. It never fails a host.

#Requires -Module Ansible.ModuleUtils.Legacy

$reason = "facts_modules cannot read events on a Windows host;" +
" use a task with the module azure_imds.scheduled_events.event_facts instead"

Exit-Json @{
    changed = $false
    ansible_facts = @{
        # without the member pending: whether there are events is unknown
        azure_scheduled_events = @{
            available = $false
            reason = $reason
            resource_name = $null
            incarnation = $null
            events = @()
        }
    }
}
