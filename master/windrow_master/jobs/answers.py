"""Answers the questions that the packages below ask about jobs, in the asker's transaction."""

from windrow_master.clusters.messages import IsOfJob
from windrow_master.jobs.repository import JobRepository
from windrow_master.storage.messages import KeptByJobs
from windrow_master.storage.retention_rules import KEPT_NS
from windrow_master.store.unit import UnitOfWork


def is_of_job(uow: UnitOfWork, question: IsOfJob) -> bool:
    """Return whether a job that has not ended made this cluster."""
    return uow[JobRepository].living_of_cluster(question.cluster_id) is not None


def kept_bytes(uow: UnitOfWork, question: KeptByJobs) -> int:
    """Bytes that the jobs of an account keep beside their checkpoints."""
    return uow[JobRepository].kept_bytes(question.account_id, uow.now_wall_ns - KEPT_NS)
