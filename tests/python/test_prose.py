# SPDX-License-Identifier: BSD-3-Clause
"""The English that a person meets keeps to tests/prose/words.tsv, in sentences of 40 words."""

from __future__ import annotations

import pytest

import prose


def findings(words: str) -> list[prose.Finding]:
    return prose.lint([prose.Text("page", "here", words)])


@pytest.mark.rows
def test_a_word_of_the_list_is_found(words: str) -> None:
    assert len(findings(words)) == 1


@pytest.mark.parametrize("words", ["at least 2 repeats", "ssh: Connection refused", "in all rows"])
def test_what_the_field_says_is_not_found(words: str) -> None:
    assert findings(words) == []


def test_a_long_sentence_is_found() -> None:
    fine = "word " * prose.LONGEST
    assert findings(f"{fine}. {fine}.") == []
    (found,) = findings(f"{fine}. {fine} more.")
    assert found.rule == prose.SENTENCE


def test_code_and_addresses_are_no_sentence() -> None:
    assert findings(f"Write `{'word ' * 50}` and `{'word ' * 50}`.") == []


def test_all_that_a_person_meets_is_read() -> None:
    read = prose.texts()
    kinds = [text.kind for text in read]
    assert kinds.count("page") > 1000
    assert kinds.count("help") > 200
    assert kinds.count("message") > 500
    places = {text.place.split(":")[0] for text in read}
    assert {"README.md", "switchbench run", "engine/app/main.c"} <= places | {
        text.place for text in read
    }


def test_the_text_keeps_to_the_list() -> None:
    wrong = [str(one) for one in prose.lint(prose.texts())]
    assert not wrong, "\n".join(wrong)
