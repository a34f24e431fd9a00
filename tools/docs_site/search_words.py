# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The words of the search. Sphinx leaves out numbers; here status codes of HTTP are words, too."""

from __future__ import annotations

import re

from sphinx.search.en import SearchEnglish

STATUS_CODE = re.compile(r"[1-5]\d\d")
# a word for a code, in the index and in the browser
WORD = "httpstatus"


class EnglishWithStatusCodes(SearchEnglish):
    """English, with a word for each status code of HTTP."""

    # the first line is the rule of Sphinx itself
    js_splitter_code = (
        "var splitQuery = (query) => query.split(/[^\\p{Letter}\\p{Number}_\\p{Emoji_Presentation}]+/gu)"
        f".filter((term) => term).map((term) => /^{STATUS_CODE.pattern}$/.test(term) ? `{WORD}${{term}}` : term);"
    )

    def split(self, text: str) -> list[str]:
        """Return the words of a text."""
        return [f"{WORD}{word}" if STATUS_CODE.fullmatch(word) else word for word in super().split(text)]
