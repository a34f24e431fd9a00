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

    Raises:
        ValueError: a target is written in a way that this function cannot replace.
    """
    tokens, definitions = parsed(text)
    lines = text.splitlines(keepends=True)
    for begin, end, target in definitions:
        replace_in(lines, begin, end, [target], change)
    defined = {target for _, _, target in definitions}
    for block in tokens:
        if block.type == "inline" and block.map:
            begin, end = block.map
            block_text = "".join(lines[begin:end])
            targets = [target for target in targets_of(block) if f"]({target}" in block_text or target not in defined]
            replace_in(lines, begin, end, [f"]({target}" for target in targets], change)
    changed = "".join(lines)
    expected = [change(target) for target in all_targets(text)]
    if all_targets(changed) != expected:
        raise ValueError(f"the links do not lead to {sorted(set(expected) - set(all_targets(changed)))}")
    return changed


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


def replace_in(lines: list[str], begin: int, end: int, written: list[str], change: Callable[[str], str]) -> None:
    """Replace the targets in some lines, each behind the one before.

    Raises:
        ValueError: a target is not in the lines as the parser returns it.
    """
    block, position = "".join(lines[begin:end]), 0
    for each in written:
        start = "](" if each.startswith("](") else ""
        found = block.find(each, position)
        if found < 0:
            raise ValueError(f"line {begin + 1}: {each} is not written as the parser returns it")
        new = start + change(each.removeprefix(start))
        block = block[:found] + new + block[found + len(each) :]
        position = found + len(new)
    lines[begin:end] = [block, *[""] * (end - begin - 1)]
