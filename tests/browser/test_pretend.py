"""The pretend Master answers as the API is described, so that what holds for its pages holds for the real ones."""

import httpx2
from pydantic import BaseModel

from tests.browser.pretend_master import SECRET, TOKEN, make_app
from tests.browser.pretend_people import LINK
from tests.browser.pretend_rental import add_receipt
from tests.browser.pretend_world import make_world
from tests.unit.master_api.described import assert_described
from windrow_master.api import (
    bandwidth_routes,
    market_routes,
    out,
    out_accesses,
    out_accounts,
    out_clusters,
    out_health,
    out_proof,
    out_verification,
    overview_routes,
    standing_routes,
    template_routes,
    volume_routes,
)

HOST = "host_019a0000-0000-7000-9000-000000000000"
CLUSTER = "cluster_019a0000-2222-7000-8000-000000000001"
READS: dict[str, type[BaseModel]] = {
    "/me": out.MeOut,
    "/overview": overview_routes.OverviewOut,
    "/gpus": out.GpusOut,
    "/hosts": out.Page[out.HostOut],
    f"/hosts/{HOST}": out.HostOut,
    f"/hosts/{HOST}/verification": out_verification.VerificationOut,
    f"/hosts/{HOST}/standing": standing_routes.StandingOut,
    f"/hosts/{HOST}/bandwidth": bandwidth_routes.BandwidthRoundsOut,
    f"/hosts/{HOST}/history?metric=gpu_power_watts&metric=host_cpu_ratio": out_health.HistoryOut,
    f"/hosts/{HOST}/proof": out_proof.ProofOut,
    "/events": out.Page[out.EventOut],
    "/commands": out.Page[out.CommandOut],
    "/audit": out.Page[out.AuditOut],
    "/audit/verify": out.AuditVerdictOut,
    "/sessions": out.Page[out.SessionOut],
    "/accounts": out.Page[out_accounts.PersonOut],
    "/tokens": out.Page[out.TokenOut],
    "/join-tokens": out.Page[out.JoinTokenOut],
    "/offers": market_routes.OffersOut,
    "/templates": template_routes.TemplatesOut,
    "/volumes": volume_routes.VolumesOut,
    f"/clusters/{CLUSTER}": out_clusters.ClusterOut,
    f"/clusters/{CLUSTER}/explain": out_clusters.ExplanationOut,
    "/receipts": out.Page[market_routes.ReceiptOut],
    "/operators/health": out_health.HealthOut,
    "/accesses": out.Page[out_accesses.AccessOut],
    "/accesses/agents": out.Page[out_accesses.AgentOut],
}


async def test_the_pretend_master_answers_as_described() -> None:
    world = make_world(1)
    transport = httpx2.ASGITransport(make_app(world))
    headers = {"Authorization": f"Bearer {SECRET}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://pretend/api/v1", headers=headers) as client:
        assert_described(await client.post("/session", json={"token": TOKEN}), out.SignedInOut)
        person = await client.post("/accounts", json={"name": "ada", "roles": ["renter"]})
        assert_described(person, out_accounts.PersonMadeOut, 201)
        for verb, body in (("credit", {"amount": "5"}), ("suspend", {}), ("resume", {})):
            assert_described(await client.post(f"/accounts/account_2/{verb}", json=body), out_accounts.PersonOut)
        redeemed = await client.post("/sign-in", json={"secret": LINK})
        assert_described(redeemed, out_accounts.LinkRedeemedOut, 201)
        assert_described(await client.post("/volumes", json={"name": "data"}), volume_routes.VolumeOut, 201)
        asked = {"kind": "box", "gpus": 0, "cpus": 1, "argv": ["true"], "volumes": ["data:/data"]}
        assert_described(await client.post("/clusters/plan", json=asked), out_clusters.PlanOut)
        assert_described(await client.post("/clusters", json=asked), out_clusters.ClusterAcceptedOut, 202)
        assert_described(await client.put("/templates/one", json=asked), template_routes.TemplateOut)
        assert_described(await client.post("/tokens", json={"name": "a", "roles": ["renter"]}), out.TokenMadeOut)
        assert_described(await client.post("/join-tokens", json={}), out.JoinTokenMadeOut)
        assert_described(await client.put("/offers/cpu/A", json={"price_per_hour": "1"}), market_routes.OffersOut)
        saved = await client.post(f"/clusters/{CLUSTER}/volumes/save")
        assert_described(saved, volume_routes.SavedVolumesOut)
        add_receipt(world, world.clusters[CLUSTER])
        drained = await client.post("/accesses/access_north/drain", json={"reason": ""})
        assert_described(drained, out_accesses.AccessOut)
        world.stop_names["access_north"] = "access-local-a"
        stopped = await client.post("/accesses/access_north/stop", json={"confirm": "access-local-a"})
        assert_described(stopped, out_accesses.StopOut, 202)
        assert_described(await client.get("/accesses/access_north/stop"), out_accesses.StopOut)
        for path, model in READS.items():
            assert_described(await client.get(path), model)
