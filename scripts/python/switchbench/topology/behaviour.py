# SPDX-License-Identifier: BSD-3-Clause
"""The section `model` of a topology: how its modelled switch behaves (doc/reference/model.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)

from switchbench.base.quantities import (
    LINK_RATE_FORM,
    SIZE,
    link_rate_bps,
    link_rate_text,
    size_bytes,
)

LinkRate = Annotated[
    int,
    BeforeValidator(link_rate_bps),
    PlainSerializer(link_rate_text, when_used="json"),
    WithJsonSchema(LINK_RATE_FORM),
]
Bytes = Annotated[int, BeforeValidator(size_bytes), WithJsonSchema(SIZE.form())]
_Count = Annotated[int, Field(ge=0)]
_Percent = Annotated[float, Field(gt=0, le=100)]

_FAULTS = Literal["drop", "duplicate", "reorder", "corrupt", "wrong-port", "flood", "dead", "slow"]


class TopologyKeys(BaseModel):
    """A mapping of a topology file: all its keys are known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RateStep(TopologyKeys):
    """A rate from a number of active ports on."""

    ports: _Count = 0
    rate: LinkRate = Field(serialization_alias="bps")


def _steps(value: object) -> object:
    """Return a capacity is a rate, or a list of steps."""
    return value if isinstance(value, list) else [{"rate": value}]


_Steps = Annotated[
    list[RateStep],
    BeforeValidator(_steps, json_schema_input_type=LinkRate | list[RateStep]),
    Field(min_length=1, max_length=16),
]


class Collapse(TopologyKeys):
    """What happens above a share of the ports' rates."""

    above_percent: _Percent
    to_percent: _Percent
    recover_percent: _Percent | None = None
    window_ms: Annotated[int, Field(ge=1, le=10_000)] | None = None


class AddressTable(TopologyKeys):
    """The address table."""

    size: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    learn_per_s: _Count | None = None
    ageing_ms: Annotated[int, Field(ge=1)] | None = None


class Pause(TopologyKeys):
    """Back-pressure."""

    send: bool | None = None
    high: Bytes | None = None
    low: Bytes | None = None


class Fault(TopologyKeys):
    """One planted fault. Ports are nodes' names."""

    model_config = ConfigDict(populate_by_name=True)  # `in_` in the state of a lab

    kind: _FAULTS
    module: str | None = None
    one_in: Annotated[int, Field(ge=1, le=2**32 - 1)] | None = None
    at_most: _Count | None = None
    in_: Annotated[str | None, Field(alias="in")] = None
    out: str | None = None
    to: str | None = None
    port: str | None = None
    measured: bool | None = None
    displacement: Annotated[int, Field(ge=1, le=10_000)] | None = None
    hold_ms: Annotated[int, Field(ge=1, le=10_000)] | None = None
    first_byte: _Count | None = None
    last_byte: Annotated[int, Field(ge=12)] | None = None
    rate: LinkRate | None = Field(None, serialization_alias="rate_bps")

    @property
    def places(self) -> list[str]:
        """The ports that it names."""
        return [name for name in (self.in_, self.out, self.to, self.port) if name is not None]


class Behaviour(TopologyKeys):
    """All of it; what is not said is switchbench-switch's default."""

    # Serialised by alias it is what switchbench-switch reads.

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    queueing: Literal["output", "input", "voq"] | None = None
    sharing: Literal["port", "shared"] | None = None
    memory: Bytes | None = Field(None, serialization_alias="buffer")
    input_buffer: Bytes | None = None
    capacity: _Steps | None = None
    trunk_capacity: _Steps | None = None
    collapse: Collapse | None = None
    table: AddressTable | None = None
    recovery_ms: Annotated[int, Field(ge=1, le=60_000)] | None = None
    drop_undersize: bool | None = None
    latency_ns: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    pause: Pause | None = None
    flows: Literal["addresses", "tags"] | None = None
    faults: list[Fault] = []
