"""Alerts on real daemons: a card that breaks under a training job, from the driver to the people; and six causes that
reach a mail server and a webhook's receiver once, and are over once.

The daemons are the shipped ones but for how long the Master's rules wait (tests/support/hasty_alerts.py).
"""

import asyncio
import io
import re
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.chromium import Chromium, NoBrowser, find_chromium
from tests.browser.pretend_master import built_console
from tests.browser.running import started
from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.state import FakeState
from tests.services import all_required
from tests.support import hasty_alerts, training
from tests.support.alert_market import HERE, HOOK_PORT, AlertMarket, alert_market
from tests.support.people import Person, added
from tests.support.stack import wait_for
from tests.waiting import PATIENCE_S
from windrow_proto.units import SECOND, parse_time

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(900)]

DEADLINE_S = 5.0
"""From a fault, or from the moment at which a rule says it, to the people."""
OPERATOR = "otto@example.org"
OWNER = "owner@example.org"
BUSY = 90
STEPS = 1500
HOT, COOL = 95, 34


def browser_of() -> Chromium:
    """The browser; without one, or without the console, the test is skipped."""
    try:
        assert built_console() is not None, "the console is not built: make setup"
        return find_chromium()
    except (NoBrowser, AssertionError) as missing:
        (pytest.fail if all_required() else pytest.skip)(str(missing))


def submitted(scene: AlertMarket, argv: list[str], folder: Path | None = None, **more: Any) -> str:
    """A job of the first account; returns its id."""
    with scene.renter.stack.client() as api:
        asked = {"argv": argv, "runtime": "process", "await_files": folder is not None, **more}
        job = str(api.submit_job(asked)[0]["id"])
        if folder is not None:
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w") as tar:
                tar.add(folder, folder.name)
            buffer.seek(0)
            api.put_job_folder(job, buffer)
    return job


def work_of(scene: AlertMarket, job: str) -> dict[str, Any]:
    """The workload of a job's newest attempt."""
    cluster = scene.renter.ask("GET", f"/jobs/{job}")["attempts"][-1]["cluster_id"]
    return {"cluster_id": cluster, **scene.renter.ask("GET", f"/clusters/{cluster}")["workloads"][-1]}


def uuids_of(scene: AlertMarket, host_id: str, cluster_id: str) -> list[str]:
    """The cards that a cluster has on a host, once the host's page shows them."""

    def look() -> list[str]:
        slots = scene.renter.ask("GET", f"/hosts/{host_id}")["slots"]
        return [slot["gpu_uuid"] for slot in slots if slot["cluster_id"] == cluster_id]

    found: list[str] = wait_for(look)
    return found


def pull(state: FakeState, index: int) -> None:
    """Take a card out of its machine, which is off."""
    for place in range(index, state.state.gpu_count - 1):
        state.state.gpus[place] = state.state.gpus[place + 1]
    state.state.gpu_count -= 1


def incidents(scene: AlertMarket) -> dict[tuple[str, ...], Any]:
    """This month's report of incidents, by host and kind."""
    found = scene.renter.ask("GET", "/reports?measure=incidents&by=host,kind&period=this-month&view=all")
    return {tuple(key["id"] for key in cell["keys"]): cell["values"]["incidents"] for cell in found["cells"]}


# --- a card that breaks under a training job -------------------------------------------------------------------------


@dataclass
class Fault:
    """A card that broke: where, whose it was, and when by this machine's clock."""

    host: str
    index: int
    uuid: str
    host_id: str
    cluster_id: str
    at_s: float


@pytest.mark.proves("a card that breaks under a training job: from the driver to mail, bell, host's page and report")
def test_a_card_breaks_under_a_training_job_and_everybody_knows_what_they_need(
    fake_library: Path, tmp_path: Path
) -> None:
    chromium = browser_of()
    seconds: dict[str, float] = {}
    with alert_market(tmp_path, fake_library, {"h0": 2, "h1": 3}, lost_s=60) as scene:
        idle = _leave_idle(scene)
        otto = _operator(scene)
        job = submitted(
            scene, ["python3", "training.py"], Path(training.__file__), retries=5, checkpoint_every_seconds=1, gpus=2,
            gpu_model="H100", env={"STEPS": str(STEPS)},
        )  # fmt: skip
        wait_for(lambda: "job.checkpoint_saved" in scene.renter.events(job))
        fault = _break(scene, job)
        alert = _is_told(scene, otto, fault, seconds)
        asyncio.run(_is_shown(chromium, otto, alert, fault))
        _goes_on(scene, job, fault, seconds)
        _is_out(scene, fault, alert, seconds)
        assert incidents(scene) == {(fault.host_id, "gpu_fault"): "1"}
        _idle_is_found(scene, idle, seconds)
        assert [one["rule"] for one in scene.alerts() if one["cause"] == fault.host_id and "gpu." in one["rule"]] == [
            "gpu.lost"
        ], "one lost card is one alert"
        mails = [(subject.startswith("[PAGE]"), subject) for _, subject in scene.taken.mailed("GPU lost")]
        assert [urgent for urgent, _ in mails] == [True, False], mails
    for name, took in seconds.items():
        print(f"{took:7.2f} s  {name}")


def _operator(scene: AlertMarket) -> Person:
    """Somebody else who operates the market, and has a mail address; what there was to read is read."""
    otto = added(scene.renter.stack, "otto", "operator")
    with otto.client() as api:
        api.request("PUT", "/user", body={"address": OPERATOR})
        found = api.request("GET", "/inbox")["items"]
        api.request("POST", "/inbox/read", body={"number": found[0]["number"] if found else 0})
    return otto


def _leave_idle(scene: AlertMarket) -> str:
    """A machine with a card that nobody uses, on h1; all other cards are busy."""
    wanted: dict[str, Any] = {"gpus": 1, "gpu_model": "H100", "host_id": scene.ids["h1"], "runtime": "process"}
    wait_for(lambda: scene.renter.ask("POST", "/clusters/plan", {"kind": "box", "argv": ["true"], **wanted})["fits"])
    made = scene.renter.create("sleep", "3600", **wanted)
    assert made["phase"] == "Running", made
    (unused,) = uuids_of(scene, scene.ids["h1"], made["id"])
    for state in scene.cards.values():
        for index in range(state.state.gpu_count):
            state.gpu(index).utilization = 0 if state.uuid(index) == unused else BUSY
    return str(made["id"])


def _log(scene: AlertMarket, job: str, attempt: int) -> str:
    with scene.renter.stack.client() as api:
        return b"".join(api.job_logs(job, attempt=attempt)).decode()


def _break(scene: AlertMarket, job: str) -> Fault:
    """XID 79: a card of the job falls off its bus."""
    work = work_of(scene, job)
    name = next(name for name, one in scene.ids.items() if one == work["host_id"])
    state, uuid = scene.cards[name], uuids_of(scene, work["host_id"], work["cluster_id"])[0]
    index = next(index for index in range(state.state.gpu_count) if state.uuid(index) == uuid)
    at_s = time.time()
    state.gpu(index).lost = 1
    state.xid(index, 79)
    return Fault(name, index, uuid, work["host_id"], work["cluster_id"], at_s)


def _is_told(scene: AlertMarket, otto: Person, fault: Fault, seconds: dict[str, float]) -> dict[str, Any]:
    """The operator's mail, and the message under the bell, in time; returns the alert."""
    with otto.client() as api:
        message = wait_for(
            lambda: next((m for m in api.request("GET", "/inbox")["items"] if "GPU" in m["title"]), None)
        )
        seconds["XID 79 to the inbox"] = parse_time(message["at"]) / SECOND - fault.at_s
        ((mailed_at_s, subject),) = wait_for(lambda: scene.taken.mailed("GPU"))
        seconds["XID 79 to the mail"] = mailed_at_s - fault.at_s
        found: dict[str, Any] = api.request("GET", f"/alerts/{message['alert_id']}")
    assert (found["rule"], found["severity"]) == ("gpu.lost", "page"), found
    assert subject == f"[PAGE] GPU lost: test-host-{fault.host}, GPU {fault.index}"
    assert f"H100 80GB HBM3, {fault.uuid[:12]}" in found["text"] and "rental_" in found["text"], found["text"]
    assert max(seconds.values()) <= DEADLINE_S, seconds
    return found


async def _is_shown(chromium: Chromium, otto: Person, alert: dict[str, Any], fault: Fault) -> None:
    """The bell rings once; the pages of the alert and of the host name card, remedy and rental."""
    expect.set_options(timeout=PATIENCE_S * 1000)
    async with started(chromium) as browser:
        page = await (await browser.new_context(locale="en-GB")).new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        await page.goto(f"{otto.url}/#token={otto.token}")
        await expect(page.get_by_role("button", name="Messages: 1 unread")).to_be_visible()
        await page.goto(f"{otto.url}/alerts/{alert['id']}")
        main = page.get_by_role("main")
        rental = re.search(r"rental_\w+", alert["text"])
        assert rental is not None
        for words in (f"GPU {fault.index}", fault.uuid[:12], rental[0], "Reboot the host."):
            await expect(main).to_contain_text(words)
        await page.goto(f"{otto.url}/hosts/{fault.host_id}")
        trouble = page.locator(".wr-trouble").first
        for words in (f"GPU {fault.index}", "Reboot the host.", "Affected:"):
            await expect(trouble).to_contain_text(words)
        await expect(trouble.locator(f"a[href*='{fault.cluster_id}']").first).to_be_visible()


def _goes_on(scene: AlertMarket, job: str, fault: Fault, seconds: dict[str, float]) -> None:
    """The job's second attempt, on other cards, from a checkpoint, to its end."""
    wait_for(lambda: "goes on from" in _log(scene, job, 2))
    seconds["XID 79 to the next attempt at work (looked at late)"] = time.time() - fault.at_s
    work = work_of(scene, job)
    assert work["host_id"] != fault.host_id
    said = re.search(r"goes on from step (-?\d+)", _log(scene, job, 2))
    assert said is not None and int(said[1]) > 0, _log(scene, job, 2)
    ended = wait_for(lambda: (j := scene.renter.ask("GET", f"/jobs/{job}")) and j["ended_at"] and j, 300)
    assert (ended["state"], len(ended["attempts"])) == ("Succeeded", 2), ended


def _is_out(scene: AlertMarket, fault: Fault, alert: dict[str, Any], seconds: dict[str, float]) -> None:
    """The card is taken out, and the alert is over."""
    scene.kill_agent(fault.host)
    pull(scene.cards[fault.host], fault.index)
    began_s = time.time()
    scene.start_agent(fault.host)
    over = wait_for(lambda: (a := scene.renter.ask("GET", f"/alerts/{alert['id']}")) and a["resolved_at"] and a)
    seconds["agent without the card to resolved (3 s of them settled)"] = (
        parse_time(over["resolved_at"]) / SECOND - began_s
    )
    wait_for(lambda: len(scene.taken.mailed("GPU lost")) == 2)


def _idle_is_found(scene: AlertMarket, cluster_id: str, seconds: dict[str, float]) -> None:
    """The machine that nobody uses, with what it has cost."""
    (found,) = wait_for(lambda: scene.alerts("lease.idle"), 180)
    cost = re.search(r"It has cost (\S+) so far", found["text"])
    assert (found["cause"], cost is not None and float(cost[1]) > 0) == (cluster_id, True), found
    made = scene.renter.ask("GET", f"/clusters/{cluster_id}")
    began_s = parse_time(made["started_at"]) / SECOND
    seconds["idle (rule: 60 s) to told"] = parse_time(found["fired_at"]) / SECOND - began_s


# --- six causes ------------------------------------------------------------------------------------------------------


@dataclass
class Cause:
    """One thing that goes wrong. make, mend: do it and undo it; kinds: of the event that begins it; subject: of that
    event; wait_s: how long the rule waits then. at_s: when it began."""

    rule: str
    make: Callable[[], object]
    mend: Callable[[], object]
    kind: str
    subject: Callable[[], str]
    wait_s: float = 0.0
    at_s: float = field(default=0.0)


@pytest.mark.proves("six causes on real daemons: each is mailed and sent as a signed webhook once, and is over once")
def test_six_causes_reach_mail_and_webhook_once_each_and_are_over_once(fake_library: Path, tmp_path: Path) -> None:
    with alert_market(tmp_path, fake_library, {"h0": 2, "h1": 1}, lost_s=6) as scene:
        _channels(scene)
        causes = [*_of_work(scene), *_of_machines(scene)]
        rows = []
        for cause in causes:
            began_s = time.time()
            cause.make()
            rows.append(_told_in_time(scene, cause, began_s))
            cause.mend()
            wait_for(lambda: scene.taken.hooked("alert.resolved", cause.rule), 120)  # noqa: B023
        print("cause, s to mail, s to webhook (from the moment at which the rule says it)")
        for rule, mail_s, hook_s in rows:
            print(f"{rule:12} {mail_s:6.2f} {hook_s:6.2f}")
        wait_for(lambda: all(_ends(scene, cause.rule) == (2, 1, 1) for cause in causes))
        assert {cause.rule: _ends(scene, cause.rule) for cause in causes} == {c.rule: (2, 1, 1) for c in causes}
        assert max(max(mail_s, hook_s) for _, mail_s, hook_s in rows) <= DEADLINE_S, rows


def _channels(scene: AlertMarket) -> None:
    """The owner, who operates and rents, gets all by mail and by webhook, each message once."""
    ask = scene.renter.ask
    ask("PUT", "/user", {"address": OWNER})
    ask("PUT", "/user/alert-mail", {"level": "none"})
    mail = {"kind": "mail", "target": OWNER, "scope": "me", "name": "mail"}
    hook = {"kind": "webhook", "target": f"http://{HERE}:{HOOK_PORT}/hook", "scope": "me", "name": "hook"}
    ask("POST", "/channels", mail)
    scene.taken.secret = ask("POST", "/channels", hook)["secret"]


def _of_work(scene: AlertMarket) -> list[Cause]:
    """What befalls work: a job that fails, one that waits, and a budget that is nearly used up."""
    ask, made = scene.renter.ask, dict[str, str]()

    def fail() -> None:
        made["failed"] = submitted(scene, ["sh", "-c", "exit 3"])

    def wait() -> None:
        made["queued"] = submitted(scene, ["true"], gpus=8, gpu_model="H100")

    def spend() -> None:
        ran = scene.renter.create("sleep", "25", gpus=2, gpu_model="H100", runtime="process", until="Finished")
        wait_for(lambda: scene.renter.receipt(ran["id"]))
        made["cheap"] = scene.renter.create("sleep", "3600", runtime="process")["id"]
        spent = float(ask("GET", "/projects/default/limits")["total_cost"])
        ask("PUT", "/projects/default/limits", {"max_total_cost": f"{spent / 0.8 * 1.0001:.8f}"})

    def earn() -> None:
        ask("PUT", "/projects/default/limits", {"max_total_cost": "1000"})
        scene.renter.delete(made["cheap"])

    account = ask("GET", "/me")["account"]["id"]
    queued_s, nothing = hasty_alerts.QUEUE_NS / SECOND, lambda: None
    return [
        Cause("job.failed", fail, nothing, "job.failed", lambda: made["failed"]),
        Cause("job.queued", wait, lambda: ask("POST", f"/jobs/{made['queued']}/cancel"), "job.queued",
              lambda: made["queued"], queued_s),
        Cause("budget.80", spend, earn, "limit.reached", lambda: account),
    ]  # fmt: skip


def _of_machines(scene: AlertMarket) -> list[Cause]:
    """What befalls machines: a hot card, an agent and a relay that are killed."""
    card, relay = scene.cards["h0"].gpu(0), scene.market.accesses["eu"]

    def back() -> None:
        scene.market.restart_access("eu")

    return [
        Cause("gpu.hot", lambda: setattr(card, "temperature", HOT), lambda: setattr(card, "temperature", COOL),
              "condition.raised", lambda: scene.ids["h0"]),
        Cause("host.lost", lambda: scene.kill_agent("h1"), lambda: scene.start_agent("h1"), "host.lost",
              lambda: scene.ids["h1"]),
        Cause("relay.down", relay.kill, back, "access.lost", lambda: relay.access_id),
    ]  # fmt: skip


def _told_in_time(scene: AlertMarket, cause: Cause, began_s: float) -> tuple[str, float, float]:
    """The seconds from the moment at which the rule says it to the mail, and to the webhook."""
    (hook_s,) = wait_for(lambda: scene.taken.hooked("alert.firing", cause.rule), 180)
    title = next(said["data"]["title"] for _, said in scene.taken.hooks if said["data"]["rule"] == cause.rule)
    (mail_s, _) = wait_for(lambda: scene.taken.mailed(title))[0]
    found = [one for one in scene.renter.all("/events", subject=cause.subject()) if one["kind"] == cause.kind]
    moments = [parse_time(one["at"]) / SECOND for one in found]
    due_s = min(at for at in moments if at >= began_s - 1) + cause.wait_s
    return cause.rule, mail_s - due_s, hook_s - due_s


def _ends(scene: AlertMarket, rule: str) -> tuple[int, int, int]:
    """How many mails there are about a rule's alert, and how many webhooks tell that it fires, and that it is over."""
    title = next(said["data"]["title"] for _, said in scene.taken.hooks if said["data"]["rule"] == rule)
    firing, resolved = (len(scene.taken.hooked(f"alert.{kind}", rule)) for kind in ("firing", "resolved"))
    return len(scene.taken.mailed(title)), firing, resolved
