"""Answers the questions that the packages below ask about jobs, in the asker's transaction."""

from collections.abc import Iterator, Mapping, Sequence

from windrow_master.clusters import lookup
from windrow_master.clusters.messages import EntriesOf, IsOfJob
from windrow_master.jobs.entries import entry_of
from windrow_master.jobs.model import Job, JobId
from windrow_master.jobs.repository import JobRepository
from windrow_master.queue.messages import WaitingBelow
from windrow_master.queue.model import Entry
from windrow_master.secrets.messages import SecretUsers
from windrow_master.secrets.model import SecretUser, by_name
from windrow_master.spec import Work
from windrow_master.storage.messages import KeptByJobs
from windrow_master.storage.retention_rules import KEPT_NS
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, ClusterId


def is_of_job(uow: UnitOfWork, question: IsOfJob) -> bool:
    """Return whether a job that has not ended made this cluster."""
    return uow[JobRepository].living_of_cluster(question.cluster_id) is not None


def entries_of_clusters(
    uow: UnitOfWork, question: EntriesOf, tier_costs: Mapping[str, int]
) -> Mapping[ClusterId, Entry]:
    """Return the entries of the jobs whose attempts go on in these clusters. tier_costs: as of the queue's feed."""
    jobs, found = uow[JobRepository].living_of_clusters([one.cluster_id for one in question.clusters]), {}
    for cluster in question.clusters:
        job = jobs.get(cluster.cluster_id)
        if job is not None and job.has_cluster and job.attempts[-1].cluster_id == cluster.cluster_id:
            found[cluster.cluster_id] = entry_of(job, tier_costs, cluster.tier)
    return found


def find(uow: UnitOfWork, job_id: JobId) -> Job | None:
    """One job."""
    return uow[JobRepository].get(job_id)


def living_of_cluster(uow: UnitOfWork, cluster_id: ClusterId) -> Job | None:
    """The job that has not ended and made this cluster; None: there is none."""
    return uow[JobRepository].living_of_cluster(cluster_id)


def living_of(uow: UnitOfWork, account_id: AccountId) -> Sequence[Job]:
    """The jobs of an account that have not ended."""
    return uow[JobRepository].living_of(account_id)


def kept_bytes(uow: UnitOfWork, question: KeptByJobs) -> int:
    """Bytes that the jobs of an account keep beside their checkpoints."""
    return uow[JobRepository].kept_bytes(question.account_id, uow.now_wall_ns - KEPT_NS)


def waiting_below(uow: UnitOfWork, question: WaitingBelow) -> int:
    """Return how many jobs and clusters below a node wait for a place."""
    jobs = uow[JobRepository].waiting_below(question.level, question.node_id)
    return jobs + lookup.queued_below(uow, question.level, question.node_id)


def secret_users(uow: UnitOfWork, question: SecretUsers) -> Mapping[str, Sequence[SecretUser]]:
    """Return who names the secrets of a project: a job, and not its cluster beside it."""
    living = uow[JobRepository].living_of(question.account_id)
    theirs = {job.attempts[-1].cluster_id for job in living if job.has_cluster}

    def naming() -> Iterator[tuple[SecretUser, Work]]:
        for job in living:
            yield SecretUser("job", job.job_id, job.name, not job.has_cluster), job.request
        yield from lookup.naming_secrets(uow, question.account_id, theirs)

    return by_name(naming())
