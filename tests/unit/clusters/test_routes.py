"""Clusters and the market over HTTP: the shapes of plan/api, and what goes on inside through a scripted host."""

import base64
import io
import json
import tarfile
from contextlib import closing
from dataclasses import dataclass, replace

import httpx2
import pytest

from tests.master_support import ManualClock, SeededRng
from tests.support.personas import DRIVER, uuid
from tests.unit.master_api.described import assert_described
from tests.waiting import poll_async
from windrow_master.api import cluster_routes, market_routes, shop_routes
from windrow_master.api.answers import Page
from windrow_master.api.app import build_app
from windrow_master.api.event_tail import EventTail
from windrow_master.app import wiring as rooms
from windrow_master.fleet.repository import CommandRepository
from windrow_master.fleet.states import LinkEvent
from windrow_master.store.executors import InlineExecutor
from windrow_master.verification import schedule
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import HostUnreachable
from windrow_proto.ids import HostId
from windrow_proto.messages import ChannelClose, ChannelData
from windrow_proto.model import (
    ChannelPurpose,
    CommandKind,
    CommandPhase,
    CommandStatus,
    GpuFacts,
    Inventory,
    ObservedWorkload,
    Receipt,
    WorkloadPhase,
)
from windrow_proto.units import GIB, SECOND
from windrow_proto.wire_command import decode_command

HOST = HostId("host_a")


class ScriptedStream:
    """A channel whose host says what a test has written down."""

    def __init__(self, script):
        self.script = list(script)
        self.sent = b""
        self.closings = []

    async def send(self, data, stream=0):
        self.sent += data

    async def receive(self):
        return self.script.pop(0)

    async def close(self, closing):
        self.closings.append(closing)


class ScriptedBroker:
    """Opens the streams that a test has prepared, and remembers what was asked."""

    def __init__(self):
        self.streams = []
        self.opened = []

    async def open(self, host_id, opening):
        self.opened.append((host_id, opening))
        if not self.streams:
            raise HostUnreachable(subject=host_id)
        return self.streams.pop(0)


@dataclass
class Site:
    client: httpx2.AsyncClient
    rooms: rooms.Master
    broker: ScriptedBroker
    clock: ManualClock

    async def running(self, **more):
        """A cluster whose work runs."""
        asked = {"argv": ["sleep", "9"], "cpus": 2, "name": "demo"} | more
        answer = await self.client.post("/api/v1/clusters", json=asked)
        assert_described(answer, cluster_routes.ClusterAcceptedOut, 202)
        cluster = answer.json()["cluster"]
        spec = self.spec(CommandKind.CREATE).create
        self.write(
            lambda uow: self.life.on_workload(
                uow, HOST, ObservedWorkload(spec.workload_id, WorkloadPhase.RUNNING, spec.slots)
            )
        )
        self.receipt(spec, 1, 0)
        return cluster["id"], spec

    @property
    def life(self):
        return self.rooms.clusters.lifecycle

    def write(self, change):
        return self.rooms.store.write_now(change, name="test")

    def spec(self, kind):
        rows = self.rooms.store.read_now(lambda uow: uow[CommandRepository].open_of_host(HOST))
        return [decode_command(row.body) for row in rows if row.kind is kind][-1]

    def receipt(self, spec, number, seconds, final=False):
        started = self.clock.wall_ns()
        signed = Receipt(
            spec.workload_id,
            spec.cluster_id,
            spec.slots,
            number,
            int(seconds * SECOND),
            started,
            started,
            final,
            None,
            "deleted" if final else "",
        )
        self.write(lambda uow: self.life.on_receipt(uow, HOST, signed, b"sealed"))

    async def get(self, path, status=200, **params):
        answer = await self.client.get(f"/api/v1{path}", params=params)
        assert answer.status_code == status, answer.text
        return answer.json()


@pytest.fixture
async def site(tmp_path):
    clock = ManualClock()
    opened = rooms.build(tmp_path, clock, SeededRng(3), disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        identity = opened.services.identity
        owner = identity.first_account()
        token = identity.local_token(owner, None)
        broker = ScriptedBroker()
        opened.hub._routes.open = broker.open  # type: ignore[method-assign]
        services = opened.services
        EventTail(services.store, services.bus, services.broadcaster)

        def join(uow):
            inventory = Inventory(hostname="a", cpu_count=4, memory_bytes=16 * GIB, runtimes=("process",))
            opened.fleet.enrol(uow, HOST, "a", owner.id, False, "test")
            opened.fleet.hosts.inventory(uow, HOST, inventory)
            opened.fleet.hosts.link(uow, HOST, LinkEvent.HEARD, uow.now_wall_ns)

        opened.store.write_now(join, name="test")
        transport = httpx2.ASGITransport(build_app(opened.services, tmp_path), raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://master", headers=headers) as client:
            yield Site(client, opened, broker, clock)


async def test_an_offer_names_its_price_its_unit_and_where_the_suggestion_comes_from(site):
    (offer,) = (await site.get("/offers"))["items"]
    assert (offer["tier"], offer["unit"], offer["simulated"], offer["free"]) == ("cpu/C", "processor", False, 1)
    assert offer["price_per_hour"] == offer["suggestion"] == "0.0175"
    assert "paperspace" in offer["suggestion_reason"]


async def test_offer_and_plan_say_that_there_is_no_sandbox_and_whose_users_containers_have(site):
    def say(uow):
        more = {"container_own_users": 1}
        said = Inventory(hostname="a", cpu_count=4, memory_bytes=16 * GIB, runtimes=("docker",), more=more)
        site.rooms.fleet.hosts.inventory(uow, HOST, replace(said, conditions=("process.no_sandbox",)))

    site.write(say)
    (offer,) = (await site.get("/offers"))["items"]
    assert offer["container_users"] == "own"
    assert offer["notes"] == ["a: it has no sandbox for processes: windrow-agent doctor says why"]
    (place,) = await plan_of(site, image="busybox")
    assert place["note"] == "its containers have users of their own (a user namespace)"
    refused = await site.client.post("/api/v1/clusters/plan", json={"cpus": 1, "runtime": "process"})
    assert "it has no sandbox for processes" in refused.text


async def plan_of(site, **asked):
    answer = await site.client.post("/api/v1/clusters/plan", json={"cpus": 1, **asked})
    return answer.json()["placement"]


async def test_a_price_can_be_set_and_a_running_rental_keeps_its_own(site):
    cluster_id, _ = await site.running()
    answer = await site.client.put("/api/v1/offers/cpu/C", json={"price_per_hour": "0.50"})
    assert_described(answer, Page[market_routes.OfferOut])
    assert answer.json()["items"][0]["price_per_hour"] == "0.50"
    assert (await site.get(f"/clusters/{cluster_id}"))["price_per_hour"] == "0.035"
    for wrong in ("1e3", "-1", "0.000000001", "2000"):
        answer = await site.client.put("/api/v1/offers/cpu/C", json={"price_per_hour": wrong})
        assert answer.status_code == 422


async def test_a_price_can_be_taken_back_and_the_caller_sees_what_was_asked(site):
    (before,) = (await site.get("/offers"))["items"]
    assert before["asked"] is None
    (set_one,) = (await site.client.put("/api/v1/offers/cpu/C", json={"price_per_hour": "0.50"})).json()["items"]
    assert (set_one["asked"], set_one["price_per_hour"]) == ("0.50", "0.50")
    answer = await site.client.delete("/api/v1/offers/cpu/C")
    assert_described(answer, Page[market_routes.OfferOut])
    assert answer.json()["items"] == [before]


async def test_a_price_is_changed_only_while_it_is_the_one_that_was_seen(site):
    path = "/api/v1/offers/cpu/C"
    await site.client.put(path, json={"price_per_hour": "0.50"})
    await site.client.put(path, json={"price_per_hour": "7.77", "if_asked": "0.5"})
    for answer in (
        await site.client.put(path, json={"price_per_hour": "0.50", "if_asked": "0.50"}),
        await site.client.delete(path, params={"if_asked": "0.50"}),
    ):
        assert answer.status_code == 409
        assert "costs 7.77 an hour since" in answer.json()["detail"]
    assert (await site.client.delete(path, params={"if_asked": "7.77"})).status_code == 200
    assert (await site.client.delete(path, params={"if_asked": "7.77"})).status_code == 409


async def test_a_class_that_there_is_not_has_no_price(site):
    answer = await site.client.put("/api/v1/offers/nonesuch/C", json={"price_per_hour": "1"})
    assert (answer.status_code, answer.json()["subject"]) == (404, "nonesuch/C")


async def test_machine_classes_are_narrowed_and_a_full_one_says_when_its_first_lease_ends(site):
    path, cores = "/machine-classes", {"unit": "processor", "model": "cpu", "min_gpus": 4, "simulated": False}
    assert_described(await site.client.get(f"/api/v1{path}"), Page[shop_routes.MachineClassOut])
    (free,) = (await site.get(path, **cores, max_price="0.02", free=True))["items"]
    assert (free["tier"], free["on_one_host"], free["host_id"], free["ends_at"]) == ("cpu/C", 4, HOST, None)
    for narrow in ({"min_gpus": 5}, {"max_price": "0.01"}, {"region": "x"}, {"min_reliability": 0.1}, {"driver": "1"}):
        assert (await site.get(path, **narrow))["items"] == [], narrow
    await site.get(path, status=422, max_price="cheap")
    await site.running(cpus=4, max_duration_seconds=3600)
    (full,) = (await site.get(path, **cores))["items"]
    assert (full["free"], full["host_id"]) == (0, None)
    assert full["ends_at"] is not None
    assert (await site.get(f"{path}/paid", tier="cpu/C"))["items"] == [], "of processors no price of one is known"


async def test_a_plan_shows_place_price_hold_and_balance_or_the_refusals(site):
    answer = await site.client.post("/api/v1/clusters/plan", json={"cpus": 2})
    assert_described(answer, cluster_routes.PlanOut)
    fits = answer.json()
    assert (fits["fits"], fits["price_per_hour"], fits["hold"], fits["balance"]) == (True, "0.035", "0.00875", "100.00")
    assert fits["placement"][0]["slots"] == [f"{HOST}/cpu/0"]
    answer = await site.client.post("/api/v1/clusters/plan", json={"gpus": 1})
    assert_described(answer, cluster_routes.PlanOut)
    refused = answer.json()
    assert not refused["fits"]
    assert refused["refusal"]["reasons"] == [
        {
            "code": "no_slot",
            "text": "a: no GPU",
            "reason": "no GPU",
            "count": 1,
            "is_own": True,
            "hosts": [{"id": HOST, "name": "a"}],
        }
    ]
    assert not refused["refusal"]["is_possible"]
    assert fits["refusal"] is None


async def test_a_host_is_named_by_its_name_as_well_while_no_other_has_it(site):
    fleet, asked = site.rooms.fleet, {"cpus": 1, "host_id": "a"}
    await fleet.refresh()
    assert (await site.client.post("/api/v1/clusters/plan", json=asked)).json()["fits"]
    owner = fleet.entry(HOST).host.owner_account
    site.write(lambda uow: fleet.enrol(uow, HostId("host_other"), "a", owner, False, "test"))
    await fleet.refresh()
    answer = await site.client.post("/api/v1/clusters", json=asked)
    assert answer.status_code == 409 and HOST in answer.json()["detail"], "nobody guesses which"


async def test_a_host_named_like_anothers_id_is_not_taken_for_it(site):
    fleet, real, impostor = site.rooms.fleet, "host_019ac3f5e0b170018377bb5b00000001", "host_impostor"
    await fleet.refresh()
    owner = fleet.entry(HOST).host.owner_account
    site.write(lambda uow: fleet.enrol(uow, HostId(real), "rack-7", owner, False, "test"))
    site.write(lambda uow: fleet.enrol(uow, HostId(impostor), "8377bb5b", owner, False, "test"))
    await fleet.refresh()

    for answer in (
        await site.client.post("/api/v1/clusters", json={"cpus": 1, "host_id": "8377bb5b"}),
        await site.client.post("/api/v1/hosts/8377bb5b/drain", json={"reason": ""}),
    ):
        assert answer.status_code == 409
        assert real in answer.json()["detail"] and impostor in answer.json()["detail"]
    assert (await site.client.get("/api/v1/hosts/rack-7")).json()["id"] == real


@pytest.mark.parametrize(
    "name", ["94e9ea58", "cluster_01a21f68182a", "job_1", "GPU-1", "a/b", "/", ".", "..", "-x", "@x"]
)
@pytest.mark.parametrize("path", ["/clusters", "/clusters/plan", "/jobs", "/jobs/plan"])
async def test_a_name_like_an_id_or_a_path_is_refused_with_the_rule(site, path, name):
    answer = await site.client.post(f"/api/v1{path}", json={"argv": ["true"], "name": name})

    assert answer.status_code == 422
    assert "1 to 64 of A-Z" in answer.json()["detail"] and "not like an id" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/tokens", "/volumes"])
async def test_a_token_and_a_volume_have_no_name_like_an_id(site, path):
    answer = await site.client.post(f"/api/v1{path}", json={"name": "94e9ea58"})

    assert (answer.status_code, "not like an id" in answer.json()["detail"]) == (422, True)


async def test_no_capacity_is_a_problem_that_says_what_the_plan_says_and_which_change_would_fit(site):
    asked = {"cpus": 64, "max_price_per_hour": "9"}
    answer = await site.client.post("/api/v1/clusters", json=asked)
    plan = (await site.client.post("/api/v1/clusters/plan", json=asked)).json()
    assert (answer.status_code, answer.json()["code"]) == (409, "no_capacity")
    assert (answer.json()["title"], answer.json()["retryable"]) == ("No host fits", False)
    told = answer.json()
    assert {name: told[name] for name in plan["refusal"]} == plan["refusal"]
    assert told["detail"].startswith("No host of this market has 64 CPUs")
    assert [one["text"] for one in told["reasons"]] == ["a: too few CPUs (4 in all, you ask for 64)"]
    assert [one["changes"] for one in told["ways"]] == [{"cpus": 4}]
    fits = await site.client.post("/api/v1/clusters/plan", json=asked | told["ways"][0]["changes"])
    assert fits.json()["price_per_hour"] == told["ways"][0]["price_per_hour"]


async def test_a_price_that_would_fit_is_told_as_the_request_takes_it(site):
    asked = {"cpus": 1, "max_price_per_hour": "0.001"}
    (way,) = (await site.client.post("/api/v1/clusters", json=asked)).json()["ways"]
    assert way["text"] == "Fits on a for 0.0165 more per hour than you allow (0.0175)"
    assert (await site.client.post("/api/v1/clusters", json=asked | way["changes"])).status_code == 202


async def test_a_card_that_is_being_challenged_is_told_of_as_back_soon_and_when_to_ask_again(site):
    card = GpuFacts(uuid(1), 0, "nvidia", "NVIDIA H100 PCIe", pci_device_id=0x233110DE, memory_bytes=80 * GIB)

    def challenged(uow, *codes):
        fleet = site.rooms.fleet.hosts
        inventory = Inventory("a", cpu_count=4, memory_bytes=16 * GIB, gpus=(card,), runtimes=("process",))
        fleet.inventory(uow, HOST, replace(inventory, driver_version=DRIVER))
        fleet.challenged(uow, fleet.load(uow, HOST), schedule.running(codes))

    site.write(lambda uow: challenged(uow, card.uuid))
    plan = (await site.client.post("/api/v1/clusters/plan", json={"gpus": 1})).json()
    refused = await site.client.post("/api/v1/clusters", json={"gpus": 1})
    two = await site.client.post("/api/v1/clusters", json={"gpus": 2})
    site.write(challenged)
    made = await site.client.post("/api/v1/clusters", json={"gpus": 1})

    assert (plan["fits"], plan["fits_soon"]) == (False, True)
    assert (refused.status_code, refused.headers["Retry-After"]) == (409, "2")
    assert (two.status_code, two.headers.get("Retry-After")) == (409, None)
    assert made.status_code == 202


async def test_a_misspelt_field_is_refused(site):
    assert (await site.client.post("/api/v1/clusters", json={"gpu": 1})).status_code == 422


async def test_a_repeated_key_answers_with_the_same_cluster(site):
    headers = {"Idempotency-Key": "k"}
    first = await site.client.post("/api/v1/clusters", json={"argv": ["a"]}, headers=headers)
    again = await site.client.post("/api/v1/clusters", json={"argv": ["a"]}, headers=headers)
    other = await site.client.post("/api/v1/clusters", json={"argv": ["b"]}, headers=headers)
    assert first.json()["cluster"]["id"] == again.json()["cluster"]["id"]
    assert other.status_code == 409


async def test_from_creating_to_a_receipt_that_ends_at_the_last_signed_second(site):
    cluster_id, spec = await site.running()
    assert (await site.get(f"/clusters/{cluster_id}"))["phase"] == "Running"
    site.clock.advance(20 * SECOND)
    deleted = await site.client.delete(f"/api/v1/clusters/{cluster_id}")
    assert_described(deleted, cluster_routes.ClusterAcceptedOut, 202)
    site.receipt(spec, 2, 12.345678901, final=True)
    command = site.spec(CommandKind.DELETE)
    status = CommandStatus(command.command_id, CommandPhase.SUCCEEDED)
    site.write(lambda uow: site.rooms.fleet.commands.on_status(uow, HOST, status))
    operation = await site.get(f"/operations/{deleted.json()['operation']['id']}")
    assert operation["state"] == "succeeded"
    (listed,) = (await site.get("/receipts", cluster=cluster_id))["items"]
    receipt = await site.get(f"/receipts/{listed['id']}")
    assert receipt["running_seconds"] == "12.345678901"
    assert receipt["amount"] == "0.00012002"
    assert receipt["ended_at"] is not None and receipt["test_money"]
    assert [transfer["kind"] for transfer in receipt["transfers"]] == ["hold", "charge", "void"]
    (line,) = receipt["lines"]
    assert (line["receipts"], line["first_number"], line["last_number"], line["final"]) == (2, 1, 2, True)
    assert_described(await site.client.get("/api/v1/receipts"), Page[market_routes.ReceiptOut])
    assert_described(await site.client.get("/api/v1/ledger/transfers"), Page[market_routes.TransferOut])
    transfers = (await site.get("/ledger/transfers"))["items"]
    assert [transfer["kind"] for transfer in transfers] == ["void", "charge", "hold", "mint"]
    accounts = {row["account"]: row["amount"] for row in (await site.get("/ledger/balances"))["items"]}
    assert accounts["mint:test"] == "-100.00"


async def test_why_it_runs_there(site):
    cluster_id, _ = await site.running()
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/explain")
    assert_described(answer, cluster_routes.ExplanationOut)
    found = answer.json()
    assert found["chosen"]["host_id"] == HOST and found["losers"] == []


async def test_a_log_is_given_byte_by_byte_and_says_when_it_was_cut(site):
    cluster_id, spec = await site.running()
    stream = ScriptedStream([ChannelData(b"\xff<b>one\n"), ChannelData(b"two"), ChannelClose(truncated=True)])
    site.broker.streams = [stream]
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/logs", params={"offset": 3})
    assert answer.content == b"\xff<b>one\ntwo"
    assert answer.headers["x-log-truncated"] == "true" and answer.headers["x-content-type-options"] == "nosniff"
    ((host_id, opening),) = site.broker.opened
    assert (host_id, opening.purpose, opening.offset) == (HOST, ChannelPurpose.LOGS, 3)
    assert opening.workload_id == spec.workload_id and stream.closings


async def test_a_followed_log_ends_with_the_work(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [ScriptedStream([ChannelData(b"a"), ChannelData(b"b"), ChannelClose()])]
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/logs", params={"follow": "true"})
    assert answer.content == b"ab"


async def test_a_host_that_is_away_is_a_problem_and_not_half_an_answer(site):
    cluster_id, _ = await site.running()
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/logs", params={"follow": "true"})
    assert (answer.status_code, answer.json()["code"]) == (503, "host_unreachable")


async def test_a_command_inside_answers_in_lines_and_its_exit_code_comes_last(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [ScriptedStream([ChannelData(b"out", 1), ChannelData(b"err", 2), ChannelClose(exit_code=7)])]
    answer = await site.client.post(f"/api/v1/clusters/{cluster_id}/exec", json={"argv": ["ls"]})
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [base64.b64decode(line["data"]) for line in lines[:-1]] == [b"out", b"err"]
    assert lines[-1] == {"exit_code": 7}


async def test_a_command_that_fails_says_so_in_its_last_line(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [ScriptedStream([ChannelClose("workload_failed", "no such program")])]
    answer = await site.client.post(f"/api/v1/clusters/{cluster_id}/exec", json={"argv": ["nope"]})
    assert json.loads(answer.text)["error"]["code"] == "workload_failed"


def tar_of(**files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


async def test_files_go_in_are_counted_and_committed(site):
    cluster_id, _ = await site.running()
    stream = ScriptedStream([ChannelClose(commit=True)])
    site.broker.streams = [stream]
    data = tar_of(a=b"1" * 70_000, b=b"", c=b"x")
    answer = await site.client.put(f"/api/v1/clusters/{cluster_id}/files", params={"commit": "true"}, content=data)
    assert answer.json() == {"bytes": len(data), "files": 3}
    assert stream.sent == data and stream.closings[0].commit


async def test_files_for_work_that_waits_for_none_are_a_conflict(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [ScriptedStream([ChannelClose()])]
    url = f"/api/v1/clusters/{cluster_id}/files"
    answer = await site.client.put(url, params={"commit": "true"}, content=tar_of(a=b"1"))
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_files_that_a_host_refuses_are_its_problem_in_words(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [ScriptedStream([ChannelClose("storage_failed", "no space left")])]
    answer = await site.client.put(f"/api/v1/clusters/{cluster_id}/files", content=tar_of(a=b"1"))
    assert (answer.status_code, answer.json()["detail"]) == (503, "no space left")


async def test_files_come_out_from_any_byte_on(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [ScriptedStream([ChannelData(b"tar"), ChannelData(b"red"), ChannelClose()])]
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/files", params={"changed": "true", "offset": 7})
    assert answer.content == b"tarred"
    asked = site.broker.opened[0][1]
    assert asked.changed_only and asked.offset == 7


async def test_a_folder_that_a_host_refuses_is_its_problem_in_words(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [ScriptedStream([ChannelClose("not_found", "nothing is there")])]
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/files")
    assert (answer.status_code, answer.json()["detail"]) == (404, "nothing is there")


async def test_what_is_gone_has_no_inside(site):
    cluster_id, _ = await site.running()
    await site.client.delete(f"/api/v1/clusters/{cluster_id}")
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/logs")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_a_change_wakes_whoever_follows_the_cluster(site):
    cluster_id, spec = await site.running()
    with site.rooms.services.broadcaster.listen(f"cluster/{cluster_id}") as listener:
        site.receipt(spec, 2, 10)
        woken = await poll_async(lambda: listener.next(0.1))
    assert woken.event == "changed"
