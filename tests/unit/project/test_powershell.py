# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The PowerShell modules parse, run in Windows PowerShell 3.0, and use existing names only."""

from __future__ import annotations

from pathlib import Path

import ansible.module_utils
import pytest

from support.repository import REPOSITORY
from tools.repository.powershell import Rule, functions_of, problems

MODULES = sorted((REPOSITORY / "plugins" / "modules").glob("*.ps1"))
LEGACY = Path(ansible.module_utils.__file__).parent / "powershell" / "Ansible.ModuleUtils.Legacy.psm1"

# text -> the rule that it breaks
BREACHES = {
    'if ($true) { "x"': Rule.SYNTAX,
    '$a = "x': Rule.SYNTAX,
    "$a = (1 + 2": Rule.SYNTAX,
    "$a = @{ b = 1": Rule.SYNTAX,
    "# Prüfung": Rule.ASCII,
    "Start-Sleep 1 && Start-Sleep 2": Rule.VERSION,
    "Start-Sleep 1 || Start-Sleep 2": Rule.VERSION,
    "$a = 1; $b = $a ? 1 : 2": Rule.VERSION,
    "$a = 1; $b = $a ?? 2": Rule.VERSION,
    "$a = 1; $a ??= 2": Rule.VERSION,
    "$a = 1; $b = ${a}?.Length": Rule.VERSION,
    "$a = 1; $b = ${a}?[0]": Rule.VERSION,
    "$a = [Uri]::new('http://x')": Rule.VERSION,
    "class A { }": Rule.VERSION,
    "enum A { B }": Rule.VERSION,
    "New-Object Uri -AsHashtable": Rule.VERSION,
    "$a = 1; $b = $aa": Rule.VARIABLE,
    '$a = "x $aa"': Rule.VARIABLE,
    "$a.b = 1": Rule.VARIABLE,
    "Function F($a) { $a + $b }": Rule.VARIABLE,
    "Wait-Operatoin 1": Rule.COMMAND,
    "Invoke-WebRequest http://127.0.0.1": Rule.COMMAND,
    "Add-Type 'class A { }'": Rule.COMMAND,
}

SOUND = """
Function F($a, $b = 1) {
    foreach ($c in $a) { $d = "$c and $b && ${a}" }
    for ($e = 1; $e -lt 3; $e += 1) { Start-Sleep -Milliseconds $e }
    try { $d.f = @{ g = $null } } catch { throw $_.Exception }
    # a ?? b, a ? b : c
    return $d, 'a ?. b'
}
F @(1, 2)
"""


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_module_keeps_all_rules(module: Path) -> None:
    functions = functions_of(LEGACY.read_text(encoding="utf-8"))
    assert "exit-json" in functions
    assert problems(module.read_text(encoding="utf-8"), functions) == []


@pytest.mark.parametrize("source", BREACHES)
def test_breach_of_a_rule_is_found(source: str) -> None:
    assert BREACHES[source] in {problem.rule for problem in problems(source)}


def test_sound_text_has_no_problem() -> None:
    assert problems(SOUND) == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_module_without_its_last_brace_is_found(module: Path) -> None:
    source = module.read_text(encoding="utf-8")
    before, brace, after = source.rpartition("}")
    assert brace
    assert Rule.SYNTAX in {problem.rule for problem in problems(before + after)}
