"""Lists on screens of four widths, in pipes and narrowed; and the names and short ids that commands take."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from rich.cells import cell_len
from typer.main import get_command

from windrow.cli import (
    accesses,
    account,
    artefacts,
    audit,
    clusters,
    hosts,
    jobs,
    members,
    people,
    resolving,
    templates,
    users,
    volumes,
)
from windrow.cli.main import app
from windrow.cli.resolving import short
from windrow.cli.tables import View, since_of, table_lines, tsv_lines
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput, NotFound
from windrow_master.accesses.model import AccessState
from windrow_master.clusters.model import ClusterPhase
from windrow_master.fleet.availability import HOST_STATES, Availability
from windrow_master.fleet.states import CommandState, LinkState, SlotState
from windrow_master.identity.model import AccountState
from windrow_master.jobs.model import JobState
from windrow_master.market.model import RentalState

Json = dict[str, Any]


def an_id(prefix: str, number: int) -> str:
    return f"{prefix}_019ac3f5e0b17{number:03x}9{number * 0x1F3D5B7:07x}{number:08x}"


def a_cluster(number: int, name: str, phase: str, **more: Any) -> Json:
    return {
        "id": an_id("cluster", number), "name": name, "phase": phase, "kind": "box", "tier": "h100/C",
        "account_id": "account_1", "price_per_hour": "2.275", "cost_so_far": "13.650417", "reason": None,
        "created_at": f"2026-11-{20 - number:02}T08:00:00Z", "request": {}, "workloads": [],
    } | more  # fmt: skip


ON_FOUR = [{"host_name": f"rack7-node{one}", "phase": "running", "rank": one} for one in range(4)]
CLUSTERS = [
    a_cluster(1, "lab", "Running"),
    a_cluster(2, "llama-finetune-7b-instruct", "Running", price_per_hour="18.20", kind="gang", workloads=ON_FOUR),
    a_cluster(3, "名前", "Failed", reason="The image needs CUDA 13.1, the host's driver offers 12.8."),
]


@pytest.mark.parametrize(
    ("width", "header"),
    [
        (80, ["ID", "NAME", "STATE", "PRICE/H", "COST", "HOSTS"]),
        (100, ["ID", "NAME", "STATE", "PRICE/H", "COST", "HOSTS", "CREATED", "REASON"]),
        (120, ["ID", "NAME", "STATE", "PRICE/H", "COST", "HOSTS", "CREATED", "KIND", "TIER", "REASON"]),
        (160, ["ID", "NAME", "STATE", "PRICE/H", "COST", "HOSTS", "CREATED", "KIND", "TIER", "REASON"]),
    ],
)
def test_clusters_keep_state_and_price_on_every_screen(width: int, header: list[str]) -> None:
    lines = table_lines(clusters.CLUSTERS.columns, CLUSTERS, width)

    assert lines[0].split() == header
    assert all(cell_len(line) <= width for line in lines)
    assert short(CLUSTERS[1]["id"]) in lines[2] and "18.20" in lines[2] and "rack7-node0 +3" in lines[2]


@pytest.mark.case("B-D17")
def test_the_whole_table_of_80_columns() -> None:
    columns = [one for one in clusters.CLUSTERS.columns if one.name != "CREATED"]

    assert table_lines(columns, CLUSTERS, 80) == [
        "ID        NAME                        STATE    PRICE/H  COST     HOSTS",
        "91f3d5b7  lab                         Running  2.275    13.6504  –",
        "93e7ab6e  llama-finetune-7b-instruct  Running  18.20    13.6504  rack7-node0 +3",
        "95db8125  名前                        Failed   2.275    13.6504  –",
    ]


EVERY = [
    clusters.CLUSTERS, jobs.JOBS, hosts.HOSTS, hosts.GPUS, hosts.OFFERS, hosts.COMMANDS, hosts.EVENTS,
    accesses.ACCESSES, account.TOKENS, account.RECEIPTS, account.TRANSFERS, account.BALANCES, artefacts.ARTEFACTS,
    artefacts.CHECKPOINTS, audit.ENTRIES, people.ACCOUNTS, templates.TEMPLATES, volumes.VOLUMES,
    members.PROJECTS_TABLE, members.TRANSFERS_TABLE, users.USERS_TABLE,
]  # fmt: skip
LONG = "x" * 70


@pytest.mark.parametrize("width", [80, 100, 120, 160])
@pytest.mark.parametrize("table", EVERY, ids=lambda table: table.empty[:24])
@pytest.mark.case("B-D17")
@pytest.mark.case("M-22")
def test_no_list_is_wider_than_the_screen_and_none_drops_state_or_price(table: Any, width: int) -> None:
    columns = [one._replace(read=lambda item: LONG, show=lambda value: value) for one in table.columns]

    header, row = table_lines(columns, [{}], width)

    assert cell_len(header) <= width and cell_len(row) <= width
    told = {one.name for one in table.columns}
    for name in {"STATE", "PRICE/H", "AMOUNT"} & told:
        assert name in header


def test_pipes_get_every_column_whole_and_unpadded() -> None:
    header, *rows = tsv_lines(clusters.CLUSTERS.columns, CLUSTERS)

    assert len(header.split("\t")) == len(clusters.CLUSTERS.columns)
    values = rows[1].split("\t")
    assert values[:2] == [CLUSTERS[1]["id"], "llama-finetune-7b-instruct"]
    assert "rack7-node0, rack7-node1, rack7-node2, rack7-node3" in values
    assert values[-1] == ""


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[Json]]:
    """Runs `windrow cluster ls` with these words at a Master that has three; returns the JSON."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/me"):
            return httpx2.Response(200, json={"account": {"id": "account_2"}})
        return httpx2.Response(200, json={"items": CLUSTERS, "next_cursor": None})

    told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
    monkeypatch.setattr(clusters, "client", lambda context: told)

    def run(*words: str) -> list[Json]:
        get_command(app)(["cluster", "ls", *words], standalone_mode=False)
        found: list[Json] = json.loads(capsys.readouterr().out)
        return found

    return run


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), ["lab", "llama-finetune-7b-instruct"]),
        (("--all",), ["lab", "llama-finetune-7b-instruct", "名前"]),
        (("--state", "failed"), ["名前"]),
        (("--name", "ll*"), ["llama-finetune-7b-instruct"]),
        (("--since", "2026-11-19T00:00:00Z"), ["lab"]),
        (("--limit", "1"), ["lab"]),
        (("--mine",), []),
    ],
)
def test_a_list_is_narrowed(listed: Callable[..., list[Json]], words: tuple[str, ...], names: list[str]) -> None:
    assert [one["name"] for one in listed(*words, "--json")] == names
    assert [one["name"] for one in listed(*words, "-o", "json")] == names


STATES = [
    (hosts.HOSTS, [*HOST_STATES]),
    (hosts.GPUS, [*Availability, *LinkState, *SlotState]),
    (hosts.COMMANDS, CommandState),
    (clusters.CLUSTERS, ClusterPhase),
    (jobs.JOBS, JobState),
    (account.RECEIPTS, RentalState),
    (accesses.ACCESSES, AccessState),
    (people.ACCOUNTS, AccountState),
]


@pytest.mark.parametrize(("table", "wanted"), STATES, ids=lambda one: getattr(one, "empty", "")[:24])
def test_a_list_knows_every_state_of_the_master(table: Any, wanted: Any) -> None:
    assert sorted(table.state_words) == sorted(map(str, wanted))


def test_every_list_with_states_knows_them() -> None:
    assert {one.empty for one in EVERY if one.states} == {one.empty for one, _ in STATES}


@pytest.mark.parametrize("noun", ["host", "gpu", "cluster", "job", "command", "receipt", "access", "account"])
def test_a_state_that_is_none_is_refused_with_those_there_are(noun: str) -> None:
    with pytest.raises(InvalidInput, match=r"--state bogus: there is no such state\. There are: "):
        get_command(app)([noun, "ls", "--state", "bogus"], standalone_mode=False)


def test_a_gpu_of_which_a_part_is_rented_is_rented(capsys: pytest.CaptureFixture[str]) -> None:
    card = {"uuid": "GPU-1", "host_name": "vm", "simulated": False, "name": "X1", "state_text": "rented, 1 of 2 parts"}
    with Client(Config("http://master", "wr_x")) as api:
        View(hosts.GPUS, "tsv", state="rented").print(api, [card])

    assert "GPU-1" in capsys.readouterr().out


def test_what_is_no_time_is_refused_with_examples() -> None:
    with pytest.raises(InvalidInput, match="2h"):
        since_of("yesterday")


def test_a_list_without_ended_work_says_how_many_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with Client(Config("http://master", "wr_x")) as api:
        View(clusters.CLUSTERS, "tsv").print(api, CLUSTERS[2:])

    said = capsys.readouterr()
    assert said.out == "" and "1 that ended are not shown: --all shows them." in said.err


# --- names and short ids ----------------------------------------------------------------------------------------------

HOSTS: list[Json] = [
    {"id": an_id("host", 1), "name": "vm", "admin_state": "active", "gpus": [{"index": 5, "uuid": "GPU-5"}]},
    {"id": an_id("host", 2), "name": "twin", "admin_state": "active"},
    {"id": an_id("host", 3), "name": "twin", "admin_state": "active"},
    {"id": an_id("host", 4), "name": "deadbeef", "admin_state": "active"},
]
RELAYS: list[Json] = [{"id": an_id("access", 9), "stop_name": "local-a", "address": "relay.example:7443"}]
CARDS: list[Json] = [
    {"uuid": "GPU-8f3c1c2e-0001-4000-8000-000000000001"},
    {"uuid": "GPU-8f3c1c2f-0001-4000-8000-000000000001"},
]


@pytest.fixture
def api() -> Any:
    def answer(request: httpx2.Request) -> httpx2.Response:
        place, q = request.url.path.rsplit("/", 1)[1], request.url.params.get("q")
        if place == "me":
            return httpx2.Response(200, json={"account": {"id": "account_1", "name": "ana"}, "roles": ["operator"]})
        if place.startswith("host_"):
            return httpx2.Response(200, json=next(one for one in HOSTS if one["id"] == place))
        if request.url.params.get("state") == "retired":
            return httpx2.Response(200, json={"items": [], "next_cursor": None})
        found: list[Any] = {"hosts": HOSTS, "accesses": RELAYS, "gpus": CARDS, "clusters": CLUSTERS, "jobs": []}[place]
        found = [one for one in found if q is None or q in one["name"] or q in one["id"]]
        return httpx2.Response(200, json={"items": found, "next_cursor": None})

    with Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer)) as made:
        yield made


@pytest.mark.parametrize(
    ("kind", "text", "whole"),
    [
        (resolving.HOSTS, "vm", HOSTS[0]["id"]),
        (resolving.HOSTS, HOSTS[0]["id"], HOSTS[0]["id"]),
        (resolving.HOSTS, short(HOSTS[2]["id"]), HOSTS[2]["id"]),
        (resolving.HOSTS, "deadbeef", HOSTS[3]["id"]),
        (resolving.HOSTS, "host_019ac3f5e0b17002", HOSTS[1]["id"]),
        (resolving.RELAYS, "local-a", RELAYS[0]["id"]),
        (resolving.RELAYS, "relay.example", RELAYS[0]["id"]),
        (resolving.GPUS, "GPU-8f3c1c2f", CARDS[1]["uuid"]),
        (resolving.GPUS, "8f3c1c2e", CARDS[0]["uuid"]),
        (resolving.GPUS, "GPU-8f3c1c2e-0001", CARDS[0]["uuid"]),
        (resolving.CLUSTERS, short(CLUSTERS[0]["id"]), CLUSTERS[0]["id"]),
        (resolving.CLUSTERS, "名前", CLUSTERS[2]["id"]),
    ],
)
@pytest.mark.case("M-29")
def test_a_name_and_the_start_of_an_id_are_taken(api: Client, kind: resolving.Kind, text: str, whole: str) -> None:
    assert resolving.found(api, kind, text) == whole


def test_a_gpu_is_named_by_its_host_and_index(api: Client) -> None:
    assert resolving.gpu(api, "vm/5") == "GPU-5"
    with pytest.raises(NotFound, match="vm has no GPU 6"):
        resolving.gpu(api, "vm/6")


@pytest.mark.parametrize(
    ("kind", "text"), [(resolving.HOSTS, "twin"), (resolving.HOSTS, "host_019a"), (resolving.GPUS, "GPU-8f3c")]
)
def test_what_means_several_is_refused_with_the_candidates(api: Client, kind: resolving.Kind, text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        resolving.found(api, kind, text)
    wanted = [HOSTS[1], HOSTS[2]] if kind is resolving.HOSTS else CARDS
    assert all(short(str(one[kind.key])) in str(refused.value) for one in wanted)


@pytest.mark.parametrize("text", ["nosuch", "cafe", "host_cafe"])
def test_what_means_nothing_is_not_found(api: Client, text: str) -> None:
    with pytest.raises(NotFound, match="windrow host ls"):
        resolving.found(api, resolving.HOSTS, text)


@pytest.mark.parametrize(
    ("text", "whole"), [("vm", HOSTS[0]["id"]), ("lab", CLUSTERS[0]["id"]), ("account/ana", "account/ana")]
)
def test_records_are_asked_for_by_name_and_else_by_what_is_written(api: Client, text: str, whole: str) -> None:
    assert resolving.subject(api, text) == whole
