"""Requests that an account keeps by name, over HTTP."""

import json

import httpx2
import pytest
from typer.main import get_command

from tests.unit.master_api.described import assert_described
from windrow.cli import clusters, kept
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import WindrowClientError
from windrow_master.api.answers import Page
from windrow_master.api.template_routes import TemplateOut
from windrow_master.clusters import templates

ASKED = {"kind": "ray", "hosts": 3, "cpus": 4, "env": {"A": "b"}, "name": "mine", "budget": "5", "idle_seconds": 600}


async def save(site, name="big-ray", body=ASKED):
    return await site.client.put(f"/api/v1/templates/{name}", json=body)


async def test_a_request_is_kept_and_can_be_asked_for_as_it_comes_back(site):
    answer = await save(site)
    assert_described(answer, TemplateOut)
    listed = await site.client.get("/api/v1/templates")
    assert_described(listed, Page[TemplateOut])
    (one,) = listed.json()["items"]
    assert one == answer.json() and one["name"] == "big-ray"
    alone = await site.client.get("/api/v1/templates/big-ray")
    assert_described(alone, TemplateOut)
    assert alone.json() == one
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
    monkeypatch.setattr(templates, "TEMPLATES_MAX", 1)
    await save(site)
    assert (await save(site, "second")).status_code == 429
    assert (await save(site)).status_code == 200


def test_a_template_that_is_not_there_is_said_by_its_name():
    answer = httpx2.Response(
        404, json={"code": "not_found", "detail": "There is no such template. List yours: windrow template ls"}
    )
    with (
        Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(lambda _: answer)) as api,
        pytest.raises(WindrowClientError, match="There is no template 'bi g'"),
    ):
        kept.template_named(api, "bi g")


def test_what_is_written_counts_before_what_is_kept():
    base = {"kind": "ray", "cpus": 4, "gpus": 1, "gpu_model": "H100", "slice": "1g.10gb", "argv": ["x"], "image": None}
    rest = {"kind": "ray", "cpus": 4, "argv": ["x"]}
    hardware = {"gpus": 1, "gpu_model": "H100", "slice": "1g.10gb"}
    assert kept.changed(base, {"env": {"C": "d"}}) == {**rest, **hardware, "env": {"C": "d"}}
    assert kept.changed(base, {"cpus": 1})["cpus"] == 1
    assert kept.changed(base, {"gpus": 2}) == {**rest, "gpus": 2, "slice": "1g.10gb"}
    assert kept.changed(base, {"gpus": 0}) == {**rest, "gpus": 0}


KEPT = {
    "kind": "ray",
    "hosts": 3,
    "gpus": 2,
    "gpu_model": "H100",
    "slice": "1g.10gb",
    "cpus": 4,
    "notebook": True,
    "restart_members": True,
    "ssh_keys": ["ssh-ed25519 AAAA"],
    "idle_seconds": 60,
    "argv": ["serve"],
    "image": None,
}


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ([], {}),
        (["--hosts", "1"], {"hosts": 1}),
        (["--cpus", "1"], {"cpus": 1}),
        (["--gpu", "0"], {"gpus": 0, "gpu_model": None, "slice": None}),
        (["--gpu", "24GB"], {"gpus": 1, "gpu_model": None, "gpu_memory_bytes": 24 * 10**9}),
        (["--kind", "gang", "--hosts", "2"], {"kind": "gang", "hosts": 2}),
        (["--no-notebook"], {"notebook": False}),
        (["--no-ssh"], {"ssh_keys": []}),
        (["--idle", "2h"], {"idle_seconds": 7200.0}),
        (["--", "train"], {"argv": ["train"]}),
    ],
)
def test_what_the_command_line_says_wins_also_where_it_is_what_nobody_has_to_say(monkeypatch, words, changes):
    asked = []

    def answer(request):
        if request.method == "GET":
            assert request.url.path.endswith("/templates/big")
            return httpx2.Response(200, json={"name": "big", "request": KEPT})
        asked.append(json.loads(request.content))
        return httpx2.Response(200, json={"fits": True})

    told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
    monkeypatch.setattr(clusters, "client", lambda context: context.with_resource(told))
    get_command(app)(["cluster", "create", "--template", "big", "--plan", "--json", *words], standalone_mode=False)
    wanted = {key: value for key, value in (KEPT | changes).items() if value is not None}
    assert asked == [wanted]
