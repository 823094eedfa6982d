"""A full market of fifty simulated hosts and three projects with shares 1:2:4, as people meet it: places and estimates
in browser and command line, the right ones start when something ends, the Master is killed and nothing changes, and
each sentence of `windrow explain` is in the record."""

import asyncio
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.chromium import Chromium, NoBrowser, find_chromium
from tests.browser.pretend_master import built_console
from tests.browser.running import started
from tests.services import all_required
from tests.support.people import Person, added
from tests.support.rental import Renter
from tests.support.stack import WINDROW, Stack, stack, wait_for
from tests.waiting import PATIENCE_S
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(900)]

HOSTS = 50
WEIGHTS = {"one": 1, "two": 2, "four": 4}
ROUND = sum(WEIGHTS.values())
BACKLOG = 14
CARDS_LEAST, CARDS_MOST = 2 * ROUND, 160
START = re.compile(
    r"(\d+)(?:st|nd|rd|th) in the queue, starts (?:\d{4}-\d{2}-\d{2} )?\d{2}:\d{2}(?: UTC)? ± \d+ (?:min|h)"
)
HOURS = {"argv": ["sleep", "3600"], "gpus": 1, "simulated": True, "max_duration_seconds": 7200}


@dataclass
class Scene:
    """A market whose cards of one tier are all in use. fillers: the jobs that have them; jobs: those that wait."""

    market: Stack
    operator: Renter
    tier: str
    people: dict[str, Person]
    fillers: list[str]
    jobs: dict[str, str] = field(default_factory=dict)

    def queue(self) -> list[dict[str, Any]]:
        """All entries of the three projects that are ready, in their order."""
        return [one for one in self.operator.all("/queue") if one["id"] in self.jobs and one["place"] is not None]

    def states(self) -> Counter[tuple[str, str]]:
        """How many jobs of each project are in each state."""
        found = Counter[tuple[str, str]]()
        for name, person in self.people.items():
            with person.client() as api:
                found.update((name, job["state"]) for job in api.items("/jobs"))
        return found

    def shown(self, name: str, *words: str) -> str:
        """What `windrow ...` prints for a person."""
        person = self.people[name]
        environment = os.environ | {"WINDROW_URL": person.url, "WINDROW_TOKEN": person.token}
        return subprocess.run(
            [WINDROW, *words], capture_output=True, text=True, check=True, timeout=PATIENCE_S, env=environment
        ).stdout

    def end_fillers(self, count: int) -> None:
        """So many of the jobs that run are cancelled."""
        for _ in range(count):
            self.operator.ask("POST", f"/jobs/{self.fillers.pop()}/cancel")


def browser_of() -> Chromium:
    """The browser; without one, or without the console, the test is skipped."""
    try:
        assert built_console() is not None, "the console is not built: make setup"
        return find_chromium()
    except (NoBrowser, AssertionError) as missing:
        (pytest.fail if all_required() else pytest.skip)(str(missing))


@contextmanager
def full_market() -> Iterator[Scene]:
    """All cards of a tier are in use, and three projects have a backlog each, the least share first."""
    with stack("--simulate", str(HOSTS)) as market:
        operator = Renter(market)
        wait_for(lambda: _ready(operator) > HOSTS)
        tier, count = wait_for(lambda: _tier(operator))
        fillers = operator.ask("POST", "/jobs", HOURS | {"tier": tier, "array_size": count, "name": "filler"})
        ids = [job["id"] for job in fillers["jobs"]]
        wait_for(lambda: all(_state(operator, job) == "Running" for job in ids))
        people = {name: added(market, name, "renter", credit="1000") for name in WEIGHTS}
        scene = Scene(market, operator, tier, people, ids)
        for name, person in people.items():
            operator.ask("PUT", f"/fair-shares/org:{name}", {"weight": WEIGHTS[name]})
            with person.client() as api:
                asked = HOURS | {"tier": tier, "array_size": BACKLOG, "name": f"{name}-work"}
                scene.jobs |= {str(job["id"]): name for job in api.submit_job(asked)}
        yield scene


def _ready(operator: Renter) -> int:
    """How many hosts are online and graded."""
    return sum(one["link_state"] == "online" and bool(one["tier"]) for one in operator.all("/hosts"))


def _tier(operator: Renter) -> tuple[str, int] | None:
    """A tier of simulated cards, all of them free, of which there are enough and not too many."""
    offers = [one for one in operator.all("/offers") if one["simulated"] and one["unit"] == "gpu"]
    fit = [one for one in offers if CARDS_LEAST <= one["total"] <= CARDS_MOST and one["free"] == one["total"]]
    return min(((one["tier"], one["total"]) for one in fit), key=lambda found: found[1], default=None)


def _state(operator: Renter, job: str) -> str:
    return str(operator.ask("GET", f"/jobs/{job}")["state"])


@pytest.mark.proves("a full market: places, estimates, shares 1:2:4, a killed Master, and reasons from the record")
def test_a_full_market_serves_its_projects_by_their_shares_and_says_why(tmp_path: Path) -> None:
    chromium = browser_of()
    with full_market() as scene:
        first = wait_for(lambda: (q := scene.queue()) and len(q) == 3 * BACKLOG and all(o["estimate"] for o in q) and q)
        assert Counter(scene.jobs[one["id"]] for one in first[:ROUND]) == WEIGHTS
        assert [one["place"] for one in first] == list(range(1, 3 * BACKLOG + 1))
        _is_told(scene, first)
        asyncio.run(_is_shown(chromium, scene, first))
        _near_is_refused(scene)

        scene.end_fillers(ROUND)
        wait_for(lambda: _running(scene) == WEIGHTS)
        before = [one["id"] for one in scene.queue()]
        assert len(before) == 3 * BACKLOG - ROUND

        for pid in scene.market.daemons()["master"]:
            os.kill(pid, signal.SIGKILL)
        scene.market.must_answer()
        after = wait_for(lambda: (q := scene.queue()) and len(q) == len(before) and q)
        assert [one["id"] for one in after] == before
        assert _running(scene) == WEIGHTS

        scene.end_fillers(ROUND)
        wait_for(lambda: _running(scene) == {name: 2 * weight for name, weight in WEIGHTS.items()})
        _is_explained(scene, after)


def _running(scene: Scene) -> dict[str, int]:
    return {name: number for (name, state), number in scene.states().items() if state == "Running"}


def _is_told(scene: Scene, queue: list[dict[str, Any]]) -> None:
    """The command line says place and start of one's own jobs, and nothing of others' names."""
    third = queue[2]
    name = scene.jobs[third["id"]]
    said = START.search(scene.shown(name, "job", "show", third["id"]))
    assert said is not None and said[1] == "3"
    listed = scene.shown(name, "queue", "ls")
    assert f"{name}-work" in listed
    assert not any(f"{other}-work" in listed for other in WEIGHTS if other != name)


async def _is_shown(chromium: Chromium, scene: Scene, queue: list[dict[str, Any]]) -> None:
    third = queue[2]
    person = scene.people[scene.jobs[third["id"]]]
    expect.set_options(timeout=PATIENCE_S * 1000)
    async with started(chromium) as browser:
        page = await (await browser.new_context(locale="en-GB")).new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        await page.goto(f"{person.url}/#token={person.token}")
        await expect(page.get_by_role("button", name=re.compile("^Messages"))).to_be_visible()
        await page.goto(f"{person.url}/jobs/{third['id']}")
        await expect(page.get_by_role("main")).to_contain_text(START)
        await page.goto(f"{person.url}/queue")
        await expect(page.get_by_role("main")).to_contain_text("± ")


def _near_is_refused(scene: Scene) -> None:
    """A region in which nothing is free: the nearest elsewhere, with its milliseconds, or the regions there are."""
    with scene.people["one"].client() as api, pytest.raises(ApiProblem) as refused:
        asked = {"kind": "box", "argv": ["sleep", "1"], "gpus": 1, "simulated": True, "near": "nowhere-9"}
        api.request("POST", "/clusters", body=asked)
    said = str(refused.value)
    assert re.search(r"The nearest elsewhere is \S+, \d+ ms from|No host is in nowhere-9, and ", said), said


def _is_explained(scene: Scene, queue: list[dict[str, Any]]) -> None:
    """Why here and why not there agree with the record; why not yet with the queue."""
    running = next(one["id"] for one in queue if _state(scene.operator, one["id"]) == "Running")
    found = scene.operator.ask("GET", f"/explain/{running}")
    chosen, losers = found["decision"]["chosen"], [one["host"] for one in found["decision"]["losers"]]
    (here, *_) = found["here"]
    assert here.startswith(f"{chosen['host_name']} scores {chosen['score']}, ")
    assert all(f"{term} {value} x " in here for term, value in chosen["terms"].items())
    named = {chosen["host_name"], *losers}
    other = next(one["name"] for one in scene.operator.all("/hosts") if one["name"] not in named)
    there = scene.operator.ask("GET", f"/explain/{running}?host={other}")
    assert other in there["not_there"] and there["is_recorded"] is False
    waiting = scene.queue()[0]
    yet = scene.operator.ask("GET", f"/explain/{waiting['id']}")
    assert yet["queue"]["place"] == 1
    assert yet["not_yet"][0] == yet["queue"]["why"]
    name = scene.jobs[waiting["id"]]
    said = scene.shown(name, "explain", waiting["id"])
    assert "1st in the queue" in said
