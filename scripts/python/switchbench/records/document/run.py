# SPDX-License-Identifier: BSD-3-Clause
"""What was run: the command, the machines, the network as people describe it."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from .forms import Moment


class LeftOut(TypedDict):
    """A host that the run went on without."""

    host: Annotated[str, Field(description="Its name")]
    reason: Annotated[str, Field(description="A sentence, with the remedy")]


class MachineEntry(TypedDict):
    """The controller's machine."""

    host: Annotated[str, Field(description="Name")]
    system: Annotated[str, Field(description="Kernel and architecture")]
    cpus: Annotated[int, Field(description="Usable")]
    cpu: Annotated[str | None, Field(description="Model")]
    memory_bytes: Annotated[int | None, Field(description="Installed")]


class SwitchEntry(TypedDict):
    """A switch under test."""

    name: NotRequired[Annotated[str, Field(description="In the network")]]
    vendor: NotRequired[Annotated[str, Field(description="Who makes it")]]
    model: NotRequired[Annotated[str, Field(description="As its label says")]]
    serial: NotRequired[Annotated[str, Field(description="Its number")]]
    firmware: NotRequired[Annotated[str, Field(description="Its version")]]
    options: NotRequired[Annotated[str, Field(description="Licences, mode, settings that matter")]]


class AboutEntry(TypedDict):
    """What was tested, and for whom, as the configuration says."""

    switches: NotRequired[
        Annotated[list[SwitchEntry], Field(description="The switches under test")]
    ]
    cables: NotRequired[
        Annotated[str, Field(description="And optics: kind, length, who made them")]
    ]
    nics: NotRequired[Annotated[str, Field(description="Of the hosts")]]
    place: NotRequired[Annotated[str, Field(description="Where")]]
    contract: NotRequired[Annotated[str, Field(description="Which")]]
    customer: NotRequired[Annotated[str, Field(description="Who accepts")]]
    supplier: NotRequired[Annotated[str, Field(description="Who delivers the switch")]]
    tester: NotRequired[Annotated[str, Field(description="Who measured")]]
    remarks: NotRequired[Annotated[str, Field(description="Anything else")]]


class NodeEntry(TypedDict):
    """A process of the engine."""

    node: Annotated[str, Field(description="Its name")]
    host: Annotated[str | None, Field(description="Its machine's name")]
    version: Annotated[str | None, Field(description="Of the engine")]
    protocol: Annotated[int | None, Field(description="Of documents and records")]
    cpus: Annotated[int | None, Field(description="Of its machine")]
    workers: Annotated[int | None, Field(description="Threads that send and receive")]
    worker: Annotated[str | None, Field(description="sleep or poll: between bursts")]
    cores: Annotated[
        list[int] | None, Field(description="Which they are tied to, in order; null: to none")
    ]
    tsc_drift_ppm: Annotated[
        float | None,
        Field(
            description="Of the CPU's counter against the kernel's raw clock over the run; above 10"
            " there is a warning"
        ),
    ]


class BegunRun(TypedDict):
    """What is known of a run without its nodes."""

    id: Annotated[str, Field(description="In the records' and nodes' words")]
    started: Annotated[Moment, Field(description="UTC")]
    elapsed_s: Annotated[
        float | None, Field(description="Of the run, lab included; null: it has not ended")
    ]
    command: Annotated[
        list[str], Field(description="Repeats the run, in its own directory's parent")
    ]
    launch: Annotated[str, Field(description="lab, ssh, slurm or hand")]
    lab: Annotated[str | None, Field(description="Its topology")]
    excluded_hosts: NotRequired[
        Annotated[
            list[LeftOut],
            Field(
                description="Hosts that could not take part, and that the run went on without "
                "(on_missing: exclude)"
            ),
        ]
    ]
    versions: Annotated[
        dict[str, str | None],
        Field(description="Of the command, the engine, Python and the kernel"),
    ]
    machine: Annotated[MachineEntry, Field(description="The controller's machine")]
    remeasured_phases: NotRequired[
        Annotated[
            int,
            Field(
                ge=1,
                description="Measured again because the tester had limited them (remeasure); what "
                "was measured first is in superseded.ndjson",
            ),
        ]
    ]
    about: NotRequired[
        Annotated[
            AboutEntry,
            Field(description="What was tested, and for whom, as the configuration says"),
        ]
    ]


class RunEntry(BegunRun):
    """What was run, where and with what."""

    seed: Annotated[int, Field(description="Of everything random")]
    nodes: Annotated[list[NodeEntry], Field(description="Processes of the engine")]
