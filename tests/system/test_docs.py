# SPDX-License-Identifier: BSD-3-Clause
"""Every command and every configuration that the documentation shows (docs.py says how)."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import docs
import labkit
import runs
from switchbench.base.programs import find_engine
from switchbench.cli import main
from switchbench.config.schema import HostSite
from switchbench.topology import topology

SHELL = docs.blocks("sh")
FORMS = docs.blocks("form")
YAML = docs.blocks("yaml")

# What these do is everything: CI runs them, and they would run this test.
WHOLE = {"scripts/setup", "scripts/demo", "scripts/test", "scripts/bench"}

# What stands for one of a few words.
PLACEHOLDERS = {"DRIVER": "vfio-pci"}

# What a part of a configuration is tried within.
BASE: dict[str, Any] = {
    "switchbench": 1,
    "site": {"lab": "one-switch", "nodes": 16},
    "tests": [{"pattern": "pairs", "transport": "dpdk"}],
}
SITE: dict[str, Any] = {
    "launch": "ssh",
    "hosts": "node[01-64]",
    "ports": {"e0": {"network": "rail0", "iface": "enp3s0"}},
}
# Documents of other programs, and of ours that the command makes itself.
OTHERS = {
    *("scrape_configs", "job", "peers", "trial", "plan", "switch", "topology"),
    "compute",
}


def test_there_is_something_to_try() -> None:
    assert len(SHELL) > 4
    assert len(FORMS) > 15
    assert len(YAML) > 12


# --- commands are read ---------------------------------------------------------------------------


def every_command() -> Iterator[Any]:
    """Yield each `switchbench` of each page."""
    for block in (*SHELL, *FORMS):
        for line in docs.commands(block):
            for words in docs.ours(line):
                yield pytest.param(words, id=f"{block} {' '.join(words)[:60]}")


@pytest.mark.parametrize("words", list(every_command()))
def test_the_parser_takes_it(words: list[str]) -> None:
    if not words or words[0].startswith("..."):
        return  # "switchbench ..." in prose
    if {"--help", "--version"} & set(words):
        with pytest.raises(SystemExit, match="0"):
            main.build_parser().parse_args(words)
    else:
        given = [PLACEHOLDERS.get(word, word) for word in words if word != "..."]
        check_files(main.build_parser().parse_args(given))


def check_files(args: argparse.Namespace) -> None:
    """A configuration of ours that is named is there."""
    conf = getattr(args, "conf", None)
    if isinstance(conf, Path) and conf.parts[0] == "conf":
        assert (docs.ROOT / conf).exists(), conf


@pytest.mark.parametrize("block", [b for b in FORMS if "switchbench-node" in b.text], ids=str)
def test_the_engine_has_these_options(block: docs.Block) -> None:
    shown = runs.program(str(find_engine()), "--help", timeout=20, check=True).stdout
    for option in re.findall(r"--[a-z]+", block.text):
        assert option in shown, option


# --- configurations are planned ------------------------------------------------------------------


def planned(configuration: dict[str, Any], folder: Path) -> None:
    """`switchbench plan` takes it."""
    (folder / "sites").symlink_to(docs.ROOT / "conf/sites")
    path = folder / "conf.yaml"
    path.write_text(yaml.safe_dump(configuration, sort_keys=False, allow_unicode=True))
    done = runs.execute("plan", str(path))
    assert done.returncode == 0, done.stderr


def completed(fragment: dict[str, Any]) -> dict[str, Any]:
    """Return a whole configuration with the fragment in it."""
    keys = set(fragment)
    if "switchbench" in keys:
        return fragment
    if keys <= set(HostSite.model_fields):
        return BASE | {"site": SITE | fragment}
    where: dict[str, Any] = {}
    for clause in fragment.get("expect", ()):
        where |= clause.get("where", {})
    tests = [{"pattern": where.pop("pattern", "pairs")}] if where else BASE["tests"]
    return BASE | {"tests": tests} | where | fragment


@pytest.mark.parametrize("block", YAML, ids=str)
def test_the_configuration_is_planned(block: docs.Block, tmp_path: Path) -> None:
    document = yaml.safe_load(block.text.replace("\n...", "\n---\n", 1).partition("\n---\n")[0])
    assert isinstance(document, dict)
    if set(document) <= OTHERS:
        return
    if "topology" in document:
        topology.parse(document, "shown")
        return
    planned(completed(document), tmp_path)


@pytest.mark.parametrize(("page", "name"), [("lab", "hidden-fault"), ("two-hosts", "first-hour")])
def test_the_tutorial_s_configuration_is_the_one_that_is_shown(page: str, name: str) -> None:
    texts = [block.text for block in YAML if block.page == f"doc/tutorial/{page}.md"]
    (shown,) = (found for text in texts if "switchbench" in (found := yaml.safe_load(text)))
    assert shown == yaml.safe_load((docs.ROOT / "conf" / f"{name}.yaml").read_text())


# --- commands are run ----------------------------------------------------------------------------

SHIM = (labkit.DATA / "short_runs.sh").read_text()


def scratch(folder: Path) -> dict[str, str]:
    """Return a folder that looks like the project's and takes what the commands write."""
    for name in ("conf", "doc", ".venv", "build", "README.md"):
        (folder / name).symlink_to(docs.ROOT / name)
    scripts = folder / "scripts"
    scripts.mkdir()
    for path in (docs.ROOT / "scripts").iterdir():
        if path.name != "switchbench":
            (scripts / path.name).symlink_to(path)
    shim = scripts / "switchbench"
    shim.write_text(SHIM.format(python=sys.executable))
    shim.chmod(0o755)
    return os.environ | {"PATH": f"{scripts}:{os.environ['PATH']}", "TERM": "dumb"}


def to_run(line: str) -> bool:
    """Return whether it is for this machine, whole, and not for minutes."""
    return not (docs.NEEDS_HARDWARE in line or "…" in line or line.split()[0] in WHOLE)


def script_of(page: str) -> list[str]:
    """Return a page's lines of shell."""
    lines = [line for block in SHELL if block.page == page for line in docs.commands(block)]
    return [line for line in lines if to_run(line)]


PAGES = sorted({block.page for block in SHELL if script_of(block.page)})


@labkit.needs_lab
@pytest.mark.parametrize("page", PAGES)
def test_the_page_s_commands_run(page: str, tmp_path: Path) -> None:
    lines = script_of(page)
    environment = scratch(tmp_path)
    text = "\n".join(["set -e", *lines])
    try:
        done = runs.program(
            "bash", "-c", text, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, timeout=900
        )
    finally:
        for name in re.findall(r"\blab up (\S+)", text):
            runs.execute("lab", "down", name)
    assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
