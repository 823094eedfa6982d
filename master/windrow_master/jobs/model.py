"""The values of jobs: the request, its attempts, the job as its row says. Frozen; nothing here decides. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.units import SECOND, Bytes, Microcents
from windrow_proto.volumes import Mount

JobId = NewType("JobId", str)


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


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request for a job, within its limits (request.py).

    retries: further attempts after a host was lost; retries_on_exit: also after an exit code other than 0.
    max_duration_ns: of one attempt; deadline_ns: wall time by which all of it has to have ended. budget: of all
    attempts together. priority: -100 to 100, the higher goes first. after: jobs that have to succeed first.
    checkpoint_every_ns: between two looks for a newer checkpoint while it runs; 0: none is saved. packages: of Python,
    made ready before its command (packages.py). volumes: what each attempt finds, and leaves for the next.
    """

    argv: tuple[str, ...]
    name: str = ""
    gpus: int = 0
    gpu_model: str | None = None
    gpu_memory_bytes: Bytes | None = None
    cpus: int = 1
    memory_bytes: Bytes | None = None
    image: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    tier: str | None = None
    runtime: str | None = None
    simulated: bool = False
    slice: str | None = None
    max_price_per_hour: Microcents | None = None
    retries: int = 0
    retries_on_exit: bool = False
    max_duration_ns: int | None = None
    deadline_ns: int | None = None
    budget: Microcents | None = None
    priority: int = 0
    after: tuple[JobId, ...] = ()
    array_size: int = 0
    await_files: bool = False
    checkpoint_every_ns: int = 60 * SECOND
    packages: tuple[str, ...] = ()
    volumes: tuple[Mount, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One cluster that the job had. exit_code: None while unknown; outcome: in words, empty while it goes on.

    log_bytes, files_bytes: what the Master keeps of it; None where it could not be had. cost: at its end.
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
    the values of its environment, of which its request has the names, until it has ended.
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

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def has_cluster(self) -> bool:
        """True if its last attempt goes on."""
        return bool(self.attempts) and self.attempts[-1].ended_at_ns is None
