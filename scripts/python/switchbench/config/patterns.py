# SPDX-License-Identifier: BSD-3-Clause
"""The patterns, as patterns.toml declares them: names, parameters, defaults, algorithms."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class PatternForm:
    """What the configuration knows of a pattern."""

    parameters: Mapping[str, object] = field(default_factory=dict)  # with their defaults
    kind: str = ""  # function or kernel, which are schedules; "": matrices
    algorithms: tuple[str, ...] = ()  # of a function, the default first
    floats: bool = False  # messages hold whole ones
    sizeless: bool = False  # its messages' sizes are not the user's to choose

    @property
    def of_class(self) -> bool:
        """Whether its problem's class says the sizes of messages."""
        return self.kind == "kernel" and self.sizeless


def _forms() -> dict[str, PatternForm]:
    found = {}
    for name, said in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items():
        algorithms = tuple(said.pop("algorithms", ()))
        parameters = {"algorithm": algorithms[0]} if algorithms else {}
        own = said.pop("parameters", {})
        parameters |= {key: None if value == "" else value for key, value in own.items()}
        found[name] = PatternForm(parameters, algorithms=algorithms, **said)
    return found


PATTERNS = _forms()
ALL_PARAMETERS = tuple(dict.fromkeys(key for form in PATTERNS.values() for key in form.parameters))
ALGORITHMS = tuple(dict.fromkeys(word for form in PATTERNS.values() for word in form.algorithms))
