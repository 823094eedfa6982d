"""In a whole Master: the machine that a purchase bought joins by its own token, as a host of the Master's own account
that works for one account alone, and is retired with its purchase."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.master_support import ManualClock, SeededRng
from tests.support.memory_backend import MemoryBackend, MemoryCloud, Planned, Terms
from tests.unit.hybrid.purchases.world import OFFER, OPERATOR, PLENTY, RULES, AnyKind, run
from windrow_master.acceptance import schedule as proofs
from windrow_master.app import wiring
from windrow_master.clusters.messages import HostLimits
from windrow_master.fleet.lookup import find_host
from windrow_master.fleet.messages import HostLeaving
from windrow_master.fleet.model import AdminState, Host
from windrow_master.fleet.states import AdminEvent
from windrow_master.hybrid.backends.port import Finding
from windrow_master.hybrid.purchases.backends import BackendService
from windrow_master.hybrid.purchases.controller import LOOK_EVERY_NS
from windrow_master.hybrid.purchases.hosts import BoughtHosts
from windrow_master.hybrid.purchases.model import Purchase
from windrow_master.hybrid.purchases.service import PurchaseService
from windrow_master.hybrid.purchases.states import State
from windrow_master.identity.model import BUYER_ACCOUNT, JoinAnswer, JoinRequest, MemberRole
from windrow_master.store.executors import InlineExecutor
from windrow_master.verification import schedule as challenges
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import JoinTokenRefused
from windrow_proto.ids import HostId
from windrow_proto.keys import DOMAIN_JOIN, SigningKey, TlsKey
from windrow_proto.units import MINUTE, SECOND, parse_money


class Market:
    """A Master with the cloud in memory as its backend `cloud`, and a purchase loop that is turned by hand."""

    def __init__(self, master: wiring.Master, clock: ManualClock) -> None:
        self.master, self.clock = master, clock
        self.account = master.identity.first_account().id
        self.cloud = MemoryCloud(clock.wall_ns, Planned(is_stale=False), Terms(list_lag_ns=60 * SECOND))
        self.backends = BackendService(
            master.store,
            clock,
            master.identity.seal_key,
            {"memory": AnyKind()},
            lambda *_given: MemoryBackend(self.cloud, clock),
            lambda: Finding("reachability", True, ""),
        )
        hosts = BoughtHosts(master.identity, master.fleet, master.market, lambda token: f"join {token}", lambda *_: "")
        market_id = master.services.purchases.market_id
        self.purchases = PurchaseService(master.store, clock, self.backends, hosts, market_id, RULES)
        run(self.backends.add(OPERATOR, "cloud", "memory", {}, {}, PLENTY, margin_percent=20))

    def buy(self) -> Purchase:
        """Buy a machine, which boots."""
        bought = run(self.purchases.buy(OPERATOR, "cloud", OFFER, account_id=self.account, hours=2))
        self.turns(LOOK_EVERY_NS)
        return bought

    def turns(self, duration_ns: int) -> None:
        """Look every 15 s for so long."""
        for _ in range(duration_ns // LOOK_EVERY_NS):
            self.clock.advance(LOOK_EVERY_NS)
            self.backends.queue.add("cloud")
            run(self.purchases.controller.turn())

    def token(self) -> str:
        """The join token that the last machine was given."""
        order = self.cloud.all()[-1].order
        assert order is not None
        (found,) = set(re.findall(r"wj_[\w.-]+", order.user_data))
        return str(found)

    def join(self, token: str) -> JoinAnswer:
        """Join as the machine with this token does."""
        signing, csr = SigningKey.generate(), TlsKey.generate().csr_pem("host")
        proof = signing.sign(DOMAIN_JOIN, hashlib.sha256(token.encode()).digest() + csr)
        request = JoinRequest(token, csr, signing.public, proof, "bought-1", MemberRole.HOST, False, ())
        return run(self.master.identity.join(request))

    def host(self, host_id: str) -> Host:
        """It as it is now."""
        found = self.master.store.read_now(lambda uow: find_host(uow, HostId(host_id)))
        assert found is not None
        return found


@pytest.fixture
def market(tmp_path: Path) -> Iterator[Market]:
    clock = ManualClock()
    master = wiring.build(tmp_path, clock, SeededRng(3), disk=MemoryDisk(), make_executor=InlineExecutor)
    try:
        yield Market(master, clock)
    finally:
        master.close()


def test_a_bought_machine_is_a_host_of_the_masters_own_account_for_one_account_alone(market: Market) -> None:
    bought = market.buy()
    joined = market.join(market.token())
    market.turns(LOOK_EVERY_NS)
    known = run(market.purchases.get(bought.purchase_id))
    assert (known.state, known.host_id) == (State.JOINED, joined.id)
    assert market.host(joined.id).owner_account == BUYER_ACCOUNT
    limits = market.master.store.read_now(lambda uow: uow.ask(HostLimits()))
    assert limits[HostId(joined.id)].only_for == market.account
    listed = run(market.master.services.accounts.list())
    assert [one.account.id for one in listed] == [market.account]


def test_its_class_is_asked_at_what_it_costs_and_the_margin(market: Market) -> None:
    market.buy()
    asked = run(market.master.market.asked(BUYER_ACCOUNT))
    assert set(asked) == {"a10g/A", "a10g/B", "a10g/C"}
    assert set(asked.values()) == {parse_money("1.2072")}


def test_it_is_retired_and_its_token_worth_nothing_when_its_purchase_ends(market: Market) -> None:
    first, second = market.buy(), market.buy()
    token = market.token()
    joined = market.join(_token_of(market, first))
    for one in (first, second):
        run(market.purchases.end(OPERATOR, one.purchase_id, "by hand"))
    market.turns(5 * MINUTE)
    assert market.host(joined.id).admin_state is AdminState.RETIRED
    with pytest.raises(JoinTokenRefused):
        market.join(token)
    assert {run(market.purchases.get(one.purchase_id)).state for one in (first, second)} == {State.GONE}


def test_its_jobs_are_told_that_it_will_be_gone_and_nothing_new_starts(market: Market) -> None:
    told = list[HostLeaving]()
    market.master.store.messages.on(HostLeaving, lambda uow, fact: told.append(fact))
    bought = market.buy()
    host_id = HostId(market.join(market.token()).id)
    market.master.store.write_now(
        lambda uow: market.master.fleet.hosts.decide(uow, host_id, AdminEvent.ACTIVATE, "test", ""), name="activate"
    )
    market.turns(LOOK_EVERY_NS)
    run(market.purchases.end(OPERATOR, bought.purchase_id, "by hand"))
    assert told == [HostLeaving(host_id, market.clock.wall_ns() + RULES.drain_ns, "purchase")]
    assert market.host(host_id).admin_state is AdminState.DRAINING
    events = market.master.store.read_now(lambda uow: uow.events.after(0, limit=100, kinds=["purchase.draining"]))
    assert len(events) == 1


def test_nobody_proves_or_challenges_it_since_its_provider_vouches_for_it(market: Market) -> None:
    market.buy()
    host = market.host(market.join(market.token()).id)
    said = "it was bought: its provider vouches for it"
    assert (proofs.hindrance(host, (), 0), challenges.hindrance(host)) == (said, said)
    assert challenges.hindrance(replace(host, owner_account=market.account)) != said


def _token_of(market: Market, bought: Purchase) -> str:
    (text,) = [
        one.order.user_data for one in market.cloud.all() if one.order and one.order.purchase_id == bought.purchase_id
    ]
    return str(re.findall(r"wj_[\w.-]+", text)[0])
