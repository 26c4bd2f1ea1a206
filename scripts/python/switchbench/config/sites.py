# SPDX-License-Identifier: BSD-3-Clause
"""What exists: from `site` (a lab, a file, or the mapping itself) to a `Site`."""

from __future__ import annotations

from pathlib import Path

from ..base.model import Site
from ..base.source import Document, read_file
from ..base.words import listed, meant, shown
from . import hosts, labs
from .order import SitePlace
from .schema import HostSite, LabSite
from .validate import validate


def load_site(document: Document, seed: int) -> Site:
    """The site that stands at `site` in a configuration."""
    value = document.data.get("site")
    if value is None:
        raise document.problem(
            (),
            "has no `site`: say what exists, such as `site: {lab: one-switch}`, or give --site",
        )
    if isinstance(value, str):
        return _named(value, document, seed)
    if not isinstance(value, dict):
        raise document.problem(
            ("site",), f"found {shown(value)}, but a lab, a site file or a mapping is needed"
        )
    if "iface" in value and "ports" not in value:  # as on the command line
        _short(document)
    return _build(SitePlace(document, ("site",)), value, seed)


def _short(document: Document) -> None:
    """Write `site: {hosts: SET, iface: NAME}` out: one port of each host, reached by ssh."""
    mark = document.mark(("site", "iface"))
    port = {"network": "net", "iface": document.data["site"].pop("iface")}
    document.place(("site", "ports"), {"e0": port}, mark)
    if "launch" not in document.data["site"]:
        document.place(("site", "launch"), "ssh", mark)


def _named(name: str, document: Document, seed: int) -> Site:
    """A site file by its path (beside the configuration, or from here), else a lab."""
    for path in (document.folder / name, Path(name)):
        if path.is_file():
            file = read_file(path)
            return _file(file, name, document, seed)
    if labs.is_name(name):
        document.place(("site",), {"lab": name}, document.mark(("site",)))
        return _build(SitePlace(document, ("site",)), document.data["site"], seed)
    raise document.problem(
        ("site",),
        f"there is no file {shown(name)}, and labs are {listed(labs.names())}"
        f"{meant(name, labs.names())}",
    )


def _file(file: Document, name: str, document: Document, seed: int) -> Site:
    if "topology" in file.data:  # a topology is a lab's description
        site = Document({"site": {"lab": str(Path(file.name).resolve())}}, {}, name, file.folder)
        return _build(SitePlace(site, ("site",)), site.data["site"], seed)
    if "tests" in file.data or "switchbench" in file.data:
        raise document.problem(("site",), f"{name} is a configuration, not a site file")
    return _build(SitePlace(file), file.data, seed)


def _build(place: SitePlace, value: dict[str, object], seed: int) -> Site:
    if "lab" in value:
        return labs.build(validate(LabSite, place.document, place.path), place, seed)
    return hosts.build(validate(HostSite, place.document, place.path), place, seed)
