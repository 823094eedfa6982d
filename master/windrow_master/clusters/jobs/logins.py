"""The login of a job's registry while it waits and for its retries: sealed to the Master's own key, in the job's row.

It is bound to the submission, so that it opens for no other job. Whoever has the Master's signing key can open it:
several Masters share that key, and a copy of the database alone does not have it. Pure.
"""

from windrow_master.clusters.jobs.model import Job
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.sealed import RegistryLogin, SealKey, seal_login


def sealed(key: SealKey, login: RegistryLogin | None, group: str) -> bytes | None:
    """What the jobs of a submission keep of it; raises InvalidInput for one that is too long."""
    return None if login is None else seal_login(key.public, login, group)


def opened(key: SealKey, job: Job) -> RegistryLogin | None:
    """The login for its next attempt; raises InvalidInput where another key sealed it."""
    if not job.login:
        return None
    try:
        return key.open_login(job.login, job.group)
    except BadProof:
        words = "This Master's key is not the one that its registry login was sealed to"
        raise InvalidInput(f"{words}; submit it again with the login.", subject=job.job_id) from None
