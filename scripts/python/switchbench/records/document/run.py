# SPDX-License-Identifier: BSD-3-Clause
"""What was run: the command, the machines, the network as people describe it."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from .forms import Moment


class LeftOut(TypedDict):
    """A host that the run went on without."""

    host: Annotated[str, "Its name"]
    reason: Annotated[str, "A sentence, with the remedy"]


class MachineEntry(TypedDict):
    """The controller's machine."""

    host: Annotated[str, "Name"]
    system: Annotated[str, "Kernel and architecture"]
    cpus: Annotated[int, "Usable"]
    cpu: Annotated[str | None, "Model"]
    memory_bytes: Annotated[int | None, "Installed"]


class SwitchEntry(TypedDict):
    """A switch under test."""

    name: NotRequired[Annotated[str, "In the network"]]
    vendor: NotRequired[Annotated[str, "Who makes it"]]
    model: NotRequired[Annotated[str, "As its label says"]]
    serial: NotRequired[Annotated[str, "Its number"]]
    firmware: NotRequired[Annotated[str, "Its version"]]
    options: NotRequired[Annotated[str, "Licences, mode, settings that matter"]]


class AboutEntry(TypedDict):
    """What was tested, and for whom, as the configuration says."""

    switches: NotRequired[Annotated[list[SwitchEntry], "The switches under test"]]
    cables: NotRequired[Annotated[str, "And optics: kind, length, who made them"]]
    nics: NotRequired[Annotated[str, "Of the hosts"]]
    place: NotRequired[Annotated[str, "Where"]]
    contract: NotRequired[Annotated[str, "Which"]]
    customer: NotRequired[Annotated[str, "Who accepts"]]
    supplier: NotRequired[Annotated[str, "Who delivers the switch"]]
    tester: NotRequired[Annotated[str, "Who measured"]]
    remarks: NotRequired[Annotated[str, "Anything else"]]


class NodeEntry(TypedDict):
    """A process of the engine."""

    node: Annotated[str, "Its name"]
    host: Annotated[str | None, "Its machine's name"]
    version: Annotated[str | None, "Of the engine"]
    protocol: Annotated[int | None, "Of documents and records"]
    cpus: Annotated[int | None, "Of its machine"]
    workers: Annotated[int | None, "Threads that send and receive"]
    worker: Annotated[str | None, "sleep or poll: between bursts"]
    cores: Annotated[list[int] | None, "Which they are tied to, in order; null: to none"]


class BegunRun(TypedDict):
    """What is known of a run without its nodes."""

    id: Annotated[str, "In the records' and nodes' words"]
    started: Annotated[Moment, "UTC"]
    elapsed_s: Annotated[float | None, "Of the run, lab included; null: it has not ended"]
    command: Annotated[list[str], "Repeats the run, in its own directory's parent"]
    launch: Annotated[str, "lab, ssh, slurm, command or hand"]
    lab: Annotated[str | None, "Its topology"]
    excluded_hosts: NotRequired[
        Annotated[
            list[LeftOut],
            "Hosts that could not take part, and that the run went on without (on_missing: "
            "exclude)",
        ]
    ]
    versions: Annotated[dict[str, str | None], "Of the command, the engine, Python and the kernel"]
    machine: Annotated[MachineEntry, "The controller's machine"]
    remeasured_phases: NotRequired[
        Annotated[
            int,
            Field(ge=1),
            "Measured again because the tester had limited them (remeasure); what was measured "
            "first is in superseded/",
        ]
    ]
    about: NotRequired[
        Annotated[AboutEntry, "What was tested, and for whom, as the configuration says"]
    ]


class RunEntry(BegunRun):
    """What was run, where and with what."""

    seed: Annotated[int, "Of everything random"]
    nodes: Annotated[list[NodeEntry], "Processes of the engine"]
