"""A store with many jobs that wait, and many that have ended with their clusters, rentals and workloads."""

from typing import Final

from sqlalchemy import text

from windrow_master.jobs.model import Job, JobId, JobRequest, JobState
from windrow_master.jobs.repository import JobRepository
from windrow_master.jobs.tables import jobs
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId

ACCOUNTS: Final = 10
"""The accounts whose jobs wait: each has an array of its own, of one shape."""
_NUMBERS: Final = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)"
_CLUSTERS: Final = (
    f"{_NUMBERS} INSERT INTO clusters (cluster_id, account_id, name, request, phase, rental_id, tier, price_per_hour, "
    "created_at_ns, reason, steps, started_at_ns, ended_at_ns, version, request_key, request_sha256, sealed) "
    "SELECT 'cluster_e' || n, 'account_e', 'ended', '{}', 'Deleted', 'rental_e' || n, 'cpu/C', 1000, "
    "n, 'its job has ended', '[]', n, n, 9, 'job_e' || n || '/1', zeroblob(32), zeroblob(0) FROM numbers"
)
_RENTALS: Final = (
    f"{_NUMBERS} INSERT INTO rentals (rental_id, cluster_id, cluster_name, renter, tier, price_per_hour, fee_permille, "
    "simulated, state, opened_at_ns, ended_at_ns, end_reason, held, charged, balance_after) SELECT 'rental_e' || n, "
    "'cluster_e' || n, 'ended', 'account_e', 'cpu/C', 1000, 50, 0, 'closed', n, n, 'deleted', 10, 10, 0 FROM numbers"
)
_WORKLOADS: Final = (
    f"{_NUMBERS} INSERT INTO workloads (workload_id, cluster_id, host_id, host_name, runtime, image, slots, cpus, "
    "memory_bytes, created_at_ns, phase, detail, running_ns, ports, ended_at_ns, is_released) SELECT "
    "'workload_e' || n, 'cluster_e' || n, 'host_e', 'gpu-7', 'process', '', '[]', 1, 1, n, 'gone', '', 1, '{}', n, 1 "
    "FROM numbers"
)


def add_jobs(uow: UnitOfWork, waiting: int, ended: int) -> None:
    """Add so many jobs that are queued, and so many that have succeeded. SQLite only."""
    for account in range(ACCOUNTS):
        first = JobId(f"job_w{account}-0000")
        for index in range(waiting // ACCOUNTS):
            asked = JobRequest(argv=("python", "train.py"), name="train", gpus=1, array_size=waiting // ACCOUNTS)
            job_id, account_id = JobId(f"job_w{account}-{index:04}"), AccountId(f"account_w{account}")
            job = Job(job_id, account_id, first, asked, JobState.QUEUED, uow.now_wall_ns, index)
            uow[JobRepository].add(job, None, b"")
    over = Job(JobId("job_e"), AccountId("account_e"), "job_e", JobRequest(argv=("true",)), JobState.SUCCEEDED, 1)
    uow[JobRepository].add(over, None, b"")
    uow.connection.execute(text("UPDATE jobs SET ended_at_ns = 1 WHERE job_id = 'job_e'"))
    others = ", ".join(column.name for column in jobs.c if column.name not in ("job_id", "group_id"))
    copies = f"SELECT 'job_e' || n, 'job_e' || n, {others} FROM jobs, numbers WHERE job_id = 'job_e'"
    ended_jobs = f"{_NUMBERS} INSERT INTO jobs (job_id, group_id, {others}) {copies}"
    for insert in (ended_jobs, _CLUSTERS, _RENTALS, _WORKLOADS):
        uow.connection.execute(text(insert), {"count": ended})
