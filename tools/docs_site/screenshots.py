# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Write pictures of pages of the built site into .cache/docs-screenshots, to look at before a release."""

from __future__ import annotations

import sys

from support.browser import Page, chromium
from tools.docs_site.__main__ import CACHE, SITE
from tools.docs_site.serving import served

FOLDER = CACHE / "docs-screenshots"
PAGES = {
    "first-page": "index.html",
    "module": "collections/azure_imds/scheduled_events/event_approve_module.html#parameters",
    "salt": "api/salt/modules.html",
    "search": "search.html?q=NotBefore",
}
# name -> width and height in pixels, and colour scheme
VIEWS = {"desktop": (1280, 900, "light"), "desktop-dark": (1280, 900, "dark"), "phone": (390, 844, "light")}


def main() -> int:
    """Write the pictures and return the exit status."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with served(SITE) as address, chromium() as driver:
        page = Page(driver)
        for name, location in PAGES.items():
            for view, (width, height, scheme) in VIEWS.items():
                page.show(width, height, scheme)
                driver.get(address + location)
                page.wait(lambda: page.find("article h1, article h2").text, "a heading")
                file = FOLDER / f"{name}-{view}.png"
                file.write_bytes(driver.get_screenshot_as_png())
                print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
