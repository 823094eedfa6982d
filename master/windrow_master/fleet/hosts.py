"""Records facts and decisions about hosts, inside a unit of work: joining, inventory, conditions, tiers."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from windrow_master.fleet import conditions, sanitise, tiers, verdicts
from windrow_master.fleet.availability import part_name
from windrow_master.fleet.benchmark_repository import BenchmarkRepository
from windrow_master.fleet.benchmarks import RUNS, counted
from windrow_master.fleet.claims import register
from windrow_master.fleet.claims.consistency import check
from windrow_master.fleet.claims.uniqueness import FLEET_CODES
from windrow_master.fleet.flaps import SETTLED_NS, flapped
from windrow_master.fleet.host_events import KEPT_AN_HOUR, REFUSED, HostBudget
from windrow_master.fleet.messages import HostLeaving, InstanceOf
from windrow_master.fleet.model import (
    CPU_KIND,
    AdminState,
    CardBenchmark,
    Host,
    LinkState,
    Measurement,
    Slot,
    SlotState,
    settled_at,
)
from windrow_master.fleet.reliability_repository import ReliabilityRepository
from windrow_master.fleet.repository import HostRepository, SlotRepository
from windrow_master.fleet.slices import sliced_tier
from windrow_master.fleet.slot_leases import SlotLeases
from windrow_master.fleet.standing import standing_of
from windrow_master.fleet.states import (
    SLOT_HELD,
    AdminEvent,
    Answer,
    LinkEvent,
    VerifyEvent,
    VerifyState,
    step_admin,
    step_link,
    step_verify,
)
from windrow_master.fleet.verification_repository import VerificationRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto import image_names
from windrow_proto.conditions import ConditionCode, heading_of, split
from windrow_proto.errors import Conflict, InvalidInput, NotFound
from windrow_proto.host_fields import CLOUD_INSTANCE
from windrow_proto.ids import AccountId, BootId, GpuUuid, HostId, SlotId, cpu_slot
from windrow_proto.model import Benchmark, Inventory, inventory_hash
from windrow_proto.units import MINUTE, SECOND, time_text
from windrow_proto.xids import name_of

BANNED: Final = (AdminState.QUARANTINED, AdminState.RETIRED)
MISUSE_EVERY_NS: Final = 10 * MINUTE
"""A host that comes back and does it again fills no list of events."""
XID_FRESH_NS: Final = MINUTE
"""An XID that is older says nothing of a fault that is found now."""
SPEEDS_NS: Final = 5 * MINUTE
"""Cards are measured once a day, and reading all of their figures takes long."""
_REASONS: Final = {
    LinkEvent.HEARD: "its heartbeats arrive",
    LinkEvent.SILENT: "its heartbeats stopped",
    LinkEvent.SILENT_LONG: "it did not report for too long",
    LinkEvent.GONE: "its provider says that it has ended",
}
_LINK_WORDS: Final = {LinkState.SUSPECT: "not answering", LinkState.LOST: "offline"}
LEAVING_WORDS: Final = {
    "spot": "its provider takes the spot machine back",
    "rebalance": "its provider may take the spot machine back soon",
    "shutdown": "the machine shuts down",
}
"""Reasons that agents give for leaving."""
_ADMIN_TEXTS: Final = {
    AdminState.ACTIVE: "{name} is active",
    AdminState.DRAINING: "{name} is draining: nothing new starts there",
    AdminState.MAINTENANCE: "{name} is in maintenance",
    AdminState.QUARANTINED: "{name} is quarantined",
    AdminState.RETIRED: "{name} is retired",
}

_KEPT_WORDS: Final = {"notes": "changes", "letters": "unreadable messages", "orphans": "pieces of unknown work"}


class HostRegistry:
    """The hosts' rows. `touched` is called on the loop after each commit that changed one, `alarmed` after each in
    which a condition came or went.
    """

    def __init__(
        self,
        slots: SlotLeases,
        touched: Callable[[HostId], None],
        banned: Callable[[UnitOfWork, HostId, bool], None],
        alarmed: Callable[[], None] = lambda: None,
    ) -> None:
        self._alarmed = alarmed
        self._slots = slots
        self.budget = HostBudget()
        self._misuse_due_ns: dict[HostId, int] = {}
        self._accusing_due_ns: dict[tuple[HostId, str], int] = {}
        self._touched = touched
        self._banned = banned
        # One value: readers have threads of their own.
        self._speeds: tuple[int, Mapping[GpuUuid, Mapping[str, float]] | None] = 0, None

    def load(self, uow: UnitOfWork, host_id: HostId) -> Host:
        """One host, or NotFound."""
        host = uow[HostRepository].get(host_id)
        if host is None:
            raise NotFound("There is no such host. List hosts: windrow host ls", subject=host_id)
        return host

    def save(self, uow: UnitOfWork, host: Host) -> Host:
        """Write a changed host; the caller read it in this unit of work."""
        after = replace(host, version=host.version + 1)
        if not uow[HostRepository].save(after):
            raise Conflict(subject=host.host_id)
        uow.after_commit(lambda: self._touched(host.host_id))
        return after

    def with_slots(
        self, uow: UnitOfWork, host_ids: Iterable[HostId] | None = None
    ) -> Sequence[tuple[Host, list[Slot]]]:
        """These hosts, or all, each with its slots."""
        hosts, rows = uow[HostRepository], uow[SlotRepository]
        wanted = None if host_ids is None else sorted(set(host_ids))
        by_host: dict[HostId, list[Slot]] = {}
        for slot in rows.list_all() if wanted is None else rows.of_hosts(wanted):
            by_host.setdefault(slot.host_id, []).append(slot)
        found = hosts.list_all() if wanted is None else hosts.some(wanted)
        return [(host, by_host.get(host.host_id, [])) for host in found]

    def is_online(self, uow: UnitOfWork, host_id: HostId) -> bool:
        """True if its link is up, by its row."""
        host = uow[HostRepository].get(host_id)
        return host is not None and host.link_state is LinkState.ONLINE

    def silent(self, uow: UnitOfWork, host_ids: Iterable[HostId]) -> dict[str, int | None]:
        """Those of these hosts that do not answer now, by name, with the time at which each was heard last."""
        found = [uow[HostRepository].get(host_id) for host_id in dict.fromkeys(host_ids)]
        return {
            host.name: host.last_seen_ns
            for host in found
            if host is not None and host.link_state in (LinkState.SUSPECT, LinkState.LOST)
        }

    def tell(
        self,
        uow: UnitOfWork,
        host_id: HostId,
        what: str,
        kind: str,
        text: str,
        *,
        about: Sequence[str] = (),
        fields: Mapping[str, str] | None = None,
    ) -> None:
        """Write an event that a host gave rise to, unless more of this sort came in this hour than are kept."""
        if self.budget.admit(host_id, what, uow.now_wall_ns):
            uow.event(kind, (host_id, *about), text, fields, f"host/{host_id}")
        else:
            self.tell_excess(uow, host_id, what)

    def tell_excess(self, uow: UnitOfWork, host_id: HostId, what: str) -> None:
        """Say, once an hour, that a host says more than is kept of it, or what it may not say."""
        excess = self.budget.excess(host_id, what, uow.now_wall_ns)
        if excess is None:
            return
        if what == REFUSED:
            text = (
                "This host reports events that it may not report, or about what is not its own or not known here, as "
                "after a restore; they are not kept"
            )
        else:
            kept = f"{KEPT_AN_HOUR[what]:,} {_KEPT_WORDS.get(what, what)}"
            text = f"More comes from this host than is kept in an hour ({kept}); the rest is counted"
        before = {f"before_{name}": str(count) for name, count in excess.before.items()}
        uow.event("host.reports_too_much", (host_id,), text, {"what": what} | before, "master")

    def misused(self, uow: UnitOfWork, host_id: HostId, code: str) -> None:
        """A host's connection was ended for what it sent: told at most once in MISUSE_EVERY_NS."""
        host = uow[HostRepository].get(host_id)
        if host is None or uow.now_wall_ns < self._misuse_due_ns.get(host_id, 0):
            return
        uow.after_commit(partial(self._misuse_due_ns.__setitem__, host_id, uow.now_wall_ns + MISUSE_EVERY_NS))
        text = f"{host.name} sent what no agent sends, and was disconnected: {code.replace('_', ' ')}"
        uow.event("host.link_misused", (host_id,), text, {"code": code})

    def kept_back(self, uow: UnitOfWork, host_id: HostId, access_id: str) -> None:
        """An Access kept messages back: told of each host at most once in MISUSE_EVERY_NS, whatever a host may say."""
        host, pair = uow[HostRepository].get(host_id), (host_id, access_id)
        if host is None or uow.now_wall_ns < self._accusing_due_ns.get(pair, 0):
            return
        uow.after_commit(partial(self._accusing_due_ns.__setitem__, pair, uow.now_wall_ns + MISUSE_EVERY_NS))
        text = f"{access_id} kept back messages between {host.name} and this Master; the host goes elsewhere"
        uow.event("access.kept_back", (access_id, host_id), text, {})

    def enrol(
        self, uow: UnitOfWork, host_id: HostId, name: str, owner_account: AccountId, simulated: bool, actor: str
    ) -> Host:
        """A host has joined; the same one again changes nothing."""
        known = uow[HostRepository].get(host_id)
        if known is not None:
            return known
        host = Host(host_id, sanitise.host_name(name, host_id), owner_account, simulated, uow.now_wall_ns)
        uow[HostRepository].add(host)
        uow.audit(actor, "host.enrol", host_id, fields={"name": host.name, "owner": owner_account})
        uow.event("host.enrolled", (host_id,), f"{host.name} joined", actor=actor)
        uow.after_commit(lambda: self._touched(host_id))
        return host

    # --- what people decide --------------------------------------------------------------------------------------

    def decide(
        self, uow: UnitOfWork, host_id: HostId, event: AdminEvent, actor: str, reason: str, *, is_sound: bool = True
    ) -> Host:
        """Apply a decision; Conflict when the host's state does not allow it. is_sound: who activates it says that its
        faulty GPUs are sound."""
        host = self.load(uow, host_id)
        step = step_admin(host.admin_state, event)
        if step.answer is Answer.REFUSED:
            raise Conflict(f"A host that is {host.admin_state} cannot {event}.", subject=host_id)
        if is_sound and event in (AdminEvent.ACTIVATE, AdminEvent.REVERIFIED):
            for slot in uow[SlotRepository].of_host(host_id):
                is_faulted = conditions.is_faulted(slot.card, host.conditions, slot.gpu_uuid)
                if slot.state is SlotState.FAULTED and not is_faulted:
                    self._slots.reverify(uow, slot, actor, reason or "an operator says it is sound")
        if not step.moved:
            return host
        if step.state is AdminState.MAINTENANCE:
            self._refuse_while_held(uow, host)
        after = self.save(uow, replace(host, admin_state=step.state, admin_reason=reason))
        fields = {"from": str(host.admin_state), "to": str(step.state)}
        uow.audit(actor, f"host.{event}", host_id, reason, fields)
        text = _ADMIN_TEXTS[step.state].format(name=host.name) + (f": {reason}" if reason else "")
        uow.event(f"host.{step.state}", (host_id,), text, fields, actor)
        if (host.admin_state in BANNED) != (step.state in BANNED):
            self._banned(uow, host_id, step.state in BANNED)
        return after

    def leaving(self, uow: UnitOfWork, host_id: HostId, at_ns: int | None, why: str) -> tuple[str, ...]:
        """A host says that it will be gone: nothing new starts there. Returns the clusters that it holds."""
        host = self.load(uow, host_id)
        if host.admin_state is AdminState.ACTIVE:
            until = "" if at_ns is None else f", at {time_text(at_ns)}"
            said = LEAVING_WORDS.get(why, "the host says that it will be gone")
            self.decide(uow, host_id, AdminEvent.DRAIN, f"host/{host_id}", f"{said}{until}")
        uow.publish(HostLeaving(host_id, at_ns, why))
        return tuple({one.holder: None for one in uow[SlotRepository].of_host(host_id) if one.holder})

    def check_instance(self, uow: UnitOfWork, host_id: HostId) -> None:
        """Quarantine a host that was bought and is not the machine that was: its join token or its disk was copied."""
        host, bought = self.load(uow, host_id), uow.ask(InstanceOf(host_id))
        said = str(host.inventory.more.get(CLOUD_INSTANCE, "")) if host.inventory is not None else ""
        if not bought or host.inventory is None or said == bought or host.admin_state in BANNED:
            return
        is_said = f"says that it is {said}" if said else "does not say that it is one of a provider"
        self.decide(
            uow, host_id, AdminEvent.QUARANTINE, "master", f"the machine {bought} was bought, and this host {is_said}"
        )

    def drain_all(self, uow: UnitOfWork, owner: AccountId, actor: str, reason: str) -> None:
        """Let nothing new start on the hosts of an account."""
        for host in uow[HostRepository].of_owner(owner):
            if host.admin_state is AdminState.ACTIVE:  # all others offer nothing already
                self.decide(uow, host.host_id, AdminEvent.DRAIN, actor, reason)

    def set_default_image(self, uow: UnitOfWork, host_id: HostId, image: str | None, actor: str) -> Host:
        """Choose the image that runs where a request names none; None: none. Raises InvalidInput."""
        host = self.load(uow, host_id)
        if image is not None and (not image_names.is_name(image) or image_names.is_id(image)):
            raise InvalidInput(f"{image!r} is not the name of an image.", subject=host_id)
        if image == host.default_image:
            return host
        after = self.save(uow, replace(host, default_image=image))
        fields = {"from": host.default_image or "", "to": image or ""}
        uow.audit(actor, "host.default_image", host_id, fields=fields)
        says = f"runs {image} where a request names no image" if image else "has no default image"
        uow.event("host.default_image", (host_id,), f"{host.name} {says}", fields, actor)
        return after

    def set_place(
        self, uow: UnitOfWork, host_id: HostId, country: str | None, labels: tuple[str, ...], actor: str
    ) -> Host:
        """Write down the country and the labels of a host, as its owner says them; None, empty: not said."""
        host = self.load(uow, host_id)
        if (country, labels) == (host.country, host.labels):
            return host
        after = self.save(uow, replace(host, country=country, labels=labels))
        fields = {"country": country or "", "labels": ", ".join(labels)}
        uow.audit(actor, "host.place", host_id, fields=fields)
        says = f"is in {country or 'no country that is known'}, with the labels {', '.join(labels) or '(none)'}"
        uow.event("host.place", (host_id,), f"{host.name} {says}", fields, actor)
        return after

    def _refuse_while_held(self, uow: UnitOfWork, host: Host) -> None:
        held = [slot.slot_id for slot in uow[SlotRepository].of_host(host.host_id) if slot.state in SLOT_HELD]
        if held:
            raise Conflict(
                f"{len(held)} slots are still in use: wait until the host has drained.", subject=host.host_id
            )

    # --- what the link says --------------------------------------------------------------------------------------

    def link(
        self, uow: UnitOfWork, host_id: HostId, event: LinkEvent, seen_ns: int | None, is_ours: bool = False
    ) -> Host | None:
        """Apply a verdict about the link; None when nothing changes. is_ours: many fell silent, and none is blamed."""
        host = self.load(uow, host_id)
        step = step_link(host.link_state, event)
        if not step.moved:
            return None
        now = uow.now_wall_ns
        is_online = step.state is LinkState.ONLINE
        is_first_word = is_online and host.link_state is LinkState.UNKNOWN and host.online_since_ns is not None
        # Of a host that was not heard since the Master started, the silence may be the Master's, or counted already.
        is_flap = event is LinkEvent.SILENT and host.link_state is LinkState.ONLINE and not is_ours
        flaps = flapped(host.flaps, now) if is_flap else host.flaps
        after = self.save(
            uow,
            replace(
                host,
                link_state=step.state,
                link_since_ns=now,
                online_since_ns=(host.online_since_ns if is_first_word else now) if is_online else None,
                settled_at_ns=settled_at(host, flaps, now) if is_online else None,
                flaps=flaps,
                last_seen_ns=seen_ns or host.last_seen_ns,
            ),
        )
        if is_first_word:
            return after  # the Master was away, and not the host: nothing has happened to it
        reason = _REASONS[event]
        held = sum(slot.holder is not None for slot in uow[SlotRepository].of_host(host_id))
        fields = {"from": str(host.link_state), "to": str(step.state), "held": str(held)}
        uow.audit("master", f"host.{event}", host_id, reason, fields)
        text = f"{host.name} is {_LINK_WORDS.get(step.state, step.state)}: {reason}"
        if is_online and after.settling_ns > SETTLED_NS:
            text += f". Its link failed several times: it takes new work in {after.settling_ns // MINUTE} min"
            fields["settling_s"] = str(after.settling_ns // SECOND)
        kind = "host.gone" if event is LinkEvent.GONE else f"host.{step.state}"
        uow.event(kind, (host_id,), text, fields)
        return after

    def route(
        self, uow: UnitOfWork, host_id: HostId, *, access_id: str, region: str, address: str, boot_id: BootId
    ) -> Host:
        """Write down through which Access the live boot of a host is connected."""
        host = self.load(uow, host_id)
        after = replace(host, access_id=access_id, region=region, address=address, boot_id=boot_id)
        if after == host:
            return host
        if host.boot_id is not None and host.boot_id != boot_id:
            self.tell(uow, host_id, "notes", "agent.restarted", f"The agent of {host.name} was restarted")
        elif host.access_id and host.access_id != access_id:
            text = f"{host.name} moved from {host.access_id} to {access_id}"
            fields = {"from": host.access_id, "to": access_id}
            self.tell(uow, host_id, "notes", "host.moved", text, fields=fields)
        return self.save(uow, after)

    def conditions(
        self, uow: UnitOfWork, host_id: HostId, codes: tuple[str, ...], *, is_whole: bool = True
    ) -> tuple[SlotId, ...]:
        """Write down what is the matter with a host; returns held slots that are faulted by it. Unless that is_whole,
        what was the matter stands: an agent that has just started has not looked yet, and is no end of a trouble."""
        host = self.load(uow, host_id)
        if not is_whole:
            codes += tuple(c.code for c in host.conditions)
        found = conditions.found_by_master(host.conditions)
        after = replace(host, conditions=conditions.merged(codes, host.conditions, uow.now_wall_ns, found))
        if after.conditions == host.conditions:
            return ()
        if verdicts.is_fault_over(host, after):
            after = replace(after, verify_due_ns=None, verify_tries=None)
        self._tell_conditions(uow, host, after)
        after = self.save(uow, after)
        lost = self._slots.sync(uow, after)
        self.grade(uow, after)
        return lost

    def _tell_conditions(self, uow: UnitOfWork, before: Host, after: Host) -> None:
        """Events of what came and went, by the host and the GPU it is about, of a fault also by who rents it;
        the Master's own findings are audited."""
        was, now = ({c.code: c for c in h.conditions} for h in (before, after))
        for code in sorted(was.keys() ^ now.keys()):
            if code.startswith(ConditionCode.CHALLENGE_RUNNING):
                continue  # a challenge is told of as a whole
            kind = "condition.raised" if code in now else "condition.cleared"
            words = (now.get(code) or was[code]).detail or heading_of(code)
            subjects = tuple(filter(None, split(code)[1:]))
            xid = _xid(uow, code, subjects)
            words = name_of(xid) if xid is not None else words
            text = f"{after.name}: {words}" if code in now else f"{after.name}: solved: {heading_of(code)}"
            if code.startswith(conditions.MASTERS_CODES):
                uow.event(kind, (after.host_id, *subjects), text, {"code": code}, "master")
                uow.audit("master", kind, after.host_id, words, {"code": code})
                continue
            own = gpu_ids(before) | gpu_ids(after)
            about = tuple(one for one in subjects if one in own)
            if code in now and conditions.is_fault(code):
                slots = uow[SlotRepository].of_host(after.host_id)
                about += tuple({s.holder: None for s in slots if s.holder and {s.card, s.gpu_uuid} & {*about}})
            fields = {"code": code} | ({} if xid is None else {"xid": str(xid)})
            self.tell(uow, after.host_id, "conditions", kind, text, about=about, fields=fields)
        if was.keys() != now.keys():
            uow.after_commit(self._alarmed)

    def inventory(self, uow: UnitOfWork, host_id: HostId, claimed: Inventory) -> tuple[Host, tuple[SlotId, ...]]:
        """Take in an inventory: slots, tiers, and the first one makes the host active."""
        host = self.load(uow, host_id)
        kept, notes = sanitise.inventory(claimed)
        rivals = register.write_claims(uow, host_id, kept)
        found = {finding.condition: finding.words for finding in check(claimed)} | register.found_in_fleet(uow, host)
        found |= verdicts.standing(host, kept, uow[VerificationRepository].verdicts(host_id))
        masters = [c.code for c in host.conditions if c.code == ConditionCode.CLOCK_SKEW]
        after = replace(
            host,
            inventory=kept,
            inventory_hash=inventory_hash(claimed),
            conditions=conditions.merged((*kept.conditions, *masters), host.conditions, uow.now_wall_ns, found),
        )
        self._tell_conditions(uow, host, after)
        if host.inventory is not None and _hardware(host.inventory) != _hardware(kept):
            fields = _changed(host.inventory, kept)
            text = f"{host.name}: its GPUs or its driver changed"
            if "driver_to" in fields:
                text = f"{host.name}: its driver changed from {fields['driver_from']} to {fields['driver_to']}"
            self.tell(uow, host_id, "notes", "host.changed", text, fields=fields)
            after = replace(after, verify_due_ns=None, verify_tries=None, proof_due_ns=None)
            if step_verify(host.verify_state, VerifyEvent.BEGIN).moved and host.verify_state is VerifyState.VERIFIED:
                after = replace(after, verify_state=VerifyState.VERIFYING)
        for note in notes:
            self.tell(uow, host_id, "notes", "inventory.note", f"{host.name}: {note}")
        after = self.save(uow, after)
        lost = self._slots.sync(uow, after)
        after = self.grade(uow, after)
        if after.admin_state is AdminState.ENROLLED:
            after = self.decide(uow, host_id, AdminEvent.ACTIVATE, "master", "its first inventory was accepted")
        for rival in sorted(rivals):
            self.judge_claims(uow, rival)
        return after, lost

    def challenged(
        self, uow: UnitOfWork, host: Host, found: Mapping[str, str], passed: Collection[GpuUuid] = ()
    ) -> Host:
        """Write down a changed host with what challenges make of its cards: the words by the code of the condition,
        in place of all that they made of them before. passed: cards that are sound, unless another fault is left."""
        codes = [condition.code for condition in host.conditions]
        own = conditions.found_by_master(host.conditions).items()
        found = {**{code: words for code, words in own if not code.startswith(conditions.CHALLENGE)}, **found}
        after = replace(host, conditions=conditions.merged(codes, host.conditions, uow.now_wall_ns, found))
        self._tell_conditions(uow, host, after)
        after = self.save(uow, after)
        self._slots.sync(uow, after)
        for slot in uow[SlotRepository].of_host(host.host_id) if passed else ():
            is_sound = slot.gpu_uuid in passed and not conditions.is_faulted(slot.gpu_uuid, after.conditions)
            if is_sound and slot.state is SlotState.FAULTED:
                self._slots.reverify(uow, slot, "master", "it passed a challenge")
        return after

    def benchmarked(self, uow: UnitOfWork, host: Host, proof_id: str, figures: Sequence[Benchmark]) -> Host:
        """Keep what a test rental measured of a host's cards, and grade by it."""
        for figure in figures:
            uow[BenchmarkRepository].add(host.host_id, proof_id, figure)
        return self.grade(uow, host) if figures else host

    def benchmarks(self, uow: UnitOfWork, host_id: HostId, card: GpuUuid) -> Sequence[CardBenchmark]:
        """The benchmarks of one card from test rentals, the newest first."""
        return uow[BenchmarkRepository].of_card(host_id, card)

    def speeds(self, uow: UnitOfWork) -> Mapping[GpuUuid, Mapping[str, float]]:
        """The figures of each card that count, by name, as they were up to SPEEDS_NS ago."""
        read_ns, found = self._speeds
        if found is None or not read_ns <= uow.now_wall_ns < read_ns + SPEEDS_NS:
            found = defaultdict[GpuUuid, dict[str, float]](dict)
            for figure in counted(uow[BenchmarkRepository].newest_of_all(RUNS)):
                found[GpuUuid(figure.subject)][figure.name] = figure.value
            self._speeds = uow.now_wall_ns, found
        return found

    def judge_claims(self, uow: UnitOfWork, host_id: HostId) -> None:
        """Look anew at what other hosts' claims make of this one's: a card may have moved, or be claimed twice."""
        host = self.load(uow, host_id)
        codes = [condition.code for condition in host.conditions]
        own = conditions.found_by_master(host.conditions)
        found = {code: words for code, words in own.items() if not code.startswith(FLEET_CODES)}
        found |= register.found_in_fleet(uow, host)
        after = replace(host, conditions=conditions.merged(codes, host.conditions, uow.now_wall_ns, found))
        if after.conditions != host.conditions:
            self._tell_conditions(uow, host, after)
            after = self.save(uow, after)
            self._slots.sync(uow, after)
            self.grade(uow, after)

    def measured(self, uow: UnitOfWork, host_id: HostId, measurement: Measurement, due_ns: int) -> Host:
        """Write down a bandwidth measurement and when the next one is due."""
        host = self.load(uow, host_id)
        return self.grade(uow, self.save(uow, replace(host, bandwidth=measurement, measure_due_ns=due_ns)))

    def grade(self, uow: UnitOfWork, host: Host) -> Host:
        """Find the tier of each slot and of the host anew; an event says when one changed."""
        inventory = host.inventory or Inventory()
        bandwidth = host.bandwidth.bandwidth() if host.bandwidth is not None else None
        found: list[tiers.Tier] = []
        known = uow[ReliabilityRepository].get(host.host_id)
        figure = known.figure if known is not None else None
        of_host = tiers.Standing(reliability=figure)
        measured = counted(uow[BenchmarkRepository].newest(host.host_id, RUNS)) if inventory.gpus else ()
        processors = tiers.cpu_tier(inventory, bandwidth, None, of_host)
        for slot in uow[SlotRepository].of_host(host.host_id):
            gpu = host.gpu(slot.card) if slot.card is not None else None
            if gpu is not None:
                standing = standing_of(gpu, host.conditions, figure)
                before = slot.tier.replace(f":{slot.profile}", "") if slot.profile else slot.tier
                tier = tiers.gpu_tier(gpu, measured, bandwidth, before, standing, is_drawn=host.simulated)
                found.append(tier)
            elif slot.gpu_uuid is None:
                tier = processors = tiers.cpu_tier(inventory, bandwidth, slot.tier, of_host)
            else:
                continue
            name = sliced_tier(tier.name, slot.profile)
            self._announce(uow, host, slot, name)
            self._slots.set_tier(uow, slot, name, tier.reasons)
        shown = tiers.worst_tier(found) or processors
        if (host.tier, host.tier_reasons) == (shown.name, shown.reasons):
            return host
        return self.save(uow, replace(host, tier=shown.name, tier_reasons=shown.reasons))

    def _announce(self, uow: UnitOfWork, host: Host, slot: Slot, tier: str) -> None:
        is_first = slot.kind != CPU_KIND or slot.slot_id == cpu_slot(host.host_id, 0)  # which speaks for the others
        if is_first and slot.tier and slot.tier != tier:
            part = part_name(host, slot.slot_id) or "a part"
            text = f"{host.name}: {part} went from {tiers.tier_words(slot.tier)} to {tiers.tier_words(tier)}"
            uow.event("slot.tier", (host.host_id, slot.slot_id), text, {"from": slot.tier, "to": tier})


def gpu_ids(host: Host) -> frozenset[str]:
    """The GPUs and slices in a host's inventory."""
    gpus = host.inventory.gpus if host.inventory is not None else ()
    return frozenset({gpu.uuid for gpu in gpus} | {part.uuid for gpu in gpus for part in gpu.slices})


def _changed(before: Inventory, after: Inventory) -> dict[str, str]:
    if before.driver_version == after.driver_version or not (before.driver_version and after.driver_version):
        return {}
    return {"driver_from": before.driver_version, "driver_to": after.driver_version}


def _hardware(inventory: Inventory) -> tuple[object, ...]:
    return inventory.driver_version, tuple(sorted((gpu.uuid, gpu.pci_device_id) for gpu in inventory.gpus))


def _xid(uow: UnitOfWork, code: str, subjects: Sequence[str]) -> int | None:
    """The XID behind a hardware fault, if the host has just reported one."""
    if split(code)[0] != ConditionCode.GPU_HOST_FAULT or not subjects:
        return None
    rows = uow.events.newest(subjects[0], kind="gpu.xid", limit=1)
    xid = rows[0].fields.get("xid", "") if rows and uow.now_wall_ns - rows[0].at_ns < XID_FRESH_NS else ""
    return int(xid) if xid.isdecimal() else None
