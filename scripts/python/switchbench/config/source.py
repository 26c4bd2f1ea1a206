# SPDX-License-Identifier: BSD-3-Clause
"""YAML with positions: plain values, and for each of them the line where it stands.

The scalars are YAML 1.2's: `yes` is a word and `0000:03:00.0` is text, which YAML 1.1 would read
as a base-60 number. A key that stands twice is refused: PyYAML would silently take the last.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..base import bounded
from ..base.errors import ConfigurationError
from ..base.programs import configurations
from ..base.words import clipped, meant, shown

Key = str | int
KeyPath = tuple[Key, ...]


@dataclass(frozen=True)
class Mark:
    """Where a value stands: a line of a file, or an argument of the command (line 0)."""

    source: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


def dotted(path: Sequence[Key]) -> str:
    """A key's path as people write it in `--set`: `tests.0.load`."""
    return ".".join(str(key) for key in path)


@dataclass
class Document:
    """A configuration file's values and where each stands."""

    data: dict[str, Any]
    marks: dict[KeyPath, Mark]
    name: str
    folder: Path = field(default_factory=Path)  # relative paths in the file begin here

    def mark(self, path: KeyPath) -> Mark:
        """Where `path` stands; for a key that is missing, where its mapping begins."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.marks:
                return self.marks[path[:length]]
        return Mark(self.name)

    def problem(self, path: KeyPath, text: str) -> ConfigurationError:
        """The error that says where, which key and what."""
        key = f"{dotted(path)}: " if path else ""
        return ConfigurationError(f"{self.mark(path)}: {clipped(f'{key}{text}')}")

    def place(self, path: KeyPath, value: Any, mark: Mark) -> None:
        """Puts a value that does not come from the file."""
        if not path:
            raise ConfigurationError(f"{mark}: names no key")
        parent = self._parent(path, mark)
        key = path[-1]
        if isinstance(parent, list) and not (isinstance(key, int) and key < len(parent)):
            raise ConfigurationError(
                f"{mark}: {dotted(path[:-1])} has {len(parent)} entries, numbered from 0"
            )
        parent[key if isinstance(parent, list) else str(key)] = value
        self.forget(path)
        self.marks[path] = mark

    def get(self, path: KeyPath) -> Any:
        """What stands at a path, or None."""
        value: Any = self.data
        for key in path:
            if isinstance(value, dict):
                value = value.get(str(key))
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def remove(self, path: KeyPath) -> None:
        """Takes a key out of its mapping, if it is there."""
        parent = self.get(path[:-1])
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
            self.forget(path)

    def forget(self, path: KeyPath) -> None:
        """Drops the marks at and below `path`."""
        for known in [known for known in self.marks if known[: len(path)] == path]:
            del self.marks[known]

    def _parent(self, path: KeyPath, mark: Mark) -> Any:
        parent: Any = self.data
        for depth, key in enumerate(path[:-1]):
            if isinstance(parent, dict):
                parent = parent.setdefault(str(key), {})
            elif isinstance(parent, list) and isinstance(key, int) and key < len(parent):
                parent = parent[key]
            else:
                raise ConfigurationError(f"{mark}: there is no {dotted(path[: depth + 1])}")
        if not isinstance(parent, dict | list):
            raise ConfigurationError(
                f"{mark}: {dotted(path[:-1])} is {parent!r}, not a mapping with keys below it"
            )
        return parent


class _Loader(bounded.Loader):
    """Composes nodes; the resolvers are the core schema's of YAML 1.2 (10.3.2)."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own attribute)


_INT = re.compile(r"[-+]?[0-9]+$")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_RESOLVERS: tuple[tuple[str, re.Pattern[str], list[str]], ...] = (
    ("null", re.compile(r"(~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"(true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("int", _INT, list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
)
for _tag, _regexp, _first in _RESOLVERS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _regexp, _first)

_SCALARS: dict[str, Any] = {
    "tag:yaml.org,2002:null": lambda text: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
    "tag:yaml.org,2002:str": str,
}


class _Reader:
    """Turns composed nodes into values and notes their lines."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.marks: dict[KeyPath, Mark] = {}
        self.open: list[int] = []  # nodes that we are inside of: an alias to one never ends

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        mark = self.mark(node)
        self.marks.setdefault(path, mark)
        if id(node) in self.open:
            raise ConfigurationError(f"{mark}: the alias refers to what it stands in")
        self.open.append(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self.mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
            return self.scalar(node, mark)
        finally:
            self.open.pop()

    def mark(self, node: yaml.Node) -> Mark:
        return Mark(self.name, node.start_mark.line + 1)

    def scalar(self, node: yaml.Node, mark: Mark) -> Any:
        if node.tag not in _SCALARS:
            raise ConfigurationError(f"{mark}: the tag {node.tag} means nothing here")
        try:
            return _SCALARS[node.tag](node.value)
        except ValueError:  # Python's own limit
            raise ConfigurationError(
                f"{mark}: {shown(node.value)} is a number of {len(node.value)} digits"
            ) from None

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            mark = self.mark(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigurationError(f"{mark}: a key has to be a word, not a list or mapping")
            key = str(key_node.value)
            below = (*path, key)
            if key == "<<":
                raise ConfigurationError(
                    f"{mark}: {dotted(below)}: merge keys are not part of YAML 1.2: write the keys "
                    "out, or an alias for the whole value"
                )
            if key in values:
                raise ConfigurationError(
                    f"{mark}: {dotted(below)}: stands twice in the same mapping (first at line "
                    f"{self.marks[below].line})"
                )
            self.marks[below] = mark
            values[key] = self.value(value_node, below)
        return values


def parse_text(text: str, name: str, folder: Path | None = None) -> Document:
    """Reads one YAML mapping; `name` stands before the line in messages."""
    try:
        node = yaml.compose(text, Loader=_Loader)
    except bounded.TooLargeError as error:
        raise _too_large(name, error) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ConfigurationError(f"{Mark(name, line)}: {_not_yaml(text, line, error)}") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{name}: is not YAML: {' '.join(str(error).split())}") from None
    reader = _Reader(name)
    data = reader.value(node, ()) if node is not None else None
    if not isinstance(data, dict):
        raise ConfigurationError(f"{name}: is empty or no mapping of keys")
    return Document(data, reader.marks, name, folder or Path())


_UNQUOTED = re.compile(r"([\w-]+):\s+([<>]=?\s*[-+\d.]+[\w%/]*)")


def _not_yaml(text: str, line: int, error: yaml.MarkedYAMLError) -> str:
    if "another document" in str(error.problem):
        return "a second document begins here: a configuration is one"
    lines = text.splitlines()
    comparison = _UNQUOTED.search(lines[line - 1]) if 0 < line <= len(lines) else None
    if comparison:
        key, value = comparison.groups()
        return f'is not YAML: write the comparison in quotes: {key}: "{value}"'
    return f"is not YAML: {error.problem}"


def _too_large(name: str, error: bounded.TooLargeError) -> ConfigurationError:
    line = error.problem_mark.line + 1 if error.problem_mark else 0
    return ConfigurationError(f"{Mark(name, line)}: is too large to be read: {error.problem}")


def read_file(path: Path) -> Document:
    """Reads a configuration file."""
    try:
        text = bounded.read_text(path)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from None
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror}{_near(path)}") from None
    except bounded.TooLargeError as error:
        raise _too_large(str(path), error) from None
    return parse_text(text, str(path), path.parent)


def _near(path: Path) -> str:
    """A file beside it, or an example, with nearly this name."""
    beside = [file.name for file in path.parent.glob("*.yaml")]
    return meant(path.name, beside) or meant(
        path.stem, [f.stem for f in configurations().glob("*.yaml")]
    )


def _not_utf8(path: Path, error: UnicodeDecodeError) -> ConfigurationError:
    content = error.object
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ConfigurationError(f"{path}:1: is UTF-16 text: save it as UTF-8")
    line = content.count(b"\n", 0, error.start) + 1
    byte = content[error.start]
    return ConfigurationError(f"{path}:{line}: is not UTF-8 text: byte {byte:#x}; save it as UTF-8")


def from_values(data: dict[str, Any], name: str, folder: Path | None = None) -> Document:
    """A document of values that stand in no file (an effective configuration, `--site`)."""
    return Document(deepcopy(data), {}, name, folder or Path())


def parse_assignment(argument: str) -> tuple[KeyPath, Any, Mark]:
    """Reads one `--set key=value`: a dotted path and a YAML value."""
    mark = Mark(f"--set {argument}")
    key, equals, text = argument.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"{mark}: is not key=value, such as window=1s")
    path = tuple(int(part) if part.isdigit() else part for part in key.strip().split("."))
    if "" in path:
        raise ConfigurationError(f"{mark}: the key has an empty part between its dots")
    try:
        node = yaml.compose(text, Loader=_Loader)
    except bounded.TooLargeError as error:
        raise _too_large(f"--set {key}", error) from None
    except yaml.YAMLError:
        raise ConfigurationError(f"{mark}: the value is not YAML") from None
    value = _Reader(str(mark)).value(node, ()) if node is not None else None
    return path, value, mark
