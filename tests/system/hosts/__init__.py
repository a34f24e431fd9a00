# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

# pytest ends fixtures of the scope "package" with the tests of a folder only if that is a package
