# SPDX-License-Identifier: BSD-3-Clause
"""Codes of error messages (base/codes.toml), and doc/how-to/troubleshooting.md: every message has a
code, and the words that are to be searched stand in messages."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import messages
from conftest import Command
from switchbench.base.errors import (
    ConfigurationError,
    code_by_module,
    code_by_words,
    codes,
    with_code,
)

PAGE = (messages.ROOT / "doc/how-to/troubleshooting.md").read_text()
DURING_A_RUN = re.findall(r"^\| `(.+?)` \| .+ \| .+ \|$", PAGE, re.M)
PHRASES = [words for entry in codes().values() for words in entry["words"]]
PACKAGE = "scripts/python/switchbench/"


def test_messages_are_collected() -> None:
    files = Counter(message.file.split("/")[0] for message in messages.collect())
    assert files["scripts"] > 150
    assert files["engine"] > 150
    assert files["verbs"] > 40
    assert files["lab"] > 20


def test_each_code_has_title_cause_cure_and_words() -> None:
    for entry in codes().values():
        assert {"title", "cause", "cure", "words"} <= set(entry) <= {*entry, "raised"}
        assert entry["words"]
    assert len(set(PHRASES)) == len(PHRASES)


@pytest.mark.parametrize("text", DURING_A_RUN + PHRASES)
def test_words_are_in_the_sources(text: str) -> None:
    """Messages are put together while a run lasts: each piece of them is in some source, or is one
    of the system's own texts."""
    known = messages.literals() + "No such file or directory, Is a directory"
    pieces = [piece.strip(" .") for piece in messages.squeezed(text).split(messages.VARIES)]
    pieces = [piece for piece in pieces if len(re.findall(r"\w", piece)) > 3]
    assert pieces
    assert [piece for piece in pieces if piece not in known] == []


def test_every_message_of_the_command_has_a_code() -> None:
    without = [
        message
        for message in messages.collect()
        if message.file.startswith(PACKAGE)
        and code_by_words(message.text) is None
        and code_by_module(
            "switchbench." + message.file.removeprefix(PACKAGE)[:-3].replace("/", ".")
        )
        is None
    ]
    assert without == []


def test_most_messages_of_the_engine_have_a_code_of_their_own() -> None:
    """The others are of a document that no run sends: SB-NODE, as all that a node says."""
    engine = [m for m in messages.collect() if not m.file.startswith(PACKAGE)]
    without = [m for m in engine if code_by_words(m.text) is None]
    assert len(without) < len(engine) / 20, without


def test_the_longest_words_decide() -> None:
    assert code_by_words("x.yaml:3: lode: unknown key") == "SB-KEY"
    both = "there is no interface e9: need the capabilities CAP_NET_RAW and CAP_NET_ADMIN"
    assert code_by_words(both) == "SB-DPDK"
    assert code_by_words("it says nothing of the kind") is None
    assert code_by_module("switchbench.config.names") == "SB-NAME"
    assert code_by_module("switchbench.config.fields") == "SB-VALUE"
    assert code_by_module("elsewhere") is None


def test_several_mistakes_have_their_codes() -> None:
    error = ConfigurationError("a.yaml:1: x: unknown key\na.yaml:2: load: 5 has no unit")
    assert with_code(error) == f"{error} [SB-KEY, SB-VALUE]"


def test_an_error_without_words_has_the_code_of_the_module_that_raised_it() -> None:
    module: dict[str, Any] = {"__name__": "switchbench.topology.form", "E": ConfigurationError}
    exec("def fail():\n    raise E('it says nothing of the kind')", module)
    with pytest.raises(ConfigurationError) as caught:
        module["fail"]()
    assert with_code(caught.value).endswith(" [SB-TOPOLOGY]")


def test_no_module_has_two_codes() -> None:
    raised = [module for entry in codes().values() for module in entry.get("raised", ())]
    assert len(set(raised)) == len(raised)


@pytest.mark.rows
def test_common_mistakes_have_their_code(
    words: list[str], code: str, tmp_path: Path, cli: Command
) -> None:
    said = cli.refuses(*(word.replace("{folder}", str(tmp_path)) for word in words))
    assert said.rstrip().endswith(f"[{code}]")


@pytest.mark.rows
def test_explain(words: list[str], status: int, says: str, cli: Command) -> None:
    found, out, err = cli("explain", *words)
    assert (found, says in (err if status else out)) == (status, True)


def test_what_varies_is_left_out() -> None:
    assert messages.squeezed("… …: a  b") == "…: a b"
    assert messages.squeezed("use `x`") == "use 'x'"
