# SPDX-License-Identifier: BSD-3-Clause
"""Reader of YAML files that records the line of each value, in bounded memory and time.

Scalars follow YAML 1.2's core schema (10.3.2): `yes` is a word, and `0000:03:00.0` is text, which
YAML 1.1 reads as a base-60 number. A duplicate key is an error. A few hundred bytes of aliases can
stand for billions of values. Therefore the file's size, depth and number of values have limits, far
beyond any real configuration. Values of aliases count each time.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .errors import ConfigurationError, clipped, meant, shown
from .programs import configurations

_NUMBER_LONGEST = 40  # characters; a double has 17 digits and an exponent
_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise ConfigurationError if the code in this context fails to read the file."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror}") from None


def write_text(path: Path, text: str, is_secret: bool = False) -> None:
    """Write a file that the user named; ConfigurationError where this fails.

    A secret is only written to a new file, with mode 0600: other users may be able to read or
    replace an existing file.
    """
    flags = os.O_EXCL | os.O_NOFOLLOW if is_secret else os.O_TRUNC
    try:
        mode = 0o600 if is_secret else 0o666
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, mode)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be written: {error.strerror}") from None


def read_regular(path: Path, most: int) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    ConfigurationError where it cannot be read, for a larger file, and for a FIFO or a device, which
    may have no end.
    """

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK)  # opening a FIFO must not wait for its writer

    with reading(path), open(path, "rb", opener=opener) as file:
        refuse_irregular(path, os.fstat(file.fileno()))
        content = file.read(most + 1)
    if len(content) > most:
        raise ConfigurationError(f"{path} is too large: more than {most >> 20:,} MiB")
    return content


def refuse_irregular(path: Path, status: os.stat_result) -> None:
    """Raise ConfigurationError if a file's status is not that of a regular file."""
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"{path} is not a regular file: FIFOs and devices are not read")


def number(word: str) -> float | None:
    """Return a word as a finite number; None if the word is not one."""
    try:
        value = float(word) if len(word) <= _NUMBER_LONGEST else math.inf
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def count(word: str) -> int | None:
    """Return a word as a non-negative whole number; None if the word is not one."""
    return int(word) if _COUNT.fullmatch(word) else None


Pairs = Sequence[tuple[str, Any]]


def unique(pairs: Pairs) -> dict[str, object]:
    """Return key-value pairs as a dictionary; raise ValueError for a duplicate key.

    A lone surrogate also raises ValueError, because no file can hold it.
    """
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"duplicate key {key[:60]!r}")
        for text in (key, *(value if isinstance(value, list) else (value,))):
            if isinstance(text, str) and not text.isascii():
                text.encode()
        found[key] = value
    return found


def json_decoder(pairs: Callable[[Pairs], dict[str, object]] = unique) -> json.JSONDecoder:
    """Return a JSON decoder that raises ValueError for infinite or overlong numbers.

    Too deep nesting raises RecursionError. `pairs` is called for each object.
    """

    def real(word: str) -> float:
        value = number(word)
        if value is None:
            raise ValueError(f"{word[:40]} is not a finite number, or is too long to be read")
        return value

    def whole(word: str) -> int:
        if count(word.removeprefix("-")) is None:
            raise ValueError(f"a number of {len(word)} digits is too long to be read")
        return int(word)

    return json.JSONDecoder(
        object_pairs_hook=pairs, parse_constant=real, parse_float=real, parse_int=whole
    )


# --- source ---------------------------------------------------------------------------------------
# YAML written by users is read in bounded memory and time, with the line of each value.


Key = str | int
KeyPath = tuple[Key, ...]

BYTES_MOST = 4 << 20
DEPTH_MOST = 64
VALUES_MOST = 50_000


@dataclass(frozen=True)
class Mark:
    """Position of a value: a line of a file, or an argument of the command (line 0)."""

    source: str
    line: int = 0

    def __str__(self) -> str:
        """Return the position as text: source and line."""
        return f"{self.source}:{self.line}" if self.line else self.source


def dotted(path: Sequence[Key]) -> str:
    """Return a key's path as dotted text, as in `--set`: `tests.0.load`."""
    return ".".join(str(key) for key in path)


def _problem(mark: Mark, path: KeyPath, text: str) -> ConfigurationError:
    key = f"{dotted(path)}: " if path else ""
    return ConfigurationError(f"{mark}: {clipped(f'{key}{text}')}")


@dataclass
class Document:
    """Values of a configuration file, and the source line of each value."""

    data: dict[str, Any]
    marks: dict[KeyPath, Mark]
    name: str
    folder: Path = field(default_factory=Path)  # base of relative paths in the file

    def mark(self, path: KeyPath) -> Mark:
        """Return the source line of the key at `path`; for a missing key, that of its mapping."""
        places = (path[:length] for length in range(len(path), -1, -1))
        return next((self.marks[at] for at in places if at in self.marks), Mark(self.name))

    def problem(self, path: KeyPath, text: str) -> ConfigurationError:
        """Return a ConfigurationError that names the key at `path` and its source line."""
        return _problem(self.mark(path), path, text)

    @contextmanager
    def at(self, path: KeyPath) -> Iterator[None]:
        """Turn a ValueError of the enclosed code into a ConfigurationError at the key `path`."""
        try:
            yield
        except ValueError as error:
            raise self.problem(path, str(error)) from None

    def place(self, path: KeyPath, value: Any, mark: Mark) -> None:
        """Set the value of the key at a path; `mark` names the option that gives the value."""
        parent: Any = self.data
        for depth, step in enumerate(path[:-1]):
            if isinstance(parent, dict):
                if str(step) not in parent:
                    self.marks[path[: depth + 1]] = mark
                parent = parent.setdefault(str(step), {})
            elif isinstance(parent, list) and isinstance(step, int) and step < len(parent):
                parent = parent[step]
            else:
                raise ConfigurationError(f"{mark}: there is no key {dotted(path[: depth + 1])}")
        if not isinstance(parent, dict | list):
            raise ConfigurationError(
                f"{mark}: {dotted(path[:-1])} is {shown(parent)}, not a mapping: it has no keys"
            )
        key = path[-1]
        if isinstance(parent, dict):
            parent[str(key)] = value
        elif isinstance(key, int) and key < len(parent):
            parent[key] = value
        else:
            raise ConfigurationError(
                f"{mark}: there is no such entry: {dotted(path[:-1])} has {len(parent)} entries, "
                "numbered from 0"
            )
        self.forget(path)
        self.marks[path] = mark

    def get(self, path: KeyPath) -> Any:
        """Return the value of the key at a path; None if there is no such key."""
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
        """Remove the key at a path from its mapping; a missing key is no error."""
        parent = self.get(path[:-1])
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
            self.forget(path)

    def forget(self, path: KeyPath) -> None:
        """Remove the recorded source lines of the key at `path` and of all keys below."""
        for known in [known for known in self.marks if known[: len(path)] == path]:
            del self.marks[known]


_NUMBER_INT = re.compile(r"[-+]?[0-9]+")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]{1,40}")
_NUMBER_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TOO_MANY = (
    f"is too large to be read: more than {VALUES_MOST} values, those of aliases counted each time"
)
_TOO_DEEP = f"is too large to be read: lists and mappings are more than {DEPTH_MOST} deep"
# libyaml's parser takes a fifth of the time of PyYAML's own.
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_PLAIN_SCALAR, _TEXT = "plain", "tag:yaml.org,2002:str"


class _Nodes(_PARSER):  # type: ignore[misc,valid-type]
    """YAML parser that keeps written tags, and marks each other scalar as plain or quoted."""

    def resolve(self, kind: type[yaml.Node], _value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return _PLAIN_SCALAR if implicit[0] else _TEXT
        return f"tag:yaml.org,2002:{'map' if kind is yaml.MappingNode else 'seq'}"


class _Reader:
    """Converter of YAML nodes to values with positions; each alias gets a copy of its value."""

    def __init__(self, name: str, lines: bool) -> None:
        self.name = name
        self.lines = lines  # true where the text has lines that a user can look up
        self.marks: dict[KeyPath, Mark] = {}
        self.values = 0
        self.read: set[int] = set()  # nodes already read, to recognise aliases

    def mark(self, node: yaml.Node) -> Mark:
        return Mark(self.name, node.start_mark.line + 1 if self.lines else 0)

    def value(
        self, node: yaml.Node, path: KeyPath, inside: frozenset[int], alias: Mark | None
    ) -> Any:
        """Return the value of a YAML node, and record the source lines of all its parts.

        `inside` has the ids of the enclosing nodes. `alias` is the position of the outermost alias
        that leads to the node, or None.
        """
        mark = self.mark(node)
        if id(node) in inside:
            raise _problem(mark, (), "the alias refers to a value that contains it")
        if id(node) in self.read and alias is None:
            places = (path[:length] for length in range(len(path), -1, -1))
            alias = next(self.marks[place] for place in places if place in self.marks)
        self.values += 1
        if self.values > VALUES_MOST:
            raise _problem(alias or mark, (), _TOO_MANY)
        if len(path) > DEPTH_MOST:
            raise _problem(mark, (), _TOO_DEEP)
        self.marks.setdefault(path, mark)
        self.read.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if node.tag not in ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            raise _problem(mark, (), f"the tag {node.tag} is not supported: leave it out")
        inside |= {id(node)}
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return [self.value(item, (*path, i), inside, alias) for i, item in items]
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            mark = self.mark(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise _problem(mark, (), "a key has to be a word, not a list or mapping")
            key = str(key_node.value)
            below = (*path, key)
            if key == "<<":
                text = "merge keys are not part of YAML 1.2: write the keys out, or an alias"
                raise _problem(mark, below, f"{text} for the whole value")
            if key in values:
                first = self.marks[below].line
                where = f" (first at line {first})" if first else ""
                raise _problem(mark, below, f"duplicate key{where}")
            self.marks[below] = mark
            values[key] = self.value(value_node, below, inside, alias)
        return values

    def scalar(self, node: yaml.ScalarNode) -> Any:
        text, plain, mark = node.value, node.tag == _PLAIN_SCALAR, self.mark(node)
        if plain and _LEADING_ZERO.fullmatch(text):
            raise _problem(
                mark, (), f"{text} begins with 0, which some read as octal: write {int(text)}, or "
                f'"{text}" for a text',
            )  # fmt: skip
        if not plain and node.tag not in ("!", _TEXT):
            raise _problem(mark, (), f"the tag {node.tag} is not supported: leave it out")
        try:
            if plain and _NUMBER_INT.fullmatch(text):
                return int(text)
        except ValueError:  # Python's own limit
            words = f"{shown(text)} has {len(text)} digits, too many for a number"
            raise _problem(mark, (), words) from None
        if plain and text in _WORDS:
            return _WORDS[text]
        return float(text) if plain and _NUMBER_FLOAT.fullmatch(text) else text


# Characters that YAML excludes (5.1), for which parsers report no line.
_NO_TEXT = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _parse(text: str, name: str, lines: bool = True) -> tuple[Any, dict[KeyPath, Mark]]:
    """Return the only YAML value in a text, and the source line of each of its parts."""
    found = _NO_TEXT.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1 if lines else 0
        raise ConfigurationError(
            f"{Mark(name, line)}: is not YAML: the character U+{ord(found[0]):04X} is not "
            "allowed in text"
        )
    reader = _Reader(name, lines)
    try:
        node = yaml.compose(text, Loader=_Nodes)
        return None if node is None else reader.value(node, (), frozenset(), None), reader.marks
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark and lines else 0
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        if "nesting depth" in problem:  # libyaml's own limit may be reached first
            raise ConfigurationError(f"{Mark(name, line)}: {_TOO_DEEP}") from None
        if "another document" in problem:
            problem = "a second document begins here"
        here = "".join(text.splitlines()[line - 1 : line]) if line else ""
        if comparison := _UNQUOTED.search(here):
            problem = 'write the comparison in quotes: {}: "{}"'.format(*comparison.groups())
        if "\t" in here[: len(here) - len(here.lstrip())]:
            problem = "the line is indented by a tab: indent by spaces"
        raise ConfigurationError(f"{Mark(name, line)}: is not YAML: {problem}") from None


_UNQUOTED = re.compile(r"([\w-]+):\s+([<>]=?\s*[-+\d.]+[\w%/]*)")


def parse_text(text: str, name: str, folder: Path | None = None) -> Document:
    """Return the document of a text that holds one YAML mapping; messages call it `name`."""
    data, marks = _parse(text, name)
    if not isinstance(data, dict):
        raise ConfigurationError(
            f"{name}: the file is empty or not a mapping of keys (`key: value` lines)"
        )
    return Document(data, marks, name, folder or Path())


def read_file(path: Path) -> Document:
    """Return the document of a YAML file that holds one mapping."""
    return parse_text(read_text(path), str(path), path.parent)


def load(path: Path) -> Any:
    """Return the value in a YAML file, without source lines."""
    return _parse(read_text(path), str(path))[0]


def read_text(path: Path, most: int = BYTES_MOST) -> str:
    """Return a file's text; ConfigurationError where it is unreadable, too long or not UTF-8."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        near = ""
        if not path.exists():  # suggest a neighbouring file or an example with a similar name
            beside = [file.name for file in path.parent.glob("*.yaml")]
            examples = [file.stem for file in configurations().glob("*.yaml")]
            near = meant(path.name, beside) or meant(path.stem, examples)
        raise ConfigurationError(f"{path}: can't be read: {error.strerror}{near}") from None
    return decoded(content, str(path), most)


def decoded(content: bytes, source: str, most: int) -> str:
    """Return UTF-8 content as text; ConfigurationError above `most` bytes and for other text."""
    if len(content) > most:
        raise ConfigurationError(f"{source}: is too large: more than {most >> 20} MiB of text")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigurationError(f"{source}:1: is UTF-16 text: save it as UTF-8")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        place = f"{source}:{content.count(bytes([10]), 0, error.start) + 1}"
        byte = content[error.start]
    raise ConfigurationError(f"{place}: is not UTF-8 text: byte {byte:#x}; save it as UTF-8")


def from_values(data: dict[str, object], name: str) -> Document:
    """Return a document of values that come from no file, such as an effective configuration."""
    return Document(deepcopy(data), {}, name)


_POSITION = re.compile(r"[0-9]{1,9}")


def parse_assignment(argument: str) -> tuple[KeyPath, Any, Mark]:
    """Parse one `--set key=value` into the key's path, a YAML value and its position."""
    mark = Mark(clipped(f"--set {argument}", 200))
    key, equals, text = argument.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"{mark}: is not key=value, such as window=1s")
    parts = key.strip().split(".")
    path = tuple(int(part) if _POSITION.fullmatch(part) else part for part in parts)
    if "" in path:
        raise ConfigurationError(f"{mark}: the key has an empty part between its dots")
    if len(path) > DEPTH_MOST:
        raise ConfigurationError(f"{mark}: the key has more than {DEPTH_MOST} dotted parts")
    return path, _parse(text, str(mark), lines=False)[0], mark
