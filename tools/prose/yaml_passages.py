# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The prose of YAML files: comments, names of plays and tasks, descriptions and messages."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from tools.prose.passages import CODE, COMMENT, DESCRIPTION, MESSAGE, NAME, Passage

_KINDS = {
    "name": NAME,
    "msg": MESSAGE,
    "fail_msg": MESSAGE,
    "success_msg": MESSAGE,
    "description": DESCRIPTION,
    "short_description": DESCRIPTION,
    "title": DESCRIPTION,
    "notes": DESCRIPTION,
    "reason": DESCRIPTION,
    "returned": DESCRIPTION,
    "details": DESCRIPTION,
}
_COMMENT = re.compile(r"^(\s*)# ?(.*)$")
_NO_PROSE = re.compile(r"SPDX-|Copyright:|noqa|yamllint|type:|fmt:|ruff:|pragma|!|shellcheck|-\*-|mypy:")
_CODE = re.compile(
    r"`+[^`]+`+|\{\{.*?\}\}|\{%.*?%\}|\b(?:C|O|V|M|RV|E|P|U|R)\((?:[^()\\]|\\.|\([^)]*\))*\)|https?://\S+", re.DOTALL
)
_QUOTATION = re.compile(r'(?<!\w)"[^"]+"(?!\w)')
_LINK = re.compile(r"\b(?:L|I|B)\(([^,)]*)[^)]*\)")


def masked(text: str) -> str:
    """Return a text with CODE in the place of each piece of code and each quotation; line breaks stay."""

    def replaced(match: re.Match[str]) -> str:
        return CODE + "\n" * match[0].count("\n")

    return _QUOTATION.sub(replaced, _CODE.sub(replaced, _LINK.sub(r"\1", text)))


def comment_passages(path: str, text: str) -> Iterator[Passage]:
    """Yield the comments that have lines of their own; lines that follow each other are one passage."""
    block: list[str] = []
    indentation, first = "", 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        found = _COMMENT.match(line)
        if block and not (found and found[1] == indentation and found[2].strip()):
            yield from _comment(path, first, block)
            block = []
        if found and found[2].strip():
            if not block:
                indentation, first = found[1], number
            block.append(found[2])


def _comment(path: str, line: int, block: list[str]) -> Iterator[Passage]:
    kept = ["" if _NO_PROSE.match(part) else part for part in block]
    text = masked("\n".join(kept))
    if text.strip():
        yield Passage(path, line, COMMENT, text)


def yaml_passages(path: str, text: str, *, everything: bool = False, before: int = 0) -> Iterator[Passage]:
    """Yield comments, names, descriptions and messages of a YAML text.

    Args:
        path: the file, relative to the repository.
        text: the text.
        everything: every scalar value is a description, as in fragments of the changelog.
        before: the number of lines of the file before the text.
    """
    for passage in comment_passages(path, text):
        yield passage._replace(line=passage.line + before)
    try:
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError:
        return  # a file with the tags or the templates of another program
    for document in documents:
        for node, kind in _scalars(document, DESCRIPTION if everything else ""):
            yield Passage(path, node.start_mark.line + 1 + before, kind, masked(_raw(text, node)))


def _scalars(node: yaml.Node | None, kind: str) -> Iterator[tuple[yaml.ScalarNode, str]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            own = _KINDS.get(key.value, "") if isinstance(key, yaml.ScalarNode) else ""
            # below a key such as `options` the members are descriptions only if their own keys say so
            yield from _scalars(value, kind or (own if not isinstance(value, yaml.MappingNode) else ""))
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item, kind if not isinstance(item, yaml.MappingNode) else "")
    elif isinstance(node, yaml.ScalarNode) and kind and " " in node.value:
        yield node, kind


def _raw(text: str, node: yaml.ScalarNode) -> str:
    raw = text[node.start_mark.index : node.end_mark.index]
    if node.style in ("|", ">"):
        return "\n" + raw.partition("\n")[2]
    return raw[1:-1] if node.style in ("'", '"') else raw
