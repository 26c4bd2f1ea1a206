# SPDX-License-Identifier: BSD-3-Clause
"""The error messages of the command and the engine, as their sources have them.

Python: the first argument of every error of the project's own classes, as far as it is text. C:
the format of every `err_set`. What varies is `…`."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "scripts/python/switchbench"
C_FOLDERS = ("engine", "verbs", "patterns", "lab/switch")
VARIES = "…"

# In these a mistake is found without knowing where it stands; it is told with its line elsewhere.
PLACELESS = {
    **{name: {"ValueError"} for name in ("base", "config")},
    "topology": {"TopologyError", "ValueError"},
}

_ERR_SET = re.compile(r'\berr_set\(\s*[^;]*?((?:"(?:[^"\\]|\\.)*"\s*(?:PRI\w+\s*)?)+)')
_RULE = re.compile(r'((?:"(?:[^"\\]|\\.)*"\s*)+),\s*([^{}";]+?)\s*\}')
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"|(PRI\w+)')
_CONVERSION = re.compile(r"%(?:%|[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|z|j|t)?[a-zA-Z])")


@dataclass(frozen=True)
class Message:
    """One message, and where it is made."""

    text: str
    file: str  # below the project's root
    line: int


@functools.cache
def parsed(code: str) -> ast.Module:
    """Return the tree of a source; several tests parse the same ones."""
    return ast.parse(code)


def collect() -> list[Message]:
    """Return all error messages of the sources."""
    return [*_python(), *_c()]


def squeezed(text: str) -> str:
    """Return a text in one line, with one sign for each part that varies."""
    text = re.sub(r"\s+", " ", text.replace("`", "'")).strip()
    return re.sub(rf"{VARIES}(?:[ ,:;]*{VARIES})+", VARIES, text)


def _python() -> Iterator[Message]:
    trees = {path: parsed(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
    errors = _error_classes(list(trees.values()))
    for path, tree in trees.items():
        names = errors | PLACELESS.get(path.parent.name, set())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) in names and node.args:
                text = squeezed(template(node.args[0]))
                if re.search(r"\w{2}", text):
                    yield Message(text, str(path.relative_to(ROOT)), node.lineno)


def _error_classes(trees: list[ast.Module]) -> set[str]:
    """Return the names of `SwitchbenchError`, its subclasses, and the errors that become these."""
    known = {"SwitchbenchError", "LabError", "GuestError", "TooManyError"}
    bases: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {_name(base) for base in node.bases}
    while more := {name for name, of in bases.items() if of & known} - known:
        known |= more
    return known


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def template(node: ast.expr) -> str:
    """Return the text of an expression; what is no literal is one sign."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left) + template(node.right)
    return VARIES


def _c() -> Iterator[Message]:
    for folder in C_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.c")):
            source = path.read_text()
            said = [(found.start(), c_text(found[1])) for found in _ERR_SET.finditer(source)]
            rules = list(_c_rules(source)) if "struct rule" in source else []
            for start, text in said + rules:
                if re.search(r"\w{2}", squeezed(text)):
                    line = source.count("\n", 0, start) + 1
                    yield Message(squeezed(text), str(path.relative_to(ROOT)), line)


def _c_rules(source: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of tables of rules, and where each begins (engine/document)."""
    for found in _RULE.finditer(source):
        value = "" if found[2] == "NONE" else f", not {VARIES}"
        text = "".join(literal for literal, _ in _LITERAL.findall(found[1]))
        yield found.start(), f"trial {VARIES}: {text}{value}"


def c_text(literals: str) -> str:
    parts = [literal for literal, _ in _LITERAL.findall(literals)]
    text = "".join(parts).replace('\\"', '"').replace("\\n", "\n")
    return _CONVERSION.sub(lambda one: "%" if one[0] == "%%" else VARIES, text)


def _texts(value: Any) -> Iterator[str]:
    """Return all texts of a file of data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


@functools.cache
def literals() -> str:
    """Return all texts of the sources, each in one piece as it is written, in one long text."""
    found: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(parsed(path.read_text())):
            if isinstance(node, ast.Constant | ast.JoinedStr):
                found.append(squeezed(template(node)))
    # Sentences, in which {} and {name} vary; codes.toml quotes the sentences of other sources.
    for path in sorted({*PACKAGE.rglob("*.toml")} - {PACKAGE / "base/codes.toml"}):
        known = tomllib.loads(path.read_text())
        found += [squeezed(re.sub(r"\{\w*\}", VARIES, text)) for text in _texts(known)]
    for folder in C_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.c")):
            joined = re.finditer(r'(?:"(?:[^"\\]|\\.)*"\s*(?:PRI\w+\s*)?)+', path.read_text())
            found += [squeezed(c_text(one[0])) for one in joined]
    return "\n".join(found)
