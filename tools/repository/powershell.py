# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Find errors in PowerShell modules without a PowerShell: syntax, newer versions' features, unknown names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from enum import Enum
from typing import NamedTuple

import tree_sitter_powershell
from tree_sitter import Language, Node, Parser

_PARSER = Parser(Language(tree_sitter_powershell.language()))

# syntax that Windows PowerShell 3.0 does not parse, by the types of tree-sitter-powershell's nodes
_NEWER_NODES = {
    "pipeline_chain_tail": "PowerShell 7",
    "class_statement": "PowerShell 5",
    "enum_statement": "PowerShell 5",
}
# operators of PowerShell 7 that the grammar does not have; they are syntax errors too
_NEWER_OPERATORS = re.compile(r"(\?\?=?|\?\.|\?\[|[\s)]\?\s)")
_NEWER_PARAMETERS = {"-parallel", "-ashashtable", "-asbytestream", "-skipcertificatecheck", "-skiphttperrorcheck"}
_AUTOMATIC_VARIABLES = {"$_", "$args", "$false", "$input", "$matches", "$null", "$true"}
_CMDLETS = {"get-childitem", "new-object", "start-sleep"}


class Rule(Enum):
    """The rules that a PowerShell module keeps."""

    SYNTAX = "syntax"
    ASCII = "ASCII only: Windows PowerShell decodes other characters by the locale of the host"
    VERSION = "Windows PowerShell 3.0"
    VARIABLE = "each variable is assigned in the file"
    COMMAND = "each command is defined, or is one of the allowed cmdlets"


class Problem(NamedTuple):
    """A breach of a rule: the line, from 1, and the text that breaks the rule."""

    line: int
    rule: Rule
    text: str


def problems(source: str, functions: Set[str] = frozenset()) -> list[Problem]:
    """Return the breaches of all rules in the text of a PowerShell module, ordered by line.

    `functions` are the names in lower case of the functions that the module gets from elsewhere.
    """
    root = _PARSER.parse(source.encode()).root_node
    found = [
        *_not_ascii(source),
        *_of_newer_versions(root),
        *_unknown_variables(root),
        *_unknown_commands(root, functions | functions_of(source)),
        *(Problem(_line(node), Rule.SYNTAX, _text(node)) for node in _all(root) if node.is_error or node.is_missing),
    ]
    return sorted(found, key=lambda problem: problem.line)


def functions_of(source: str) -> set[str]:
    """Return the names of the functions that a source text defines, in lower case."""
    root = _PARSER.parse(source.encode()).root_node
    return {_text(node).lower() for node in _all(root) if node.type == "function_name"}


def _not_ascii(source: str) -> Iterator[Problem]:
    for number, line in enumerate(source.splitlines(), 1):
        if not line.isascii():
            yield Problem(number, Rule.ASCII, line)


def _of_newer_versions(root: Node) -> Iterator[Problem]:
    for node in _all(root):
        newer_operator = node.is_error and _NEWER_OPERATORS.search(_line_text(root, node))
        newer_parameter = node.type == "command_parameter" and _text(node).lower() in _NEWER_PARAMETERS
        # [Type]::new() came with PowerShell 5
        constructor = node.type == "invokation_expression" and re.match(r"\[[^]]+\]::new\(", _text(node), re.IGNORECASE)
        if node.type in _NEWER_NODES or newer_operator or newer_parameter or constructor:
            yield Problem(_line(node), Rule.VERSION, _text(node))


def _unknown_variables(root: Node) -> Iterator[Problem]:
    variables = [node for node in _all(root) if node.type == "variable"]
    known = _AUTOMATIC_VARIABLES | {_name(node) for node in variables if _is_assigned(node)}
    for node in variables:
        if _name(node) not in known:
            yield Problem(_line(node), Rule.VARIABLE, _text(node))


def _name(variable: Node) -> str:
    """Return the name in lower case, without the braces of ${name}."""
    return _text(variable).lower().replace("{", "").replace("}", "")


def _is_assigned(variable: Node) -> bool:
    parent = variable.parent
    if parent is None or parent.type in ("script_parameter", "foreach_statement"):
        return parent is not None
    while parent is not None and parent.type not in ("member_access", "element_access"):
        if parent.type == "left_assignment_expression":
            return True
        parent = parent.parent
    return False


def _unknown_commands(root: Node, known: Set[str]) -> Iterator[Problem]:
    for node in _all(root):
        if node.type == "command_name" and _text(node).lower() not in known | _CMDLETS:
            yield Problem(_line(node), Rule.COMMAND, _text(node))


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _all(child)


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _line(node: Node) -> int:
    return node.start_point.row + 1


def _line_text(root: Node, node: Node) -> str:
    return _text(root).splitlines()[node.start_point.row]
