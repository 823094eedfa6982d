"""Decides which certificate a host may connect with: known, not banned, not expired, and none older than one it was
heard with."""

from collections.abc import Mapping
from typing import Final, Protocol

from windrow_master.fleet.model import HostFacts
from windrow_master.identity.model import MemberRole, Standing
from windrow_master.identity.service import IdentityService
from windrow_master.link.route import Opening
from windrow_master.loops import ends_alone
from windrow_master.store.store import Store
from windrow_proto.errors import Banned, CertificateRefused
from windrow_proto.ids import HostId
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

NOTE_EVERY_NS: Final = SECOND
NOT_NEWEST: Final = "The certificate is not the newest of this host."


class HostIdentities(Protocol):
    """Identity as the link needs it."""

    async def host_facts(self, host_id: HostId) -> HostFacts | None:
        """The key, generations and standing of a host; None if it never joined."""

    async def generations_used(self, heard: Mapping[HostId, int]) -> None:
        """Write down with which certificates hosts were heard, so that a later Master refuses older ones as well."""

    async def generation_found(self, host_id: HostId, generation: int, not_after_ns: int) -> None:
        """A host that may jump has come with a newer certificate than is known of, and until when it holds."""

    def forgetting(self) -> str:
        """The end of a sentence to a host that is not known here, with the way out."""


class MarketIdentities:
    """HostIdentities of this market's members."""

    def __init__(self, store: Store, identity: IdentityService, clock: Clock) -> None:
        self._store, self._identity, self._clock = store, identity, clock
        self.generations_used, self.generation_found = identity.generations_used, identity.generation_found
        self.forgetting = identity.forgetting

    async def host_facts(self, host_id: HostId) -> HostFacts | None:
        """The key, generations and standing of a host; None if it never joined."""
        member = await self._store.read(lambda uow: self._identity.member(uow, host_id))
        if member is None or member.role is not MemberRole.HOST:
            return None
        is_banned = member.standing is not Standing.GOOD
        may_jump = member.may_jump(self._clock.wall_ns())
        return HostFacts(member.sign_public, member.generation, is_banned, member.used_generation, may_jump)


class Certificates:
    """The newest generation each host was heard with, since this Master started or as it is written down."""

    def __init__(self, identities: HostIdentities, clock: Clock) -> None:
        self._identities, self._clock = identities, clock
        self._generations: dict[HostId, int] = {}
        self._unnoted: dict[HostId, int] = {}

    async def check(self, opening: Opening) -> HostFacts:
        """Return the facts about a host that says hello; raises CertificateRefused or Banned."""
        host_id = opening.host_id
        facts = await self._identities.host_facts(host_id)
        if facts is None:
            raise CertificateRefused(f"This host is not known here{self._identities.forgetting()}", subject=host_id)
        if facts.is_banned:
            raise Banned(subject=host_id)
        if opening.not_after_ns <= self._clock.wall_ns():
            raise CertificateRefused("The certificate has expired: renew it.", subject=host_id)
        self._generations[host_id] = max(self._generations.get(host_id, 0), facts.used_generation)
        is_forgotten = opening.generation > facts.generation and not facts.may_jump
        if self.is_older(opening) or is_forgotten:
            raise CertificateRefused(NOT_NEWEST, subject=host_id)
        return facts

    async def proven(self, opening: Opening, facts: HostFacts) -> None:
        """This host's hello was signed by its key: a newer certificate than is known of, which a restore has forgotten,
        is known from now on."""
        if opening.generation > facts.generation:
            await self._identities.generation_found(opening.host_id, opening.generation, opening.not_after_ns)

    def is_older(self, opening: Opening) -> bool:
        """Return whether this host was heard with a newer one."""
        return opening.generation < self._generations.get(opening.host_id, 0)

    def heard(self, opening: Opening) -> None:
        """This host was heard with this certificate: older ones are refused from now on."""
        if opening.generation <= self._generations.get(opening.host_id, 0):
            return
        self._generations[opening.host_id] = opening.generation
        if opening.generation > 1:  # before the first there is none to refuse
            self._unnoted[opening.host_id] = opening.generation

    async def note(self) -> None:
        """Have it written down, for ever; what could not be is tried again."""
        while True:
            await self._clock.sleep_ns(NOTE_EVERY_NS)
            heard, self._unnoted = self._unnoted, {}
            with ends_alone("certificates_noting", hosts=len(heard)):
                if heard:
                    await self._identities.generations_used(heard)
                continue
            self._unnoted = heard | self._unnoted
