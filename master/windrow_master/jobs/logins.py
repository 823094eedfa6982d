"""Seals the secrets of a job while it waits and for its retries: the login of its registry and the values of its
environment, to the Master's own key, in its row.

They are bound to the submission, so that they open for no other job. Whoever has the Master's signing key can open
them: several Masters share that key, and a copy of the database alone does not have it. Pure.
"""

from dataclasses import replace

from windrow_master.clusters import environments
from windrow_master.jobs.model import Job
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.sealed import RegistryLogin, SealKey, seal_login


def sealed(key: SealKey, login: RegistryLogin | None, group: str) -> bytes | None:
    """Return the login and values that the jobs of a submission keep sealed; raises InvalidInput for one that is too
    long."""
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


def whole(key: SealKey, job: Job) -> Job:
    """With the values of its environment, while they are kept. Raises InvalidInput where another key sealed them."""
    if not job.sealed_env:
        return job
    env = environments.opened(key, job.sealed_env, job.group)
    return replace(job, request=replace(job.request, env=env), sealed_env=b"")
