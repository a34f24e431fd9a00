# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Replace the targets of the links and images of a Markdown text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

ATTRIBUTES = {"link_open": "href", "image": "src"}


def replace_targets(text: str, change: Callable[[str], str]) -> str:
    """Return the text with the result of `change` for each target; code and autolinks stay as they are.

    The function raises ValueError for a target that is written in a way that it cannot replace.
    """
    tokens, definitions = parsed(text)
    lines = text.splitlines(keepends=True)
    for begin, end, target in definitions:
        lines[begin:end] = ["".join(lines[begin:end]).replace(target, change(target), 1), *[""] * (end - begin - 1)]
    done: dict[int, Block] = {}
    for token in tokens:
        if token.type == "inline" and token.map:
            begin, end = token.map
            # the cells of one row of a table have the same line
            block = done.setdefault(begin, Block("".join(lines[begin:end]), change))
            block.replace(token)
            lines[begin:end] = [block.text, *[""] * (end - begin - 1)]
    changed = "".join(lines)
    expected = [change(target) for target in all_targets(text)]
    if all_targets(changed) != expected:
        missing = sorted(set(expected) - set(all_targets(changed)))
        raise ValueError(f"links to {missing} are not found after their replacement; write them as [text](target)")
    return changed


class Block:
    """The text of a block, and the position up to which its targets are replaced."""

    def __init__(self, text: str, change: Callable[[str], str]) -> None:
        self.text = text
        self._change = change
        self._position = 0

    def replace(self, token: Token) -> None:
        """Replace the targets of an inline token, whose children are in the order of the text."""
        opened: list[Token] = []
        for child in token.children or []:
            if child.type == "link_open":
                opened.append(child)
            elif child.type == "link_close":
                link = opened.pop()
                if link.info != "auto":
                    self._replace_next(str(link.attrs["href"]))
            elif child.type == "image":
                self.replace(child)
                self._replace_next(str(child.attrs["src"]))
            elif child.type in ("text", "code_inline"):
                found = self.text.find(child.content, self._position)
                self._position = found + len(child.content) if found >= 0 else self._position

    def _replace_next(self, target: str) -> None:
        """Replace the target behind the next closing bracket; a reference has none there."""
        end = self.text.find("]", self._position) + 1
        if not self.text.startswith("(", end):
            self._position = end
            return
        if not self.text.startswith(target, end + 1):
            raise ValueError(f"{target}: a link with spaces, brackets or escapes; write it without them")
        new = self._change(target)
        self.text = self.text[: end + 1] + new + self.text[end + 1 + len(target) :]
        self._position = end + 1 + len(new)


def all_targets(text: str) -> list[str]:
    """Return the targets of all links and images, in order, without autolinks."""
    return [target for block in parsed(text)[0] for target in targets_of(block)]


def targets_of(block: Token) -> Iterator[str]:
    """Yield the targets of one block."""
    for token in block.children or []:
        if token.type in ATTRIBUTES and token.info != "auto":
            yield str(token.attrs[ATTRIBUTES[token.type]])
        yield from targets_of(token)


def parsed(text: str) -> tuple[list[Token], list[tuple[int, int, str]]]:
    """Return the blocks, and the definitions of references as (first line, line after the last one, target)."""
    environment: dict[str, Any] = {}
    tokens = MarkdownIt("commonmark").enable("table").parse(text, environment)
    found = environment.get("references", {}).values()
    return tokens, [(*definition["map"], definition["href"]) for definition in found]
