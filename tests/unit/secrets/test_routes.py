"""Secrets over HTTP: no answer has a value, whatever is asked."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.two_renters import TwoRenters, two_renters
from tests.unit.identity.people_world import ask, people_market
from tests.unit.master_api.described import assert_described
from windrow_master.api.answers import Page
from windrow_master.api.secret_routes import SecretDeletedOut, SecretOut
from windrow_master.identity.model import Role

CANARY = "hf_Canary9Sings7In5No3Answer1"
BODY: dict[str, Any] = {"value": CANARY}


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[TwoRenters]:
    async with two_renters(tmp_path) as found:
        yield found


async def test_a_secret_is_set_listed_replaced_and_deleted_and_never_read(two: TwoRenters) -> None:
    api = two.noisy.client
    made = await api.put("/secrets/HF_TOKEN", json=BODY)
    assert_described(made, SecretOut)
    assert_described(await api.get("/secrets/HF_TOKEN"), SecretOut)
    listed = await api.get("/secrets")
    assert_described(listed, Page[SecretOut])
    assert listed.json()["items"] == [made.json()]
    replaced = await api.put("/secrets/HF_TOKEN", json={"value": "AP8K", "kind": "file"})
    assert (replaced.json()["kind"], replaced.json()["created_at"]) == ("file", made.json()["created_at"])
    gone = await api.delete("/secrets/HF_TOKEN")
    assert_described(gone, SecretDeletedOut)
    assert gone.json() == {"name": "HF_TOKEN", "used_by": [], "warning": None}
    for answer in (await api.get("/secrets/HF_TOKEN"), await api.delete("/secrets/HF_TOKEN")):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    for answer in (made, listed, replaced, gone):
        assert CANARY not in answer.text


async def test_who_names_it_is_shown_and_a_deletion_warns_of_what_waits(two: TwoRenters) -> None:
    api = two.noisy.client
    await api.put("/secrets/HF_TOKEN", json=BODY)
    asked = {"argv": ["true"], "secrets": ["HF_TOKEN"], "name": "train"}
    job = await api.post("/jobs", json=asked)
    assert job.status_code == 201 and job.json()["jobs"][0]["request"]["secrets"] == ["HF_TOKEN"], job.text
    kept = await api.put("/templates/mine", json={"argv": ["true"], "secrets": ["HF_TOKEN=TOKEN"]})
    assert kept.json()["request"]["secrets"] == ["HF_TOKEN=TOKEN"]
    users = (await api.get("/secrets/HF_TOKEN")).json()["used_by"]
    assert [(one["kind"], one["name"], one["is_waiting"]) for one in users] == [
        ("job", "train", True),
        ("template", "mine", False),
    ]
    gone = (await api.delete("/secrets/HF_TOKEN")).json()
    assert len(gone["used_by"]) == 2
    assert f"job train ({job.json()['jobs'][0]['id']})" in gone["warning"] and "template" not in gone["warning"]


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("hf_token", BODY, "name"),
        ("A" * 65, BODY, "name"),
        ("A-B", BODY, "name"),
        ("A", {}, "value"),
        ("A", {"value": ""}, "value"),
        ("A", {"value": f"{CANARY}\0"}, "value"),
        ("A", {"value": CANARY + "x" * 65_536}, "value"),
        ("A", {"value": CANARY + "x" * 100_000}, "value"),
        ("A", {"value": [CANARY]}, "value"),
        ("A", {"value": CANARY, "kind": "file"}, "value"),
        ("A", {"value": CANARY, "kind": "registry_login"}, "value"),
        ("A", {"value": CANARY, "kind": "ssh"}, "kind"),
        ("A", {"value": CANARY, "more": 1}, "more"),
    ],
)
async def test_odd_input_is_refused_by_its_field_and_nothing_is_kept(
    two: TwoRenters, name: str, body: dict[str, object], said: str
) -> None:
    answer = await two.noisy.client.put(f"/secrets/{name}", json=body)
    assert answer.status_code == 422 and said in answer.text, answer.text
    assert CANARY not in answer.text
    assert (await two.noisy.client.get("/secrets")).json()["items"] == []


async def test_a_body_that_is_no_text_is_refused(two: TwoRenters) -> None:
    raw = b'{"value": "' + CANARY.encode() + b'\\ud800"}'
    answer = await two.noisy.client.put("/secrets/A", content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422 and CANARY not in answer.text


async def test_work_that_names_a_secret_that_is_not_there_says_which_and_what_to_do(two: TwoRenters) -> None:
    for path in ("/jobs", "/jobs/plan", "/clusters", "/clusters/plan"):
        answer = await two.noisy.client.post(path, json={"argv": ["true"], "secrets": ["NONE"]})
        assert answer.status_code == 422, path
        assert answer.json()["detail"] == "There is no secret NONE in this project. Set it: windrow secret set NONE"
        odd = await two.noisy.client.post(path, json={"argv": ["true"], "secrets": ["none"]})
        assert odd.status_code == 422 and "NAME or NAME=VARIABLE" in odd.text, odd.text


async def test_viewers_see_names_and_admins_and_renters_set_them(tmp_path: Path) -> None:
    async with people_market(tmp_path) as market:
        viewer, admin, renter, provider = [
            await market.joined(f"{role}@example.org", projects=[{"project": "default", "roles": [role]}])
            for role in ("viewer", "admin", "renter", "provider")
        ]
        await ask(admin, "PUT", "/secrets/HF_TOKEN", value=CANARY)
        assert [one["name"] for one in (await ask(viewer, "GET", "/secrets"))["items"]] == ["HF_TOKEN"]
        await ask(viewer, "GET", "/secrets/HF_TOKEN")
        await ask(viewer, "PUT", "/secrets/HF_TOKEN", 403, value=CANARY)
        await ask(viewer, "DELETE", "/secrets/HF_TOKEN", 403)
        for method in ("GET", "PUT", "DELETE"):
            await ask(provider, method, "/secrets/HF_TOKEN", 403, value=CANARY)
        await ask(renter, "DELETE", "/secrets/HF_TOKEN")
        for client in (viewer, admin, renter, market.owner):
            for path in ("/secrets", "/jobs", "/clusters"):
                assert CANARY not in (await client.get(path)).text
        audit = (await market.owner.get("/audit?action=secret")).text
        assert CANARY not in audit and "HF_TOKEN" in audit


async def test_another_project_has_secrets_of_its_own_and_an_overseer_sees_none(two: TwoRenters) -> None:
    await two.noisy.client.put("/secrets/HF_TOKEN", json=BODY)
    assert (await two.quiet.client.get("/secrets")).json()["items"] == []
    for method in ("GET", "DELETE"):
        foreign = await two.quiet.client.request(method, "/secrets/HF_TOKEN")
        absent = await two.quiet.client.request(method, "/secrets/NONE")
        assert foreign.status_code == absent.status_code == 404
    assert (await two.quiet.client.put("/secrets/HF_TOKEN", json={"value": "own"})).status_code == 200
    auditor = await two.account("looks", Role.AUDITOR)
    assert (await auditor.client.get("/secrets")).status_code == 403
    await auditor.client.aclose()
    assert len((await two.noisy.client.get("/secrets")).json()["items"]) == 1
