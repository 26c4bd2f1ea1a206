# SPDX-License-Identifier: BSD-3-Clause
"""doc/troubleshooting.md has every error message of the command and the engine, and no other."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import messages

PAGE = (messages.ROOT / "doc/troubleshooting.md").read_text()
LISTED = re.findall(r"^- `(.+)`$", PAGE, re.M)
MET_MOST = re.findall(r"^\| `(.+?)` \| .+ \| .+ \|$", PAGE, re.M)
COLLECTED = messages.collect()


def test_messages_are_collected() -> None:
    files = Counter(message.file.split("/")[0] for message in COLLECTED)
    assert files["scripts"] > 150
    assert files["engine"] > 150
    assert files["verbs"] > 40
    assert files["lab"] > 20


def test_every_message_is_explained() -> None:
    """A new one goes below the explanation that fits it, or gets one of its own."""
    new = {
        f"- `{message.text}`   ({message.file}:{message.line})"
        for message in COLLECTED
        if message.text not in LISTED
    }
    assert new == set(), "add to doc/troubleshooting.md:\n" + "\n".join(sorted(new))


def test_every_message_of_the_page_exists() -> None:
    gone = set(LISTED) - {message.text for message in COLLECTED}
    assert gone == set(), "take out of doc/troubleshooting.md"


def test_no_message_stands_twice() -> None:
    assert [text for text, count in Counter(LISTED).items() if count > 1] == []


def test_each_group_says_what_it_means_and_what_to_do() -> None:
    groups = re.split(r"^## ", PAGE, flags=re.M)[2:]
    assert len(groups) > 20
    for group in groups:
        title, text, lists = group.split("\n\n", 2)
        assert len(text) > 150, title
        assert lists.startswith("- `"), title


@pytest.mark.parametrize("text", MET_MOST)
def test_what_is_met_most_is_still_said(text: str) -> None:
    """These are put together while a run lasts: each piece of them is in some source."""
    known = messages.literals()
    pieces = [piece.strip(" .") for piece in text.split(messages.VARIES)]
    pieces = [piece for piece in pieces if len(re.findall(r"\w", piece)) > 3]
    assert pieces
    assert [piece for piece in pieces if piece not in known] == []


def test_there_are_such() -> None:
    assert len(MET_MOST) > 15


def test_what_varies_is_left_out() -> None:
    assert messages.squeezed("… …: a  b") == "…: a b"
    assert messages.squeezed("use `x`") == "use 'x'"
