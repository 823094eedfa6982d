"""Reads and writes jobs; rows go in and out as values of the package."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import bindparam, func, insert, or_, select, update

from windrow_master.clusters.model import names_of
from windrow_master.clusters.tables import clusters
from windrow_master.jobs.model import Attempt, AttemptPlace, Job, JobId, JobRequest, JobState, Verdict
from windrow_master.jobs.states import PLACEABLE
from windrow_master.jobs.tables import jobs
from windrow_master.queue.quota import NodeLevel
from windrow_master.queue.tables import LEVELS, is_below
from windrow_master.spec import kept, restored
from windrow_master.store.prepared import ByKey, Found, Made, few, flat, is_one_of_few, page, readable
from windrow_master.store.repository import Repository, with_text
from windrow_proto.ids import AccountId, ClusterId

_APART: Final = ("request_key", "request_sha256", "kept_bytes")
_COLUMNS: Final = tuple(c.key for c in jobs.c if c.key not in _APART)
_SELECTED: Final = with_text(jobs, "request")
_ADD: Final = Made(insert(jobs), jobs.c.keys(), is_late=True)
_STAYS: Final = ("job_id", "account_id", "group_id", "array_index", "request", "created_at_ns")
"""Columns that never change, of which the request is the largest."""
_CHANGES: Final = tuple(name for name in (*_COLUMNS, "kept_bytes") if name not in _STAYS)
_SAVE: Final = Made(update(jobs).where(jobs.c.job_id == bindparam("was_id")), _CHANGES, is_late=True)
_JOBS: Final = ByKey(select(*_SELECTED), jobs.c.job_id, lambda row: _job(row), attrgetter("job_id"))
_LIVING: Final = Found(
    select(*_SELECTED).where(jobs.c.ended_at_ns.is_(None)).order_by(jobs.c.job_id), lambda row: _job(row)
)
_LIVING_IDS: Final = Made(select(jobs.c.job_id).where(jobs.c.ended_at_ns.is_(None)).order_by(jobs.c.job_id))
_COUNTS: Final = Made(
    select(jobs.c.state, func.count().label("number"), func.min(jobs.c.created_at_ns).label("oldest_ns"))
    .where(jobs.c.ended_at_ns.is_(None))
    .group_by(jobs.c.state)
)
_KEYS_OF_CLUSTERS: Final = Made(
    select(clusters.c.cluster_id, clusters.c.request_key).where(is_one_of_few(clusters.c.cluster_id))
)
_WAITS: Final = tuple(one.value for one in (JobState.SUBMITTED, *PLACEABLE))
_WAITING_BELOW: Final = {
    level: Made(
        select(func.count().label("number")).where(
            jobs.c.ended_at_ns.is_(None), or_(*(jobs.c.state == one for one in _WAITS)), is_below(jobs, level)
        )
    )
    for level in LEVELS
}


class JobRepository(Repository):
    """The jobs."""

    _kept: tuple[JobRequest, dict[str, Any]] | None = None

    def add(self, job: Job, request_key: str | None, request_sha256: bytes) -> None:
        """Add a job; its id, and its key and index within the account, must be new."""
        if self._kept is None or self._kept[0] is not job.request:  # the jobs of an array share theirs
            self._kept = job.request, kept(job.request) | {"env": names_of(job.request.env)}
        asked: dict[str, Any] = {"group_id": job.group, "request": self._kept[1]}
        asked |= {name: getattr(job, name) for name in ("job_id", "account_id", "array_index", "created_at_ns")}
        keys = {"request_key": request_key, "request_sha256": request_sha256}
        _ADD.run(self._connection, asked | _values(job) | keys)

    def save(self, job: Job) -> None:
        """Write a job as it is now; what it was asked for stays."""
        _SAVE.run(self._connection, _values(job) | {"was_id": job.job_id})

    def get(self, job_id: JobId) -> Job | None:
        """One job."""
        return _JOBS.one(self._connection, job_id)

    def some(self, job_ids: Sequence[JobId]) -> dict[JobId, Job]:
        """Those of these that are there, with one statement for some at a time."""
        found = _JOBS.some(self._connection, job_ids).values()
        return {job.job_id: job for jobs in found for job in jobs}

    def all_of(self, job_ids: Sequence[JobId]) -> dict[JobId, Job]:
        """Those of these that are there."""
        found = (self.get(job_id) for job_id in dict.fromkeys(job_ids))
        return {job.job_id: job for job in found if job is not None}

    def by_key(self, account_id: AccountId, request_key: str) -> tuple[tuple[Job, ...], bytes] | None:
        """The jobs that an account asked for under this key, and the digest of what it asked."""
        query = select(*_SELECTED).where(jobs.c.account_id == account_id, jobs.c.request_key == request_key)
        rows = self._connection.execute(query.order_by(jobs.c.array_index)).all()
        return (tuple(_job(row._mapping) for row in rows), bytes(rows[0].request_sha256)) if rows else None

    def of_group(self, group: str) -> Sequence[Job]:
        """The jobs of one submission, and those that were run again from it."""
        query = select(*_SELECTED).where(jobs.c.group_id == group).order_by(jobs.c.job_id)
        return [_job(row._mapping) for row in self._connection.execute(query)]

    def page(
        self, account_id: AccountId | None, before: str | None, limit: int, wanted: Mapping[str, str] | None = None
    ) -> Sequence[Job]:
        """The latest first; of all accounts where `account_id` is None. wanted: the values of fields of its request."""
        query = select(*_SELECTED).order_by(jobs.c.job_id.desc())
        if account_id is not None:
            query = query.where(jobs.c.account_id == account_id)
        if before is not None:
            query = query.where(jobs.c.job_id < before)
        for field, value in (wanted or {}).items():
            query = query.where(jobs.c.request[field].as_string() == value)
        return page(self._connection, query, _job, limit)

    def living(self) -> Sequence[Job]:
        """Whatever has not ended, the oldest first."""
        return _LIVING.readable(self._connection)

    def living_of(self, account_id: AccountId) -> Sequence[Job]:
        """Those of them of one account."""
        own = jobs.c.account_id == account_id, jobs.c.ended_at_ns.is_(None)
        return readable(self._connection, select(*_SELECTED).where(*own).order_by(jobs.c.job_id), _job)

    def kept_bytes(self, account_id: AccountId, ended_after_ns: int) -> int:
        """Bytes that an account's jobs take: the folder of each group once, and the logs and files of all attempts.
        Jobs that ended earlier have none left."""
        is_kept = jobs.c.ended_at_ns.is_(None) | (jobs.c.ended_at_ns > ended_after_ns)
        folder, attempts = func.max(jobs.c.folder_bytes), func.sum(jobs.c.kept_bytes)
        of_groups = (
            select((func.coalesce(folder, 0) + func.coalesce(attempts, 0)).label("size_bytes"))
            .where(jobs.c.account_id == account_id, is_kept)
            .group_by(jobs.c.group_id)
            .subquery()
        )
        return int(self._connection.scalar(select(func.coalesce(func.sum(of_groups.c.size_bytes), 0))) or 0)

    def count_living(self, account_id: AccountId) -> int:
        """Return how many of an account have not ended."""
        query = select(func.count()).select_from(jobs)
        return int(
            self._connection.scalar(query.where(jobs.c.account_id == account_id, jobs.c.ended_at_ns.is_(None))) or 0
        )

    def waiting_below(self, level: NodeLevel, node_id: str) -> int:
        """How many below a node of the tree of shares wait for a place, or for what comes before."""
        (row,) = _WAITING_BELOW[level].rows(self._connection, {"node": node_id})
        return int(row["number"])

    def counts(self) -> Mapping[JobState, tuple[int, int]]:
        """Count the jobs that have not ended: for each state their number and the creation time of the oldest."""
        rows = _COUNTS.rows(self._connection, {})
        return {JobState(row["state"]): (int(row["number"]), int(row["oldest_ns"])) for row in rows}

    def living_ids(self) -> Sequence[JobId]:
        """The ids of all that have not ended, the oldest first."""
        return [JobId(row["job_id"]) for row in _LIVING_IDS.rows(self._connection, {})]

    def readable(self, job_ids: Iterable[JobId]) -> Sequence[Job]:
        """Those of these that are there and can be read, in their order; operators are told of the others."""
        found = self.some(wanted := list(job_ids))
        return [found[job_id] for job_id in wanted if job_id in found]

    def living_of_cluster(self, cluster_id: ClusterId) -> Job | None:
        """The job that has not ended and made this cluster for one of its attempts; None: there is none."""
        return self.living_of_clusters([cluster_id]).get(cluster_id)

    def living_of_clusters(self, cluster_ids: Sequence[ClusterId]) -> dict[ClusterId, Job]:
        """The same of each of these that has one, with few statements for many."""
        rows = [row for wanted in few(cluster_ids) for row in _KEYS_OF_CLUSTERS.rows(self._connection, wanted)]
        job_of = {row["cluster_id"]: JobId(str(row["request_key"] or "").partition("/")[0]) for row in rows}
        jobs, found = self.some(list(dict.fromkeys(job_of.values()))), dict[ClusterId, Job]()
        for cluster_id, job_id in job_of.items():
            job = jobs.get(job_id)
            is_living = job is not None and job.ended_at_ns is None
            if job is not None and is_living and any(one.cluster_id == cluster_id for one in job.attempts):
                found[cluster_id] = job
        return found


def _attempt_values(attempt: Attempt) -> dict[str, Any]:
    return flat(attempt) | {"place": None if attempt.place is None else flat(attempt.place)}


def _values(job: Job) -> dict[str, Any]:
    changed = {
        "state": job.state.value,
        "attempts": [_attempt_values(attempt) for attempt in job.attempts],
        "verdict": None if job.verdict is None else job.verdict.value,
        "kept_bytes": sum((one.log_bytes or 0) + (one.files_bytes or 0) for one in job.attempts),
    }
    return {name: getattr(job, name) for name in _CHANGES if name != "kept_bytes"} | changed


def _job(row: Mapping[Any, Any]) -> Job:
    values = {name: row[name] for name in _COLUMNS if name != "group_id"}
    return Job(
        **values
        | {
            "group": row["group_id"],
            "sealed_env": bytes(row["sealed_env"] or b""),
            "spenders": tuple(row["spenders"] or ()),
            "held_by": row["held_by"] or "",
            "request": restored(JobRequest, row["request"]),
            "state": JobState(row["state"]),
            "attempts": tuple(map(_attempt, row["attempts"])),
            "verdict": None if row["verdict"] is None else Verdict(row["verdict"]),
        }
    )


def _attempt(raw: Mapping[str, Any]) -> Attempt:
    place = raw.get("place")
    return Attempt(**{**raw, "place": None if place is None else AttemptPlace(**place)})
