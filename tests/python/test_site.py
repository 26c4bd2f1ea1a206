# SPDX-License-Identifier: BSD-3-Clause
"""The documentation as a site: built strictly and offline, no link is broken, pages that have a
source are as it is, and there is not too much to read."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort, PluginError
from mkdocs.structure.files import Files

import pages

ROOT = pages.ROOT
sys.path.insert(0, str(ROOT / "scripts"))
import site_hook  # noqa: E402

DOC = ROOT / "doc"
# What users read, at most. A word has a letter or a digit: lines of tables are none.
FOR_USERS = ("tutorial", "how-to", "reference")
MOST_WORDS = 30_000
# Elements with which a browser would fetch something.
FETCHED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(https?:)?//", re.I)


def built(docs: Path, site: Path) -> None:
    """Return the site as `mkdocs build --strict` makes it: a warning is an error."""
    build(load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(site)))


def test_the_site_is_built_and_needs_no_network(tmp_path: Path) -> None:
    built(DOC, tmp_path)
    made = sorted(tmp_path.rglob("*.html"))
    assert len(made) > 25
    assert [str(page) for page in made if FETCHED.search(page.read_text())] == []
    assert (tmp_path / "interfaces/index.html").is_file()


@pytest.mark.skipif(shutil.which("doxygen") is None, reason="needs doxygen")
def test_a_comment_that_says_what_is_not_declared_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages of the C interfaces are made without a warning."""
    settings = tmp_path / "doc/Doxyfile"
    header = tmp_path / "engine/wrong.h"
    for path, text in (
        (settings, (DOC / "Doxyfile").read_text()),
        (
            header,
            "/** @file\n * @brief A test. */\n/** @param size Bytes. */\nint f(int length);\n",
        ),
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(site_hook, "ROOT", tmp_path)
    with pytest.raises(PluginError, match="'size'"):
        site_hook.on_files(Files([]), config=load_config(str(ROOT / "mkdocs.yml")))


@pytest.mark.parametrize("link", ["nowhere.md", "two-hosts.md#nowhere", "../../README.md"])
def test_a_broken_link_fails(link: str, tmp_path: Path) -> None:
    docs = tmp_path / "doc"
    for page in DOC.rglob("*.md"):
        copy = docs / page.relative_to(DOC)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("# A page\n")
    (docs / "tutorial/two-hosts.md").write_text(f"# A page\n\n[there]({link})\n")
    with pytest.raises(Abort, match="1 warnings"):
        built(docs, tmp_path / "site")


def targets(page: Path) -> list[str]:
    """Return the targets of the page's links and pictures but for other sites."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
    return [to for to in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"\w+:", to)]


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_of_the_pages_beside(page: Path) -> None:
    assert [to for to in targets(page) if not (ROOT / to.split("#")[0]).exists()] == []


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_page_that_has_a_source_is_as_it_is(name: str) -> None:
    """Write them by: .venv/bin/python tests/python/pages.py"""
    assert (pages.FOLDER / name).read_text() == pages.PAGES[name]


@pytest.mark.parametrize("name", pages.PARTS)
def test_a_part_that_has_a_source_is_as_it_is(name: str) -> None:
    page = (pages.FOLDER / name).read_text()
    assert pages.PARTS[name](page) == page


def test_there_is_not_too_much_to_read() -> None:
    read = [page for part in FOR_USERS for page in (DOC / part).rglob("*.md")]
    text = re.sub(r"(?s)<!--.*?-->", "", "\n".join(page.read_text() for page in read))
    assert sum(1 for word in text.split() if re.search(r"\w", word)) <= MOST_WORDS
