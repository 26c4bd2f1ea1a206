# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench bind` and `restore`: which host has what to do, and what is refused by name."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from switchbench.cli.main import main
from switchbench.config import Request, read
from switchbench.hosts import bind
from switchbench.plan import documents
from switchbench.plan.compile import compile_run

SITE = """\
launch: {launch}
hosts: [{hosts}]
ports: {{e0: {{network: n, pci: "0000:3b:00.0"}}, e1: {{network: n, pci: "0000:3b:00.1"}}}}
bind: {{driver: vfio-pci, hugepages: 512}}
"""


def site(tmp_path: Path, launch: str = "hand", hosts: str = "node1, node2") -> str:
    """A site file."""
    path = tmp_path / "site.yaml"
    path.write_text(SITE.format(launch=launch, hosts=hosts))
    return str(path)


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that notes how it was called, and ends with status 3."""
    path, said = tmp_path / "program.py", tmp_path / "said"
    path.write_text(f"import sys; open({str(said)!r}, 'w').write(' '.join(sys.argv[1:])); exit(3)")
    monkeypatch.setattr(bind, "PORT_BINDING", path)
    return said


def test_by_hand_each_host_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bind", "--site", site(tmp_path)]) == 0
    devices = "0000:3b:00.0 0000:3b:00.1"
    line = f"python3 port_binding.py bind {devices} --driver vfio-pci --hugepages 512"
    assert capsys.readouterr().out.splitlines()[:2] == [
        f"on node1, as root: {line}",
        f"on node2, as root: {line}",
    ]
    assert main(["restore", "--site", site(tmp_path), "--nodes", "node2"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("on node2, as root: python3 port_binding.py restore\n(copy it there: ")


def test_this_host_does_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = program(tmp_path, monkeypatch)
    monkeypatch.setattr(platform, "node", lambda: "node2.example.org")
    words = ["bind", "--site", site(tmp_path), "--driver", "uio_pci_generic"]
    assert main(words) == 3
    assert said.read_text().startswith("bind 0000:3b:00.0 0000:3b:00.1 --driver uio_pci_generic")
    assert main(["restore"]) == 3
    assert said.read_text() == "restore"


@pytest.mark.parametrize(
    ("verb", "words", "sentence"),
    [
        ("restore", ["--site", "one-switch"], "a lab of namespaces has no PCI devices"),
        ("restore", ["SLURM"], "launch: slurm: a run binds and restores by itself"),
        ("restore", ["HAND", "--nodes", "node7"], "--nodes: there is no host node7"),
        ("bind", ["--site", "one-switch"], "the site names no driver"),
        ("bind", ["--site", "one-switch", "--driver", "vfio-pci"],
         "none of these hosts has a port with `pci`"),
    ],
)  # fmt: skip
def test_what_is_refused(
    verb: str, words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if words[0] in ("SLURM", "HAND"):
        words = ["--site", site(tmp_path, words[0].lower()), *words[1:]]
    assert main([verb, *words]) == 2
    assert sentence in capsys.readouterr().err


def test_the_job_says_bind(tmp_path: Path) -> None:
    run = compile_run(read(Request(None, [], site(tmp_path), "quick")))
    assert documents.job_document(run, "x")["bind"] is True
    lab = compile_run(read(Request(None, [], "one-switch", "quick")))
    assert "bind" not in documents.job_document(lab, "x")
