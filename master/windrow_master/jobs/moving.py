"""Computes the row of a job after one step of its table. Pure."""

from dataclasses import replace

from windrow_master.jobs.decide import Answer
from windrow_master.jobs.model import Job, JobId, JobRequest, JobState
from windrow_master.jobs.states import FINAL, HOLDING, JobEvent, JobMove
from windrow_proto.ids import AccountId


def preview(request: JobRequest, account_id: AccountId) -> Job:
    """A job that is only thought of."""
    return Job(JobId("job_preview"), account_id, "job_preview", request, JobState.SUBMITTED, 0)


def moved(job: Job, move: JobMove, found: Answer, now_ns: int) -> Job:
    """The job after a step; its attempt ends where it lets its cluster go, its secrets go with its end."""
    attempts = job.attempts
    if job.has_cluster:
        attempt = attempts[-1]
        if found.exit_code is not None:
            attempt = replace(attempt, exit_code=found.exit_code)
        if found.event is JobEvent.RUNS:
            attempt = replace(attempt, started_at_ns=now_ns)
        if move.state not in HOLDING:
            attempt = replace(attempt, ended_at_ns=now_ns, outcome=found.reason or move.state.value)
        attempts = (*attempts[:-1], attempt)
    return replace(
        job,
        state=move.state,
        attempts=attempts,
        reason=found.reason,
        verdict=found.verdict if move.state is JobState.CHECKPOINTING else None,
        ended_at_ns=now_ns if move.state in FINAL else None,
        login=b"" if job.login and move.state in FINAL else job.login,
        sealed_env=b"" if move.state in FINAL else job.sealed_env,
    )
