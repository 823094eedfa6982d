"""Requests that an account keeps by name, over HTTP."""

import pytest

from tests.unit.master_api.described import assert_described
from windrow.cli import kept
from windrow_master.api.template_routes import TemplateOut, TemplatesOut
from windrow_master.clusters.templates import service

ASKED = {"kind": "ray", "hosts": 3, "cpus": 4, "env": {"A": "b"}, "name": "mine", "budget": "5", "idle_seconds": 600}


async def save(site, name="big-ray", body=ASKED):
    return await site.client.put(f"/api/v1/templates/{name}", json=body)


async def test_a_request_is_kept_and_can_be_asked_for_as_it_comes_back(site):
    answer = await save(site)
    assert_described(answer, TemplateOut)
    listed = await site.client.get("/api/v1/templates")
    assert_described(listed, TemplatesOut)
    (one,) = listed.json()["items"]
    assert one == answer.json() and one["name"] == "big-ray"
    request = one["request"]
    assert (request["kind"], request["hosts"], request["cpus"], request["budget"]) == ("ray", 3, 4, "5.00")
    assert (request["name"], request["idle_seconds"], request["env"]) == ("", 600, {"A": "b"})
    plan = await site.client.post("/api/v1/clusters/plan", json=request | {"hosts": 1})
    assert plan.status_code == 200, plan.text


async def test_what_has_the_name_is_replaced_and_forgotten(site):
    await save(site)
    await save(site, body={"kind": "box", "cpus": 2})
    (one,) = (await site.get("/templates"))["items"]
    assert one["request"]["kind"] == "box"
    assert (await site.client.delete("/api/v1/templates/big-ray")).status_code == 204
    assert (await site.get("/templates"))["items"] == []
    gone = await site.client.delete("/api/v1/templates/big-ray")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("name", "body", "subject"),
    [
        ("Big", ASKED, "name"),
        ("a" * 65, ASKED, "name"),
        ("ok", {"kind": "gang"}, "argv"),
        ("ok", {"budget": "-1"}, "budget"),
        ("ok", {"cpus": 0}, "cpus"),
    ],
)
async def test_what_could_never_be_asked_for_is_not_kept(site, name, body, subject):
    answer = await save(site, name, body)
    assert answer.status_code in (400, 422) and subject in answer.text
    assert (await site.get("/templates"))["items"] == []


async def test_a_login_is_not_kept(site):
    secret = {"username": "me", "password": "hush-hush"}
    answer = await save(site, body={"image": "private/image", "registry_login": secret})
    assert answer.status_code == 200 and "hush" not in answer.text
    assert "hush" not in (await site.client.get("/api/v1/templates")).text


async def test_an_account_has_so_many_and_no_more(site, monkeypatch):
    monkeypatch.setattr(service, "TEMPLATES_MAX", 1)
    await save(site)
    assert (await save(site, "second")).status_code == 429
    assert (await save(site)).status_code == 200


def test_what_is_written_counts_before_what_is_kept():
    request = {"kind": "box", "cpus": 1, "argv": [], "await_files": False, "notebook": True, "env": {"C": "d"}}
    asked = kept.changed({"kind": "ray", "cpus": 4, "argv": ["x"], "image": None}, request, frozenset({"env"}))
    assert asked == {"kind": "ray", "cpus": 4, "argv": ["x"], "env": {"C": "d"}}
    assert kept.changed({"cpus": 4}, request, frozenset({"cpus"}))["cpus"] == 1
