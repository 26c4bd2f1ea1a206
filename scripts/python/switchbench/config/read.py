# SPDX-License-Identifier: BSD-3-Clause
"""Reader and checker of a configuration: the file, `--set`, `--site`, `--profile`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import errors, quantities, transports
from ..base.model import Site
from ..base.node_names import hosts_of_option
from ..base.source import Document, KeyPath, Mark, dotted, from_values, parse_assignment, read_file
from ..search.suites import SUITES
from ..search.suites.declaration import SuiteParameters
from . import rules, schema, sites, tests
from .clauses import parse_clause, refuse_incomplete
from .names import SitePlace


def load_site(document: Document) -> Site:
    """Return the site of a configuration, from the mapping or the site file below `site`."""
    value = document.data.get("site")
    if value is None:
        raise document.problem(
            (), "has no `site`: say what exists, such as `site: {lab: one-switch}`, or give --site"
        )
    if isinstance(value, str):
        path = next((p for p in (document.folder / value, Path(value)) if p.is_file()), None)
        if path is None:
            raise document.problem(
                ("site",),
                f"there is no file {errors.shown(value)}: name a site file, or write a lab as "
                "`site: {lab: one-switch}`",
            )
        file = read_file(path)
        return _build(SitePlace(file), file.data)
    if not isinstance(value, dict):
        text = f"found {errors.shown(value)}, but a lab, a site file or a mapping is needed"
        raise document.problem(("site",), text)
    if "iface" in value and "ports" not in value:  # --hosts, --iface: one port per host
        mark = document.mark(("site", "iface"))
        port = {"network": "net", "iface": value.pop("iface")}
        document.place(("site", "ports"), {"e0": port}, mark)
        if "launch" not in value:
            document.place(("site", "launch"), "ssh", mark)
    return _build(SitePlace(document, ("site",)), value)


def _build(place: SitePlace, value: dict[str, object]) -> Site:
    if "lab" in value:
        return sites.build_lab(schema.validate(schema.LabSite, place.document, place.path), place)
    return sites.build_hosts(schema.validate(schema.HostSite, place.document, place.path), place)


FORMAT = 1
DEFAULT_SEED = 1


Options = Sequence[tuple[str, str]]
"""Command-line options (those of SETTING_OPTIONS, and --set), each with its value."""

# Options that set a key of the configuration, each with the key's path and the parser of the value.
# Later options override earlier ones; --set, which names the key, overrides all.
SETTING_OPTIONS: dict[str, tuple[KeyPath, Callable[[str], Any]]] = {
    "--site": (("site",), str),
    "--profile": (("profile",), str),
    "--lab": (("site",), lambda name: {"lab": name}),
    "--hosts": (("site",), lambda names: {"hosts": hosts_of_option(names)}),
    "--iface": (("site", "iface"), str),
    "--suite": (("suite",), str),
    "--pattern": (("pattern",), str),
    "--transport": (("transports",), lambda names: names.split(",")),
    "--load": (("load",), str),
    "--duration": (("window",), str),
}
SITE_OPTIONS = {"--site", "--lab", "--hosts"}


@dataclass(frozen=True)
class CheckedConfiguration:
    """Configuration with valid keys and values; the compiler checks whether plans are possible."""

    document: Document
    model: schema.Configuration
    site: Site
    tests: list[schema.ResolvedSettings]
    expectations: tuple[dict[str, Any], ...]
    seed: int
    suite_parameters: SuiteParameters


def read(conf: Path | None, options: Options = ()) -> CheckedConfiguration:
    """Return the checked configuration of a file, changed by command-line options."""
    return check(document_of(conf, options))


def read_values(values: dict[str, object], without: Sequence[str] = ()) -> CheckedConfiguration:
    """Return the checked configuration of plain values; the hosts in `without` are excluded."""
    return check(from_values(values, "configuration"), without)


def check(document: Document, without: Sequence[str] = ()) -> CheckedConfiguration:
    """Check a configuration document; return it with its site and its resolved tests."""
    model = schema.validate(schema.Configuration, document)
    if model.switchbench != FORMAT:
        raise document.problem(
            ("switchbench",),
            f"format {model.switchbench} is not known: this version reads {FORMAT}",
        )
    if model.clock_error is not None and model.clock != "ptp":
        raise document.problem(("clock_error",), f"has no effect with clock: {model.clock}")
    seed = DEFAULT_SEED if model.seed is None else model.seed
    clauses = tuple(
        _expectation(document, clause, ("expect", i)) for i, clause in enumerate(model.expect or [])
    )
    site = sites.leave_out(load_site(document), without)
    tests.refuse_without_suite(document, model)
    parameters = tests.parameters_of(document, model, model.profile or rules.profile_name(site))
    found = tests.resolve(document, model, site, parameters)
    refuse_incomplete(document, model, found)
    return CheckedConfiguration(document, model, site, found, clauses, seed, parameters)


def document_of(conf: Path | None, options: Options = ()) -> Document:
    """Return the document of a configuration file, changed by command-line options."""
    given = dict(options)
    if {"--hosts", "--lab"} <= given.keys():
        raise errors.ConfigurationError("--hosts and --lab exclude each other: give one of them")
    alone = {"--hosts", "--iface"} - given.keys()
    if len(alone) == 1:
        raise errors.ConfigurationError(
            f"{alone.pop()} is missing: --hosts and --iface must be given together"
        )
    if conf is None:
        if not SITE_OPTIONS & given.keys():
            raise errors.ConfigurationError(
                "no configuration: name a file, or give --lab, --hosts with --iface, or --site"
            )
        document = from_values({"switchbench": FORMAT}, "command line")
    else:
        document = read_file(conf)
    if "switchbench" not in document.data:
        raise document.problem((), "has no `switchbench: 1`, the format's version, as first key")
    for option, (path, parse) in SETTING_OPTIONS.items():
        if option in given:
            mark = Mark(f"{option} {given[option]}")
            if option == "--pattern" and "tests" in document.data:
                text = f"set the patterns: {mark} needs a run without `tests`"
                raise document.problem(("tests",), text)
            _assign(document, path, parse(given[option]), mark)
    for option, text in options:
        if option == "--set":
            _assign(document, *parse_assignment(text))
    return document


def _assign(document: Document, path: KeyPath, value: Any, mark: Mark) -> None:
    """Set a key from an option, and remove other forms of the setting (`loads` for `load`).

    Forms of the setting in tests are removed too, because the option overrides the whole file.
    """
    if path[0] in schema.Settings.model_fields:
        tests = document.data.get("tests")
        for i in range(len(tests) if isinstance(tests, list) else 0):
            _clear(document, ("tests", i), path)
        _clear(document, (), path)
    elif path[0] == "tests" and len(path) > 2:
        _clear(document, path[:2], path[2:])
    document.place(path, value, mark)


def _clear(document: Document, at: KeyPath, path: KeyPath) -> None:
    """Remove a setting from one mapping, in all its forms: `load`, `loads`, and in `sweep`."""
    forms: list[KeyPath] = [path]
    if len(path) == 1:
        forms = [(form,) for form in rules.family(str(path[0]))]
    elif path[0] == "sweep":
        forms.append(tuple(".".join(map(str, path[1:])).split(".")))
    for form in (*forms, ("sweep", dotted(path))):
        document.remove((*at, *form))
    if document.get((*at, "sweep")) == {}:
        document.remove((*at, "sweep"))


# --- clauses --------------------------------------------------------------------------------------

# Keys of a clause's `where`, besides the parameters of patterns.
_WHERE_KEYS = (
    "pattern", "transport", "network", "ranks", "size", "frame_size", "message_size", "load",
    "traffic", "test", "repeat", "subtest", "variant",
)  # fmt: skip


def _expectation(document: Document, clause: schema.Expectation, path: KeyPath) -> dict[str, Any]:
    """Return a clause of `expect` as a mapping; raise ConfigurationError if it is invalid."""
    values: dict[str, object] = clause.given()
    values["where"] = {
        key: _where(key, value, (*path, "where", key), document)
        for key, value in (clause.where or {}).items()
    }
    try:
        parse_clause(values)
    except errors.ConfigurationError as error:
        # The error's text begins with the clause's name and the key.
        name, _, text = str(error).partition(": ")
        key, _, text = text.partition(": ")
        raise document.problem((*path, key), text or name) from None
    return values


def _where(key: str, value: Any, path: KeyPath, document: Document) -> Any:
    """Return the value of a condition in a clause's `where`, parsed for comparison with trials."""
    if key not in _WHERE_KEYS and key not in schema.ALL_PARAMETERS:
        keys = [*_WHERE_KEYS, *sorted(schema.ALL_PARAMETERS)]
        raise document.problem(path, errors.unknown_key(key, keys, said=True))
    if isinstance(value, list):
        return [_where(key, item, path, document) for item in value]
    with document.at(path):
        if key == "load":
            load = quantities.load(value)
            return quantities.load_text(load) if load.percent is not None else load.bps or load.fps
        if key in ("size", "frame_size", "message_size"):
            return quantities.size_bytes(value)
        words = {"pattern": list(schema.PATTERNS), "transport": list(transports.NAMES)}.get(key)
        if words is not None and value not in words:
            raise ValueError(errors.invalid(value, words))
    return value


# --- effective ------------------------------------------------------------------------------------
# The effective configuration: every default written out, itself a valid configuration.


def effective(reading: CheckedConfiguration) -> dict[str, object]:
    """Return the effective configuration, with every default, as a plain mapping."""
    model = reading.model
    changes: dict[str, object] = dict.fromkeys((*schema.Settings.model_fields, "site", "tests"))
    changes |= {"seed": reading.seed, "suite_parameters": None}
    if model.suite is not None:
        used = SUITES[model.suite].uses
        changes["suite_parameters"] = {k: getattr(reading.suite_parameters, k) for k in used}
    whole: dict[str, object] = {"switchbench": model.switchbench, "site": reading.site.effective}
    whole |= model.model_copy(update=changes).written()
    unused: Collection[str] = () if model.suite is None else tests.CHOSEN_BY_SUITES
    return whole | {"tests": [_test(test, unused) for test in reading.tests]}


def _test(test: schema.ResolvedSettings, unused: Collection[str]) -> dict[str, object]:
    """Return one test of the effective configuration, without the keys in `unused`.

    A test without a sweep has every default. A test with a sweep lacks the defaults that depend on
    the swept values.
    """
    every = tests.combinations(test)
    swept = {key for values in every for key in values.swept}
    whole, idle = (test, tests.always_idle(test)) if swept else (every[0], {})
    written = whole.written()
    for key in (*swept, *idle):
        head, dot, tail = key.partition(".")
        below = written.get(head) if dot else written
        if isinstance(below, dict):
            below.pop(tail or head, None)
    left = {*unused, *rules.NETWORK, *rules.TRANSPORT, *transports.NAMES, "pattern", "sweep"}
    if test.subtest is not None:  # the subtest determines the traffic
        left.add("flows")
    result: dict[str, object] = {} if test.subtest else {"pattern": test.pattern}
    result["transport"] = test.transport
    networks = {key: written[key] for key in ("concurrent_networks", "network") if key in written}
    result |= networks | {key: value for key, value in written.items() if key not in left}
    result[test.transport] = written[test.transport]
    if swept:
        result["sweep"] = {
            key: [rules.written_key(key, value) for value in values]
            for key, values in (test.sweep or {}).items()
            if key in swept
        }
    return result
