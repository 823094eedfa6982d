"""Names that would be taken for an id, and the starts of ids."""

import pytest

from windrow_proto.ids import resembles_id, starts

HOST = "host_019ac3f5e0b170019377bb5b00000001"


@pytest.mark.parametrize(
    "name",
    ["cafe", "8377BB5B", "0" * 40, "cluster_01a21f68182a", "host_", "job_train", "Token_ci", "GPU-8f3c1c2e", "MIG-1"],
)
def test_what_a_person_could_take_for_an_id_is_no_name(name: str) -> None:
    assert resembles_id(name)


@pytest.mark.parametrize(
    "name", ["", "abc", "lab", "cafe-1", "deadline", "cluster", "my_job_1", "jobs_1", "box-01ab23"]
)
def test_other_names_are_names(name: str) -> None:
    assert not resembles_id(name)


@pytest.mark.parametrize("part", ["host_019ac3f5", "HOST_019AC3F5", "019ac3f5e0b1", "9377bb5b", "9377BB5B", HOST])
def test_an_id_starts_with_its_kind_with_its_time_or_with_what_screens_show(part: str) -> None:
    assert starts(part, HOST)


@pytest.mark.parametrize("part", ["", "host_", "937", "77bb5b", "9377bb5x", "job_019ac3f5", HOST + "0"])
def test_nothing_else_starts_it(part: str) -> None:
    assert not starts(part, HOST)
