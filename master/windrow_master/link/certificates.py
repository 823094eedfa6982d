"""With which certificate a host may come: known, not banned, not expired, and none older than one it was heard with."""

from typing import Final

from windrow_master.fleet.model import HostFacts
from windrow_master.link.downlink import HubPorts
from windrow_master.link.route import Opening
from windrow_master.loops import ends_alone
from windrow_proto.errors import Banned, CertificateRefused
from windrow_proto.ids import HostId
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

NOTE_EVERY_NS: Final = SECOND
NOT_NEWEST: Final = "The certificate is not the newest of this host."


class Certificates:
    """The newest generation each host was heard with, since this Master started or as it is written down."""

    def __init__(self, ports: HubPorts, clock: Clock) -> None:
        self._ports, self._clock = ports, clock
        self._generations: dict[HostId, int] = {}
        self._unnoted: dict[HostId, int] = {}

    async def check(self, opening: Opening) -> HostFacts:
        """What is known of a host that says hello; raises CertificateRefused or Banned."""
        host_id = opening.host_id
        facts = await self._ports.host_facts(host_id)
        if facts is None:
            raise CertificateRefused(f"This host is not known here{self._ports.forgetting()}", subject=host_id)
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
            await self._ports.generation_found(opening.host_id, opening.generation, opening.not_after_ns)

    def is_older(self, opening: Opening) -> bool:
        """Whether this host was heard with a newer one."""
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
                    await self._ports.generations_used(heard)
                continue
            self._unnoted = heard | self._unnoted
