# SPDX-License-Identifier: BSD-3-Clause
"""doc/how-to/troubleshooting.md: about 40 causes, each with its cure and words of messages that
exist."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import messages

PAGE = (messages.ROOT / "doc/how-to/troubleshooting.md").read_text()
DURING_A_RUN = re.findall(r"^\| `(.+?)` \| .+ \| .+ \|$", PAGE, re.M)
CAUSES = re.findall(
    r"^### (SB-[A-Z]+): .+\n\n\*\*Cause:\*\* .+\n\n\*\*Cure:\*\* .+\n\n\*\*Words:\*\* (.+)$",
    PAGE,
    re.M,
)
PHRASES = [phrase for _, words in CAUSES for phrase in re.findall("`(.+?)`", words)]


def test_messages_are_collected() -> None:
    files = Counter(message.file.split("/")[0] for message in messages.collect())
    assert files["scripts"] > 150
    assert files["engine"] > 150
    assert files["verbs"] > 40
    assert files["lab"] > 20


def test_each_cause_has_a_cure_and_words_to_search() -> None:
    codes = [code for code, _ in CAUSES]
    assert codes == re.findall(r"^### (\S+):", PAGE, re.M)
    assert len(set(codes)) == len(codes)
    assert 35 < len(codes) < 50


@pytest.mark.parametrize("text", DURING_A_RUN + PHRASES)
def test_words_of_the_page_are_in_the_sources(text: str) -> None:
    """Messages are put together while a run lasts: each piece of them is in some source."""
    known = messages.literals()
    pieces = [piece.strip(" .") for piece in text.split(messages.VARIES)]
    pieces = [piece for piece in pieces if len(re.findall(r"\w", piece)) > 3]
    assert pieces
    assert [piece for piece in pieces if piece not in known] == []


def test_there_are_such() -> None:
    assert len(DURING_A_RUN) > 15
    assert len(PHRASES) > 100


def test_what_varies_is_left_out() -> None:
    assert messages.squeezed("… …: a  b") == "…: a b"
    assert messages.squeezed("use `x`") == "use 'x'"
