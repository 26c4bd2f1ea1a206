# SPDX-License-Identifier: BSD-3-Clause
"""Keys of the configuration (doc/reference/configuration.md): one model per mapping.

A model has its keys, their valid values, and constant defaults. Defaults that depend on the site,
the transport or the profile are in `rules`.
"""

from __future__ import annotations

import tomllib
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, Field, SkipValidation, ValidationError, create_model

from ..base.errors import ConfigurationError, invalid, shown, unknown_key
from ..base.model import CLOCK_MODES, LAUNCHERS
from ..base.programs import ENGINE
from ..base.source import Document, KeyPath
from ..base.transports import NAMES
from ..search.suites import SUITES
from ..topology.form import DeviceKeys, File
from . import fields as value
from .fields import Strict, choice, number

# --- patterns -------------------------------------------------------------------------------------
# Declarations in patterns.toml: names, parameters, defaults, algorithms.


@dataclass(frozen=True)
class PatternForm:
    """Declaration of a pattern in patterns.toml: its parameters, kind and algorithms."""

    parameters: Mapping[str, object] = field(default_factory=dict)  # with their defaults
    kind: str = ""  # function or kernel, which are schedules; "": matrices
    algorithms: tuple[str, ...] = ()  # of a function, the default first
    sizeless: bool = False  # users cannot set its messages' sizes

    @property
    def of_class(self) -> bool:
        """Return true if the problem class of an application kernel sets the message sizes."""
        return self.kind == "kernel" and self.sizeless


def _forms() -> dict[str, PatternForm]:
    found = {}
    text = Path(__file__).with_name("patterns.toml").read_text("utf-8")
    for name, said in tomllib.loads(text).items():
        algorithms = tuple(said.pop("algorithms", ()))
        parameters = {"algorithm": algorithms[0]} if algorithms else {}
        own = said.pop("parameters", {})
        parameters |= {key: None if value == "" else value for key, value in own.items()}
        found[name] = PatternForm(parameters, algorithms=algorithms, **said)
    return found


PATTERNS = _forms()
ALL_PARAMETERS = tuple(dict.fromkeys(key for form in PATTERNS.values() for key in form.parameters))
ALGORITHMS = tuple(dict.fromkeys(word for form in PATTERNS.values() for word in form.algorithms))


# --- keys -----------------------------------------------------------------------------------------


class PacketOptions(Strict):
    """Options of the transport packet: raw Ethernet frames through the kernel's packet sockets."""

    burst: Annotated[int, number(1, 128, "a burst")] = 32
    catch_up: Annotated[int, number(1, 65535, "catch_up")] | None = None
    dither: Annotated[float, Field(ge=0, le=10)] | None = None


class DpdkOptions(PacketOptions):
    """Options of the transport dpdk: the headers and addresses of raw Ethernet or UDP frames."""

    header: Literal["l2", "ipv4-udp", "ipv6-udp"] = "l2"
    vlan: Annotated[int, number(1, 4094, "a VLAN")] | None = None
    pcp: Annotated[int, number(0, 7, "a priority")] | None = None
    dscp: Annotated[int, number(0, 63, "a DSCP")] | None = None
    ttl: Annotated[int, number(1, 255, "a TTL")] | None = None
    udp_sources_per_flow: Annotated[int, number(1, 1024, "the number of source ports")] | None = (
        None
    )
    destination: Literal["port", "broadcast", "multicast"] | None = None
    addresses: Annotated[int, number(1, 2**20, "the number of addresses")] | None = None
    learning_rate: Annotated[int, number(1, 10_000_000, "the learning rate")] | None = None


class TcpOptions(Strict):
    """Options of the transport tcp, which uses the kernel's TCP sockets."""

    streams_per_flow: Annotated[int, number(1, 256, "the number of streams")] = 1
    send_buffer: value.Size | None = None
    receive_buffer: value.Size | None = None
    congestion: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,15}$")] | None = None


class UdpOptions(PacketOptions):
    """Options of the transport udp: datagrams through the kernel's sockets."""

    receive_buffer: value.Size | None = None


class VerbsOptions(Strict):
    """Options of the transport verbs: RDMA service, operation and others (doc/how-to/verbs.md)."""

    service: Literal["rc", "uc", "ud"] = "rc"
    operation: Literal["send", "write"] | None = None
    depth: Annotated[int, number(1, 16384, "the depth")] = 128
    queue_pairs: Annotated[int, number(1, 64, "the number of queue pairs")] = 1
    mtu: Literal[256, 512, 1024, 2048, 4096] | None = None
    gid_index: Annotated[int, number(0, 255, "a GID index")] | None = None
    service_level: Annotated[int, number(0, 15, "a service level")] = 0
    traffic_class: Annotated[int, number(0, 255, "a traffic class")] = 0
    pkey_index: Annotated[int, number(0, 65535, "a P_Key index")] = 0
    retry: value.Retries | None = None
    timeout: Annotated[int, number(1, 31, "the timeout's exponent")] | None = None


Pattern = Annotated[str, choice(PATTERNS)]
Transport = Annotated[str, choice(NAMES)]
Suite = Annotated[str, choice(SUITES)]
Traffic = Literal["stream", "transfer", "burst", "pingpong", "schedule"]
Profile = Annotated[str, choice(("quick", "standard", "acceptance"))]


class BurstOptions(Strict):
    """Keys of `burst`: the frames of a burst, the gap after each burst, the number of bursts.

    Default: one burst, the longest that every switch should hold (RFC 2544, section 21).
    """

    frames: Annotated[int, number(1, 2**32 - 1, "a burst")] = 1024
    gap: value.Duration = 0
    count: Annotated[int, number(0, 2**32 - 1, "the number of bursts")] = 1


class LatencyOptions(Strict):
    """Keys of `latency`: delay measurements during the load (doc/reference/latency.md)."""

    probes: value.ProbeRate = "auto"
    one_way: Literal["auto", "on", "off"] = "auto"


class Settings(Strict):
    """Keys of a test; at the top level of a configuration, defaults of every test."""

    pattern: Pattern | None = None
    subtest: value.Name | None = None  # of `suite`
    variant: value.Name | None = None  # of a subtest with several matrices
    # parameters of patterns (patterns/pattern.h)
    forward: bool | None = None
    partners: value.Partners | None = None
    shift: Annotated[int, number(1, 32768, "shift")] | None = None
    groups: value.Groups | None = None
    count: Annotated[int, number(0, 65536, "count")] | None = None
    degree: Annotated[int, number(1, 16, "degree")] | None = None
    order: Literal["shift", "pairwise", "xor", "naive"] | None = None
    sync: Literal["barrier", "local"] | None = None
    natural: bool | None = None
    directions: Literal["both", "forward"] | None = None
    senders: Annotated[int, number(1, 65535, "the number of senders")] | None = None
    receivers: Annotated[int, number(1, 65535, "the number of receivers")] | None = None
    rotate: bool | None = None
    load_of: Literal["senders", "receivers"] | None = None
    flows: value.Flows | None = None
    random_generator: Literal["uniform", "hpcc"] | None = None
    algorithm: Annotated[str, choice(ALGORITHMS)] | None = None
    problem_class: Literal["S", "W", "A", "B", "C", "D"] | None = None
    matrix: Annotated[int, number(1, 2**31, "the matrix")] | None = None
    block: Annotated[int, number(1, 2**16, "a block")] | None = None
    dimensions: Literal[2, 3] | None = None
    # schedules
    compute: bool | None = None
    batch: Annotated[int, number(1, 1_000_000, "a batch")] | None = None
    repetitions: Annotated[int, number(1, 1_000_000_000, "the number of repetitions")] | None = None
    # place of the test: axes and their singular forms
    networks: value.Axis[value.Name] | None = None
    network: value.Name | None = None
    concurrent_networks: value.Axis[value.Name] | None = None
    transports: value.Axis[Transport] | None = None
    transport: Transport | None = None
    ranks: value.Axis[value.RankCount] | None = None
    # traffic
    frame_sizes: value.Axis[value.FrameSize] | None = None
    frame_size: value.FrameSize | None = None
    imix: value.Imix | None = None
    message_sizes: value.Axis[value.MessageSize] | None = None
    message_size: value.MessageSize | None = None
    loads: value.Axis[value.LoadField] | None = None
    load: value.LoadField | None = None
    traffic: Traffic | None = None
    transfer_size: value.TransferSize | None = None
    burst: BurstOptions | None = None
    dpdk: DpdkOptions | None = None
    packet: PacketOptions | None = None
    tcp: TcpOptions | None = None
    udp: UdpOptions | None = None
    verbs: VerbsOptions | None = None
    latency: LatencyOptions | None = None
    # profile, repeats, times and checks of the test
    profile: Profile | None = None
    repeat: value.Repeat | None = None
    interval: value.Interval | None = None
    warmup: value.Duration | None = None
    window: value.Duration | None = None
    cooldown: value.Duration | None = None
    drain_timeout: value.Duration | None = None
    drain_max: value.Duration | None = None
    connectivity_check: bool | None = None
    flood_limit: Annotated[int, number(0, 2**32 - 1, "flood_limit")] | None = None
    seed: value.Seed | None = None
    sweep: value.Swept | None = None


class ResolvedSettings(Settings):
    """Settings of a test over one transport, with every default; None: the key has no effect.

    For one point (a combination of ranks, sizes, load and swept values), `ranks`, `load`, `sizes`
    and `swept` have the values of this point.
    """

    pattern: Pattern
    transport: Transport
    latency: LatencyOptions
    profile: Profile
    repeat: value.Repeat
    traffic: Traffic
    drain_timeout: value.Duration
    drain_max: value.Duration
    connectivity_check: bool
    seed: int
    # set by the compiler, not by users
    path: Annotated[KeyPath, Field(exclude=True)] = ()  # path of the test in the document
    frame_max: Annotated[int, Field(exclude=True)] = 0  # of its ports, untagged; 0: unknown
    queue_bytes: Annotated[int | None, Field(exclude=True)] = None  # smallest queue; None: unknown
    sizes: Annotated[tuple[int, ...], Field(exclude=True)] = ()
    swept: Annotated[Mapping[str, object], Field(exclude=True)] = {}  # keys and values

    @property
    def on(self) -> tuple[str, ...]:
        """Return the networks on which the test runs: one, or several at once."""
        return tuple(self.concurrent_networks or [str(self.network)])


class Expectation(Strict):
    """Keys of a clause of `expect`, with which a run must comply (doc/reference/acceptance.md)."""

    id: value.Name | None = None
    clause: value.Name | None = None
    source: value.Name | None = None
    where: dict[str, Any] | None = None
    measure: value.Name
    over: value.Name | None = None
    require: value.Words


class AboutSwitch(Strict):
    """Identification of one switch, from its label and its command line."""

    name: value.Name | None = None
    vendor: value.Name | None = None
    model: value.Words | None = None
    serial: value.Words | None = None
    firmware: value.Words | None = None
    options: value.Words | None = None


class About(Strict):
    """Description of the device under test and of the contract, in the user's words."""

    switches: list[AboutSwitch] | None = None
    cables: value.Words | None = None
    nics: value.Words | None = None
    place: value.Words | None = None
    contract: value.Words | None = None
    customer: value.Words | None = None
    supplier: value.Words | None = None
    tester: value.Words | None = None
    remarks: value.Words | None = None


class DeviceResetKeys(Strict):
    """Command that resets the device under test, within a suite's trial."""

    command: Annotated[list[value.Name], Field(min_length=1)]
    timeout: value.Timeout = 10_000_000_000


class LabControl(Strict):
    """Keys of a lab's `control`: UDP port and timeouts of the control network."""

    udp_port: Annotated[int, number(0, 65535, "a UDP port")] = 0
    heartbeat_timeout: value.Timeout | None = None
    barrier_timeout: value.Timeout = 5_000_000_000


class SiteControl(LabControl):
    """Keys of a site's `control`: the nodes' control addresses, UDP port and timeouts.

    `address` is a template with {host}.
    """

    address: value.Name = "{host}"
    addresses: dict[str, value.Name] | None = None  # of hosts to which the template does not apply
    udp_port: Annotated[int, number(0, 65535, "a UDP port")] = 7600


class RankOrder(Strict):
    """Keys for the rank order and the groups of ports, common to labs and sites."""

    rank_order: value.Order = "host"
    groups: dict[str, value.Hosts] | None = None


class Bind(Strict):
    """Keys of `bind`: the driver to which `switchbench bind` binds ports (doc/how-to/bind.md)."""

    driver: Literal["vfio-pci", "uio_pci_generic", "igb_uio"]


class Ssh(Strict):
    """Keys of `ssh`: OpenSSH's settings, and the engine's path on hosts (doc/how-to/cluster.md)."""

    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$")] | None = None
    config: value.Name | None = None  # file for ssh -F
    engine: value.Name = ENGINE
    privilege: Literal["none", "sudo"] = "none"
    fanout: Annotated[int, number(1, 4096, "a fan-out")] = 64  # ClusterShell's default
    timeout: value.Timeout = 10_000_000_000


class Slurm(Strict):
    """Keys of `slurm`: the engine that srun starts (doc/how-to/cluster.md)."""

    engine: value.Name = ENGINE


class StartCommand(Strict):
    """Keys of `command`: the user's command that starts a program on {host}.

    The command passes the program's standard streams on.
    """

    start: list[value.Name]
    engine: value.Name = ENGINE


class LabKeys(RankOrder):
    """Keys of a lab's site, without the keys of the lab's topology."""

    lab: value.Name
    pack: Annotated[int, number(1, 65536, "pack")] = 1
    driver: Literal["af_packet", "af_xdp"] | None = None
    line_rate: value.Rate | None = None
    queues: Annotated[int, number(1, 64, "the number of queues")] | None = None
    cores: value.Cores | None = None
    control: LabControl | None = None


TOPOLOGY_KEYS = tuple(File.model_fields.keys() - {"topology", "description"})
# The topology's parser checks the values of these keys.
_TOPOLOGY: dict[str, Any] = {
    key: (Annotated[(field.annotation, *field.metadata, SkipValidation)], None)
    for key, field in File.model_fields.items()
    if key in TOPOLOGY_KEYS
}
_NODES: Any = _TOPOLOGY["nodes"][0]
_TOPOLOGY["nodes"] = (Annotated[Annotated[int, Field(ge=1)] | _NODES, SkipValidation], None)
LabSite: type[LabKeys] = create_model(
    "LabSite",
    __base__=LabKeys,
    __doc__="Lab of network namespaces; the topology's own keys override those of its file.",
    **_TOPOLOGY,
)


_PCI = r"^([0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$"
_GATEWAY = r"^[0-9a-fA-F:.]+$"
_MAC = r"^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$"


class PortKeys(Strict):
    """Keys of a host's port; in `overrides`, only the keys that differ."""

    network: value.Name | None = None
    iface: value.Name | None = None
    pci: Annotated[str, Field(pattern=_PCI)] | None = None
    vdev: value.Name | None = None
    rdma: value.RdmaPort | None = None
    driver: Literal["af_packet", "af_xdp"] | None = None
    address: Literal["keep", "own"] | None = None
    mac: Annotated[str, Field(pattern=_MAC)] | None = None
    ipv4: value.IpAddress | None = None
    ipv6: value.Ip6Address | None = None
    gateway: Annotated[str, Field(pattern=_GATEWAY)] | None = None
    tcp_address: value.Name | None = None
    line_rate: value.Rate | None = None
    mtu: Annotated[int, number(576, 9600, "an MTU")] | None = None
    queues: Annotated[int, number(1, 64, "the number of queues")] | None = None
    queue_frames: Annotated[int, number(64, 2**20, "queue_frames")] | None = None
    shared: bool | None = None
    transports: list[Transport] | None = None


class HostSite(RankOrder):
    """Keys of a site file: hosts, their ports, and the launcher that starts nodes there."""

    launch: Annotated[str, choice(LAUNCHERS)]
    hosts: value.Hosts
    without: value.Hosts | None = None  # excluded hosts
    ssh: Ssh | None = None
    slurm: Slurm | None = None
    command: StartCommand | None = None
    control: SiteControl | None = None
    cores: value.Cores | None = None
    host_cores: dict[str, value.Cores] | None = None  # of hosts that differ
    ports: dict[str, PortKeys]
    overrides: dict[str, dict[str, PortKeys]] | None = None
    bind: Bind | None = None
    wiring: value.Wiring | None = None
    fabric: value.Name | None = None  # topology file of the network between the switches
    device: DeviceKeys | None = None  # the switch under test, with all its ports


class Configuration(Settings):
    """Keys of a complete configuration file; `site` is a LabSite or a HostSite."""

    switchbench: int
    site: Annotated[str | LabSite | HostSite | None, SkipValidation] = None
    tests: list[Settings] | None = None
    about: About | None = None
    expect: list[Expectation] | None = None
    suite: Suite | None = None
    suite_parameters: dict[str, value.SuiteValue] | None = None
    device_reset: DeviceResetKeys | None = None
    time_limit: value.Duration | None = None
    remeasure: Annotated[int, number(0, 10, "remeasure")] | None = None
    on_missing: Literal["stop", "exclude"] = "stop"
    worker: Literal["auto", "sleep", "poll"] = "auto"
    clock: Annotated[str, choice(CLOCK_MODES)] = "auto"
    clock_error: value.ClockError | None = None


# --- validate -------------------------------------------------------------------------------------
# Validation of a document against a model: one sentence with a position per mistake. pydantic's
# error locations are paths of keys, which the document's marks turn into lines.

Model = TypeVar("Model", bound=BaseModel)
MISTAKES_MOST = 30


def validate(model: type[Model], document: Document, path: KeyPath = ()) -> Model:
    """Return the value at `path` as a valid model; else ConfigurationError, a line per mistake."""
    return validate_value(model, document.get(path), document, lambda below: (*path, *below))


def validate_value(
    model: type[Model], value: Any, document: Document, place: Callable[[KeyPath], KeyPath]
) -> Model:
    """Return a value as a valid model; `place` maps its keys' paths to paths in the document."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        every = reversed(error.errors(include_url=False))
        found = {place(tuple(key for key in one["loc"] if key != "[key]")): one for one in every}
    paths = sorted(found, key=lambda path: document.mark(path).line)
    first = paths[:MISTAKES_MOST]  # finding similar words takes time
    lines = [str(document.problem(path, _sentence(model, found[path]))) for path in first]
    if len(paths) > len(first):
        lines.append(f"and {len(paths) - len(first)} more mistakes")
    raise ConfigurationError("\n".join(lines))


def _sentence(model: type[BaseModel], error: Any) -> str:
    found, context = error["input"], error.get("ctx", {})
    kind = error["type"]
    if kind == "extra_forbidden":
        annotation: Any = model  # of the mapping that has the key
        for key in error["loc"][:-1]:
            annotation = _inner(annotation)
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                annotation = annotation.model_fields[str(key)].annotation
            else:  # a list or a mapping
                annotation = get_args(annotation)[-1]
        return unknown_key(error["loc"][-1], _inner(annotation).model_fields, said=True)
    axis = f"{error['loc'][-1]}s"
    if isinstance(found, list) and axis in Settings.model_fields:
        return f"takes one value: write `{axis}: [{', '.join(map(str, found))}]`"
    if kind == "literal_error":
        words = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return invalid(found, words)
    if kind in _WANTED:
        return f"found {shown(found)}, but {_WANTED[kind]} is needed"
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_pattern_mismatch":
        return f"{shown(found)} does not match the form {context['pattern']}"
    if kind == "missing":
        example = _EXAMPLES.get(str(error["loc"][-1]))
        return f"is missing: such as `{example}`" if example else "is missing"
    return f"found {shown(found)}: {error['msg'].lower()}"


_EXAMPLES = {
    "ports": "ports: {e0: {network: net, iface: enp3s0}}",
    "hosts": "hosts: node[1-8]",
    "launch": "launch: ssh",
    "measure": "measure: loss_percent",
    "require": 'require: "<= 0.5"',
}

_WANTED = {
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
}


def _inner(annotation: Any) -> Any:
    """Return a type annotation without `Annotated` and `| None`."""
    while get_origin(annotation) in (Annotated, Union, types.UnionType):
        annotation = next(item for item in get_args(annotation) if item is not type(None))
    return annotation
