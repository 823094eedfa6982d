"""Names that others chose: none of them comes between a person and an id on the screen, or the person's own things."""

import shutil
from typing import Any

import httpx2
import pytest
from typer.main import get_command

import windrow
from windrow.cli import clusters, forward, jobs, resolving, stopping
from windrow.cli.main import app
from windrow.cli.request import name_from
from windrow.cli.resolving import short
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput, NotFound
from windrow.jobs import Platform

Json = dict[str, Any]
ME, OTHER = "account_me", "account_other"


def an_id(kind: str, random: str) -> str:
    return f"{kind}_019ac3f5e0b17001{random}00000001"


def a_thing(kind: str, random: str, name: str, account: str = ME, **more: Any) -> Json:
    return {"id": an_id(kind, random), "name": name, "account_id": account, "phase": "Running", **more}


MINE = a_thing("cluster", "94e9ea58", "lab")
THEIRS = a_thing("cluster", "81234567", "shared2", OTHER)
TWIN = a_thing("cluster", "82345678", "lab", OTHER)
TRAPS = [a_thing("cluster", f"8800000{n}", name, OTHER) for n, name in enumerate(["94e9ea58", "cluster_019ac3f5e0b1"])]
JOB = a_thing("job", "91111111", "train", created_at="2026-11-01T00:00:00Z", state="Succeeded")
FAKE = a_thing("job", "92222222", "train", OTHER, created_at="2026-11-02T00:00:00Z", state="Succeeded")
FOREIGN = a_thing("job", "93333333", "solo", OTHER, created_at="2026-11-02T00:00:00Z", state="Succeeded")
GOOD: Json = {"id": an_id("host", "8377bb5b"), "name": "rack-7", "admin_state": "active"}
IMPOSTOR: Json = {"id": an_id("host", "97777777"), "name": "8377bb5b", "admin_state": "active"}


class Master:
    """Answers an operator, who sees everybody's; keeps what was asked of it."""

    def __init__(self) -> None:
        self.hosts = [GOOD, IMPOSTOR]
        self.clusters = [TWIN, THEIRS, MINE]
        self.jobs = [FAKE, FOREIGN, JOB]
        self.asked: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/v1")
        self.asked.append(f"{request.method} {path}")
        if path == "/me":
            return httpx2.Response(200, json={"account": {"id": ME, "name": "op"}, "roles": ["operator", "renter"]})
        name = request.url.params.get("name")
        kind, _, whole = path.removeprefix("/").partition("/")
        items: list[Json] = {"hosts": self.hosts, "clusters": self.clusters, "jobs": self.jobs, "gpus": []}[kind]
        if request.url.params.get("state") == "retired":
            items = []
        if whole:
            return httpx2.Response(200, json=next(one for one in items if whole.startswith(one["id"])))
        found = [one for one in items if name is None or one["name"] == name]
        return httpx2.Response(200, json={"items": found, "next_cursor": None})


@pytest.fixture
def master() -> Master:
    return Master()


@pytest.fixture
def api(master: Master) -> Any:
    with Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(master)) as made:
        yield made


@pytest.mark.parametrize("shows", [True, False])
def test_a_host_that_took_anothers_short_id_for_its_name_is_not_guessed(api: Client, shows: bool) -> None:
    with pytest.raises(InvalidInput) as refused:
        resolving.found(api, resolving.HOSTS, short(GOOD["id"]), shows=shows)

    assert GOOD["id"] in str(refused.value) and IMPOSTOR["id"] in str(refused.value), "each by what tells them apart"
    assert resolving.found(api, resolving.HOSTS, GOOD["id"]) == GOOD["id"]
    assert resolving.found(api, resolving.HOSTS, "rack-7") == GOOD["id"]
    with pytest.raises(InvalidInput, match="may mean 2"):
        resolving.subject(api, "8377bb5b")


def test_a_cluster_named_like_anothers_id_is_not_taken_for_it(master: Master, api: Client) -> None:
    master.clusters = [*TRAPS, MINE]

    assert resolving.found(api, resolving.CLUSTERS, "94e9ea58") == MINE["id"]
    with pytest.raises(InvalidInput, match="may mean 3"):
        resolving.found(api, resolving.CLUSTERS, "cluster_019ac3f5e0b1")


def test_a_name_of_ones_own_that_starts_another_id_is_ambiguous(master: Master, api: Client) -> None:
    master.clusters = [a_thing("cluster", "95555555", "8123"), THEIRS]

    with pytest.raises(InvalidInput, match="may mean 2"):
        resolving.found(api, resolving.CLUSTERS, "8123")


@pytest.mark.parametrize("shows", [True, False])
def test_ones_own_is_meant_whoever_else_has_its_name(api: Client, shows: bool) -> None:
    assert resolving.found(api, resolving.CLUSTERS, "lab", shows=shows) == MINE["id"]
    assert resolving.found(api, resolving.JOBS, "train", newest=True, shows=shows) == JOB["id"]


def test_anothers_is_shown_by_its_name_and_else_named_by_its_id(
    api: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert resolving.found(api, resolving.CLUSTERS, "shared2", shows=True) == THEIRS["id"]
    assert OTHER in capsys.readouterr().err
    with pytest.raises(NotFound, match=THEIRS["id"]):
        resolving.found(api, resolving.CLUSTERS, "shared2")
    for text in (THEIRS["id"], short(THEIRS["id"])):
        assert resolving.found(api, resolving.CLUSTERS, text) == THEIRS["id"]
        assert f"belongs to another account: {OTHER}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        *[("cluster", verb, "shared2") for verb in ("delete", "logs", "stop", "start", "ssh")],
        ("cluster", "exec", "shared2", "--", "true"),
        *[("job", verb, "solo") for verb in ("wait", "logs", "cancel", "rerun", "artefacts")],
        *[("job", verb, "solo") for verb in ("hold", "release", "top", "requeue")],
    ],
)
def test_no_verb_that_acts_or_trusts_takes_anothers_by_name(
    master: Master, api: Client, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    for module in (clusters, jobs, forward, stopping):
        monkeypatch.setattr(module, "client", lambda context: api)
    monkeypatch.setattr(shutil, "which", lambda name: name)

    with pytest.raises(NotFound, match="Name another account's by its id"):
        get_command(app)(list(words), standalone_mode=False)
    assert all(one in ("GET /clusters", "GET /jobs", "GET /me") for one in master.asked)


def test_a_handle_of_a_name_ends_and_finds_ones_own_alone(master: Master, api: Client) -> None:
    windrow.cluster("shared2", client=api).down()

    assert not [one for one in master.asked if one.startswith("DELETE")]
    assert windrow.cluster("shared2", client=api)._named() is None
    assert windrow.cluster("lab", client=api)._named() == MINE["id"]
    with Platform(client=api) as market:
        assert market.job("train").id == JOB["id"]
        with pytest.raises(NotFound):
            market.job("solo")


def an_array(name: str, *states: str) -> list[Json]:
    return [
        a_thing(
            "job", f"9a00000{at}", name, state=state, group_id=name, array_index=at, created_at=f"2026-11-0{at + 1}"
        )
        | {"request": {"array_size": len(states)}, "reason": None, "held_by": None}
        for at, state in enumerate(states)
    ]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("cancel sweep", (0, 1)),
        ("hold sweep", (1,)),
        ("requeue sweep", (0,)),
        ("cancel sweep[1]", (1,)),
        ("cancel sweep[3]", (3,)),
        ("release 9a000001", (1,)),
    ],
)
def test_the_name_of_an_array_means_all_of_it_that_a_verb_can_be_about_and_an_index_one(
    master: Master, api: Client, monkeypatch: pytest.MonkeyPatch, words: str, meant: tuple[int, ...]
) -> None:
    master.jobs = [*an_array("sweep", "Running", "Queued", "Succeeded", "Cancelled"), JOB]
    monkeypatch.setattr(jobs, "client", lambda context: api)
    verb, name = words.split()

    get_command(app)(["job", verb, name], standalone_mode=False)

    posted = [one for one in master.asked if one.startswith("POST")]
    assert posted == [f"POST /jobs/{master.jobs[at]['id']}/{verb}" for at in meant]


@pytest.mark.parametrize(
    ("program", "name"),
    [("train_model.py", "train_model.py"), ("/usr/bin/2048", None), ("job_train.py", None), ("..", None), ("-", None)],
)
def test_no_name_that_is_made_of_a_programs_is_like_an_id(program: str, name: str | None) -> None:
    assert name_from(program) == name
