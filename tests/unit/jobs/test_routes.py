"""Jobs over HTTP: the shapes of plan/api, the folder, refusals by field."""

import pytest

from tests.unit.clusters.conftest import site as site
from tests.unit.jobs.world import FOLDER
from tests.unit.master_api.described import assert_described
from windrow_master.api import job_routes
from windrow_master.api.answers import Page
from windrow_master.api.job_routes import _behind

ASKED = {"argv": ["python", "train.py"], "name": "train", "budget": "1.50", "max_duration_seconds": 90, "retries": 2}


async def test_a_job_is_submitted_shown_listed_cancelled_and_run_again(site) -> None:
    answer = await site.client.post("/api/v1/jobs", json=ASKED)
    assert_described(answer, job_routes.JobsOut, 201)
    (job,) = answer.json()["jobs"]
    assert (job["state"], job["request"]["budget"], job["request"]["max_duration_seconds"]) == (
        "Queued",
        "1.50",
        90.0,
    )
    path = f"/api/v1/jobs/{job['id']}"

    shown = await site.client.get(path)
    assert_described(shown, job_routes.JobOut)
    assert (await site.client.get(path, headers={"If-None-Match": shown.headers["etag"]})).status_code == 304
    listed = await site.client.get("/api/v1/jobs")
    assert_described(listed, Page[job_routes.JobOut])
    assert [one["id"] for one in listed.json()["items"]] == [job["id"]]

    assert (await site.client.post(f"{path}/rerun")).status_code == 409
    assert (await site.client.post(f"{path}/cancel")).json()["state"] == "Cancelled"
    assert (await site.client.get(f"{path}/logs")).content == b""
    assert (await site.client.get(f"{path}/artefacts")).status_code == 409
    again = await site.client.post(f"{path}/rerun")
    assert (again.status_code, again.json()["state"]) == (201, "Queued")


@pytest.mark.parametrize(
    ("asked", "detail", "change"),
    [
        ({"cpus": 64}, "No host of this market has 64 CPUs, free or not", {"cpus": 4}),
        ({"tier": "nonsense/A"}, "No host of this market has CPUs in tier nonsense/A", {"tier": "cpu/C"}),
        ({"gpus": 1, "gpu_model": "B200"}, "No host of this market has 1 x B200", None),
    ],
)
async def test_a_job_that_can_never_run_here_says_so_and_what_would(site, asked, detail, change) -> None:
    (job,) = (await site.client.post("/api/v1/jobs", json=ASKED | asked)).json()["jobs"]
    path = f"/api/v1/jobs/{job['id']}"
    answer = await site.client.get(path)
    assert_described(answer, job_routes.JobOut)
    told = answer.json()["refusal"]
    assert told == job["refusal"], "who submits it reads it at once"
    assert told["detail"].startswith(detail) and not told["is_possible"]
    assert [way["changes"] for way in told["ways"]] == ([] if change is None else [change])
    assert told == (await site.client.post("/api/v1/jobs/plan", json=ASKED | asked)).json()["refusal"]
    assert (await site.client.get(path, headers={"If-None-Match": answer.headers["etag"]})).status_code == 304


async def test_the_same_key_makes_one_job(site) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await site.client.post("/api/v1/jobs", json=ASKED, headers=headers)
    second = await site.client.post("/api/v1/jobs", json=ASKED, headers=headers)
    assert first.json() == second.json()
    assert len((await site.client.get("/api/v1/jobs")).json()["items"]) == 1


async def test_a_registry_login_is_taken_and_stands_in_no_answer_row_or_digest(site, tmp_path) -> None:
    secret = "their-very-own-password"
    login = {"username": "a-renter", "password": secret}
    asked = ASKED | {"image": "reg.example/train:1", "registry_login": login}
    headers = {"Idempotency-Key": "once"}
    first = await site.client.post("/api/v1/jobs", json=asked, headers=headers)
    assert_described(first, job_routes.JobsOut, 201)
    other = asked | {"registry_login": login | {"password": "as it is now"}}
    second = await site.client.post("/api/v1/jobs", json=other, headers=headers)
    assert second.json() == first.json(), "a login is no part of the request"
    path = f"/api/v1/jobs/{first.json()['jobs'][0]['id']}"
    refused = []
    for bad in ({"password": ""}, {"password": secret * 400}, {"passwort": secret}, {"username": ""}):
        refused.append(await site.client.post("/api/v1/jobs", json=asked | {"registry_login": login | bad}))
    assert [one.status_code for one in refused] == [422] * len(refused)
    planned = await site.client.post("/api/v1/jobs/plan", json=asked)
    cancelled = await site.client.post(f"{path}/cancel")
    again = await site.client.post(f"{path}/rerun")
    assert (again.status_code, "submit the job again" in again.json()["detail"]) == (409, True)

    listed = [await site.client.get(one) for one in (path, "/api/v1/jobs", "/api/v1/events", "/api/v1/audit")]
    assert [one.status_code for one in listed] == [200] * len(listed)
    for answer in (first, planned, cancelled, again, *refused, *listed):
        assert secret not in answer.text
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"reg.example/train:1" in kept, "control: this is where it would be"
    assert secret.encode() not in kept


async def test_a_folder_is_kept_for_the_job_that_waits_for_it(site) -> None:
    (job,) = (await site.client.post("/api/v1/jobs", json=ASKED | {"await_files": True})).json()["jobs"]
    path = f"/api/v1/jobs/{job['id']}/files"
    refused = await site.client.put(path, content=b"hello")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    kept = await site.client.put(path, content=FOLDER)
    assert (kept.status_code, kept.json()) == (200, {"bytes": len(FOLDER)})
    assert (await site.client.put(path, content=FOLDER)).status_code == 409
    assert (await site.client.get(f"/api/v1/jobs/{job['id']}")).json()["folder_bytes"] == len(FOLDER)


async def test_bad_requests_name_their_field_and_change_nothing(site) -> None:
    for bad, status in (
        ({"argv": []}, 422),
        ({"retries": 101}, 422),
        ({"budget": "-1"}, 422),
        ({"after": ["job_x"]}, 404),
    ):
        answer = await site.client.post("/api/v1/jobs", json=ASKED | bad)
        assert answer.status_code == status, answer.text
    assert (await site.client.get("/api/v1/jobs")).json()["items"] == []


async def test_a_plan_says_why_nothing_fits(site) -> None:
    answer = await site.client.post("/api/v1/jobs/plan", json=ASKED | {"gpus": 8})
    assert (answer.status_code, answer.json()["fits"]) == (200, False)


@pytest.mark.parametrize(("offset", "left"), [(0, b"abcdef"), (2, b"cdef"), (3, b"def"), (6, b""), (9, b"")])
async def test_who_reads_on_is_told_only_what_follows(offset, left) -> None:
    async def pieces():
        for piece in (b"abc", b"def"):
            yield piece

    assert b"".join([piece async for piece in _behind(pieces(), offset)]) == left
