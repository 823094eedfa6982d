"""The end of a lease on a card: gone is told only after a look, what is unclean with its reason, and once."""

from dataclasses import replace

from tests.simulation.loop import run
from tests.support.personas import card
from tests.unit.agent_runtime.lives import DELETE, WORK, Host, create
from windrow_agent.core.gpu_port import GpuInventory, GpuLook
from windrow_agent.workloads.lease_exit_check import FREE_WITHIN_NS, LeaseExitCheck
from windrow_proto.model import SlotGrant, WorkloadPhase
from windrow_proto.units import GIB, MINUTE, SECOND

CARD = replace(card(), more={"compute_mode": "default"})
CHANGED = replace(CARD, more={"compute_mode": "prohibited"})


def create_on_card():
    made = create()
    assert made.create is not None
    slots = tuple(SlotGrant(slot.slot_id, slot.token, CARD.uuid) for slot in made.create.slots)
    return replace(made, create=replace(made.create, slots=slots, lease_ns=10 * MINUTE, paid_ns=10 * MINUTE))


class Cards:
    """One card, whose answers a test gives."""

    def __init__(self, *looks: GpuLook | None) -> None:
        self.looks = list(looks)
        self.facts = CARD
        self.asked = 0

    def inventory(self) -> GpuInventory:
        return GpuInventory((self.facts,))

    async def look(self, uuids):
        self.asked += 1
        seen = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return {} if seen is None else dict.fromkeys(uuids, seen)


def ended(cards: Cards, wait_ns: int = MINUTE):
    """A workload on the card, from its start to its deletion; what the host says of it then."""

    async def history(loop):
        host = Host(loop)

        async def story(life):
            await life.started(create_on_card())
            await life.pass_ns(MINUTE)
            await life.commands.arrived(DELETE)
            await life.pass_ns(wait_ns)
            found.append((life.phase, life.workloads.observed()[0].faults))

        found: list[object] = []
        await host.live(story, LeaseExitCheck(cards.inventory, cards.look, host.clock))
        return found[0]

    return run(1, history)


def test_a_clean_card_is_looked_at_once_and_the_workload_is_gone():
    cards = Cards(GpuLook(CARD, 0, 0))
    assert ended(cards) == (WorkloadPhase.GONE, {})
    assert cards.asked == 1


def test_memory_that_comes_free_a_little_later_is_no_fault():
    cards = Cards(GpuLook(CARD, 40 * GIB, 1), GpuLook(CARD, 20 * GIB, 0), GpuLook(CARD, 0, 0))
    assert ended(cards) == (WorkloadPhase.GONE, {})


def test_memory_that_stays_in_use_is_a_fault_in_words():
    cards = Cards(GpuLook(CARD, 2 * GIB, 0))
    phase, faults = ended(cards)
    assert (phase, faults) == (WorkloadPhase.GONE, {"GPU-1": "2048 MiB of its memory are still in use"})


def test_a_workload_is_not_gone_while_its_card_is_still_in_use():
    phase, faults = ended(Cards(GpuLook(CARD, 2 * GIB, 0)), wait_ns=FREE_WITHIN_NS - 2 * SECOND)
    assert (phase, faults) == (WorkloadPhase.STOPPING, {})


def test_a_mode_that_changed_during_the_lease_is_a_fault():
    cards = Cards(GpuLook(CHANGED, 0, 0))
    assert ended(cards)[1] == {"GPU-1": "its compute mode was default and is prohibited"}


def test_a_card_that_does_not_answer_is_not_called_clean():
    assert "did not answer" in ended(Cards(None))[1]["GPU-1"]


def test_modes_and_faults_survive_a_restart_of_the_agent():
    cards = Cards(GpuLook(CHANGED, 0, 0))

    async def history(loop):
        host = Host(loop)
        leaving = LeaseExitCheck(cards.inventory, cards.look, host.clock)
        seen = []

        async def first(life):
            await life.started(create_on_card())

        async def second(life):
            cards.facts = CHANGED  # all that this agent has ever read
            await life.pass_ns(SECOND)
            await life.commands.arrived(DELETE)
            await life.pass_ns(MINUTE)

        async def third(life):
            seen.append(life.workloads.state(WORK).faults)

        for story in (first, second, third):
            await host.live(story, leaving)
        return seen[0]

    assert run(1, history) == {"GPU-1": "its compute mode was default and is prohibited"}
