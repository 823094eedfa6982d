"""The spec of requests: each field's bounds hold everywhere, and a stored request of any age opens."""

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from windrow_master.api.cluster_routes import ClusterBody, KeptRequestOut
from windrow_master.api.job_routes import JobBody, JobRequestOut
from windrow_master.clusters.model import ClusterKind, ClusterRequest
from windrow_master.jobs.model import JobRequest
from windrow_master.spec import GPUS_MAX, RequestField, check, fields_of, kept, restored
from windrow_proto.errors import InvalidInput
from windrow_proto.units import DAY, SECOND, Bytes, Microcents
from windrow_proto.volumes import Mount

FULL = ClusterRequest(
    kind=ClusterKind.GANG,
    name="train",
    gpus=2,
    gpu_memory_bytes=Bytes(24 * 10**9),
    argv=("python", "train.py"),
    env={"A": "1"},
    ports=(80, 443),
    hosts=2,
    max_price_per_hour=Microcents(50_000_000),
    max_duration_ns=90 * SECOND,
    client_lease_ns=DAY,
    volumes=(Mount("data", "/data", True),),
)
OF_OLD = {"kind": "box", "name": "a", "gpus": 0, "cpus": 1, "argv": ["true"], "env": {"A": ""}, "ports": [], "hosts": 1}
"""A request as it was kept before there were limits, keys and volumes."""


def test_a_request_is_kept_as_json_and_opens_again() -> None:
    text = json.dumps(kept(FULL))
    assert restored(ClusterRequest, text) == FULL
    assert restored(ClusterRequest, text) is restored(ClusterRequest, text)


def test_a_request_of_old_opens_with_defaults_for_what_there_was_no_field_for() -> None:
    assert restored(ClusterRequest, json.dumps(OF_OLD)) == ClusterRequest(name="a", argv=("true",), env={"A": ""})
    raw = {"argv": ["true"], "after": ["job_1"], "retries": 1, "checkpoint_every_ns": SECOND, "env": {}}
    assert restored(JobRequest, json.dumps(raw)).after == ("job_1",)


def test_an_answer_shows_a_request_as_a_body_takes_it() -> None:
    shown = KeptRequestOut.of(FULL, env=dict(FULL.env))
    assert (shown["max_duration_seconds"], shown["client_lease_s"], shown["volumes"]) == (90, 86_400, ["data:/data:ro"])
    assert ClusterBody.model_validate(shown).parsed() == FULL
    job = JobRequest(argv=("true",), deadline_ns=2 * 10**18, packages=("numpy",), budget=Microcents(10**8))
    assert JobBody.model_validate(JobRequestOut.of(job, env={})).parsed() == job


@pytest.mark.parametrize(("kind", "body"), [(ClusterRequest, ClusterBody), (JobRequest, JobBody)])
@pytest.mark.parametrize(("field", "value"), [("gpus", GPUS_MAX + 1), ("cpus", 0), ("image", ""), ("runtime", "vm")])
def test_a_bound_holds_in_the_api_and_in_the_master(kind, body, field, value) -> None:
    with pytest.raises(ValidationError, match=field):
        body.model_validate({"argv": ["true"], field: value})
    with pytest.raises(InvalidInput, match=f"^{field} must be") as refused:
        check(replace(kind(argv=("true",)), **{field: value}))
    assert refused.value.subject == field


@pytest.mark.parametrize("one", [*fields_of(ClusterRequest), *fields_of(JobRequest)], ids=lambda one: one.name)
def test_a_field_says_what_it_is(one: RequestField) -> None:
    assert one.spec.text
    assert not one.spec.flag or one.spec.flag.startswith("--")


async def test_lists_are_narrowed_to_the_requests_that_have_a_value(site) -> None:
    one, _ = await site.running(name="train")
    for path, ids in (("name=train", [one]), ("name=nothing", []), ("name=tr", [])):
        found = (await site.client.get(f"/api/v1/clusters?{path}")).json()
        assert [cluster["id"] for cluster in found["items"]] == ids
    jobs = [await site.client.post("/api/v1/jobs", json={"argv": ["true"], "name": name}) for name in ("a", "b")]
    found = (await site.client.get("/api/v1/jobs?name=a")).json()
    assert [job["id"] for job in found["items"]] == [jobs[0].json()["jobs"][0]["id"]]
