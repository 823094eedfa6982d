"""Decides how long the checkpoints, folders, logs and files of jobs stay in the object store."""

from typing import Final

from windrow_master.jobs.files import ROOT
from windrow_master.jobs.model import JobId
from windrow_master.jobs.repository import JobRepository
from windrow_master.storage.retention import Folder
from windrow_master.storage.retention_rules import KEPT_NS, Stay, is_past, of_ended
from windrow_master.store.unit import UnitOfWork


def stays(owner: str, uow: UnitOfWork) -> Stay | None:
    """Return the checkpoints of a job that stay; None: they are as they should be."""
    job = uow[JobRepository].get(JobId(owner))
    return Stay(0, KEPT_NS) if job is None else of_ended(job.ended_at_ns, uow.now_wall_ns)


def _is_past(owner: str, uow: UnitOfWork) -> bool:
    """Neither it nor, of its folder, any job that was submitted with it or run again from it is wanted any more."""
    jobs = [uow[JobRepository].get(JobId(owner)), *uow[JobRepository].of_group(owner)]
    return all(job is None or is_past(job.ended_at_ns, uow.now_wall_ns) for job in jobs)


FOLDER: Final = Folder("job", ROOT, _is_past)
