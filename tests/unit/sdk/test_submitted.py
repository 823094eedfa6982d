"""The words after a submission say where else a job that finds no room here is tried."""

import pytest

from windrow.cli.account import print_receipt
from windrow.cli.jobs import print_elsewhere
from windrow.cli.resolving import last_cluster, runs_elsewhere


@pytest.mark.parametrize(
    ("backend", "said"),
    [("modal", "A place at modal is looked for"), ("any", "every backend that this project may use"), (None, "")],
)
def test_a_job_that_may_run_elsewhere_says_where_it_is_tried(
    backend: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_elsewhere({"id": "job_1", "request": {"backend": backend}})
    told = "".join(capsys.readouterr())
    assert said in told and bool(told) is bool(said)


AT_A_SERVICE = {"cluster_id": "", "ended_at": None}
ON_A_HOST = {"cluster_id": "cluster_1", "ended_at": None}


def test_the_cluster_of_a_job_is_asked_for_only_where_it_has_one() -> None:
    ended = {**ON_A_HOST, "ended_at": "2030-01-01T00:00:00Z"}
    assert last_cluster({"attempts": []}) == last_cluster({"attempts": [ON_A_HOST, AT_A_SERVICE]}) == []
    assert last_cluster({"attempts": [AT_A_SERVICE, ON_A_HOST]}, goes_on=True) == ["cluster_1"]
    assert (last_cluster({"attempts": [ended]}), last_cluster({"attempts": [ended]}, goes_on=True)) == (
        ["cluster_1"],
        [],
    )
    assert runs_elsewhere({"attempts": [AT_A_SERVICE]}) and not runs_elsewhere({"attempts": [ON_A_HOST]})


def test_the_receipt_of_a_run_says_that_no_host_signed_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    line = {"workload_id": "purchase_1", "host_id": "purchase_1", "running_seconds": "16.4"}
    about = {"id": "receipt_1", "cluster_id": "purchase_1", "price_per_hour": "2.68", "currency": "TEST"}
    print_receipt({**about, "running_seconds": "16.4", "amount": "0.01", "lines": [line]})
    said = capsys.readouterr().out
    assert "Counted running time" in said and "purchase_1, a run at a service: 16.4 s" in said
    print_receipt({**about, "running_seconds": "16.4", "amount": "0.01", "lines": [{**line, "host_id": "host_1"}]})
    assert "Signed running time" in capsys.readouterr().out
