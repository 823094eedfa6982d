"""Jobs of one shape wait for one answer: what may be refused alone is a shape of its own."""

from dataclasses import replace
from typing import Any

import pytest

from windrow_master.jobs.model import Job, JobId, JobRequest, JobState
from windrow_master.jobs.turns import shape_of
from windrow_master.spec import Resources, fields_of
from windrow_proto.ids import AccountId
from windrow_proto.volumes import Mount

JOB = Job(JobId("job_1"), AccountId("a"), "job_1", JobRequest(argv=("true",)), JobState.QUEUED, 1)


def other(kind: Any) -> Any:
    return "other" if kind is str or getattr(kind, "__supertype__", None) is str else 7


@pytest.mark.parametrize("field", fields_of(Resources), ids=lambda one: one.attribute)
def test_what_says_which_host_will_do_makes_another_shape(field: Any) -> None:
    changed = replace(JOB, request=replace(JOB.request, **{field.attribute: other(field.kind)}))
    assert shape_of(changed) != shape_of(JOB)


def test_so_do_the_account_simulated_hosts_and_volumes() -> None:
    request = JOB.request
    volumes = replace(JOB, request=replace(request, volumes=(Mount("data", "/data"),)))
    simulated = replace(JOB, request=replace(request, simulated=True))
    shapes = {shape_of(one) for one in (JOB, volumes, simulated, replace(JOB, account_id=AccountId("b")))}
    assert len(shapes) == 4


def test_a_name_or_a_command_makes_none() -> None:
    assert shape_of(replace(JOB, request=replace(JOB.request, name="b", argv=("false",)))) == shape_of(JOB)
