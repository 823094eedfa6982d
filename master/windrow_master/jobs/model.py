"""The values of jobs: the request, its attempts, the job as its row says. Frozen; nothing here decides. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final, NewType

from windrow_master.queue.model import PRIORITY_MAX, PriorityClass, When
from windrow_master.spec import ARGV_MAX, TEXT_MAX, Elsewhere, Limits, Resources, Spec, Unit, Work
from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.units import DAY, SECOND, Microcents, money_text

JobId = NewType("JobId", str)

RETRIES_MAX: Final = 100
ARRAY_MAX: Final = 1_000
AFTER_MAX: Final = 100
PACKAGES_MAX: Final = 500
PACKAGE_MAX: Final = 500
"""Characters of one."""


CLASSES: Final = tuple(one.name.lower() for one in PriorityClass)
"""Classes in the queue, the first one first."""


class JobState(StrEnum):
    """The state of a job between its request and its end; states.py has the table.

    SUBMITTED: waits for its folder or for the jobs it comes after. CHECKPOINTING: its work is over or is being ended,
    and its log and files are brought in. MIGRATING: an attempt is lost, and another host is looked for.
    """

    SUBMITTED = "Submitted"
    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    CHECKPOINTING = "Checkpointing"
    MIGRATING = "Migrating"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    LOST = "Lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest(Limits, Resources, Work, Elsewhere):
    """A request for a job, as it is kept and shown again; request.py checks what its fields must be together.

    max_duration_ns: of one attempt; deadline_ns, begin_ns: wall time. budget: of all attempts together. packages:
    see packages.py. volumes: what each attempt finds, and leaves for the next.
    """

    argv: Annotated[
        tuple[str, ...], Spec(items_least=1, items=ARGV_MAX, chars=TEXT_MAX, text="The command, a word each")
    ] = ()
    retries: Annotated[
        int,
        Spec(
            least=0,
            most=RETRIES_MAX,
            flag="--retries",
            text="Retries when the host fails",
        ),
    ] = 0
    retries_on_exit: Annotated[
        bool, Spec(flag="--retry-on-exit", text="Retry also after an exit code other than 0")
    ] = False
    max_duration_ns: Annotated[
        int | None,
        Spec(
            least=SECOND,
            most=30 * DAY,
            unit=Unit.SECONDS,
            name="max_duration_seconds",
            flag="--max-duration",
            text="Longest running time of one attempt",
            help="Longest running time of one attempt: 90s, 30m, 8h, 2d.",
        ),
    ] = None
    deadline_ns: Annotated[
        int | None,
        Spec(
            unit=Unit.TIME,
            name="deadline",
            flag="--deadline",
            text="Latest end of the job",
            help="Latest end of the job, an RFC 3339 time: 2030-01-31T18:00:00Z.",
        ),
    ] = None
    priority: Annotated[
        int,
        Spec(
            least=-PRIORITY_MAX,
            most=PRIORITY_MAX,
            flag="--priority",
            text="Priority within its class; a higher number starts first",
        ),
    ] = 0
    priority_class: Annotated[
        str,
        Spec(
            choices=CLASSES,
            flag="--class",
            text="Class in the queue: urgent, normal, low or spot; a class before another starts first",
        ),
    ] = "normal"
    begin_ns: Annotated[
        int | None,
        Spec(
            unit=Unit.TIME,
            name="begin_at",
            flag="--begin",
            text="Earliest start of the job",
            help="Earliest start: 18:00 (here, today or tomorrow) or an RFC 3339 time.",
        ),
    ] = None
    after: Annotated[
        tuple[JobId, ...],
        Spec(items=AFTER_MAX, flag="--after", text="Jobs that must succeed first", help="Job that must succeed first."),
    ] = ()
    after_any: Annotated[
        tuple[JobId, ...],
        Spec(
            items=AFTER_MAX,
            flag="--after-any",
            text="Jobs that must end first, in whatever way",
            help="Job that must end first, in whatever way.",
        ),
    ] = ()
    after_failure: Annotated[
        tuple[JobId, ...],
        Spec(
            items=AFTER_MAX,
            flag="--after-failure",
            text="Jobs that must end first without success: failed, cancelled or lost",
            help="Job that must end first without success.",
        ),
    ] = ()
    route_id: Annotated[
        str | None,
        Spec(
            chars=64,
            flag="--route",
            text="Kept estimate (windrow route --kept) to compare with the job's cost; it chooses no place",
            is_filter=True,
        ),
    ] = None
    array_size: Annotated[
        int,
        Spec(least=0, most=ARRAY_MAX, text="Number of copies, each with its index"),
    ] = 0
    array_at_once: Annotated[
        int | None, Spec(least=1, most=ARRAY_MAX, text="Copies of an array that run at once, at most; null: all")
    ] = None
    checkpoint_every_ns: Annotated[
        int,
        Spec(
            least=0,
            most=DAY,
            unit=Unit.SECONDS,
            name="checkpoint_every_seconds",
            flag="--checkpoint-every",
            text="Checkpoint interval; 0: off",
            help="Checkpoint interval (60s, 10m); 0: off.",
        ),
    ] = 60 * SECOND
    packages: Annotated[
        tuple[str, ...],
        Spec(items=PACKAGES_MAX, chars=PACKAGE_MAX, text="Python packages (PEP 508) to install before the command"),
    ] = ()

    @property
    def comes_after(self) -> Mapping[JobId, When]:
        """The jobs that it comes after, each with how it has to end."""
        ways = (self.after, When.OK), (self.after_any, When.ANY), (self.after_failure, When.FAILURE)
        return {job_id: when for job_ids, when in ways for job_id in job_ids}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptPlace:
    """A place of an attempt that was bought. backend: its name; machine: its type, as `m5.large`; zone: empty: not
    known. is_service: it runs code by itself, and there is no machine of ours. currency: of the price. purchase_id,
    run_id: what was bought; the other is empty."""

    backend: str
    is_service: bool = False
    machine: str
    region: str
    zone: str = ""
    is_spot: bool = False
    price_per_hour: Microcents
    currency: str
    purchase_id: str = ""
    run_id: str = ""

    @property
    def where(self) -> str:
        """Its backend and zone."""
        return f"{self.backend} {self.zone or self.region}".rstrip()

    @property
    def text(self) -> str:
        """The place in words."""
        kind, price = "spot " if self.is_spot else "", money_text(self.price_per_hour)
        return f"{self.where}, {kind}{self.machine} ({price} {self.currency} an hour)"


NO_CLUSTER: Final = ClusterId("")
"""Of an attempt that is a run."""
HERE: Final = "this market"
"""The place of an attempt on a host that was not bought, in words."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One cluster that the job had, or one run at a service. exit_code: None while unknown; outcome: in words, empty
    while it goes on.

    log_bytes, files_bytes: what the Master keeps of it; None where it could not be had. is_requeued: somebody put the
    job back into the queue, or its host said that it would be gone, which uses up no retry. place: None: a host of this
    market. cluster_id: empty where it is a run.
    """

    cluster_id: ClusterId
    began_at_ns: int
    started_at_ns: int | None = None
    ended_at_ns: int | None = None
    exit_code: int | None = None
    outcome: str = ""
    log_bytes: int | None = None
    log_truncated: bool = False
    files_bytes: int | None = None
    files_truncated: bool = False
    is_requeued: bool = False
    place: AttemptPlace | None = None

    @property
    def where(self) -> str:
        """Its place in words."""
        return HERE if self.place is None else self.place.text

    @property
    def run_id(self) -> str:
        """The run at a service that it is; empty: it is a cluster."""
        return "" if self.place is None else self.place.run_id

    @property
    def rented_as(self) -> ClusterId:
        """The id by which its rental names what is rented: its cluster, or its run."""
        return self.cluster_id or ClusterId(self.run_id)


class Verdict(StrEnum):
    """The end of a job once its log and files are in."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class Job:
    """One job. group: the submission it came with; an array has several of one group, and they share its folder.

    verdict: set while it is Checkpointing. folder_bytes: of the folder that the Master keeps for it; None: not there.
    login: of its image's registry, sealed (logins.py); None: none was given; empty: it was, and is dropped. sealed_env:
    the values of its environment, of which its request has the names, until it has ended. spenders: of who asked for
    it, as a `Principal` has them: its clusters count for their limits. held_by: who keeps it from starting; empty:
    nobody. released_ns: wall time at which it was last released or put back into the queue, and waits since. is_top:
    before all others of its project and class.
    """

    job_id: JobId
    account_id: AccountId
    group: str
    request: JobRequest
    state: JobState
    created_at_ns: int
    array_index: int = 0
    reason: str = ""
    attempts: tuple[Attempt, ...] = ()
    verdict: Verdict | None = None
    folder_bytes: int | None = None
    ended_at_ns: int | None = None
    version: int = 1
    login: bytes | None = field(default=None, repr=False)
    sealed_env: bytes = field(default=b"", repr=False)
    spenders: tuple[str, ...] = ()
    held_by: str = ""
    released_ns: int = 0
    is_top: bool = False

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def has_cluster(self) -> bool:
        """True if its last attempt goes on."""
        return bool(self.attempts) and self.attempts[-1].ended_at_ns is None
