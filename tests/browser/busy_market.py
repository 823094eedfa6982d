"""A busy market on this machine, for looking at: simulated hosts, people of each role, rentals, jobs, faulty cards."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.people import Person, added
from tests.support.rental import Renter
from tests.support.stack import Stack, stack, wait_for
from windrow.client import Client

SICK_HOSTS = 4
"""Of the provider: one of each persona, the first with cards that break."""
LONG = "3600"


@dataclass(frozen=True, slots=True)
class BusyMarket:
    """A market on which much goes on, and its people."""

    stack: Stack
    renter: Person
    provider: Person
    operator: Person
    auditor: Person

    @property
    def owner(self) -> Person:
        """The first account, whose host this machine is; it has all roles."""
        return Person("owner", self.stack.cli["url"], self.stack.cli["token"])

    @property
    def people(self) -> tuple[Person, ...]:
        """One of each role."""
        return self.renter, self.provider, self.operator, self.auditor


@contextmanager
def busy_market(folder: Path, hosts: int) -> Iterator[BusyMarket]:
    """Run it with so many simulated hosts of the first account. folder: for its data."""
    with stack("--simulate", str(hosts), folder=folder) as market:
        Renter(market).online()
        people = (
            added(market, "rosa", "renter", credit="2000"),
            added(market, "pia", "provider"),
            added(market, "otto", "operator"),
            added(market, "ada", "auditor"),
        )
        found = BusyMarket(market, *people)
        with own_hosts(found, folder / "provider", SICK_HOSTS, "tests.support.sick_agent"):
            await_hosts(market, hosts + SICK_HOSTS)
            operate(found)
            rent(found)
            yield found


def await_hosts(market: Stack, count: int) -> None:
    """Wait until so many can be rented."""
    with market.client() as api:
        wait_for(lambda: sum(1 for h in api.items("/hosts") if h["tier"] and h["link_state"] == "online") >= count)


@contextmanager
def own_hosts(market: BusyMarket, folder: Path, count: int, agent: str, seed: int = 7) -> Iterator[None]:
    """Simulated hosts of the provider. folder: of those of before, or not there yet. agent: the module that runs them:
    the agent itself, or the one some of whose cards break after a while."""
    if not folder.exists():
        folder.mkdir()
        with market.provider.client() as api:
            tokens = [api.request("POST", "/join-tokens", body={"role": "host"})["join_token"] for _ in range(count)]
        (folder / "tokens").write_text("\n".join(tokens))
    words = [sys.executable, "-m", agent, "simulate", "--count", str(count), "--seed", str(seed)]
    words += ["--name", folder.name]  # the market has simulated hosts of its own, with the usual names
    words += ["--data-dir", str(folder), "--master", market.stack.cli["local_url"]]
    words += ["--token-file", str(folder / "tokens")]
    with (folder / "log").open("ab") as log, subprocess.Popen(words, stdout=log, stderr=log, env=os.environ) as process:
        try:
            yield
        finally:
            process.terminate()


def rent(market: BusyMarket) -> None:
    """What the renter has: work that runs, waits, has ended well and badly, a volume, a template."""
    with market.renter.client() as api:
        api.create_volume("datasets")
        api.request("PUT", "/templates/big-ray", body={"kind": "ray", "hosts": 2, "gpus": 8, "simulated": True})
        more: dict[str, Any]
        for name, gpus, model, more in (
            ("train-llama", 8, "H100", {}),
            ("finetune", 4, "A100", {"budget": "60"}),
            ("render", 8, "RTX 4090", {}),
            ("notebook", 1, "L40S", {"argv": [], "notebook": True, "idle_seconds": 1800}),
            ("ft-mistral", 8, "A100", {"max_duration_seconds": 7200}),
            ("eval-suite", 2, "H100", {}),
        ):
            _cluster(api, name, **{"gpus": gpus, "gpu_model": model} | more)
        _cluster(api, "pretrain", kind="gang", hosts=4, gpus=8, gpu_model="L40S")
        _cluster(api, "sweep-head", argv=[], kind="ray", hosts=2, gpus=4)
        _cluster(api, "tokenise", argv=["echo", "tokenised 1,204 files"], gpus=1)
        _cluster(api, "broken-run", argv=["exit", "3"], gpus=1)
        _job(api, "embed-corpus", ["sleep", LONG], gpus=2, gpu_model="RTX 4090")
        _job(api, "nightly-eval", ["echo", "accuracy 0.914"], gpus=1)
        _job(api, "bad-config", ["exit", "2"], gpus=1)
        _job(api, "sweep", ["sleep", LONG], gpus=1, array_size=4)
        first = _job(api, "prepare", ["sleep", LONG], gpus=1)
        _job(api, "train-after", ["sleep", "60"], gpus=8, after=[first])
        _job(api, "eval-b200", ["sleep", "60"], gpus=1, gpu_model="B200")


def _cluster(api: Client, name: str, **more: Any) -> None:
    api.create_cluster({"kind": "box", "argv": ["sleep", LONG], "name": name, "simulated": True} | more)


def _job(api: Client, name: str, argv: list[str], **more: Any) -> str:
    made = api.request("POST", "/jobs", body={"argv": argv, "name": name, "simulated": True} | more)
    return str(made["jobs"][0]["id"])


def operate(market: BusyMarket) -> None:
    """What the operator does while nothing is rented: one host each drained, in maintenance and quarantined."""
    with market.operator.client() as api:
        hosts = sorted(api.items("/hosts", simulated="true"), key=lambda host: str(host["name"]))
        for verb, host in zip(("drain", "maintenance", "quarantine"), hosts[-3:], strict=True):
            api.request("POST", f"/hosts/{host['id']}/{verb}", body={"reason": "new power supply"})
