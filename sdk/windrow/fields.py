"""The fields of requests for clusters and jobs; `make openapi` writes this file from the Master's spec."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple, TypedDict


class Field(NamedTuple):
    """One field. name: in JSON. kind: of its value: text, whole, yes, size, span, money, time, texts, wholes or map.
    default: the Master's, None: nothing. flag: of the command line, empty: none, or one that a verb reads itself.
    """

    name: str
    kind: str
    default: str | float | tuple[str, ...] | None = None
    flag: str = ""
    help: str = ""
    least: int | None = None
    most: int | None = None
    is_filter: bool = False


COMMON: Final = (
    Field("name", "text", flag="--name", help="What you call it.", is_filter=True),
    Field("env", "map"),
    Field("await_files", "yes"),
    Field("simulated", "yes"),
    Field("volumes", "texts", flag="--volume", help="A volume, and where it is found, as NAME:/path or NAME:/path:ro."),
    Field("gpus", "whole", least=0, most=64),
    Field("gpu_model", "text"),
    Field("gpu_memory_bytes", "size"),
    Field("cpus", "whole", default=1, flag="--cpus", help="Processors.", least=1, most=4096),
    Field("memory_bytes", "size", flag="--memory", help="Main memory, for example 8GB."),
    Field("slice", "text", flag="--slice", help="A slice of a GPU by its profile: 1g.10gb (with --gpu)."),
    Field("image", "text", flag="--image", help="Container image; without one your own host runs a process."),
    Field("tier", "text", flag="--tier", help="Only this tier, for example h100/A."),
    Field("runtime", "text", flag="--runtime", help="docker, process or simulated; the Master chooses."),
    Field("max_price_per_hour", "money", flag="--max-price", help="Per hour, for all of it."),
    Field("budget", "money", flag="--budget", help="It is ended before it costs more."),
)
CLUSTER: Final = (
    *COMMON,
    Field("argv", "texts"),
    Field("max_duration_seconds", "span", flag="--max-duration", help="End it then: 90s, 30m, 8h, 2d."),
    Field("kind", "text", default="box", flag="--kind", help="box, service, gang, ray or dask."),
    Field("ports", "wholes", flag="--port", help="Port it serves."),
    Field("host_id", "text", flag="--host", help="Only this host."),
    Field("hosts", "whole", default=1, flag="--hosts", help="Of a gang, ray or dask: each gives all of this.", least=1, most=64),
    Field("restart_members", "yes", flag="--restart-members", help="Starts a whole gang again when a member is lost, instead of failing."),
    Field("ssh_keys", "texts"),
    Field("notebook", "yes"),
    Field("idle_seconds", "span", flag="--idle", help="End it after so long without a command, file or tunnel: 30m."),
    Field("client_lease_s", "span"),
)
JOB: Final = (
    *COMMON,
    Field("argv", "texts"),
    Field("max_duration_seconds", "span", flag="--max-duration", help="Of one attempt: 90s, 30m, 8h, 2d."),
    Field("retries", "whole", flag="--retries", help="Begin again so often after its host was lost.", least=0, most=100),
    Field("retries_on_exit", "yes", flag="--retry-on-exit", help="Also after an exit code other than 0."),
    Field("deadline", "time", flag="--deadline", help="All of it, an RFC 3339 time: 2030-01-31T18:00:00Z."),
    Field("priority", "whole", flag="--priority", help="The higher goes first.", least=-100, most=100),
    Field("after", "texts", flag="--after", help="A job that has to succeed first."),
    Field("array_size", "whole", flag="--array", help="So many, each with WINDROW_ARRAY_INDEX from 0.", least=0, most=1000),
    Field("checkpoint_every_seconds", "span", default=60.0, flag="--checkpoint-every", help="Look so often for a newer checkpoint; 0: never."),
    Field("packages", "texts"),
)


class ClusterFields(TypedDict, total=False):
    """The fields of a cluster's request that a call may give by name; None: not given."""

    simulated: bool | None
    volumes: Sequence[str] | None
    gpus: int | None
    gpu_model: str | None
    gpu_memory_bytes: int | str | None
    cpus: int | None
    memory_bytes: int | str | None
    slice: str | None
    image: str | None
    tier: str | None
    runtime: str | None
    max_price_per_hour: str | Decimal | int | None
    max_duration_seconds: float | str | None
    budget: str | Decimal | int | None
    ports: Sequence[int] | None
    host_id: str | None
    hosts: int | None
    restart_members: bool | None
    ssh_keys: Sequence[str] | None
    notebook: bool | None
    idle_seconds: float | str | None
    client_lease_s: float | str | None


class JobFields(TypedDict, total=False):
    """The fields of a job's request that a call may give by name; None: not given."""

    simulated: bool | None
    volumes: Sequence[str] | None
    gpus: int | None
    gpu_model: str | None
    gpu_memory_bytes: int | str | None
    cpus: int | None
    memory_bytes: int | str | None
    slice: str | None
    image: str | None
    tier: str | None
    runtime: str | None
    max_price_per_hour: str | Decimal | int | None
    max_duration_seconds: float | str | None
    budget: str | Decimal | int | None
    retries: int | None
    retries_on_exit: bool | None
    deadline: str | datetime | None
    priority: int | None
    array_size: int | None
    checkpoint_every_seconds: float | str | None
    packages: Sequence[str] | None
