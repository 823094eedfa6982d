"""A real market that buys in the machine room: its backend, purchases by the command line, and what its disk says."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support import truth
from tests.support.machine_room import Lived, MachineRoom
from tests.support.moto_cloud import AMI_PARAMETER, REGION, SECRET_KEY
from tests.support.rental import Renter
from tests.support.stack import Stack, stack, wait_for
from tests.support.wrapped_up import COMMAND, wrapped
from windrow_master.prices import offers

NAME: Final = "aws"
ZONE: Final = f"{REGION}a"
PRICES: Final = {"m5.large": "0.115", "m5.xlarge": "0.23"}
"""US dollars an hour, on demand."""
SPOT_PRICE: Final = b"0.041000"
"""Of every type in every zone."""
HASTY: Final = {"master": (sys.executable, "-m", "tests.support.hasty_purchases")}
JOIN_S: Final = 420.0
"""For the agent to be packed, and a machine to join, on a busy machine of two cores."""


@dataclass(frozen=True, slots=True)
class RoomMarket:
    """A market with the backend `aws` in the room. folder: of files that its commands read."""

    room: MachineRoom
    stack: Stack
    renter: Renter
    folder: Path
    market_id: str

    @property
    def settings(self) -> list[str]:
        """Of its backend, for a command line."""
        return backend_settings(self.room)

    def buy(self, kind: str = "on-demand", hours: str = "2h", name: str = "m5.large", zone: str = ZONE) -> str:
        """`windrow purchase new`; the id of the purchase."""
        words = ("purchase", "new", NAME, f"{name}/{zone}/{kind}", "--hours", hours, "--yes", "--json")
        done = self.renter.windrow(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(json.loads(done.stdout)["id"])

    def burst_only(self) -> None:
        """Have no room here for any work, and let the operator's own project buy elsewhere by its jobs."""
        self.renter.ask("POST", f"/hosts/{self.renter.online()['id']}/drain", {"reason": "all is done elsewhere"})
        project = self.renter.ask("GET", "/me")["account"]["name"]
        done = self.renter.windrow("backend", "allow", NAME, project, "--per-day", "50", "--in-all", "200")
        assert done.returncode == 0, done.stdout + done.stderr

    def purchase(self, purchase_id: str) -> dict[str, Any]:
        """One purchase as the API shows it."""
        found: dict[str, Any] = self.renter.ask("GET", f"/purchases/{purchase_id}")
        return found

    def until(self, purchase_id: str, *states: str, within_s: float = JOIN_S) -> dict[str, Any]:
        """Wait until a purchase is in one of these states; Masters may die meanwhile."""
        found: dict[str, Any] = wait_for(
            lambda: (one := self.purchase(purchase_id)) and one["state"] in states and one, within_s
        )
        return found

    def machine(self, purchase_id: str) -> Lived:
        """The one machine of a purchase; raises AssertionError where there are more."""
        found = [one for one in self.room.of_market(self.market_id) if one.purchase_id == purchase_id]
        assert len(found) == 1, f"{purchase_id} has {len(found)} machines"
        return found[0]

    def states(self) -> Mapping[str, str]:
        """The state of every purchase by its id, from the Master's own disk: it may be dead."""
        rows = truth.rows(self.stack.data_dir, "SELECT purchase_id, state FROM purchases")
        return {row["purchase_id"]: row["state"] for row in rows}

    def packed(self) -> None:
        """Have the agent packed, so that each machine finds it."""
        words = ["curl", "-fsSk", "--max-time", "10", "-o", "/dev/null", f"{self.stack.cli['https_url']}/dl/SHA256SUMS"]
        wait_for(lambda: subprocess.run(words, capture_output=True, check=False).returncode == 0, JOIN_S)


def backend_settings(room: MachineRoom) -> list[str]:
    """`--set` of a backend that buys in this room."""
    known = {"region": REGION, "endpoint": room.cloud.endpoint, "image": AMI_PARAMETER, "image_gpu": AMI_PARAMETER}
    return [word for name, value in known.items() for word in ("--set", f"{name}={value}")]


def prices(folder: Path) -> Path:
    """A folder of prices as an operator adds them."""
    folder.mkdir()
    rows = [
        f"aws,{name},cpu,0,{2 if name == 'm5.large' else 4},8,,{REGION},,DE,on-demand,{price},room"
        for name, price in PRICES.items()
    ]
    (folder / "offers.csv").write_text("\n".join((",".join(offers.COLUMNS["offers"]), *rows, "")))
    (folder / "sources.csv").write_text(
        ",".join(offers.COLUMNS["sources"]) + "\nroom,prices of the room,2026-11-01,3650\n"
    )
    return folder


@contextmanager
def room_market(room: MachineRoom, folder: Path, *caps: str, is_hasty: bool = True) -> Iterator[RoomMarket]:
    """`windrow up` that listens for the room's machines, with a backend of these caps. is_hasty: its purchases wait
    less (hasty_purchases.py)."""
    room.cloud.spot_price = SPOT_PRICE
    environment = {"WINDROW_PRICES": str(prices(folder / "prices"))}
    more: dict[str, Any] = {"environment": environment}
    if is_hasty:
        more = {"environment": environment | wrapped(HASTY), "command": COMMAND}
    with stack("--listen", "0.0.0.0", "--public", room.address, **more) as running:
        renter = Renter(running)
        wait_for(lambda: renter.ask("GET", "/me"))
        credentials = folder / "aws.ini"
        credentials.write_text(f"aws_access_key_id=AKIAEXAMPLE\naws_secret_access_key={SECRET_KEY}\n")
        words = ("backend", "add", NAME, "--kind", "ec2", *backend_settings(room), "--credentials", str(credentials))
        done = renter.windrow(*words, *(caps or ("--per-day", "100")))
        assert done.returncode == 0, done.stdout + done.stderr
        shown = renter.ask("GET", f"/backends/{NAME}")
        yield RoomMarket(room, running, renter, folder, shown["market_id"])
