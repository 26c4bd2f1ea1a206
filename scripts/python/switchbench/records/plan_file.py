# SPDX-License-Identifier: BSD-3-Clause
"""plan.json: the compiled run as it was measured, so that its results are read anywhere.

A configuration compiled again takes the engine, the cores and the memory of the host that ran, and
its topology files; what was compiled once is kept instead. A port stands in the file once, below
`ports`; all else names it.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from ..base.errors import ConfigurationError, RunError, printable
from ..base.model import Part, Port, Run
from .directory import PLAN, refuse_other_form, replace_bytes
from .record_forms import Record

SCHEMA = "switchbench-plan/3"

_RUN = TypeAdapter(Run)
_PART = TypeAdapter(Part)
_PORTS = TypeAdapter(dict[str, Port])

Entry = Record


def write_plan(directory: Path, run: Run) -> None:
    """Write the file whole or not at all."""
    try:
        whole = _RUN.dump_python(run, mode="json")
        content = to_json({"schema": SCHEMA, **_packed(whole)})
    except PydanticSerializationError as error:
        raise RunError(f"no JSON can be made of that: {error}") from None
    replace_bytes(directory / PLAN, content + b"\n")


def read_plan(directory: Path) -> Run:
    """Return the run that was measured.

    ConfigurationError where the file is missing, damaged or newer.
    """
    file = directory / PLAN
    try:
        loaded = from_json(file.read_bytes(), allow_inf_nan=False)
    except FileNotFoundError:
        raise ConfigurationError(
            f"{file} is missing: it has the plan that was measured, which no other file replaces; "
            "bring it back from where the results were made, or measure again"
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{file} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise _damaged(file, str(error)) from None
    refuse_other_form(loaded, SCHEMA, file)
    try:
        return _unpacked(loaded)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _damaged(file, f"at `{place}`: {first['msg']}") from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise _damaged(file, f"{type(error).__name__} {error!s:.100}") from None


def _damaged(file: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{file} is damaged: {printable(' '.join(why.split()))}; bring it back from where the "
        "results were made, or measure again"
    )


# --- ports by name -------------------------------------------------------------------------------


_OTHERS = ("searches", "again", "superseded")  # what else of a run are trials


def _packed(run: Entry) -> Entry:
    """Return the file's keys, of the run as mappings."""
    ports: dict[str, Entry] = {}
    parts: dict[tuple[str, ...], int] = {}

    def named(some: list[Entry]) -> list[str]:
        ports.update((port["name"], port) for port in some)
        return [port["name"] for port in some]

    site = run["site"]
    site["processes"] = [p | {"ports": named(p["ports"])} for p in site["processes"]]
    site["networks"] = {name: named(some) for name, some in site["networks"].items()}
    if run["effective"].get("site") == site["effective"]:
        del site["effective"]
    for trial in (*run["trials"], *(trial for key in _OTHERS for trial in run[key])):
        some = [(part["network"], *named(part["ranks"])) for part in trial["parts"]]
        trial["parts"] = [parts.setdefault(part, len(parts)) for part in some]
    return {"ports": ports, "parts": list(parts), "run": run}


def _unpacked(file: Entry) -> Run:
    """Return the run of what the file holds; its ports and parts are one value each."""
    ports = _PORTS.validate_python(file["ports"])
    parts = [
        _PART.validate_python({"network": network, "ranks": [ports[name] for name in names]})
        for network, *names in file["parts"]
    ]
    run = file["run"]
    site = run["site"]
    for process in site["processes"]:
        process["ports"] = [ports[name] for name in process["ports"]]
    site["networks"] = {
        network: [ports[name] for name in names] for network, names in site["networks"].items()
    }
    site.setdefault("effective", run["effective"].get("site"))
    others = (trial for key in _OTHERS for trial in run.get(key, ()))
    for trial in (*run["trials"], *others):
        trial["parts"] = [parts[number] for number in trial["parts"]]
    return _RUN.validate_python(run)
