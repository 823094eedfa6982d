"""A job goes to Modal by one command, is taken back there, goes on from its checkpoint, and leaves nothing behind."""

import io
import os
import secrets
import signal
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support import s3
from tests.support.modal_cloud import TOKEN_ID, TOKEN_SECRET, ModalCloud, modal_cloud
from tests.support.stack import Stack, stack, wait_for
from tests.unit.jobs.world import packed

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

TRAIN = b"""\
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["CKPT_DIR"])
step = max((int(one.name[5:]) for one in folder.glob("step-*")), default=0)
loss = float((folder / f"step-{step}" / "loss").read_text()) if step else 100.0
print("begins at", step, flush=True)
while step < int(sys.argv[1]):
    step, loss = step + 1, loss * 0.9
    new = folder / ".new"
    new.mkdir(exist_ok=True)
    (new / "loss").write_text(repr(loss))
    new.rename(folder / f"step-{step}")
    time.sleep(0.05)
pathlib.Path("result").write_text(repr(loss))
print("loss", repr(loss), flush=True)
"""


@dataclass
class Market:
    running: Stack
    cloud: ModalCloud

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        with self.running.client() as api:
            return api.request(method, path, body=body)

    def submit(self, *argv: str, **more: Any) -> str:
        """A job that has no place in this market, with its folder."""
        asked = {"argv": ["python3", "train.py", *argv], "await_files": True, "gpus": 1, "gpu_model": "a10"}
        where = {"backend": "modal", "spot": True, "max_duration_seconds": 3600, "checkpoint_every_seconds": 10}
        with self.running.client() as api:
            (job,) = api.submit_job({**asked, **where, **more})
            api.put_job_folder(job["id"], io.BytesIO(packed("train.py", TRAIN)))
        return str(job["id"])

    def job(self, job_id: str) -> Any:
        return self.ask("GET", f"/jobs/{job_id}")

    def events(self, job_id: str, kind: str) -> list[str]:
        found = self.ask("GET", f"/events?subject={job_id}")["items"]
        return [one["text"] for one in found if one["kind"] == kind]

    def log(self, job_id: str) -> str:
        with self.running.client() as api:
            return b"".join(api.job_logs(job_id, follow=True)).decode()

    def ended(self, job_id: str) -> Any:
        """The job once it has ended."""
        return wait_for(lambda: (job := self.job(job_id))["ended_at"] and job)

    def sandbox(self) -> str:
        """The one that runs."""
        return wait_for(lambda: [one.sandbox_id for one in self.cloud.sandboxes.values() if one.is_running])[0]

    def nothing_runs(self) -> None:
        """Nothing is left at Modal by its own list."""
        wait_for(lambda: not [one for one in self.cloud.sandboxes.values() if one.is_running])

    def purchases(self, job_id: str) -> list[Any]:
        return [one for one in self.ask("GET", "/purchases")["items"] if one["for_id"] == job_id]


@pytest.fixture(scope="module")
def market() -> Iterator[Market]:
    with s3.moto() as (endpoint, _, _), modal_cloud(is_apart=os.geteuid() == 0) as cloud:
        bucket = s3.bucket(endpoint, "A" + secrets.token_hex(16), secrets.token_hex(24))
        environment = {
            "WINDROW_ARTEFACTS_URL": f"s3://{bucket.bucket}/{bucket.prefix}?endpoint={endpoint}&region={bucket.region}",
            "WINDROW_S3_ACCESS_KEY": bucket.access_key,
            "WINDROW_S3_SECRET_KEY": bucket.secret_key,
            "MODAL_SERVER_URL": cloud.url,
        }
        with stack(environment=environment) as running:
            found = Market(running, cloud)
            me = wait_for(lambda: found.ask("GET", "/me"))
            token = {"token_id": TOKEN_ID, "token_secret": TOKEN_SECRET}
            caps = {"per_day": "50", "currency": "USD"}
            found.ask(
                "POST",
                "/backends",
                {"name": "modal", "kind": "modal", "settings": {}} | {"secrets": token, "caps": caps},
            )
            found.ask("PUT", f"/backends/modal/buyers/{me['account']['id']}", {"per_day": "50"})
            yield found


@pytest.fixture(autouse=True)
def clean(market: Market) -> Iterator[None]:
    market.cloud.clear()
    yield


@pytest.mark.proves("a job runs at Modal, is taken back, goes on from its checkpoint, and nothing runs on after it")
def test_a_job_is_taken_back_at_modal_and_goes_on_there_from_its_checkpoint(market: Market) -> None:
    job_id = market.submit("320", retries=1)
    wait_for(lambda: market.events(job_id, "job.checkpoint_saved"))

    market.cloud.kill(market.sandbox())

    job = market.ended(job_id)
    log, loss = market.log(job_id), 100.0
    for _ in range(320):
        loss *= 0.9
    assert (job["state"], job["exit_code"], len(job["attempts"])) == ("Succeeded", 0, 2), job
    assert f"loss {loss!r}" in log, "the same as without any interruption"
    began = [int(line.split()[-1]) for line in log.splitlines() if line.startswith("begins")]
    assert began[0] == 0 and 0 < began[1] < 320
    places = [one["place"] for one in job["attempts"]]
    assert [(one["backend"], one["service"], one["spot"]) for one in places] == [("modal", True, True)] * 2
    assert [one["state"] for one in job["tries"]] == ["used", "used"]
    with (
        market.running.client() as api,
        tarfile.open(fileobj=io.BytesIO(b"".join(api.job_files(job_id).pieces(0)))) as tar,
    ):
        assert tar.getnames() == ["result"]
    market.nothing_runs()
    wait_for(lambda: {one["state"] for one in market.purchases(job_id)} == {"gone"}, 200)
    assert [float(one["spent"]) > 0 for one in market.purchases(job_id)] == [True, True]
    assert all(float(one["cost"]) > 0 for one in job["attempts"]) and float(job["cost_so_far"]) > 0
    receipts = [one for one in market.ask("GET", "/receipts")["items"] if one["cluster_name"] == job["name"]]
    assert {one["state"] for one in receipts} == {"closed"} and len(receipts) == 2
    paid = sorted(one["paid"] for one in market.purchases(job_id))
    assert paid == sorted(one["amount"] for one in receipts) == sorted(one["cost"] for one in job["attempts"])


def test_a_job_that_is_cancelled_at_modal_keeps_its_log_and_its_last_checkpoint(market: Market) -> None:
    job_id = market.submit("5000")
    wait_for(lambda: "begins" in b"".join(logs(market, job_id)).decode())

    market.ask("POST", f"/jobs/{job_id}/cancel")

    job = market.ended(job_id)
    assert job["state"] == "Cancelled" and job["attempts"][0]["log_bytes"] > 0
    assert market.events(job_id, "job.checkpoint_saved")
    market.nothing_runs()


def test_a_run_that_is_ended_by_an_operator_moves_its_job_which_uses_up_no_retry(market: Market) -> None:
    job_id = market.submit("400", retries=0)
    wait_for(lambda: market.job(job_id)["state"] == "Running")
    (purchase,) = market.purchases(job_id)

    market.ask("POST", f"/purchases/{purchase['id']}/end", {"reason": "a test"})

    job = market.ended(job_id)
    assert (job["state"], len(job["attempts"])) == ("Succeeded", 2), job
    began = [int(line.split()[-1]) for line in market.log(job_id).splitlines() if line.startswith("begins")]
    assert began[0] == 0 < began[1], "it went on from the checkpoint that it made when it was asked to end"
    market.nothing_runs()


def test_a_master_that_dies_while_a_job_runs_at_modal_takes_it_up_again(market: Market) -> None:
    job_id = market.submit("400")
    wait_for(lambda: market.job(job_id)["state"] == "Running")

    for pid in market.running.daemons()["master"]:
        os.kill(pid, signal.SIGKILL)
    market.running.must_answer()

    job = market.ended(job_id)
    assert (job["state"], len(job["attempts"]), len(market.cloud.sandboxes)) == ("Succeeded", 1, 1), job
    assert market.log(job_id).count("begins at 0") == market.log(job_id).count("loss") == 1
    market.nothing_runs()


def logs(market: Market, job_id: str) -> list[bytes]:
    with market.running.client() as api:
        return list(api.job_logs(job_id))
