"""Two people on two machines, from the account to the bill, on everything as it is shipped: a long run only.

An operator runs a Master, an Access and a host with containers; each is in a network of its own. A renter, on a machine
of his own, has nothing but the link that the operator gave him.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import IS_LONG
from tests.services import need
from tests.support import truth
from tests.support.archives import tree
from tests.support.canaries import collect
from tests.support.namespaces import Namespace, need_networks, switched
from tests.support.own_docker import OwnDocker, own_docker
from tests.support.regions import HTTPS_PORT, TRUNK_PORT, RegionalMarket, regional_market
from tests.support.stack import WINDROW, wait_for
from tests.support.tiny_registry import tiny_registry

pytestmark = [
    *(pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)),
    pytest.mark.skipif(not IS_LONG, reason="minutes; its parts are in the other files"),
]

RUN_S = 600
LEASE_S = 20
MODEL_MIB = 1200
APPLETS = ("sh", "cat", "find", "truncate", "ln", "mkdir", "chmod", "id", "ls", "env", "wget", "grep", "mount", "test")
PROBE = """
set +e
{{
    id; env; mount; ls -la / /home /root /run /var/run /tmp /dev /sys/class/net
    cat /proc/*/environ /proc/*/cmdline /proc/net/unix /proc/net/tcp /proc/1/mountinfo /proc/keys
    find / \\( -path /proc -o -path /sys -o -path /workspace -o -path /zeros \\) -prune -o -type f -exec cat {{}} +
    for place in {places}; do cat "$place" && echo "HAD $place"; done
    for place in {addresses}; do wget -q -T 3 -O - "http://$place/" && echo "HAD $place"; done
}} >seen 2>/dev/null
set -e
"""
HOSTILE = f"""
mkdir -p .git/hooks .ssh run-1 out
printf '[core]\\n\\tfsmonitor="touch PWNED;false"\\n' >.git/config
printf '#!/bin/sh\\ntouch PWNED\\n' >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
echo evil >.envrc; echo evil >.ssh/config; echo evil >>train.py; chmod 755 train.py
ln -s run-1 latest; ln -s /etc/passwd passwd; ln -s ../../.. up; ln -s .git/config config
printf '#!/bin/sh\\n' >tool; chmod 755 tool
echo w >run-1/w; echo r >out/r
truncate -s {MODEL_MIB}M model.safetensors; echo end >>model.safetensors; echo z >zzz
exit 7
"""


@dataclass(frozen=True, slots=True)
class Person:
    """A renter on a machine of his own: a network, a home, a project."""

    network: Namespace
    home: Path

    def environment(self) -> dict[str, str]:
        """His own: nothing of the operator's."""
        others = {name: value for name, value in os.environ.items() if not name.startswith(("WINDROW_", "XDG_"))}
        return others | {"HOME": str(self.home)}

    def windrow(self, *words: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """One command, to its end."""
        how: dict[str, Any] = {"cwd": cwd or self.home, "env": self.environment(), "timeout": RUN_S}
        with self.network.entered():
            return subprocess.run([WINDROW, *words], capture_output=True, text=True, check=False, **how)

    def told(self, *words: str) -> Any:
        """Returns the output of a command as JSON."""
        done = self.windrow(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def balance(self) -> Decimal:
        """Returns the balance of the account, without what is held."""
        return Decimal(self.told("ledger", "balances")[0]["amount"])


@dataclass(frozen=True, slots=True)
class Two:
    """The operator's market and the renter. image: on the registry that the host pulls from; places, addresses: where
    the operator's things are."""

    market: RegionalMarket
    renter: Person
    daemon: OwnDocker
    image: str
    places: tuple[str, ...]
    addresses: tuple[str, ...]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    need_networks()
    for service in ("docker", "busybox"):
        need(service)
    with ExitStack() as cleanup:
        names = ("master", "eu", "host", "renter")
        made = cleanup.enter_context(switched(len(names), "10.95.0"))
        networks = {name: one for name, (one, _) in zip(names, made, strict=True)}
        addresses = {name: address for name, (_, address) in zip(names, made, strict=True)}
        daemon = cleanup.enter_context(own_docker(networks["host"]))
        registry = cleanup.enter_context(tiny_registry(networks["host"]))
        registry.hold(1, Path(str(shutil.which("busybox"))).read_bytes(), APPLETS)
        market = cleanup.enter_context(regional_market(tmp_path, networks, addresses))
        market.add_accesses("eu")
        market.add_host("host", "--runtimes", "docker", "--registries", registry.address, DOCKER_HOST=daemon.url)
        wait_for(lambda: (h := market.renter.online()) and h["admin_state"] == "active" and h["listed_at"])
        kept = tmp_path / "host-host"
        places = (*(str(kept / "identity" / "identity.json"), str(market.data_dir / "cli.json")), "/root/.ssh/id_rsa")
        masters = (f"{addresses['master']}:{HTTPS_PORT}", f"{addresses['master']}:{TRUNK_PORT}", registry.address)
        renter = Person(networks["renter"], tmp_path / "renter")
        renter.home.mkdir()
        yield Two(market, renter, daemon, f"{registry.address}/work:1", places, masters)


def project(home: Path) -> Path:
    """A folder under git."""
    root = home / "project"
    (root / "out").mkdir(parents=True)
    (root / "train.py").write_text("print()\n")
    (root / ".env").write_text("TOKEN=mine\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@pytest.mark.row("F1", "F2", "F3", "F7", "F19", "K1", "K2", "K3", "K4")
def test_two_people_on_two_machines(two: Two) -> None:
    market, renter = two.market, two.renter
    added = market.renter.windrow("account", "add", "anna", "--role", "renter", "--credit", "50.00", "--json")
    assert added.returncode == 0, added.stderr
    came = renter.windrow("login", json.loads(added.stdout)["link"])
    assert came.returncode == 0, came.stderr
    assert renter.balance() == 50
    root = project(renter.home)
    _a_hostile_host_and_a_project(two, root)
    _a_client_that_vanishes(two, root)


def _a_hostile_host_and_a_project(two: Two, root: Path) -> None:
    config = (root / ".git" / "config").read_bytes()
    probe = PROBE.format(places=" ".join(two.places), addresses=" ".join(two.addresses))
    (root / "job.sh").write_text(f"test ! -e .env{probe}{HOSTILE}")  # a file: what is looked for is in no command line
    done = two.renter.windrow("run", "--image", two.image, "--", "sh", "-e", "job.sh", cwd=root)
    assert done.returncode == 7, done.stderr
    subprocess.run(["git", "-C", str(root), "status"], env=two.renter.environment(), check=True, capture_output=True)

    found = tree(root)
    assert not list(root.rglob("*PWNED*")), "git ran what a host wrote"
    assert (root / ".git" / "config").read_bytes() == config and not (root / ".git/hooks/pre-commit").exists()
    assert not {".envrc", ".ssh/config", "passwd", "up", "config"} & set(found)
    for name in ("passwd", ".git", "up"):
        assert name in done.stderr
    assert "MISSING" not in done.stderr and found[".env"] == b"TOKEN=mine\n"
    assert (found["latest"], found["run-1/w"], found["out/r"], found["zzz"]) == ("run-1", b"w\n", b"r\n", b"z\n")
    assert found["train.py"] == b"print()\nevil\n"
    assert not any((root / name).stat().st_mode & 0o111 for name in ("tool", "train.py"))
    with (root / "model.safetensors").open("rb") as model:
        assert model.seek(-4, os.SEEK_END) == MODEL_MIB << 20
        assert model.read() == b"end\n"

    seen = root.joinpath("seen").read_bytes()
    secrets = collect(two.market.folder)
    assert secrets.in_bytes((two.market.data_dir / "cli.json").read_bytes()), "what is looked for is found where it is"
    assert b"uid=" in seen and secrets.in_bytes(seen) == []
    assert not [word for word in (b"HAD ", b"docker.sock", os.fsencode(two.market.folder)) if word in seen]


def _a_client_that_vanishes(two: Two, root: Path) -> None:
    market, renter = two.market, two.renter
    before = {one["id"] for one in renter.told("cluster", "ls")}
    earned = Decimal(str(market.renter.balance()))
    words = (
        "run",
        "--no-files",
        "--lease",
        str(LEASE_S),
        "--image",
        two.image,
        "--",
        "sh",
        "-c",
        "echo up; sleep 3600",
    )
    with renter.network.entered():
        client = subprocess.Popen(
            [WINDROW, *words],
            cwd=root,
            env=renter.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    with client:
        assert client.stdout is not None and client.stdout.readline() == b"up\n"
        (mine,) = {one["id"] for one in renter.told("cluster", "ls")} - before
        client.send_signal(signal.SIGKILL)
    ended = market.renter.phase(mine, "Deleted", within_s=LEASE_S + 100)
    assert ended["reason"] == "Its client has not been heard from for 20 s"
    host_id = market.renter.host()["id"]
    wait_for(lambda: not two.daemon.ask("ps", "-aq", "--filter", f"label=windrow.host={host_id}"))

    bill = next(one for one in renter.told("receipt", "ls") if one["cluster_id"] == mine and one["ended_at"])
    assert LEASE_S / 2 < float(bill["running_seconds"]) < LEASE_S + 60 and Decimal(bill["amount"]) > 0
    assert bill["held"] == "0.00"
    identities = {host_id: market.folder / "host-host" / "identity"}
    assert truth.ledger_flaws(market.data_dir) + truth.billing_flaws(market.data_dir, mine, identities) == []
    assert renter.balance() < 50 and Decimal(str(market.renter.balance())) > earned
