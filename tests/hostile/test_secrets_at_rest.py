"""A renter's secret: sealed wherever it lies, shown to the renter alone, gone at the end."""

import base64
import json
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.hostile.two_renters import TwoRenters, two_renters
from tests.master_support import SeededRng
from windrow_agent.core.command import CommandState, Phase
from windrow_agent.runtimes import shim
from windrow_agent.storage.journal import command_fact
from windrow_master.app import wiring
from windrow_master.app.wiring import Master
from windrow_master.fleet.repository import CommandRepository
from windrow_master.fleet.states import LinkEvent
from windrow_master.identity.model import Principal, Role
from windrow_master.records.earlier_repository import EarlierRepository
from windrow_master.store import prepared as made
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import BadProof
from windrow_proto.ids import CommandId, HostId, TokenId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.model import (
    Command,
    CommandKind,
    CommandPhase,
    CommandStatus,
    Inventory,
    ObservedWorkload,
    SlotGrant,
    WorkloadPhase,
    WorkloadSpec,
)
from windrow_proto.sealed import SEAL_KEY, SealKey, seal_values
from windrow_proto.units import DAY, GIB, HOUR
from windrow_proto.wire_command import decode_command, encode_command

CANARY = "hf_Canary9Sings7In5No3File1"
OWN_TOKEN = "Jupyter-Canary-Token-0042"
ENV = {"HF_TOKEN": CANARY, "JUPYTER_TOKEN": OWN_TOKEN}
HIDDEN = dict.fromkeys(ENV)
HOST = HostId("host_a")
KEY = SealKey.of(SigningKey.from_raw(bytes(range(32))))
BOX = {"argv": ["sleep", "9"], "env": ENV, "notebook": True, "kind": "box", "image": "lab", "runtime": "docker"}
pytestmark = pytest.mark.row("F22")


@dataclass
class Site:
    """A Master with a host, the renter whose secrets these are, and the others."""

    two: TwoRenters
    folder: Path
    auditor: httpx2.AsyncClient

    @property
    def others(self) -> dict[str, httpx2.AsyncClient]:
        return {"operator": self.two.operator, "auditor": self.auditor, "renter": self.two.quiet.client}

    def write(self, change: Any) -> Any:
        return self.two.opened.store.write_now(change, name="test")

    def spec(self) -> tuple[CommandId, WorkloadSpec]:
        """Returns the spec that the host was told, as it lies in the outbox."""
        return outbox(self.two.opened)

    def runs(self) -> WorkloadSpec:
        """The host takes it, and its work runs."""
        command_id, spec = self.spec()
        fleet, life = self.two.opened.fleet, self.two.opened.clusters.lifecycle
        seen = ObservedWorkload(spec.workload_id, WorkloadPhase.RUNNING, spec.slots, runtime=spec.runtime)
        done = CommandStatus(command_id, CommandPhase.SUCCEEDED)
        self.write(lambda uow: fleet.commands.on_status(uow, HOST, done))
        self.write(lambda uow: life.on_workload(uow, HOST, seen))
        return spec

    def goes(self, spec: WorkloadSpec) -> None:
        """The host let go of it."""
        seen = ObservedWorkload(spec.workload_id, WorkloadPhase.GONE, spec.slots, runtime=spec.runtime)
        life = self.two.opened.clusters.lifecycle
        self.write(lambda uow: life.on_workload(uow, HOST, seen))

    def kept(self) -> bytes:
        return bytes_in(self.folder / "data")

    def sealed(self, table: str, column: str) -> list[bytes]:
        """Returns the values that the rows of a table keep sealed."""
        with closing(sqlite3.connect(self.folder / "data" / "master.sqlite3")) as database:
            return [bytes(row[0]) for row in database.execute(f"SELECT {column} FROM {table}")]


def outbox(opened: Master) -> tuple[CommandId, WorkloadSpec]:
    """The latest create command that waits for the host."""
    rows = opened.store.read_now(lambda uow: uow[CommandRepository].open_of_host(HOST))
    command = decode_command([row.body for row in rows if row.kind is CommandKind.CREATE][-1])
    assert command.create is not None
    return command.command_id, command.create


def bytes_in(folder: Path) -> bytes:
    """Every byte of every file: the database, its log, and whatever lies beside them."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def is_told(said: str | bytes) -> bool:
    """True if a canary is in it, in whichever way it is written."""
    data = said.encode() if isinstance(said, str) else said
    return any(one.encode() in data or one.encode().hex().encode() in data.lower() for one in (CANARY, OWN_TOKEN))


def joined(opened: Master) -> None:
    """A host joins and names its key, as its agent does."""

    owner = opened.services.identity.first_account()

    def join(uow: Any) -> None:
        inventory = Inventory(
            hostname="a", cpu_count=4, memory_bytes=16 * GIB, runtimes=("docker",), more={SEAL_KEY: KEY.public}
        )
        opened.fleet.enrol(uow, HOST, "a", owner.id, False, "test")
        opened.fleet.hosts.inventory(uow, HOST, inventory)
        opened.fleet.hosts.link(uow, HOST, LinkEvent.HEARD, uow.now_wall_ns)

    opened.store.write_now(join, name="test")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with two_renters(tmp_path) as two:
        joined(two.opened)
        made = await two.operator.post("/tokens", json={"name": "auditing", "roles": ["auditor"]})
        secret = made.json()["token"]
        headers = {"Authorization": f"Bearer {secret}"}
        transport = httpx2.ASGITransport(two.app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://master/api/v1", headers=headers) as auditor:
            yield Site(two, tmp_path, auditor)


async def _created(site: Site, **more: Any) -> dict[str, Any]:
    headers = {"Idempotency-Key": "once"}
    asked = BOX | more
    answer = await site.two.noisy.client.post("/clusters", json=asked, headers=headers)
    assert answer.status_code == 202, answer.text
    again = await site.two.noisy.client.post("/clusters", json=asked, headers=headers)
    assert again.json() == answer.json() and not is_told(again.text), "what is remembered for a day shows no value"
    other = asked | {"env": ENV | {"HF_TOKEN": "another"}}
    mistaken = await site.two.noisy.client.post("/clusters", json=other, headers=headers)
    assert mistaken.json()["code"] == "idempotency_mismatch", "another value is another request"
    found: dict[str, Any] = answer.json()["cluster"]
    return found


@pytest.mark.case("M-7")
async def test_a_clusters_values_are_sealed_shown_to_its_renter_and_gone_at_its_end(site: Site) -> None:
    cluster_id = (await _created(site))["id"]
    assert not is_told(site.kept()) and b"HF_TOKEN" in site.kept()
    _, told = site.spec()
    assert KEY.open_values(told.sealed_env, told.workload_id)["HF_TOKEN"] == CANARY, "its host has it"
    with pytest.raises(BadProof):
        SealKey.of(SigningKey.from_raw(bytes(32))).open_values(told.sealed_env, told.workload_id)
    spec = site.runs()
    assert decode_command(site.sealed("commands", "body")[0]).create == WorkloadSpec(
        **{name: getattr(spec, name) for name in spec.__dataclass_fields__} | {"env": {}, "sealed_env": b""}
    ), "a command that is done holds nothing of it"

    path = f"/clusters/{cluster_id}"
    mine = await site.two.noisy.client.get(path)
    assert mine.json()["request"]["env"] == ENV
    assert (await site.two.noisy.client.get(f"{path}/box")).json()["notebook_token"] == OWN_TOKEN
    listed = await site.two.noisy.client.get("/clusters")
    assert listed.json()["items"][0]["request"]["env"] == HIDDEN
    await _others_see_names(site, path, "/clusters")
    for about in ("/audit", "/events", "/commands", "/operations", f"{path}/explain", f"/events?subject={cluster_id}"):
        said = await site.two.operator.get(about)
        assert not is_told(said.text), about

    before = site.sealed("clusters", "sealed")
    assert len(before[0]) > len(CANARY)
    await site.two.noisy.client.delete(path)
    site.goes(spec)
    ended = (await site.two.noisy.client.get(path)).json()
    assert (ended["phase"], ended["request"]["env"]) == ("Deleted", HIDDEN)
    assert site.sealed("clusters", "sealed") == [b""] and not is_told(site.kept())


async def _others_see_names(site: Site, path: str, listing: str) -> None:
    for name, client in site.others.items():
        seen = await client.get(path)
        assert not is_told(seen.text), name
        assert not is_told((await client.get(listing)).text), name
        if name == "renter":
            assert seen.status_code == 404
        else:
            assert seen.json()["request"]["env"] == HIDDEN


async def test_the_token_of_a_notebook_and_of_an_engine_is_no_text_in_the_database(site: Site) -> None:
    cluster = await _created(site, env={"HF_TOKEN": CANARY})
    token = (await site.two.noisy.client.get(f"/clusters/{cluster['id']}/box")).json()["notebook_token"]
    assert len(token) == 64
    assert token.encode() not in site.kept() and bytes.fromhex(token) not in site.kept()
    _, told = site.spec()
    assert KEY.open_values(told.sealed_env, told.workload_id)["JUPYTER_TOKEN"] == token


async def test_a_stopped_cluster_keeps_them_sealed_for_its_next_start(site: Site) -> None:
    cluster = await _created(site)
    path, spec = f"/clusters/{cluster['id']}", site.runs()
    await site.two.noisy.client.post(f"{path}/stop")
    site.goes(spec)
    assert (await site.two.noisy.client.get(path)).json()["phase"] == "Stopped"
    assert not is_told(site.kept()) and site.sealed("clusters", "sealed") != [b""]
    started = await site.two.noisy.client.post(f"{path}/start")
    assert started.status_code == 202 and not is_told(started.text), started.text
    _, told = site.spec()
    assert told.workload_id != spec.workload_id
    assert KEY.open_values(told.sealed_env, told.workload_id)["HF_TOKEN"] == CANARY


async def test_a_jobs_values_are_sealed_until_it_is_over_and_given_again_to_run_again(site: Site) -> None:
    asked = {"argv": ["train"], "env": ENV, "retries": 1, "image": "lab"}
    submitted = await site.two.noisy.client.post("/jobs", json=asked, headers={"Idempotency-Key": "job"})
    assert submitted.status_code == 201 and not is_told(submitted.text), submitted.text
    path = f"/jobs/{submitted.json()['jobs'][0]['id']}"
    assert not is_told(site.kept())
    assert (await site.two.noisy.client.get(path)).json()["request"]["env"] == ENV
    await _others_see_names(site, path, "/jobs")
    assert site.two.services.jobs is not None
    await site.two.opened.fleet.refresh()
    await site.two.services.jobs.controller.tick()
    await site.two.services.queue.tick()
    _, told = site.spec()
    assert KEY.open_values(told.sealed_env, told.workload_id)["HF_TOKEN"] == CANARY
    await _others_see_names_of_its_cluster(site)
    assert not is_told(site.kept())

    cancelled = await site.two.noisy.client.post(f"{path}/cancel")
    assert cancelled.json()["state"] == "Cancelled" and not is_told(cancelled.text)
    site.runs()
    site.goes(told)
    assert site.sealed("jobs", "sealed_env") == [b""] and site.sealed("clusters", "sealed") == [b""]
    assert (await site.two.noisy.client.get(path)).json()["request"]["env"] == HIDDEN
    again = await site.two.noisy.client.post(f"{path}/rerun")
    assert again.status_code == 422 or again.status_code == 400
    assert "--env HF_TOKEN" in again.text
    more = await site.two.noisy.client.post(f"{path}/rerun", json={"env": ENV | {"MORE": "1"}})
    assert "MORE" in more.text and more.status_code in (400, 422)
    long = await site.two.noisy.client.post(f"{path}/rerun", json={"env": dict.fromkeys(ENV, "x" * 9_000)})
    assert long.status_code == 422 and "env" in long.text, long.text
    again = await site.two.noisy.client.post(f"{path}/rerun", json={"env": ENV})
    assert again.status_code == 201 and not is_told(again.text), again.text
    assert (await site.two.noisy.client.get(f"/jobs/{again.json()['id']}")).json()["request"]["env"] == ENV
    assert not is_told(site.kept())


async def _others_see_names_of_its_cluster(site: Site) -> None:
    (cluster,) = (await site.two.noisy.client.get("/clusters")).json()["items"]
    for client in (site.two.operator, site.auditor):
        assert not is_told((await client.get(f"/clusters/{cluster['id']}")).text)


async def test_a_templates_values_are_its_accounts_alone(site: Site) -> None:
    saved = await site.two.noisy.client.put("/templates/mine", json=BOX)
    assert saved.json()["request"]["env"] == ENV and not is_told(site.kept())
    assert (await site.two.noisy.client.get("/templates/mine")).json() == saved.json()
    for client in site.others.values():
        assert (await client.get("/templates/mine")).status_code in (403, 404)
        assert not is_told((await client.get("/templates")).text)
    await site.two.noisy.client.delete("/templates/mine")
    assert site.sealed("templates", "sealed") == []


async def test_a_token_for_auditing_of_the_renters_own_account_sees_names(site: Site) -> None:
    cluster = await _created(site)
    until_ns, clusters = site.two.clock.wall_ns() + DAY, site.two.opened.clusters
    both, only = frozenset({Role.RENTER, Role.AUDITOR}), frozenset({Role.AUDITOR})
    renter, auditor = (
        Principal(site.two.noisy.account_id, "x", roles, TokenId("token_8"), "test", until_ns) for roles in (both, only)
    )
    assert (await clusters.get(renter, cluster["id"])).whole is not None
    assert (await clusters.get(auditor, cluster["id"])).whole is None


async def test_a_database_without_its_key_shows_none_and_breaks_no_list(site: Site, tmp_path: Path) -> None:
    cluster = await _created(site)
    await site.two.noisy.client.put("/templates/mine", json=BOX)
    thief = SealKey.of(SigningKey.generate())
    site.two.opened.clusters._seal_key = thief
    site.two.services.templates = replace(site.two.services.templates, seal_key=thief)
    seen = await site.two.noisy.client.get(f"/clusters/{cluster['id']}")
    assert (seen.status_code, seen.json()["request"]["env"]) == (200, HIDDEN)
    assert (await site.two.noisy.client.get("/clusters")).status_code == 200
    (kept,) = (await site.two.noisy.client.get("/templates")).json()["items"]
    assert kept["request"]["env"] == HIDDEN


# --- what a version before has left --------------------------------------------------------------------------------


def _plain(folder: Path) -> None:
    """Make a data directory as the version before left it: values in clear wherever it kept them."""
    place = folder / "data" / "master.sqlite3"
    with closing(sqlite3.connect(place)) as database:
        for table, key in (("clusters", "cluster_id"), ("jobs", "job_id"), ("templates", "name")):
            for row_id, request in database.execute(f"SELECT {key}, request FROM {table}").fetchall():
                asked = json.dumps({**json.loads(request), "env": ENV})
                database.execute(f"UPDATE {table} SET request = ? WHERE {key} = ?", (asked, row_id))
        for table, column in (("clusters", "sealed"), ("jobs", "sealed_env"), ("templates", "sealed")):
            database.execute(f"UPDATE {table} SET {column} = NULL")
        database.execute("UPDATE clusters SET secret = ?", (OWN_TOKEN,))
        rows = database.execute("SELECT command_id, body FROM commands WHERE kind = ?", (int(CommandKind.CREATE),))
        for command_id, body in rows.fetchall():
            command = decode_command(body)
            assert command.create is not None
            fields = {name: getattr(command.create, name) for name in command.create.__dataclass_fields__}
            create = WorkloadSpec(**fields | {"env": ENV, "sealed_env": b""})
            plain = encode_command(Command(command.command_id, command.kind, create=create))
            database.execute("UPDATE commands SET body = ? WHERE command_id = ?", (plain, command_id))
        database.execute("UPDATE idempotency SET body = ?", (json.dumps({"request": {"env": ENV}}).encode(),))
        database.commit()


async def test_an_old_directory_is_opened_and_its_values_are_sealed(tmp_path: Path) -> None:
    async with two_renters(tmp_path) as two:
        joined(two.opened)
        site = Site(two, tmp_path, two.operator)
        ended = await _created(site, name="ended")
        spec = site.runs()
        await two.noisy.client.delete(f"/clusters/{ended['id']}")
        site.goes(spec)
        asked = BOX
        running = (await two.noisy.client.post("/clusters", json=asked)).json()["cluster"]
        job = (await two.noisy.client.post("/jobs", json={"argv": ["x"], "env": ENV, "gpus": 9})).json()["jobs"][0]
        await two.noisy.client.put("/templates/mine", json=BOX)
        clock, account = two.clock, two.noisy.account_id
    _plain(tmp_path)
    assert is_told(bytes_in(tmp_path / "data")), "control: this is where they were"

    clock.advance(HOUR)
    opened = wiring.build(tmp_path / "data", clock, SeededRng(4), disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        assert not is_told(bytes_in(tmp_path / "data")), "nor in a free page or the log"
        mine = Principal(account, "noisy", frozenset({Role.RENTER}), TokenId("t"), "test", clock.wall_ns() + DAY)
        view = await opened.clusters.get(mine, running["id"])
        assert view.whole is not None and view.whole.request.env == ENV and view.whole.secret == OWN_TOKEN
        assert (await opened.clusters.get(mine, ended["id"])).cluster.sealed == b""
        assert opened.services.jobs is not None
        assert (await opened.services.jobs.get(mine, job["id"])).env == ENV
        assert (await opened.services.templates.get(mine, "mine")).request.env == ENV
        _, told = outbox(opened)
        assert told.env == {}
        assert KEY.open_values(told.sealed_env, told.workload_id) == ENV
        is_left = opened.store.read_now(lambda uow: uow.idempotency.get(account, "once"))
        assert is_left is None, "an answer that showed them"
    assert not is_told(bytes_in(tmp_path / "data"))
    again = wiring.build(tmp_path / "data", clock, SeededRng(5), disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(again):
        view = await again.clusters.get(mine, running["id"])
        assert view.whole is not None and view.whole.request.env == ENV


async def test_an_old_directory_opens_whatever_is_in_one_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older release took a megabyte of values; and what else wrote into its database is not known."""
    monkeypatch.setattr(made, "PASSED_OVER", {})
    large = {f"V{number}": "x" * 8_000 for number in range(100)}
    async with two_renters(tmp_path) as two:
        for name in ("large", "mine", "torn"):
            await two.noisy.client.put(f"/templates/{name}", json=BOX)
        for _ in range(2):
            await two.noisy.client.post("/jobs", json={"argv": ["x"], "gpus": 9})
        clock, account = two.clock, two.noisy.account_id
    _plain(tmp_path)
    with closing(sqlite3.connect(tmp_path / "data" / "master.sqlite3")) as database:
        (request,) = database.execute("SELECT request FROM templates WHERE name = 'large'").fetchone()
        asked = json.dumps({**json.loads(request), "env": large})
        database.execute("UPDATE templates SET request = ? WHERE name = 'large'", (asked,))
        database.execute("UPDATE templates SET request = '{torn' WHERE name = 'torn'")
        database.execute("UPDATE jobs SET request = '[]' WHERE job_id = (SELECT max(job_id) FROM jobs)")
        database.commit()

    for seed in (4, 5):
        opened = wiring.build(
            tmp_path / "data", clock, SeededRng(seed), disk=MemoryDisk(), make_executor=InlineExecutor
        )
        with closing(opened):
            mine = Principal(account, "noisy", frozenset({Role.RENTER}), TokenId("t"), "test", clock.wall_ns() + DAY)
            assert (await opened.services.templates.get(mine, "large")).request.env == large
            listed = await opened.services.templates.list(mine)
            assert [one.name for one in listed if one.request.env == ENV] == ["mine"] and len(listed) == 2
            assert not opened.store.read_now(lambda uow: uow[EarlierRepository].is_any())
    assert len(made.PASSED_OVER) == 2


# --- on the host ------------------------------------------------------------------------------------------------------


def test_the_hosts_journal_never_has_them_and_forgets_what_is_sealed(tmp_path: Path) -> None:
    sealed = seal_values(KEY.public, ENV, "workload_1")
    slots = (SlotGrant("host_a/cpu/0", 1),)  # type: ignore[arg-type] # an id
    spec = WorkloadSpec(WorkloadId("workload_1"), "cluster_1", slots, "process", sealed_env=sealed)  # type: ignore[arg-type]
    command = Command(CommandId("command_1"), CommandKind.CREATE, create=spec)

    def written(phase: Phase) -> WorkloadSpec:
        fact = command_fact(CommandState(command.command_id, phase), command, 0)
        assert not is_told(base64.b64decode(fact[2]))
        found = decode_command(base64.b64decode(fact[2])).create
        assert found is not None
        return found

    assert written(Phase.ACCEPTED).sealed_env == sealed
    assert written(Phase.SUCCEEDED).sealed_env == b"" and written(Phase.FAILED).sealed_env == b""
    shim.write_whole(str(tmp_path), "launch.json", {"env": ENV})
    assert stat.S_IMODE((tmp_path / "launch.json").stat().st_mode) == 0o600
