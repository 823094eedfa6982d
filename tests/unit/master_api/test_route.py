"""The router over HTTP: a program, the task intent of Model Studio, and requests that are refused."""

from typing import Any

import pytest

from tests.unit.master_api.conftest import Api

PATH = "/api/v1/route"
REGISTRY = "/api/model-studio/compute-resources"


async def ask(api: Api, **body: Any) -> dict[str, Any]:
    answer = await api.client.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_program_is_read_and_its_places_are_ranked_with_cost_and_reasons(api: Api) -> None:
    await api.client.post(
        REGISTRY,
        json={
            "resource_id": "lab",
            "resource_type": "on-premise",
            "capabilities": {"gpu": True, "gpu_count": 1, "gpu_type": "NVIDIA A100"},
            "supported_frameworks": ["pytorch"],
        },
    )
    found = await ask(api, code="import torch\nloss.backward()", requirements={"duration_hours_estimated": 3})
    assert found["analysis"]["facts"][0] == {"name": "framework", "value": "pytorch", "line": 1, "confidence": "high"}
    by_name = {one["backend"]: one for one in found["recommendations"]}
    assert by_name["resource/lab"]["cost_estimate"]["total"] == "0.00" and not by_name["resource/lab"]["usable"]
    some = by_name["runpod/on-demand"]["cost_estimate"]
    assert float(some["low"]) < float(some["total"]) < float(some["high"]) and some["as_of"] == "2026-08-23"
    assert found["chosen"] is None
    scores = [one["score"] for one in found["recommendations"]]
    assert scores == sorted(scores, reverse=True)


async def test_a_framework_that_a_resource_does_not_have_is_told(api: Api) -> None:
    record = {"resource_id": "lab", "resource_type": "on-premise", "capabilities": {"gpu": True, "gpu_count": 1}}
    await api.client.post(REGISTRY, json=record | {"supported_frameworks": ["sklearn"]})
    found = await ask(api, code="import torch")
    (why,) = [one["reason"] for one in found["refused"] if one["backend"] == "resource/lab"]
    assert why == "pytorch is not among its frameworks: sklearn."


async def test_the_task_intent_is_taken_as_its_document_prints_it(api: Api) -> None:
    found = await ask(
        api,
        task_name="High-Priority Training",
        ml_task="classification",
        compute_preference="cloud",
        constraints={"max_cost_per_hour_usd": 50.0, "preferred_provider": "AWS", "required_gpu_count": 8},
    )
    assert found["recommendations"] and all(one["gpu_count"] >= 8 for one in found["recommendations"])
    assert all(float(one["cost_estimate"]["hourly"]) <= 50 for one in found["recommendations"])
    assert found["recommendations"][0]["cost_estimate"]["total"] is None


async def test_a_required_provider_leaves_no_other(api: Api) -> None:
    found = await ask(api, constraints={"required_provider": "Lambda"})
    assert {one["provider"] for one in found["recommendations"]} == {"lambda"}


async def test_a_program_that_cannot_be_read_is_routed_by_its_requirements(api: Api) -> None:
    found = await ask(api, code="(" * 10**6, requirements={"gpu": "NVIDIA H100"})
    assert found["analysis"]["reason"].endswith("from your requirements only.")
    assert {one["gpu"] for one in found["recommendations"]} == {"h100"}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"requirements": {"gpu_count": -1}}, "gpu_count"),
        ({"requirements": {"gpu_count": 10**9}}, "gpu_count"),
        ({"requirements": {"gpu": "quantum"}}, "requirements.gpu"),
        ({"requirements": {"gpu": "h100", "gpu_count": 0}}, "Leave out one of them"),
        ({"requirements": {"duration_hours_estimated": 0}}, "duration_hours_estimated"),
        ({"requirements": {"max_cost_usd": -1}}, "max_cost_usd"),
        ({"requirements": {"countries": ["Germany"]}}, "countries"),
        ({"requirements": {"vram": 8}}, "vram"),
        ({"preferences": {"optimize_for": "fun"}}, "optimize_for"),
        ({"constraints": {"max_cost_per_hour_usd": "50"}}, "max_cost_per_hour_usd"),
        ({"compute_preference": "quantum"}, "compute_preference"),
        ({"code": 7}, "code"),
    ],
)
async def test_a_wrong_request_is_refused_by_its_field(api: Api, body: dict[str, Any], named: str) -> None:
    answer = await api.client.post(PATH, json=body)
    assert answer.status_code == 422 and named in answer.text
