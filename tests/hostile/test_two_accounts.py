"""Two accounts of one market, made by the commands that people use: neither sees anything of the other."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.stack import WINDROW, Stack, stack, wait_for
from windrow_master.api.app import build_api

pytestmark = [pytest.mark.row("F7"), pytest.mark.slow, pytest.mark.timeout(400)]
V1 = "/api/v1"
STREAM_S = 2.5
ID = re.compile(
    r"\b(?:account|token|session|jointoken|cluster|job|rental|receipt|operation|workload|command|volume|artefact|link)"
    r"_[0-9a-f-]{16,}\b"
)
"""The ids of things that belong to one account, as ids are minted; hosts, GPUs and Accesses are the market's shop
window."""


@dataclass
class Person:
    """Somebody on a machine of his own, signed in by the link that the operator sent."""

    name: str
    home: Path
    url: str
    token: str = ""

    def windrow(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `windrow ...` as this person."""
        bare = {name: value for name, value in os.environ.items() if not name.startswith("WINDROW_")}
        own = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config")}
        own |= {"XDG_STATE_HOME": str(self.home / "state")}
        return subprocess.run(
            [WINDROW, *words], cwd=self.home, env=bare | own, capture_output=True, text=True, check=False, timeout=120
        )

    def ask(self, method: str, path: str, **more: Any) -> httpx2.Response:
        """One request with this person's token."""
        return httpx2.request(
            method, self.url + path, headers={"Authorization": f"Bearer {self.token}"}, timeout=60, **more
        )

    def made(self, method: str, path: str, **more: Any) -> Any:
        """The same, which has to go well."""
        answer = self.ask(method, path, **more)
        assert answer.status_code < 300, (path, answer.text)
        return answer.json()

    def listens(self, path: str) -> str:
        """Returns the first messages of a live stream."""
        heard = ""
        try:
            headers = {"Authorization": f"Bearer {self.token}"}
            with httpx2.stream("GET", self.url + path, headers=headers, timeout=STREAM_S) as answer:
                for piece in answer.iter_text():
                    heard += piece
        except httpx2.TimeoutException:
            pass
        return heard


def _added(market: Stack, folder: Path, name: str) -> Person:
    """`windrow account add` by the operator, `windrow login` by the person."""
    words = ("account", "add", name, "--role", "renter", "--role", "provider", "--credit", "50", "--json")
    own = {"WINDROW_URL": market.cli["url"], "WINDROW_TOKEN": market.cli["token"]}
    done = subprocess.run([WINDROW, *words], env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    person = Person(name, folder / name, market.cli["url"])
    person.home.mkdir()
    signed = person.windrow("login", json.loads(done.stdout)["link"])
    assert signed.returncode == 0, signed.stderr
    person.token = json.loads((person.home / "config" / "windrow" / "config.json").read_text())["token"]
    return person


def _lives(person: Person) -> set[str]:
    """This person makes one of everything; all ids that belong to it, and the names."""
    name, texts = person.name, list[Any]()

    def make(method: str, path: str, **more: Any) -> Any:
        texts.append(person.made(method, V1 + path, **more))
        return texts[-1]

    make("POST", "/tokens", json={"name": f"{name}-token"})
    make("POST", "/session", json={"token": person.token})
    make("POST", "/join-tokens", json={})
    make("PUT", f"/templates/{name}-template", json={"argv": ["true"]})
    make("POST", "/volumes", json={"name": f"{name}-volume"})
    account = make("GET", "/me")["account"]["id"]
    make("PUT", f"/artefacts/account/{account}/{name}-weights", content=b"1")
    work = {"argv": ["sleep", "60"], "simulated": True, "env": {"SECRET": f"{name}-secret"}}
    make("POST", "/jobs", json=work | {"name": f"{name}-job"})
    cluster = make("POST", "/clusters", json=work | {"name": f"{name}-cluster"})["cluster"]["id"]
    wait_for(lambda: person.made("GET", f"{V1}/clusters/{cluster}")["phase"] == "Running", 60)
    for path in ("clusters", "jobs", "receipts", "operations", "commands", "tokens", "sessions", "join-tokens"):
        found = make("GET", f"/{path}")["items"]
        assert found, path
    return set(ID.findall(json.dumps(texts))) | {f"{name}-"}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Person, Person, set[str], set[str]]]:
    folder = tmp_path_factory.mktemp("people")
    with stack("--simulate", "6") as market:
        wait_for(lambda: _offered(market) >= 6)
        anna, bert = (_added(market, folder, name) for name in ("anna", "bert"))
        with market.client() as api:
            owner = {api.get("/me")["account"]["id"]}  # of the hosts that both rent: both may be told
        yield anna, bert, _lives(anna) - owner, _lives(bert) - owner


def _offered(market: Stack) -> int:
    """Hosts that could be rented now."""
    with market.client() as api:
        return sum(bool(one["simulated"]) and one["link_state"] == "online" for one in api.get("/hosts")["items"])


def _addresses(of: set[str], name: str) -> Iterator[str]:
    """Every GET route, with every one of these ids and names in its place."""
    kinds = {"host_id": "", "gpu_id": "", "access_id": "", "command_id": "command", "operation_id": "operation"}
    kinds |= {"cluster_id": "cluster", "job_id": "job", "receipt_id": "receipt", "account_id": "account"}
    for path, methods in build_api().openapi()["paths"].items():
        if "get" not in methods or path.endswith("/stream") or path in ("/metrics", "/healthz"):
            continue
        named = re.findall(r"{(\w+)}", path)
        if not named:
            yield path
        elif "/templates/" in path or "/volumes/" in path:
            yield path.replace("{name}", f"{name}-{'template' if 'templates' in path else 'volume'}")
        elif "/artefacts/" in path:
            for one in of:
                if one.startswith("account_"):
                    yield f"{V1}/artefacts/account/{one}/{name}-weights"
        elif kind := kinds.get(named[0], ""):
            yield from (path.replace(f"{{{named[0]}}}", one) for one in of if one.startswith(f"{kind}_"))


@pytest.mark.parametrize("who", ["bert of anna", pytest.param("anna of bert", marks=pytest.mark.long)])
def test_no_answer_to_one_account_names_anything_of_the_other(
    people: tuple[Person, Person, set[str], set[str]], who: str
) -> None:
    anna, bert, of_anna, of_bert = people
    asking, other, theirs = (bert, anna, of_anna) if who == "bert of anna" else (anna, bert, of_bert)
    shown: dict[str, list[str]] = {}
    asked, answered = 0, 0
    for path in _addresses(theirs, other.name):
        answer = asking.ask("GET", path)
        found = sorted(one for one in theirs if one in answer.text and one.rpartition("_")[2] not in path)
        asked += 1
        answered += answer.status_code == 200
        assert answer.status_code < 500, (path, answer.text)
        if any(one in path for one in theirs):  # a refusal repeats what was asked
            assert answer.status_code in (403, 404), (path, answer.status_code)
        if found:
            shown[path] = found
    hosts = [one["id"] for one in asking.made("GET", f"{V1}/hosts")["items"]]
    for host in hosts:
        for path in (f"/hosts/{host}", f"/events?subject={host}", f"/commands?host={host}", f"/hosts/{host}/standing"):
            said = asking.ask("GET", V1 + path).text
            if found := sorted(one for one in theirs if one in said):
                shown[path] = found

    assert shown == {}
    assert asked > 40 and answered > 15


def test_the_live_feeds_of_one_account_are_silent_about_the_other(
    people: tuple[Person, Person, set[str], set[str]],
) -> None:
    anna, bert, of_anna, _ = people
    feeds = [f"{V1}/fleet/stream", f"{V1}/events/stream"]
    feeds += [f"{V1}/events/stream?subject={one}" for one in of_anna if "_" in one][:3]
    feeds += [f"{V1}/clusters/{one}/stream" for one in of_anna if one.startswith("cluster_")]
    with ThreadPoolExecutor(len(feeds)) as listeners:
        all_heard = listeners.map(bert.listens, feeds)
        anna.made("POST", f"{V1}/tokens", json={"name": "anna-later"})
    for path, said in zip(feeds, all_heard, strict=True):
        heard = said.replace(path.rsplit("=", 1)[-1], "").replace(path.split("/")[-2], "")
        assert [one for one in of_anna if one in heard] == [], path


def test_money_and_audit_are_each_ones_own(people: tuple[Person, Person, set[str], set[str]]) -> None:
    anna, bert, *_ = people
    for one in (anna, bert):
        assert one.made("GET", f"{V1}/me")["account"]["name"] == one.name
        assert one.ask("GET", f"{V1}/audit").status_code == 403
        assert one.ask("GET", f"{V1}/accounts").status_code == 403
        balances = one.made("GET", f"{V1}/ledger/balances")["items"]
        assert 0 < sum(float(item["amount"]) for item in balances) <= 50
