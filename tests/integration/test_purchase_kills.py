"""SIGKILL to a real Master at every step of purchases in the machine room: nothing that it bought is left running.

KILLS=30 SEED=1 python -m pytest -q -s tests/integration/test_purchase_kills.py
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.support import truth
from tests.support.hasty_purchases import ORPHAN_TTL_S
from tests.support.machine_room import POWERED_OFF, Lived, MachineRoom, machine_room
from tests.support.room_market import HASTY, NAME, PRICES, RoomMarket, room_market
from tests.support.stack import wait_for
from tests.waiting import poll
from windrow_master.hybrid.backends.port import TAG_MARKET, TAG_PURCHASE

pytestmark = [pytest.mark.slow]

KILLS: Final = int(os.environ.get("KILLS") or 30)
SEED: Final = int(os.environ.get("SEED") or 1)
MACHINES: Final = 3
CAPS: Final = ("--per-hour", "0.40", "--per-day", "50", "--machines", str(MACHINES))
"""Three m5.large by their dearest price; a fourth passes both the first cap and the last."""
OVER: Final = ("gone", "refused", "never_made")
ROUND_S: Final = 120.0
DEAD_MAN_S: Final = ORPHAN_TTL_S * 1.5 + 30
"""Its time, the pause between two looks, and the way down."""
STEPS: Final[Sequence[tuple[str, bool, float]]] = (
    ("POST /purchases", True, 0.0),
    ("POST /purchases", True, 0.15),
    ("DescribeImages", False, 0.0),
    ("RunInstances", False, 0.0),
    ("RunInstances", True, 0.0),
    ("RunInstances", True, 0.05),
    ("RunInstances", True, 1.0),
    ("RunInstances", True, 6.0),
    ("RunInstances", True, 12.0),
    ("DescribeInstances", False, 0.0),
    ("DescribeInstances", True, 0.0),
    ("TerminateInstances", False, 0.0),
    ("TerminateInstances", True, 0.0),
    ("TerminateInstances", True, 1.5),
    ("DescribeVolumes", False, 0.0),
)
"""The moments at which the Master is killed: a call of its own or of its provider, whether that is done yet, and how
many seconds later. The longer ones fall into the installation of the agent, and into its first minute."""


@dataclass
class Judge:
    """Looks at the provider's list and at the Master's disk, several times a second.

    longest_s: the most that a machine was paid for after its purchase was over, or without one.
    """

    market: RoomMarket
    longest_s: float = 0.0
    most: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    _since: dict[str, float] = field(default_factory=dict)

    def look(self) -> None:
        """One look at everything."""
        running = [one for one in self.market.room.of_market(self.market.market_id) if one.is_running]
        states, now = self.market.states(), time.monotonic()
        self.looks += 1
        self.most = max(self.most, len(running))
        for one in running:
            if states.get(one.purchase_id, "none") in (*OVER, "ending", "none"):
                self.longest_s = max(self.longest_s, now - self._since.setdefault(one.instance_id, now))
            else:
                self._since.pop(one.instance_id, None)
        spent = sum(float(PRICES[one.instance.instance_type]) for one in running)
        self.faults["more machines than the cap"] += len(running) > MACHINES
        self.faults["more an hour than the cap"] += spent > float(CAPS[1])
        bought = Counter(one.purchase_id for one in self.market.room.of_market(self.market.market_id))
        self.faults["two machines of one purchase"] += any(count > 1 for count in bought.values())

    @contextmanager
    def watching(self) -> Iterator["Judge"]:
        """Look from a thread, meanwhile."""
        is_over = threading.Event()

        def run() -> None:
            while not is_over.wait(0.3):
                with suppress(Exception):  # a database in the moment of its Master's death; looks are counted
                    self.look()

        thread = threading.Thread(target=run, name="judge")
        thread.start()
        try:
            yield self
        finally:
            is_over.set()
            thread.join()


class Killer:
    """Kills the Master at one armed step, from within the provider's own answer."""

    def __init__(self, market: RoomMarket) -> None:
        self._market, self._armed = market, threading.Lock()
        self._step: tuple[str, bool, float] | None = None
        self.killed: list[str] = []
        self.has_killed = threading.Event()
        market.room.cloud.listener = self.heard

    def arm(self, step: tuple[str, bool, float]) -> None:
        """Kill at this one, once."""
        self.has_killed.clear()
        self._step = step

    def heard(self, action: str, is_done: bool) -> None:
        """A call of this action has come, or is done."""
        with self._armed:
            step, matches = self._step, self._step is not None and self._step[:2] == (action, is_done)
            if step is None or not matches:
                return
            self._step = None
        if step[2]:
            threading.Timer(step[2], self.kill, (step,)).start()
        else:
            self.kill(step)

    def kill(self, step: tuple[str, bool, float]) -> None:
        """SIGKILL, now."""
        os.kill(int(self._market.stack.cli["pids"]["master"]), signal.SIGKILL)
        moment = f"{step[0]} {'done' if step[1] else 'comes'}" + (f" + {step[2]:g} s" if step[2] else "")
        self.killed.append(moment)
        self.has_killed.set()


@pytest.fixture
def market(tmp_path: Path) -> Iterator[RoomMarket]:
    with machine_room(tmp_path) as room, room_market(room, tmp_path, *CAPS) as found:
        yield found


def foreigners(room: MachineRoom, market_id: str) -> list[str]:
    """Machines that are nobody's here: of another market, of none, and one that has a purchase's tag without ours."""
    return [
        room.foreign(**{TAG_MARKET: "another" + market_id, TAG_PURCHASE: "purchase-1"}),
        room.foreign(**{TAG_PURCHASE: "purchase-1"}),
        room.foreign(Name="database"),
    ]


def are_running(room: MachineRoom, ids: Sequence[str]) -> bool:
    told = room.cloud.client().describe_instances(InstanceIds=list(ids))
    return {one["State"]["Name"] for group in told["Reservations"] for one in group["Instances"]} == {"running"}


def is_back(market: RoomMarket) -> bool:
    """True once a Master answers again."""
    with suppress(Exception), market.stack.client() as api:
        return bool(api.request("GET", "/me"))
    return False


def one_round(market: RoomMarket, killer: Killer, step: tuple[str, bool, float], chance: random.Random) -> None:
    """Wait for the death at this step, and have what leads to it: machines bought, and ended where the caps are used
    up."""
    while step[0] == "TerminateInstances" and not with_machine(market):
        want(market, chance)
        with suppress(TimeoutError):
            wait_for(lambda: with_machine(market), 5)
    killer.arm(step)
    if step[0] == "POST /purchases":
        asking = threading.Thread(target=want, args=(market, chance))
        asking.start()
        killer.heard("POST /purchases", True)
        asking.join()
    ends = time.monotonic() + ROUND_S
    while not killer.has_killed.is_set():
        assert time.monotonic() < ends, f"nothing came to {step}: {market.states()}"
        has, living = with_machine(market), [one for one in market.states().values() if one not in OVER]
        if has and (step[0] == "TerminateInstances" or len(has) == len(living) == MACHINES):
            end(market, chance.choice(has))
        if len(living) < MACHINES:
            want(market, chance)
        killer.has_killed.wait(1)
    wait_for(lambda: is_back(market))


def with_machine(market: RoomMarket) -> list[str]:
    """The purchases that have a machine which nobody has asked to end."""
    return [one for one, state in market.states().items() if state in ("booting", "joined", "idle", "serving")]


def end(market: RoomMarket, purchase_id: str) -> None:
    """Have one ended, if the Master lives for so long."""
    ask(market, "POST", f"/purchases/{purchase_id}/end", {"reason": "a test"})


def want(market: RoomMarket, chance: random.Random) -> None:
    """Have one bought, if the Master lives for so long and the caps allow it."""
    offer = f"m5.large/eu-central-1{chance.choice('abc')}/{chance.choice(('spot', 'on-demand'))}"
    ask(market, "POST", "/purchases", {"backend": NAME, "offer": offer, "hours": 1})


def ask(market: RoomMarket, method: str, path: str, body: object = None) -> None:
    """One call that may be refused, or lose its Master."""
    with suppress(Exception), market.stack.client() as api:
        api.request(method, path, body=body)


def steps(count: int) -> list[tuple[str, bool, float]]:
    """So many, each of them about as often."""
    every = list(STEPS) * -(-count // len(STEPS))
    random.Random(SEED).shuffle(every)
    return every[:count]


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.proves("no machine outlives its purchase when the Master is killed at any step, nor when its disk is gone")
def test_nothing_is_left_of_a_master_that_is_killed_at_each_step_and_of_one_whose_disk_is_gone(
    market: RoomMarket, tmp_path: Path
) -> None:
    room, chance = market.room, random.Random(SEED)
    strangers = foreigners(room, market.market_id)
    market.packed()
    killer, judge = Killer(market), Judge(market)
    with judge.watching():
        for step in steps(KILLS):
            one_round(market, killer, step, chance)
        for one, state in market.states().items():
            if state not in OVER:
                end(market, one)
        wait_for(lambda: all(state in OVER for state in market.states().values()), 300)
    bought = room.of_market(market.market_id)
    print(
        f"\n{len(killer.killed)} kills {dict(Counter(killer.killed))}\n{len(market.states())} purchases "
        f"{dict(Counter(market.states().values()))}, {len(bought)} machines, at most {judge.most} at once; "
        f"longest past its end {judge.longest_s:.1f} s of {ORPHAN_TTL_S} s; {judge.looks} looks"
    )
    assert len(killer.killed) == KILLS and judge.looks > KILLS
    assert judge.longest_s <= ORPHAN_TTL_S
    assert not +judge.faults
    assert not [one.instance_id for one in bought if one.is_running]
    assert are_running(room, strangers)
    assert books(market) == {one for one, state in market.states().items() if state == "gone"}
    the_disk_is_gone(market, strangers, tmp_path)
    room.must_be_well()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_master_that_dies_before_the_answer_finds_its_machine_again_and_ends_it(market: RoomMarket) -> None:
    killer = Killer(market)
    killer.arm(("RunInstances", True, 0.0))
    want(market, random.Random(SEED))
    assert killer.has_killed.wait(60)

    (bought,) = wait_for(lambda: is_back(market) and with_machine(market))
    market.renter.ask("POST", f"/purchases/{bought}/end", {"reason": "a test"})

    assert market.machine(bought).is_ended.wait(60)
    market.until(bought, "gone", within_s=60)


def books(market: RoomMarket) -> set[str]:
    """The purchases with exactly one entry in the book of costs."""
    rows = truth.rows(market.stack.data_dir, "SELECT purchase_id, count(*) n FROM purchase_costs GROUP BY 1")
    return {row["purchase_id"] for row in rows if row["n"] == 1}


def the_disk_is_gone(market: RoomMarket, strangers: Sequence[str], folder: Path) -> None:
    """`rm -rf` of the data directory while machines run: they end themselves, and the sweep ends one that cannot."""
    room = market.room
    machines = [joined(market) for _ in range(MACHINES)]
    broken = machines[-1]
    stopped = broken.ready().run("systemctl stop windrow-dead-man.timer")
    assert stopped.returncode == 0, stopped.stderr
    volume = room.cloud.client().create_volume(
        AvailabilityZone="eu-central-1a",
        Size=8,
        TagSpecifications=[{"ResourceType": "volume", "Tags": [{"Key": TAG_MARKET, "Value": market.market_id}]}],
    )["VolumeId"]

    for pid in (market.stack.process.pid, *market.stack.pids()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    for pid in (*market.stack.pids(), market.stack.process.pid):
        os.kill(pid, signal.SIGKILL)
    market.stack.process.wait()
    shutil.rmtree(market.stack.data_dir)
    gone_at_s = time.monotonic()

    for one in machines[:-1]:
        assert one.is_ended.wait(DEAD_MAN_S + 60), f"{one.instance_id} runs on without its Master"
        assert one.why_it_ended == POWERED_OFF
    longest_s = max(one.ended_s or 0.0 for one in machines[:-1]) - gone_at_s
    assert longest_s <= DEAD_MAN_S
    assert broken.is_running, "one whose dead man is broken is left to the sweep"

    swept = sweep(market, folder)
    assert swept.returncode == 0, swept.stdout + swept.stderr
    assert "Nothing of this market is left there." in swept.stdout
    assert broken.instance_id in swept.stdout and volume in swept.stdout
    assert not [one.instance_id for one in room.of_market(market.market_id) if one.is_running]
    assert are_running(room, strangers)
    left = [one["VolumeId"] for one in room.cloud.client().describe_volumes()["Volumes"]]
    assert volume not in left
    print(f"without its disk: machines ended themselves within {longest_s:.0f} s, the sweep ended the last")


def joined(market: RoomMarket) -> Lived:
    """A machine that was bought and whose agent has heard its Master."""
    purchase_id = market.buy()
    market.until(purchase_id, "joined", "idle", "serving")
    found = market.machine(purchase_id)
    poll(lambda: found.ready().run("test -f /var/lib/windrow-agent/master-heard").returncode == 0)
    return found


def sweep(market: RoomMarket, folder: Path) -> "subprocess.CompletedProcess[str]":
    """`windrow-master sweep`, with the credentials and the market's id alone."""
    words = [*HASTY["master"], "sweep", "--kind", "ec2", "--market", market.market_id, *market.settings]
    for line in (market.folder / "aws.ini").read_text().splitlines():
        name, _, value = line.partition("=")
        (folder / name).write_text(value)
        words += ["--secret-file", f"{name}={folder / name}"]
    words[0] = sys.executable
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
