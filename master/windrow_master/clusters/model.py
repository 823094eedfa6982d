"""The values of clusters: the request, the cluster, and its workload on each host. Frozen; nothing here decides.
Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final, NewType

from windrow_master.market.model import RentalId
from windrow_master.spec import Elsewhere, Limits, Resources, Spec, Unit, Work
from windrow_proto.ids import AccountId, ClusterId, CommandId, HostId, WorkloadId
from windrow_proto.model import SlotGrant
from windrow_proto.units import DAY, MINUTE, SECOND, Bytes, Microcents

WAIT_MAX_NS: Final = 365 * DAY
"""As long as the longest running time: who says no time waits without end."""
HOSTS_MAX: Final = 64
"""Hosts of one cluster. Each adds a command, a lease and a row to one transaction."""
PORTS_MAX: Final = 32
SSH_KEYS_MAX: Final = 16
SSH_KEY_CHARS_MAX: Final = 4_096
"""An RSA key of 16,384 bits, the largest that OpenSSH makes, has some 2,800."""
STEPS_KEPT: Final = 64
"""Steps of progress a cluster remembers; the oldest go first."""


MEMBERS_SECRET: Final = ""
"""Under which name the sealed values of a cluster hold its members' secret: no variable is called so."""


def names_of(env: Iterable[str]) -> dict[str, str]:
    """Return the names of an environment, which a row keeps in the open."""
    return dict.fromkeys(env, "")


def sealed_for(owner: str) -> str:
    """The purpose that an environment's values are sealed for. owner: a cluster, the first job of a submission, or a
    template."""
    return f"env|{owner}"


def template_owner(account_id: AccountId, name: str) -> str:
    """Return the owner of a template's values."""
    return f"{account_id}|{name}"


class ClusterKind(StrEnum):
    """The kind of a cluster: a BOX to work in, a SERVICE with ports, or, over one or more hosts, a GANG whose
    members run the same command and know each other, a RAY or a DASK cluster."""

    BOX = "box"
    SERVICE = "service"
    GANG = "gang"
    RAY = "ray"
    DASK = "dask"


OVER_HOSTS: Final = frozenset({ClusterKind.GANG, ClusterKind.RAY, ClusterKind.DASK})
"""Kinds whose members wait for each other, know each other's addresses, and may be on several hosts."""


class NetworkMode(StrEnum):
    """The network of members on several hosts: NONE, DIRECT at their hosts' addresses, or in a private network whose
    packets go by TUNNELS through Accesses."""

    NONE = ""
    DIRECT = "direct"
    TUNNELS = "tunnels"


@dataclass(frozen=True, slots=True)
class Network:
    """The network of a cluster's members, and the reason for it."""

    mode: NetworkMode = NetworkMode.NONE
    reason: str = ""


class ClusterPhase(StrEnum):
    """The phase of a cluster between its request and its end; states.py has the table."""

    REQUESTED = "Requested"
    QUEUED = "Queued"
    PLACING = "Placing"
    CREATING = "Creating"
    RUNNING = "Running"
    DEGRADED = "Degraded"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    DELETING = "Deleting"
    DELETED = "Deleted"
    FINISHED = "Finished"
    FAILED = "Failed"


class WorkPhase(StrEnum):
    """The phase that a workload is known to have reached, in this order; EXITED and FAILED are two ends of running."""

    PENDING = "pending"
    PREPARING = "preparing"
    WAITING_VOLUMES = "waiting_volumes"
    WAITING_FILES = "waiting_files"
    WAITING_MEMBERS = "waiting_members"
    RUNNING = "running"
    EXITED = "exited"
    FAILED = "failed"
    STOPPING = "stopping"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest(Limits, Resources, Work, Elsewhere):
    """A request for a cluster, as it is kept and shown again; request.py checks what its fields must be together."""

    kind: Annotated[ClusterKind, Spec(flag="--kind", text="box, service, gang, ray or dask")] = ClusterKind.BOX
    ports: Annotated[
        tuple[int, ...],
        Spec(
            items=PORTS_MAX,
            least=1,
            most=65_535,
            flag="--port",
            text="Ports of the service",
            help="Port of the service.",
        ),
    ] = ()
    hosts: Annotated[
        int,
        Spec(
            least=1,
            most=HOSTS_MAX,
            flag="--hosts",
            text="Number of hosts (gang, ray, dask); each provides these resources",
        ),
    ] = 1
    restart_members: Annotated[
        bool, Spec(flag="--restart-members", text="Restart all hosts' programs when one is lost")
    ] = False
    ssh_keys: Annotated[
        tuple[str, ...],
        Spec(items=SSH_KEYS_MAX, chars=SSH_KEY_CHARS_MAX, text="Public keys that may log in to a machine"),
    ] = ()
    notebook: Annotated[bool, Spec(text="Start Jupyter on the machine")] = False
    idle_ns: Annotated[
        int | None,
        Spec(
            least=MINUTE,
            most=30 * DAY,
            unit=Unit.SECONDS,
            name="idle_seconds",
            flag="--idle",
            text="End it when unused this long: no command, file transfer or tunnel",
            help="End it when unused this long (no command, file transfer or tunnel): 30m.",
        ),
    ] = None
    client_lease_ns: Annotated[
        int | None,
        Spec(
            least=10 * SECOND,
            most=DAY,
            unit=Unit.WHOLE_SECONDS,
            name="client_lease_s",
            text="End it after this long without `POST /clusters/{id}/renew`",
        ),
    ] = None
    wait_ns: Annotated[
        int | None,
        Spec(
            least=SECOND,
            most=WAIT_MAX_NS,
            unit=Unit.SECONDS,
            name="wait_seconds",
            text="Wait in the queue this long where there is no place now; else it is refused",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Template:
    """A request that an account keeps by name, to ask for it again. sealed: the values of its environment."""

    account_id: AccountId
    name: str
    request: ClusterRequest
    saved_at_ns: int
    sealed: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of progress: pulling, preparing, starting, ...; permille of it done, where the host says so.

    member: whose it is, where a cluster has several.
    """

    at_ns: int
    name: str
    progress_permille: int | None = None
    detail: str = ""
    member: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A named set of slots and what it is for. version grows with each change that is worth showing.

    first_port: of the block of ports that its members listen on among themselves, or a box that is a process; None: it
    has none. restarts: how often its members were started anew, or one of them replaced. secret: what its members show
    each other, where their engine asks for that, and shown to nobody else; of a box, the token of its notebook. sealed:
    in a row, that secret and the values of its environment, of which the request then has the names only, until it has
    ended (environments.py).
    network, network_reason: how its members meet, and why so. needs_login: its image was pulled with a login of its
    registry, which was kept nowhere. spenders: whose limits it will count for, while it waits. started_at_ns,
    ended_at_ns: of its present run; stopping ends one, too.
    """

    cluster_id: ClusterId
    account_id: AccountId
    request: ClusterRequest
    phase: ClusterPhase
    rental_id: RentalId
    tier: str
    price_per_hour: Microcents
    created_at_ns: int
    reason: str = ""
    steps: tuple[Step, ...] = ()
    started_at_ns: int | None = None
    ended_at_ns: int | None = None
    version: int = 1
    first_port: int | None = None
    restarts: int = 0
    secret: str | None = field(default=None, repr=False)
    network: NetworkMode = NetworkMode.NONE
    network_reason: str = ""
    needs_login: bool = False
    sealed: bytes = field(default=b"", repr=False)
    spenders: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def kind(self) -> ClusterKind:
        return self.request.kind


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic of a service through Accesses, as its hosts counted it."""

    connections: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    def plus(self, other: "Traffic") -> "Traffic":
        """Both together."""
        return Traffic(
            self.connections + other.connections, self.bytes_in + other.bytes_in, self.bytes_out + other.bytes_out
        )


@dataclass(frozen=True, slots=True)
class Results:
    """The results that the Master keeps of work that has ended by itself: its log, and a tar of the files that it
    changed.

    log_bytes, files_bytes: of what is kept; 0: it printed, or changed, nothing; None: it could not be had. problem:
    what is missing of it, by name, and why; empty: nothing is.
    """

    kept_at_ns: int
    log_bytes: int | None = None
    is_log_cut: bool = False
    files_bytes: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """The part of a cluster that runs on one host: one container or one process tree.

    lost_since_ns: its host is not heard of since then. ended_at_ns: when it was first seen to have ended by itself.
    is_released: its slots were given back; nothing of it is left. rank: which member it is, 0 the first; address: where
    the others reach it. replaced_at_ns: since when it only has to go, and another has its rank or will. is_past: it is
    of an earlier run, before its cluster was stopped and started again. results: what the Master keeps of it since its
    command ended by itself; None: not yet, or it was ended.
    """

    workload_id: WorkloadId
    cluster_id: ClusterId
    host_id: HostId
    host_name: str
    runtime: str
    image: str
    slots: tuple[SlotGrant, ...]
    cpus: int
    memory_bytes: Bytes
    created_at_ns: int
    phase: WorkPhase = WorkPhase.PENDING
    detail: str = ""
    exit_code: int | None = None
    running_ns: int = 0
    ports: Mapping[str, int] = field(default_factory=dict)
    create_command: CommandId | None = None
    delete_command: CommandId | None = None
    lost_since_ns: int | None = None
    ended_at_ns: int | None = None
    is_released: bool = False
    rank: int = 0
    address: str | None = None
    start_command: CommandId | None = None
    replaced_at_ns: int | None = None
    is_past: bool = False
    results: Results | None = None

    @property
    def is_member(self) -> bool:
        """True if it still is one of its cluster's; else another has its rank."""
        return self.replaced_at_ns is None and not self.is_past

    @property
    def token(self) -> int:
        """The highest token of its slots."""
        return max((slot.token for slot in self.slots), default=0)


# --- artefacts ------------------------------------------------------------------------------------------------------

ObjectKey = NewType("ObjectKey", str)
"""Names one object in a store: parts of letters, digits, `.`, `_`, `=`, `+` and `-`, joined by `/`; made by
artefacts.model.object_key."""


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file that outlives what made it. owner_kind, owner_id: of what it is, such as ("cluster", its id).

    name: a path among the owner's artefacts. sha256: of the plain bytes, in hexadecimal. expires_at_ns: None: never.
    """

    artefact_id: str
    account_id: AccountId
    owner_kind: str
    owner_id: str
    name: str
    object_key: ObjectKey
    wrapped_key: bytes = field(repr=False)
    size_bytes: int
    sha256: str
    created_at_ns: int
    expires_at_ns: int | None


# --- volumes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Volume:
    """A named folder of an account, kept as whole versions in the store of objects.

    max_bytes: of one version. version: the newest that was begun, 0: none; each claims the one after it. size_bytes,
    files, saved_at_ns: of the newest that is whole. problem: why the last save came to nothing; empty: it did not.
    """

    volume_id: str
    account_id: AccountId
    name: str
    max_bytes: int
    created_at_ns: int
    version: int = 0
    size_bytes: int = 0
    files: int = 0
    saved_at_ns: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Use:
    """A cluster that has a volume. writes: it is the one that writes it."""

    volume_id: str
    cluster_id: ClusterId
    writes: bool
