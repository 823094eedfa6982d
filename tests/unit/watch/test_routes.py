"""Alerts over HTTP: who sees which, what can be done with them, own rules, silences, the inbox."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hostile.two_renters import TwoRenters, two_renters
from tests.unit.clusters import made
from tests.unit.master_api.described import assert_described
from windrow_master.api.alert_routes import (
    AlertOut,
    AlertRulesOut,
    InboxOut,
    OwnRuleOut,
    PreviewOut,
    SilenceOut,
    WholeAlertOut,
)
from windrow_master.api.answers import Page
from windrow_master.clusters.messages import RankFailed
from windrow_master.clusters.model import ClusterPhase, WorkPhase
from windrow_proto.units import HOUR, MINUTE, SECOND, time_text


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[TwoRenters]:
    async with two_renters(tmp_path) as found:
        await found.services.alerts.turn()
        yield found


async def happen(two: TwoRenters, kind: str, *subjects: str, **fields: str) -> None:
    two.services.store.write_now(lambda uow: uow.event(kind, subjects, f"{kind} happened", fields, "master"), name=kind)
    await two.services.alerts.turn()
    two.clock.advance(SECOND)


async def low_funds(two: TwoRenters) -> str:
    """An alert of the noisy renter; returns its path."""
    await happen(two, "limit.reached", two.noisy.account_id, percent="95", spender=two.noisy.account_id, limit="total")
    (one,) = (await two.noisy.client.get("/alerts")).json()["items"]
    return f"/alerts/{one['id']}"


async def test_operators_see_all_and_a_project_its_own(two: TwoRenters) -> None:
    path = await low_funds(two)
    await happen(two, "access.lost", "access_1", region="north")
    every = await two.operator.get("/alerts")
    assert_described(every, Page[AlertOut])
    assert [one["rule"] for one in every.json()["items"]] == ["relay.down", "budget.95"]
    (narrowed,) = (await two.operator.get("/alerts?rule=relay.down")).json()["items"]
    assert (narrowed["rule"], narrowed["cause"]) == ("relay.down", "access_1")
    assert (await two.quiet.client.get("/alerts")).json()["items"] == []
    for what in ("", "/acknowledge", "/comment"):
        client, body = two.quiet.client, {"text": "x"} if what == "/comment" else {}
        answer = await (client.post(path + what, json=body) if what else client.get(path))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    of_it, of_project = f"/events?subject={path[len('/alerts/') :]}", f"/events?subject={two.noisy.account_id}"
    assert (await two.quiet.client.get(of_it)).json().get("items", []) == []
    for told in (of_it, of_project):
        kinds = [one["kind"] for one in (await two.noisy.client.get(told)).json()["items"]]
        assert "alert.firing" in kinds, "its pages follow it"


async def test_the_last_lines_of_a_rank_that_failed_are_read_by_its_renter_and_no_operator(two: TwoRenters) -> None:
    gang = replace(made.cluster(ClusterPhase.DEGRADED), account_id=two.noisy.account_id)
    first = replace(made.workload(WorkPhase.EXITED), rank=1, exit_code=7)
    failed = RankFailed(gang, first, 3, ("CUDA error", "at train.py"))
    two.services.store.write_now(lambda uow: two.services.alerts.rank_failed(uow, failed), name="failed")
    await two.services.alerts.turn()
    (one,) = (await two.noisy.client.get("/alerts")).json()["items"]
    assert one["text"].splitlines()[1:] == ["CUDA error", "at train.py"]
    assert (await two.noisy.client.get("/inbox")).json()["unread"] == 1
    for path in ("/alerts", f"/alerts/{one['id']}", "/events"):
        seen = await two.operator.get(path)
        assert seen.status_code == 200 and "CUDA error" not in seen.text, path
    assert "CUDA error" in (await two.noisy.client.get(f"/alerts/{one['id']}")).text


async def test_an_alert_is_acknowledged_assigned_commented_silenced_and_resolved(two: TwoRenters) -> None:
    path, api = await low_funds(two), two.noisy.client
    assert (await api.post(f"{path}/acknowledge", json={"reason": "on it"})).json()["state"] == "acknowledged"
    assert (await api.post(f"{path}/acknowledge", json={})).json()["acknowledged_by"]
    nobody = await api.post(f"{path}/assign", json={"assignee": "ana"})
    assert (nobody.status_code, nobody.json()["code"]) == (422, "invalid_input")
    assert (await api.post(f"{path}/assign", json={"assignee": "noisy"})).json()["assignee"] == "noisy"
    await api.post(f"{path}/comment", json={"text": "the limit is raised tomorrow"})
    silenced = await api.post(f"{path}/silence", json={"duration_s": 60})
    assert_described(silenced, WholeAlertOut)
    assert silenced.json()["state"] == "silenced"
    assert (await api.post(f"{path}/unsilence")).json()["state"] == "acknowledged"
    await happen(two, "limit.removed", two.noisy.account_id)
    two.clock.advance(MINUTE)
    await two.services.alerts.turn()
    over = (await api.get(path)).json()
    assert (over["state"], over["assignee"], over["subject_count"]) == ("resolved", "noisy", 0)
    kinds = [note["kind"] for note in over["notes"]]
    assert kinds == ["firing", "acknowledged", "assigned", "comment", "silenced", "unsilenced", "resolved"]
    assert [one["id"].rpartition(".")[2] for one in over["messages"]] == ["firing", "resolved"]
    assert (await api.post(f"{path}/acknowledge", json={})).status_code == 409
    assert (await api.get("/alerts")).json()["items"] == []
    assert len((await api.get("/alerts?state=resolved")).json()["items"]) == 1


async def test_the_inbox_counts_what_its_reader_has_not_read(two: TwoRenters) -> None:
    await low_funds(two)
    box = await two.noisy.client.get("/inbox")
    assert_described(box, InboxOut)
    assert (box.json()["unread"], len(box.json()["items"])) == (1, 1)
    read = await two.noisy.client.post("/inbox/read", json={"number": box.json()["items"][0]["number"]})
    assert read.json() == {"unread": 0}
    assert (await two.noisy.client.get("/inbox")).json()["unread"] == 0
    assert (await two.quiet.client.get("/inbox")).json()["unread"] == 0


async def test_own_rules_are_previewed_added_changed_and_removed(two: TwoRenters) -> None:
    body = {"name": "failures", "event": "job.failed", "threshold": 2, "duration_s": 600}
    api = two.noisy.client
    await happen(two, "job.failed", two.noisy.account_id)
    await happen(two, "job.failed", two.noisy.account_id)
    seen = await api.post("/alert-rules/preview", json=body)
    assert_described(seen, PreviewOut)
    assert (seen.json()["count"], seen.json()["complete"]) == (1, True)
    made = await api.post("/alert-rules", json=body)
    assert_described(made, OwnRuleOut, 201)
    rule_id = made.json()["id"]
    assert_described(await api.get("/alert-rules"), AlertRulesOut)
    assert (await two.quiet.client.get("/alert-rules")).json()["items"] == []
    changed = await api.put(f"/alert-rules/{rule_id}", json=body | {"threshold": 3, "severity": "page"})
    assert (changed.json()["id"], changed.json()["threshold"]) == (rule_id, 3)
    await happen(two, "job.failed", two.noisy.account_id)
    assert [one["rule"] for one in (await api.get("/alerts")).json()["items"]] == [rule_id]
    assert (await two.quiet.client.delete(f"/alert-rules/{rule_id}")).status_code == 404
    assert (await api.delete(f"/alert-rules/{rule_id}")).status_code == 204
    assert (await api.get("/alerts")).json()["items"] == []
    wrong = await api.post("/alert-rules", json={"name": "x", "metric": "gpu_power_watts", "scope": {"flavour": "x"}})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_input")


async def test_own_rules_read_only_events_that_their_owner_may_read(two: TwoRenters) -> None:
    await happen(two, "account.settled", two.noisy.account_id, two.quiet.account_id)
    body = {"name": "money", "event": "account.settled", "duration_s": 600}
    seen = (await two.quiet.client.get("/events?subject=" + two.quiet.account_id)).json()["items"]
    assert "account.settled" not in [one["kind"] for one in seen]
    assert (await two.quiet.client.post("/alert-rules/preview", json=body)).json()["count"] == 0
    assert (await two.operator.post("/alert-rules/preview", json=body)).json()["count"] == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"event": "job.fail"}, "Do you mean job.failed?"),
        ({"event": "job.failed", "scope": {"hst": "x"}}, "Do you mean host?"),
        ({"event": "job.failed", "scope": {"host": "nothere"}}, "no host 'nothere'"),
        ({"event": "job.failed", "scope": {"job": "train"}}, "begins with job_"),
        ({"metric": "gpu_power_wats"}, "Do you mean gpu_power_watts?"),
        ({"metric": "gpu_power_watts", "scope": {"tier": "h1000/A"}}, "no tier 'h1000/A'"),
        ({"metric": "gpu_power_watts", "name": "a\r\nBcc: x@y"}, "one line"),
    ],
)
async def test_a_typing_error_in_a_rule_is_refused(two: TwoRenters, changes: dict[str, object], said: str) -> None:
    for path in ("/alert-rules", "/alert-rules/preview"):
        wrong = await two.noisy.client.post(path, json={"name": "x"} | changes)
        assert (wrong.status_code, said in wrong.text) == (422, True), wrong.text


async def test_the_latest_of_a_history_is_shown_and_comments_have_a_limit(
    two: TwoRenters, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, api = await low_funds(two), two.noisy.client
    monkeypatch.setattr("windrow_master.watch.repository.SHOWN_MAX", 2)
    monkeypatch.setattr("windrow_master.watch.service.COMMENTS_MAX", 3)
    said = [await api.post(f"{path}/comment", json={"text": str(number)}) for number in range(4)]
    assert [one.status_code for one in said] == [200, 200, 200, 429]
    assert [note["text"] for note in (await api.get(path)).json()["notes"]] == ["1", "2"]


async def test_a_silence_covers_what_is_open_and_its_end_tells_it_again_no_more(two: TwoRenters) -> None:
    await happen(two, "access.lost", "access_1", region="north")
    ends = time_text(two.clock.wall_ns() + HOUR)
    made = await two.operator.post("/alert-silences", json={"rule": "relay.down", "ends_at": ends, "reason": "moved"})
    assert_described(made, SilenceOut, 201)
    assert (await two.operator.get("/alerts")).json()["items"][0]["state"] == "silenced"
    await happen(two, "access.lost", "access_2", region="south")
    assert (await two.operator.get("/inbox")).json()["unread"] == 1
    assert (await two.operator.delete(f"/alert-silences/{made.json()['id']}")).status_code == 204
    await two.services.alerts.turn()
    assert (await two.operator.get("/inbox")).json()["unread"] == 2, "the second is told now"
    past = await two.operator.post("/alert-silences", json={"ends_at": time_text(0)})
    assert (past.status_code, past.json()["code"]) == (422, "invalid_input")
