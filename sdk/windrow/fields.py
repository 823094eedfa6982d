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
    may_be_empty: bool = False


COMMON: Final = (
    Field("backend", "text", flag="--backend", help="Buy a machine at this backend (any: at each) where there is no room here."),
    Field("optimize", "text"),
    Field("spot", "yes", flag="--spot", help="With backend: spot machines first, which their provider may take back."),
    Field("name", "text", flag="--name", help="Name; default: generated.", is_filter=True),
    Field("entrypoint", "text", flag="--entrypoint", help="Program in place of the image's ENTRYPOINT; '' for none, so that the command runs by itself.", may_be_empty=True),
    Field("env", "map"),
    Field("secrets", "texts", flag="--secret", help="Secret of the project and the variable that holds it, as NAME or NAME=VARIABLE."),
    Field("registry_secret", "text", flag="--registry-secret", help="Secret of the project that holds the login of the image's registry."),
    Field("await_files", "yes"),
    Field("simulated", "yes"),
    Field("volumes", "texts", flag="--volume", help="Volume and its path, as NAME:/path (:ro = read-only)."),
    Field("gpus", "whole", least=0, most=64),
    Field("gpu_model", "text"),
    Field("gpu_memory_bytes", "size"),
    Field("cpus", "whole", default=1, flag="--cpus", help="Number of CPUs.", least=1, most=4096),
    Field("memory_bytes", "size", flag="--memory", help="Main memory, for example 8GB."),
    Field("slice", "text", flag="--slice", help="A slice of a GPU by its profile: 1g.10gb (with --gpu)."),
    Field("image", "text", flag="--image", help="Container image; default: a plain process on your own host, elsewhere the host's default image."),
    Field("tier", "text", flag="--tier", help="Only this tier, for example h100/A."),
    Field("runtime", "text", flag="--runtime", help="docker, process or simulated; default: the Master chooses."),
    Field("host_id", "text", flag="--host", help="Only this host."),
    Field("max_price_per_hour", "money", flag="--max-price", help="Highest price per hour, for all hosts together."),
    Field("region", "text", flag="--region", help="Only hosts whose relay is in this region."),
    Field("near", "text", flag="--near", help="REGION or VOLUME, then :MS; only hosts in it, or within MS milliseconds (0 to 1000, else 30)."),
    Field("country", "text", flag="--country", help="Two capital letters (DE); only hosts whose owners say so."),
    Field("provider_id", "text", flag="--provider", help="Only hosts of this project, by its name or id."),
    Field("labels", "texts", flag="--label", help="WORD or KEY=VALUE; only hosts with this label."),
    Field("min_bandwidth_mbps", "whole", flag="--min-bandwidth", help="Mbit/s, measured each way, at least.", least=1, most=1000000),
    Field("min_reliability_percent", "whole", flag="--min-reliability", help="Reliability of the host in per cent, at least.", least=1, most=100),
    Field("verified", "yes", flag="--verified", help="Only hosts whose hardware was checked."),
    Field("budget", "money", flag="--budget", help="End it before it costs more than this."),
)
CLUSTER: Final = (
    *COMMON,
    Field("argv", "texts"),
    Field("max_duration_seconds", "span", flag="--max-duration", help="Longest running time: 90s, 30m, 8h, 2d."),
    Field("kind", "text", default="box", flag="--kind", help="box, service, gang, ray or dask."),
    Field("ports", "wholes", flag="--port", help="Port of the service."),
    Field("hosts", "whole", default=1, flag="--hosts", help="Number of hosts (gang, ray, dask); each provides these resources.", least=1, most=64),
    Field("restart_members", "yes", flag="--restart-members", help="Restart all hosts' programs when one is lost."),
    Field("ssh_keys", "texts"),
    Field("notebook", "yes"),
    Field("idle_seconds", "span", flag="--idle", help="End it when unused this long (no command, file transfer or tunnel): 30m."),
    Field("client_lease_s", "span"),
    Field("wait_seconds", "span"),
)
JOB: Final = (
    *COMMON,
    Field("argv", "texts"),
    Field("max_duration_seconds", "span", flag="--max-duration", help="Longest running time of one attempt: 90s, 30m, 8h, 2d."),
    Field("retries", "whole", flag="--retries", help="Retries when the host fails.", least=0, most=100),
    Field("retries_on_exit", "yes", flag="--retry-on-exit", help="Retry also after an exit code other than 0."),
    Field("deadline", "time", flag="--deadline", help="Latest end of the job, an RFC 3339 time: 2030-01-31T18:00:00Z."),
    Field("priority", "whole", flag="--priority", help="Priority within its class; a higher number starts first.", least=-100, most=100),
    Field("priority_class", "text", default="normal", flag="--class", help="Class in the queue: urgent, normal, low or spot; a class before another starts first."),
    Field("begin_at", "time", flag="--begin", help="Earliest start: 18:00 (here, today or tomorrow) or an RFC 3339 time."),
    Field("after", "texts", flag="--after", help="Job that must succeed first."),
    Field("after_any", "texts", flag="--after-any", help="Job that must end first, in whatever way."),
    Field("after_failure", "texts", flag="--after-failure", help="Job that must end first without success."),
    Field("route_id", "text", flag="--route", help="Kept estimate (windrow route --kept) to compare with the job's cost; it chooses no place.", is_filter=True),
    Field("array_size", "whole", least=0, most=1000),
    Field("array_at_once", "whole", least=1, most=1000),
    Field("checkpoint_every_seconds", "span", default=60.0, flag="--checkpoint-every", help="Checkpoint interval (60s, 10m); 0: off."),
    Field("packages", "texts"),
)


class ClusterFields(TypedDict, total=False):
    """The fields of a cluster's request that a call may give by name; None: not given."""

    backend: str | None
    spot: bool | None
    entrypoint: str | None
    secrets: Sequence[str] | None
    registry_secret: str | None
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
    host_id: str | None
    max_price_per_hour: str | Decimal | int | None
    region: str | None
    near: str | None
    country: str | None
    provider_id: str | None
    labels: Sequence[str] | None
    min_bandwidth_mbps: int | None
    min_reliability_percent: int | None
    verified: bool | None
    max_duration_seconds: float | str | None
    budget: str | Decimal | int | None
    ports: Sequence[int] | None
    hosts: int | None
    restart_members: bool | None
    ssh_keys: Sequence[str] | None
    notebook: bool | None
    idle_seconds: float | str | None
    client_lease_s: float | str | None
    wait_seconds: float | str | None


class JobFields(TypedDict, total=False):
    """The fields of a job's request that a call may give by name; None: not given."""

    backend: str | None
    spot: bool | None
    entrypoint: str | None
    secrets: Sequence[str] | None
    registry_secret: str | None
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
    host_id: str | None
    max_price_per_hour: str | Decimal | int | None
    region: str | None
    near: str | None
    country: str | None
    provider_id: str | None
    labels: Sequence[str] | None
    min_bandwidth_mbps: int | None
    min_reliability_percent: int | None
    verified: bool | None
    max_duration_seconds: float | str | None
    budget: str | Decimal | int | None
    retries: int | None
    retries_on_exit: bool | None
    deadline: str | datetime | None
    priority: int | None
    priority_class: str | None
    begin_at: str | datetime | None
    after_any: Sequence[str] | None
    after_failure: Sequence[str] | None
    route_id: str | None
    array_size: int | None
    array_at_once: int | None
    checkpoint_every_seconds: float | str | None
    packages: Sequence[str] | None
