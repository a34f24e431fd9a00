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
    # fields of named tuples; the index of Python's own documentation needs a network
    (r"py:class", r"datetime|timedelta"),
    # exceptions of Salt, which is not installed
    (r"py:exc", r"CommandExecutionError|SaltInvocationError"),
]

highlight_language = "text"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
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
html_favicon = "static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_domain_indices = False

# the tables of antsibull-docs, in colours that follow the theme
antsibull_ext_color_scheme = "none"
TABLES = {
    "links-background": "var(--color-brand-primary)",
    "links-background-active": "var(--color-brand-content)",
    "links-focus-outline": "var(--color-foreground-primary)",
    "links-text": "var(--color-background-primary)",
    "table-background-header": "var(--color-background-secondary)",
    "table-background-even": "var(--color-background-primary)",
    "table-background-odd": "var(--color-background-primary)",
    "table-border": "var(--color-background-border)",
    "narrowtable-background": "var(--color-background-primary)",
    "deprecation-border": "var(--color-background-border)",
    "deprecation-background": "var(--color-background-secondary)",
    "deprecation-color": "var(--color-foreground-primary)",
    "option-sample-header": "var(--color-foreground-primary)",
    "attribute-support-na": "inherit",
}
# name -> colour in the light and in the dark theme
MARKS = {
    "option-type": ("#6d28a8", "#c9a4f5"),
    "option-elements": ("#6d28a8", "#c9a4f5"),
    "option-required": ("#b3001b", "#ff8a8a"),
    "option-version-added": ("#00612e", "#7bd88f"),
    "option-aliases": ("#00612e", "#7bd88f"),
    "option-default": ("#0047b3", "#86b7ff"),
    "option-sample": ("#0047b3", "#86b7ff"),
    "attribute-support-none": ("#b3001b", "#ff8a8a"),
    "attribute-support-partial": ("#7a5b00", "#e3c766"),
    "attribute-support-full": ("#00612e", "#7bd88f"),
}


def antsibull_colours(theme: int) -> dict[str, str]:
    """Return the variables of the tables for the light theme (0) or the dark one (1)."""
    marks = {name: colours[theme] for name, colours in MARKS.items()}
    return {f"antsibull-{name}": value for name, value in (TABLES | marks).items()}


html_theme_options = {
    "light_css_variables": antsibull_colours(0),
    "dark_css_variables": antsibull_colours(1),
    "top_of_page_buttons": ["view"],
}
