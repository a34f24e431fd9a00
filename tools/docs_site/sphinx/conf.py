# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Settings of Sphinx for the site. No setting reads from the network."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]

project = "Azure Scheduled Events"
author = "Contributors to the azure_imds.scheduled_events collection"
project_copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_antsibull_ext",
    "tools.docs_site.sphinx_extension",
]

# Markdown as GitHub shows it: anchors of headings, and addresses that are links
myst_heading_anchors = 6

# each reference of a page must lead to something
nitpicky = True
nitpick_ignore_regex = [
    # type variables and private classes in annotations
    (r"py:class", r"azure_scheduled_events\.\w+\.(T|_\w+)"),
    # exceptions of Salt, which is not installed
    (r"py:exc", r"CommandExecutionError|SaltInvocationError"),
]

highlight_language = "text"
pygments_style = "friendly"
pygments_dark_style = "monokai"
default_role = None

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
add_module_names = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "Azure Scheduled Events"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_use_index = True
html_domain_indices = False
html_last_updated_fmt = None
