"""The pretend Master answers as the API is described, so that what holds for its pages holds for the real ones."""

import httpx2
from pydantic import BaseModel

from tests.browser import pretend_clouds, pretend_queue
from tests.browser.pretend_alerts import add_alert
from tests.browser.pretend_master import SECRET, TOKEN, make_app
from tests.browser.pretend_members import INVITATION, PASSWORD, project
from tests.browser.pretend_people import LINK
from tests.browser.pretend_records import trouble
from tests.browser.pretend_rental import add_receipt
from tests.browser.pretend_sign_in import DEVICE_CODE
from tests.browser.pretend_world import World, make_world
from tests.unit.master_api.described import assert_described
from windrow_master.api import (
    access_routes,
    account_routes,
    alert_routes,
    answers,
    audit_routes,
    backend_routes,
    bandwidth_routes,
    billing_routes,
    channel_routes,
    cluster_routes,
    explain_routes,
    fair_share_routes,
    fleet_shapes,
    health,
    home_routes,
    identity_routes,
    job_routes,
    lifecycle_routes,
    limit_routes,
    maintenance_routes,
    market_routes,
    onboarding_routes,
    overview_routes,
    people_routes,
    proof_routes,
    purchase_routes,
    queue_routes,
    quota_routes,
    report_routes,
    secret_routes,
    service_account_routes,
    shop_routes,
    sign_in_routes,
    simulated_routes,
    standing_routes,
    telemetry_routes,
    template_routes,
    verification_routes,
    volume_routes,
)

HOST = "host_019a0000-0000-7000-9000-000000000000"
CLUSTER = "cluster_019a0000-2222-7000-8000-000000000001"
READS: dict[str, type[BaseModel]] = {
    "/me": identity_routes.MeOut,
    "/overview": overview_routes.OverviewOut,
    "/overview/attention": home_routes.AttentionListOut,
    "/overview/history": home_routes.UseHistoryOut,
    "/overview/hosts": home_routes.OwnHostsOut,
    "/gpus": fleet_shapes.GpusOut,
    "/hosts": answers.Page[fleet_shapes.HostOut],
    f"/hosts/{HOST}": fleet_shapes.HostOut,
    f"/hosts/{HOST}/verification": verification_routes.VerificationOut,
    f"/hosts/{HOST}/standing": standing_routes.StandingOut,
    f"/hosts/{HOST}/bandwidth": bandwidth_routes.BandwidthRoundsOut,
    f"/hosts/{HOST}/history?metric=gpu_power_watts&metric=host_cpu_ratio": telemetry_routes.HistoryOut,
    f"/hosts/{HOST}/proof": proof_routes.ProofOut,
    "/events": answers.Page[answers.EventOut],
    "/alerts": answers.Page[alert_routes.AlertOut],
    "/alerts/alert_1": alert_routes.WholeAlertOut,
    "/inbox": alert_routes.InboxOut,
    "/alert-rules": alert_routes.AlertRulesOut,
    "/alert-silences": answers.Page[alert_routes.SilenceOut],
    "/maintenance-windows": answers.Page[maintenance_routes.MaintenanceOut],
    "/channels": answers.Page[channel_routes.ChannelOut],
    "/deliveries": answers.Page[channel_routes.DeliveryOut],
    "/user/alert-mail": channel_routes.AlertMailOut,
    "/commands": answers.Page[fleet_shapes.CommandOut],
    "/audit": answers.Page[audit_routes.AuditOut],
    "/audit/verify": audit_routes.AuditVerdictOut,
    "/sessions": answers.Page[identity_routes.SessionOut],
    "/accounts": answers.Page[account_routes.PersonOut],
    "/tokens": answers.Page[identity_routes.TokenOut],
    "/user": people_routes.ProfileOut,
    "/organisation": people_routes.OrganisationOut,
    "/members": answers.Page[people_routes.MemberOut],
    "/projects": answers.Page[people_routes.ProjectOut],
    "/projects/deleted": answers.Page[lifecycle_routes.DeletedProjectOut],
    "/project-transfers": answers.Page[lifecycle_routes.TransferOfferOut],
    "/users": answers.Page[lifecycle_routes.MarketUserOut],
    "/limits": answers.Page[limit_routes.LimitOut],
    "/cli": onboarding_routes.CliOut,
    "/service-accounts": answers.Page[service_account_routes.ServiceOut],
    "/invitations": answers.Page[people_routes.InvitationOut],
    "/join-tokens": answers.Page[identity_routes.JoinTokenOut],
    "/simulated-hosts": simulated_routes.SimulatedHostsOut,
    "/queue": queue_routes.QueueOut,
    f"/jobs/{pretend_queue.job_id(2)}": job_routes.JobOut,
    f"/explain/{pretend_queue.job_id(2)}?host=gpu-8": explain_routes.ExplainOut,
    f"/explain/{CLUSTER}": explain_routes.ExplainOut,
    "/fair-shares": answers.Page[fair_share_routes.FairShareOut],
    "/quotas": answers.Page[quota_routes.QuotaOut],
    "/backend-kinds": answers.Page[backend_routes.BackendKindOut],
    "/backends": answers.Page[backend_routes.BackendOut],
    "/backends/aws/buyers": answers.Page[backend_routes.BuyerOut],
    "/me/backends": answers.Page[backend_routes.UsableBackendOut],
    "/backends/aws/offers?gpu=a10g": answers.Page[backend_routes.MachineOfferOut],
    "/purchases?living=true": answers.Page[purchase_routes.PurchaseOut],
    f"/purchases/{pretend_clouds.purchase_id(2)}": purchase_routes.WholePurchaseOut,
    "/offers": answers.Page[market_routes.OfferOut],
    "/machine-classes": answers.Page[shop_routes.MachineClassOut],
    "/machine-classes/paid?tier=cpu/A": answers.Page[shop_routes.PaidDayOut],
    "/templates": answers.Page[template_routes.TemplateOut],
    "/secrets": answers.Page[secret_routes.SecretOut],
    "/volumes": answers.Page[volume_routes.VolumeOut],
    f"/clusters/{CLUSTER}": cluster_routes.ClusterOut,
    f"/clusters/{CLUSTER}/explain": cluster_routes.ExplanationOut,
    "/receipts": answers.Page[market_routes.ReceiptOut],
    "/usage": billing_routes.SpendingOut,
    "/earnings": billing_routes.EarningsOut,
    "/reports?by=day,project": report_routes.ReportOut,
    "/reports/rows": report_routes.RowsOut,
    "/operators/health": health.HealthOut,
    "/accesses": answers.Page[access_routes.AccessOut],
    "/accesses/agents": answers.Page[access_routes.AgentOut],
}


async def test_the_pretend_master_answers_as_described() -> None:
    world = make_world(1)
    transport = httpx2.ASGITransport(make_app(world))
    headers = {"Authorization": f"Bearer {SECRET}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://pretend/api/v1", headers=headers) as client:
        assert_described(await client.post("/session", json={"token": TOKEN}), identity_routes.SignedInOut)
        person = await client.post("/accounts", json={"name": "ada", "roles": ["renter"]})
        assert_described(person, account_routes.PersonMadeOut, 201)
        for verb, body in (("credit", {"amount": "5"}), ("suspend", {}), ("resume", {})):
            assert_described(await client.post(f"/accounts/account_2/{verb}", json=body), account_routes.PersonOut)
        redeemed = await client.post("/sign-in", json={"secret": LINK})
        assert_described(redeemed, account_routes.LinkRedeemedOut, 201)
        given = {"projects": [{"project": "first account", "roles": ["renter"]}]}
        assert_described(await client.post("/invitations", json=given), people_routes.InvitationMadeOut, 201)
        assert_described(
            await client.post("/invitation", json={"secret": INVITATION}), people_routes.InvitationShownOut
        )
        assert_described(await client.put("/members/user_1", json={"role": "org_admin"}), people_routes.MemberOut)
        linked = await client.post("/members/user_1/password-link")
        assert_described(linked, people_routes.PasswordLinkOut, 201)
        entered = await client.post("/sign-in/password", json={"address": "ada@example.org", "password": PASSWORD})
        assert_described(entered, identity_routes.SignedInOut, 201)
        world.devices[DEVICE_CODE] = "waiting"
        look = await client.post("/device/look", json={"user_code": DEVICE_CODE})
        assert_described(look, sign_in_routes.DeviceOut)
        service = await client.post("/service-accounts", json={"name": "ci", "roles": ["renter"]})
        assert_described(service, service_account_routes.ServiceMadeOut, 201)
        await _ends(client, world)
        begun = await client.post("/user/second-factor", json={"password": PASSWORD})
        assert_described(begun, people_routes.FactorOut, 201)
        assert_described(await client.put("/user/second-factor", json={"code": "123456"}), people_routes.CodesOut)
        assert_described(await client.put("/secrets/A", json={"value": "b"}), secret_routes.SecretOut)
        assert_described(await client.post("/volumes", json={"name": "data"}), volume_routes.VolumeOut, 201)
        asked = {"kind": "box", "gpus": 0, "cpus": 1, "argv": ["true"], "volumes": ["data:/data"]}
        assert_described(await client.post("/clusters/plan", json=asked), cluster_routes.PlanOut)
        assert_described(await client.post("/clusters", json=asked), cluster_routes.ClusterAcceptedOut, 202)
        assert_described(await client.post("/jobs", json={"argv": ["true"]}), job_routes.JobsOut, 201)
        assert_described(await client.put("/templates/one", json=asked), template_routes.TemplateOut)
        assert_described(
            await client.post("/tokens", json={"name": "a", "roles": ["renter"]}), identity_routes.TokenMadeOut
        )
        assert_described(await client.post("/join-tokens", json={}), identity_routes.JoinTokenMadeOut)
        assert_described(
            await client.put("/offers/cpu/A", json={"price_per_hour": "1"}), answers.Page[market_routes.OfferOut]
        )
        saved = await client.post(f"/clusters/{CLUSTER}/volumes/save")
        assert_described(saved, volume_routes.SavedVolumesOut)
        add_receipt(world, world.clusters[CLUSTER])
        drained = await client.post("/accesses/access_north/drain", json={"reason": ""})
        assert_described(drained, access_routes.AccessOut)
        world.stop_names["access_north"] = "access-local-a"
        stopped = await client.post("/accesses/access_north/stop", json={"confirm": "access-local-a"})
        assert_described(stopped, access_routes.StopOut, 202)
        assert_described(await client.get("/accesses/access_north/stop"), access_routes.StopOut)
        world.troubles.append(trouble())
        await _alerts(client, world)
        pretend_queue.add_queue(world)
        pretend_queue.add_shares(world)
        for path, model in READS.items():
            assert_described(await client.get(path), model)


async def _ends(client: httpx2.AsyncClient, world: World) -> None:
    """What ends, and what is limited."""
    world.projects += [project(f"account_{name}", name, "admin") for name in ("lab", "gone")]
    offered = await client.post("/projects/account_lab/transfer", json={"organisation": "acme"})
    assert_described(offered, lifecycle_routes.TransferOfferOut, 201)
    assert (await client.delete("/projects/account_gone")).status_code == 204
    settled = await client.post("/accounts/account_2/settle", json={"reason": "left"})
    assert_described(settled, account_routes.PersonOut)
    limited = await client.put("/service-accounts/service_1/limits", json={"max_leases": 1})
    assert_described(limited, limit_routes.LimitOut)


async def _clouds(client: httpx2.AsyncClient, world: World) -> None:
    """Backends, and what is bought there."""
    pretend_clouds.add_clouds(world)
    record: dict[str, object] = {"name": "new", "kind": "ec2", "settings": {}, "secrets": {}, "margin_percent": 0}
    added = await client.post("/backends", json=record | {"caps": pretend_clouds.NO_CAPS})
    assert_described(added, backend_routes.BackendOut, 201)
    capped = await client.put("/backends/new/caps", json=pretend_clouds.NO_CAPS | {"margin_percent": 5})
    assert_described(capped, backend_routes.BackendOut)
    assert_described(await client.post("/backends/new/check", json={}), backend_routes.BackendCheckOut)
    assert_described(await client.post("/backends/new/sweep", json={}), backend_routes.SweepOut)
    assert_described(await client.post("/backends/spare/stop-all", json={}), backend_routes.StoppedOut)
    allowed = await client.put("/backends/spare/buyers/account_1", json={"per_day": "5", "in_all": None})
    assert_described(allowed, backend_routes.BuyerOut)
    assert_described(await client.get("/backends/aws/buyers"), answers.Page[backend_routes.BuyerOut])
    assert_described(await client.get("/me/backends"), answers.Page[backend_routes.UsableBackendOut])
    assert (await client.delete("/backends/spare/buyers/account_1")).status_code == 204
    elsewhere = await client.get(f"/jobs/{pretend_clouds.add_job_elsewhere(world)}")
    assert_described(elsewhere, job_routes.JobOut)
    order = {"backend": "aws", "offer": pretend_clouds.OFFERS[1]["offer"], "hours": 8}
    assert_described(await client.post("/purchases", json=order), purchase_routes.PurchaseOut, 201)
    ended = await client.post(f"/purchases/{pretend_clouds.purchase_id(5)}/end", json={"reason": "done"})
    assert_described(ended, purchase_routes.PurchaseOut)


async def _alerts(client: httpx2.AsyncClient, world: World) -> None:
    """Clouds, an alert, a rule, a silence and a channel."""
    await _clouds(client, world)
    add_alert(world, "host.lost", "sim-000")
    silenced = await client.post("/alerts/alert_1/silence", json={"duration_s": 3600})
    assert_described(silenced, alert_routes.WholeAlertOut)
    asked: dict[str, object] = {"name": "hot", "metric": "gpu_temperature_celsius", "comparison": ">", "threshold": 80}
    asked |= {"duration_s": 60, "severity": "page"}
    assert_described(await client.post("/alert-rules/preview", json=asked), alert_routes.PreviewOut)
    assert_described(await client.post("/alert-rules", json=asked), alert_routes.OwnRuleOut, 201)
    quiet = {"rule": None, "cause": HOST, "ends_at": "2030-01-01T00:00:00.000Z", "reason": "fans"}
    assert_described(await client.post("/alert-silences", json=quiet), alert_routes.SilenceOut, 201)
    window: dict[str, object] = {"hosts": [HOST], "scope": None, "reason": "fans", "starts_at": None}
    window |= {"ends_at": "2030-01-01T00:00:00.000Z"}
    made = await client.post("/maintenance-windows", json=window)
    assert_described(made, maintenance_routes.MaintenanceOut, 201)
    plan = await client.post("/maintenance-windows/plan", json={"hosts": [HOST], "scope": None})
    assert_described(plan, maintenance_routes.MaintenancePlanOut)
    hook: dict[str, object] = {
        "name": "hook",
        "kind": "webhook",
        "target": "https://example.org/hook",
        "scope": "project",
    }
    hook |= {"min_severity": "ticket", "rules": [], "quiet": None, "digest_minutes": None, "is_enabled": True}
    assert_described(await client.post("/channels", json=hook), channel_routes.ChannelMadeOut, 201)
    assert_described(await client.post("/channels/channel_0/test"), channel_routes.DeliveryOut)
