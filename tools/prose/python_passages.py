# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The prose of Python files: docstrings, comments, messages, and Ansible's documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.prose.passages import CODE, DOCSTRING, MESSAGE, SUMMARY, Passage
from tools.prose.yaml_passages import comment_passages, masked, yaml_passages

_DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
_REPORTING = {"critical", "debug", "deprecate", "error", "exception", "fail_json", "info", "warn", "warning"}
_TEXT_ARGUMENTS = {"description", "epilog", "help", "msg", "message", "problem", "reason", "remedy"}
_SECTION = re.compile(r"^(Args|Arguments|Attributes|Raises|Returns|Yields|CLI Examples?|Example):$")
_ENTRY = re.compile(r"^[\w*]+(?:, [\w*]+)*(?: \([^)]*\))?: ")
_FORMAT = re.compile(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]|\{[^{} ]*\}")
_TRAILING = re.compile(r"  # (?!SPDX-|noqa|type:|fmt:|pragma)(.*)$")

_Documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def python_passages(path: str, text: str, *, messages: bool) -> Iterator[Passage]:
    """Yield the docstrings, the comments, and if `messages` is true the messages of a Python file."""
    tree = ast.parse(text)
    strings: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, _Documented):
            yield from _docstring(path, node)
        elif isinstance(node, (ast.Constant, ast.JoinedStr)):
            strings.append(node)
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield from _documentation(path, node)
        if messages and isinstance(node, (ast.Call, ast.Raise)):
            yield from _messages(path, node)
    yield from _comments(path, text, strings)


def _docstring(
    path: str, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Passage]:
    if not (node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)):
        return
    value = node.body[0].value
    if not isinstance(value.value, str):
        return
    subject = "" if isinstance(node, ast.Module) else node.name
    summary, _newline, rest = value.value.partition("\n")
    yield Passage(path, value.lineno, SUMMARY, masked(summary), subject)
    yield from _paragraphs(path, value.lineno + 1, rest.splitlines())


def _paragraphs(path: str, first: int, lines: list[str]) -> Iterator[Passage]:
    block: list[str] = []
    start, margin = first, -1
    for number, line in enumerate([*lines, ""], first):
        bare = line.strip()
        indentation = len(line) - len(line.lstrip())
        if margin >= 0 and bare and indentation <= margin:
            margin = -1
        ends = not bare or _SECTION.match(bare) or _ENTRY.match(bare) or bare.startswith(("- ", "* "))
        if block and ends:
            yield from _paragraph(path, start, block)
            block = []
        if margin >= 0:
            continue
        if bare.endswith("::") or bare.startswith(".. ") or bare in ("CLI Example:", "CLI Examples:", "Example:"):
            margin = indentation
        elif bare and not _SECTION.match(bare) and not bare.startswith(">>> "):
            if not block:
                start = number
            block.append(bare)


def _paragraph(path: str, line: int, block: list[str]) -> Iterator[Passage]:
    text = masked(_ENTRY.sub(f"{CODE}: ", "\n".join(block)))
    yield Passage(path, line, DOCSTRING, text)


def _documentation(path: str, node: ast.Assign | ast.AnnAssign) -> Iterator[Passage]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    if names & _DOCUMENTATION and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        yield from yaml_passages(path, node.value.value, before=node.value.lineno - 1)


def _messages(path: str, node: ast.Call | ast.Raise) -> Iterator[Passage]:
    found: list[ast.expr] = []
    if isinstance(node, ast.Raise):
        found = list(node.exc.args) if isinstance(node.exc, ast.Call) else []
    else:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        found = list(node.args[:2]) if name in _REPORTING else []
        found += [keyword.value for keyword in node.keywords if keyword.arg in _TEXT_ARGUMENTS]
    for expression in found:
        text = _text_of(expression)
        if " " in text.strip():
            yield Passage(path, expression.lineno, MESSAGE, masked(text))


def _text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _FORMAT.sub(CODE, node.value).replace("\n", " ")
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return CODE
    if isinstance(node, ast.BinOp):
        right = "" if isinstance(node.op, ast.Mod) else _text_of(node.right)
        return _text_of(node.left) + right
    return ""


def _comments(path: str, text: str, strings: list[ast.expr]) -> Iterator[Passage]:
    """Yield comments; a string that has the form of a comment is none."""
    inside: dict[int, list[tuple[int, int]]] = {}
    for node in strings:
        last = node.end_lineno or node.lineno
        for line in range(node.lineno, last + 1):
            start = node.col_offset if line == node.lineno else 0
            end = (node.end_col_offset or 0) if line == last else 10**6
            inside.setdefault(line, []).append((start, end))
    lines = text.splitlines()
    whole = [line if not inside.get(number) else "" for number, line in enumerate(lines, 1)]
    yield from comment_passages(path, "\n".join(whole))
    for number, content in enumerate(lines, 1):
        found = _TRAILING.search(content)
        if found and content[: found.start()].strip():
            # positions of the syntax tree count bytes
            position = len(content[: found.start() + 2].encode())
            if not any(start <= position < end for start, end in inside.get(number, [])):
                for passage in comment_passages(path, f"# {found[1]}"):
                    yield passage._replace(line=number)
