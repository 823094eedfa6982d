"""Jobs for programs: submit, look, wait, read the log, fetch what it left, cancel; plain and asynchronous by one core.

What is watched is a `Monitor` or a `Log`: it serves `for` and `async for` alike. Calls of one kind have an `aio_` twin.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, Unpack

from windrow import routing
from windrow.cli.request import body, name_from, parse_gpu
from windrow.client import JOB_LOOK_S, Client
from windrow.config import find
from windrow.errors import (
    ApiProblem,
    InvalidInput,
    MasterUnreachable,
    NotFound,
    WaitTimedOut,
    WindrowClientError,
)
from windrow.fields import JOB, JobFields
from windrow.folder.returning import lines
from windrow.folder.sending import survey
from windrow.folder.transfer import bring, send
from windrow.telling import tell
from windrow.transport import Json

LOOK_MAX_S: Final = 5.0
"""Between two looks at a job where nothing changes; after a change it is JOB_LOOK_S, and grows."""
LOOK_GROWTH: Final = 1.5
ABSENT_S: Final = 120.0
"""For so long a watch bears a Master that does not answer: another one takes over, or it is started again."""
HERE: Final = "windrow"
"""The backend of an attempt on a host of the market."""
LINE_MAX: Final = 64 * 1024
"""Bytes of a line of a log; a longer one comes in pieces of that."""
AHEAD: Final = 1_000
"""Lines of a log that are read ahead of an asynchronous reader."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job as it was at one look.

    state: as in docs/jobs.md. attempt: which one, from 1; 0 before the first. cluster_id: of that attempt;
    previous_cluster_id: of the one before, where it had to move. backend: where that attempt is, `windrow` for a host
    of the market; previous_backend: of the one before; place: the same in words, with zone, type and price; empty: a
    host of the market. step, step_progress: where its cluster is while it starts, and the part of this step that is
    done, from 0 to 1. progress: per cent of the expected running time that its attempts have run, 99 at most before it
    has succeeded. cost: so far, of all attempts. None: not known, or not there.
    """

    id: str
    state: str
    reason: str | None
    attempt: int
    cluster_id: str | None
    previous_cluster_id: str | None
    step: str | None
    step_progress: float | None
    cost: Decimal
    exit_code: int | None
    is_over: bool
    backend: str = HERE
    previous_backend: str | None = None
    place: str = ""
    progress: int | None = None

    @property
    def backend_changed(self) -> bool:
        """True if its last attempt is at another backend than the one before."""
        return self.previous_backend not in (None, self.backend)

    @property
    def succeeded(self) -> bool:
        """True if it has ended well."""
        return self.state == "Succeeded"


def status_of(job: Json, cluster: Json | None, hours: float | None = None) -> JobStatus:
    """From what the API says of a job, and of its cluster where that was asked. hours: that it is expected to run."""
    ids = [str(attempt["cluster_id"]) for attempt in job["attempts"]]
    step = (cluster or {}).get("steps", [])[-1:]
    places = [attempt.get("place") for attempt in job["attempts"]]
    backends = [str(place["backend"]) if place else HERE for place in places]
    return JobStatus(
        id=str(job["id"]),
        state=str(job["state"]),
        reason=job["reason"],
        attempt=len(ids),
        cluster_id=ids[-1] if ids else None,
        previous_cluster_id=ids[-2] if len(ids) > 1 else None,
        step=" ".join(filter(None, (step[0]["name"], step[0]["detail"]))) if step else None,
        step_progress=step[0]["progress"] if step else None,
        cost=Decimal(job["cost_so_far"]),
        exit_code=job["exit_code"],
        is_over=job["ended_at"] is not None,
        backend=backends[-1] if backends else HERE,
        previous_backend=backends[-2] if len(backends) > 1 else None,
        place=str(places[-1]["text"]) if places and places[-1] else "",
        progress=_percent(job, hours, time.time()),
    )


def _percent(job: Json, hours: float | None, now_s: float) -> int | None:
    if job["state"] == "Succeeded":
        return 100
    if hours is None:
        return None
    ran_s = sum(
        (_seconds(one["ended_at"]) if one.get("ended_at") else now_s) - _seconds(one["started_at"])
        for one in job["attempts"]
        if one.get("started_at")
    )
    return max(0, min(99, int(100 * ran_s / (hours * 3600))))


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


class _Watch:
    """The state that both kinds of loop share: one look, whether it is news, and how long to wait for the next."""

    def __init__(self, job: "Job", timeout_s: float | None) -> None:
        self._job, self._timeout_s = job, timeout_s
        self._began = self._answered = time.monotonic()
        self._seen: object = None
        self._pause_s = JOB_LOOK_S
        self.is_over = False

    def look(self) -> JobStatus | None:
        """The status where it is news. Raises WindrowClientError; WaitTimedOut."""
        status = self._asked()
        if status is not None:
            self.is_over = status.is_over
            progress = (status.step, status.step_progress, status.progress)
            told = (status.state, status.reason, status.attempt, *progress, status.is_over)
            if told != self._seen:
                self._seen, self._pause_s = told, JOB_LOOK_S
                return status
        if self._left_s() <= 0:
            raise WaitTimedOut(f"{self._job.id} has not ended within {self._timeout_s} s; it goes on.")
        return None

    def pause_s(self) -> float:
        """Until the next look."""
        now, self._pause_s = self._pause_s, min(self._pause_s * LOOK_GROWTH, LOOK_MAX_S)
        return max(0.0, min(now, self._left_s()))

    def _left_s(self) -> float:
        return float("inf") if self._timeout_s is None else self._began + self._timeout_s - time.monotonic()

    def _asked(self) -> JobStatus | None:
        try:
            status = self._job.status()
        except (MasterUnreachable, ApiProblem) as error:
            is_passing = not isinstance(error, ApiProblem) or error.retryable
            if not is_passing or time.monotonic() - self._answered > ABSENT_S:
                raise
            return None
        self._answered = time.monotonic()
        return status


class Monitor:
    """Each change of a job: `for status in ...` or `async for status in ...`; the last one is the final one."""

    def __init__(self, job: "Job", timeout_s: float | None) -> None:
        self._job, self._timeout_s = job, timeout_s

    def __iter__(self) -> Iterator[JobStatus]:
        watch = _Watch(self._job, self._timeout_s)
        while not watch.is_over:
            if (status := watch.look()) is not None:
                yield status
            if not watch.is_over:
                time.sleep(watch.pause_s())

    async def __aiter__(self) -> AsyncIterator[JobStatus]:
        watch = _Watch(self._job, self._timeout_s)
        while not watch.is_over:
            if (status := await asyncio.to_thread(watch.look)) is not None:
                yield status
            if not watch.is_over:
                await asyncio.sleep(watch.pause_s())


class Log:
    """The lines of a job's log: `for line in ...` or `async for line in ...`. Without its newline; what is no UTF-8
    is replaced; a line of more than 64 KiB comes in pieces."""

    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[str]:
        rest = b""
        for piece in self._pieces():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield from _shown(line)
            while len(rest) > LINE_MAX:
                yield rest[:LINE_MAX].decode(errors="replace")
                rest = rest[LINE_MAX:]
        if rest:
            yield from _shown(rest)

    async def __aiter__(self) -> AsyncIterator[str]:
        """A thread reads, and no program waits for its end: a log may say nothing for hours."""
        here, queue = asyncio.get_running_loop(), asyncio.Queue[str | Exception | None]()
        room, is_left = threading.Semaphore(AHEAD), threading.Event()

        def read() -> None:
            with contextlib.suppress(RuntimeError):  # the reader's loop has ended
                last: Exception | None = None
                try:
                    for line in self:
                        room.acquire()
                        if is_left.is_set():
                            return
                        here.call_soon_threadsafe(queue.put_nowait, line)
                except WindrowClientError as error:
                    last = error
                here.call_soon_threadsafe(queue.put_nowait, last)

        threading.Thread(target=read, name="windrow-log", daemon=True).start()
        try:
            while isinstance(found := await queue.get(), str):
                room.release()
                yield found
            if found is not None:
                raise found
        finally:
            is_left.set()
            room.release()


def _shown(line: bytes) -> Iterator[str]:
    for start in range(0, len(line) or 1, LINE_MAX):
        yield line[start : start + LINE_MAX].decode(errors="replace")


class Job:
    """A handle of one job. It goes on without this program: `windrow.Platform().job(id)` finds it again.

    hours: that it is expected to run; None: not known, and then nor is its progress."""

    def __init__(self, client: Client, job: Json, hours: float | None = None) -> None:
        self._client, self._hours = client, hours
        self.id, self.name = str(job["id"]), str(job["name"])

    def __repr__(self) -> str:
        return f"<windrow job {self.name!r} {self.id}>"

    def status(self) -> JobStatus:
        """How it is now; raises WindrowClientError."""
        job = self._client.job(self.id)
        cluster = None
        cluster_id = job["attempts"][-1]["cluster_id"] if job["attempts"] else ""
        if job["state"] == "Starting" and cluster_id:
            with contextlib.suppress(ApiProblem):  # the cluster's steps say more, and nothing that is needed
                cluster = self._client.cluster(cluster_id)
        return status_of(job, cluster, self._hours)

    def monitor(self, timeout_s: float | None = None) -> Monitor:
        """Each change of state, reason, attempt, step or progress, first the present one, last the final one.

        It looks every 1 to 5 s. A Master that does not answer is borne for two minutes. Raises WaitTimedOut after
        `timeout_s` seconds.
        """
        return Monitor(self, timeout_s)

    def wait(self, timeout_s: float | None = None) -> JobStatus:
        """Its final status, once it has ended; raises WaitTimedOut after `timeout_s` seconds, and then it goes on."""
        *_, last = self.monitor(timeout_s)
        return last

    def logs(self, follow: bool = False, attempt: int | None = None) -> Log:
        """The lines of its last attempt, or of `attempt`; with `follow` of all, as they are written, until it ends."""
        return Log(partial(self._client.job_logs, self.id, follow=follow, attempt=attempt))

    def artefacts(self, into: str | PathLike[str] = ".", attempt: int | None = None) -> list[str]:
        """Write the files that it changed below `into`; returns the names of those that are new or changed there. What
        was changed here meanwhile stays, with theirs beside it. Raises WindrowClientError, also where something is
        missing: everything else is written then."""
        report = bring(self._client.job_files(self.id, attempt), self.id, Path(into))
        if not report.is_whole:
            raise WindrowClientError(f"{self.id}: " + "; ".join(lines(report, f" to {into}", "the same call again")))
        return report.written

    def cancel(self) -> JobStatus:
        """End it; what it wrote so far is kept. Safe to repeat; what has ended stays as it is."""
        return status_of(self._client.request("POST", f"/jobs/{self.id}/cancel"), None, self._hours)

    async def aio_status(self) -> JobStatus:
        """`status` for callers that are asynchronous."""
        return await asyncio.to_thread(self.status)

    async def aio_wait(self, timeout_s: float | None = None) -> JobStatus:
        """`wait` for callers that are asynchronous."""
        return [status async for status in self.monitor(timeout_s)][-1]

    async def aio_artefacts(self, into: str | PathLike[str] = ".", attempt: int | None = None) -> list[str]:
        """`artefacts` for callers that are asynchronous."""
        return await asyncio.to_thread(self.artefacts, into, attempt)

    async def aio_cancel(self) -> JobStatus:
        """`cancel` for callers that are asynchronous."""
        return await asyncio.to_thread(self.cancel)


class Platform:
    """The market, for programs. Use as a context manager, or close it. url, token: of the Master; by default the one
    that is configured here. Raises NoMaster."""

    def __init__(self, url: str | None = None, token: str | None = None, *, client: Client | None = None) -> None:
        self.client = client or Client(find(url, token))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections; jobs go on."""
        self.client.close()

    def submit(
        self,
        command: Sequence[str],
        folder: str | PathLike[str] | None = ".",
        *,
        name: str | None = None,
        gpu: str | None = None,
        memory: str | None = None,
        env: Mapping[str, str] | None = None,
        max_price: str | Decimal | None = None,
        retry_on_exit: bool = False,
        max_duration_s: float | None = None,
        after: Iterable[Job | str] = (),
        registry_login: Mapping[str, str] | None = None,
        include_secrets: bool = False,
        optimize: Literal["balanced", "cost", "speed"] | None = None,
        max_cost: str | Decimal | None = None,
        hours: float | None = None,
        **fields: Unpack[JobFields],
    ) -> Job:
        """Submit a job; it needs nobody afterwards. docs/jobs.md says what each limit does.

        command: a list of words. folder: what is sent; None: nothing. include_secrets: also what looks like one.
        gpu: "24GB", "H100:2", "2". memory: "8GB". max_price: per hour. retry_on_exit: also after an exit code other
        than 0. after: jobs (or names or ids) that have to succeed first. registry_login: `username` and `password` for
        its registry. optimize: the Master chooses the place, by cost, by speed or by both; max_cost: in USD, of the
        whole job, which is ended before it costs more; hours: how long it runs (docs/routing.md). With `backend`, the
        job may run on a machine that is bought there (docs/clouds.md). fields: any other field of `POST /jobs`, such as
        backend, spot, image, cpus, retries, budget, deadline (with its time zone), priority and
        packages. Raises WindrowClientError; no job is left then.
        """
        if isinstance(command, str) or not command:
            raise InvalidInput('command is a list of words: platform.submit(command=["python", "train.py"]).')
        after = [after] if isinstance(after, str | Job) else after
        said = {
            "argv": command,
            "name": name_from(command[0]) if name is None else name,
            "await_files": folder is not None,
            "env": env or None,
            "after": [each for one in after for each in self._each_id(one)] or None,
        }
        short = {
            "memory_bytes": memory,
            "max_price_per_hour": max_price,
            "retries_on_exit": retry_on_exit or None,
            "max_duration_seconds": max_duration_s,
        }
        request = body(JOB, {**said, **short, **fields}) | (parse_gpu(gpu) if gpu is not None else {})
        request |= {"registry_login": dict(registry_login)} if registry_login else {}
        if request.get("backend") is not None:
            request = routing.elsewhere(request, optimize, max_cost=max_cost, hours=hours)
        elif optimize is not None:
            code = routing.program_of(command, Path(folder or "."))
            request, best = routing.following(self.client, request, optimize, max_cost=max_cost, hours=hours, code=code)
            tell(f"windrow: {routing.said(best)}")
        elif max_cost is not None or hours is not None:
            raise InvalidInput("max_cost and hours go with optimize: 'cost', 'speed' or 'balanced'.")
        return self._sent(request, folder, include_secrets)

    def _sent(self, request: Json, folder: str | PathLike[str] | None, include_secrets: bool) -> Job:
        """Submitted, with its folder if it has one."""
        if folder is None:
            return Job(self.client, self.client.submit_job(request)[0])
        parcel = survey(Path(folder).resolve(), include_secrets=include_secrets)
        for line in parcel.left.lines():
            tell(f"windrow: {parcel.root}: {line}")
        job = Job(self.client, self.client.submit_job(request)[0])
        try:
            send(parcel, [job.id], partial(self.client.put_job_folder, job.id))
        except BaseException:
            with contextlib.suppress(WindrowClientError):
                job.cancel()
            raise
        return job

    async def aio_submit(self, command: Sequence[str], folder: str | PathLike[str] | None = ".", **more: Any) -> Job:
        """`submit` for callers that are asynchronous."""
        return await asyncio.to_thread(partial(self.submit, command, folder, **more))

    def job(self, name: str) -> Job:
        """The job of this id, or the account's newest of this name; raises WindrowClientError where there is none."""
        return Job(self.client, self.client.job(self._id(name)))

    def jobs(self) -> Iterator[Job]:
        """The account's jobs, the latest first."""
        return (Job(self.client, one) for one in self.client.items("/jobs"))

    async def aio_job(self, name: str) -> Job:
        """`job` for callers that are asynchronous."""
        return await asyncio.to_thread(self.job, name)

    async def aio_jobs(self) -> list[Job]:
        """`jobs` for callers that are asynchronous."""
        return await asyncio.to_thread(lambda: list(self.jobs()))

    def _each_id(self, job: Job | str) -> list[str]:
        """The id of a job; of the name of an array, those of all its jobs."""
        if isinstance(job, Job) or job.startswith("job_"):
            return [job.id if isinstance(job, Job) else job]
        return self.client.whole_array(job, self._id(job))

    def _id(self, name: str) -> str:
        if name.startswith("job_"):
            return name
        job = next(self.client.own("/jobs", name), None)
        if job is None:
            raise NotFound(f"You have no job {name!r}. List yours: windrow job ls --mine")
        return str(job["id"])
