"""Certificates of simulated hosts: the shipped loop renews them, answers get lost, and whole folders are copied.

What stands in is the call alone (HTTPS and the files of one folder); whom a renewal is granted the Master decides.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar, cast

from windrow_agent.link.membership import Membership
from windrow_master.identity.model import JoinAnswer, RenewRequest
from windrow_proto.enrol import Identity
from windrow_proto.errors import Unavailable
from windrow_proto.keys import DOMAIN_RENEW, SigningKey, TlsIdentity, TlsKey
from windrow_proto.ports import Clock, Rng

if TYPE_CHECKING:
    from tests.simulation.world import World

T = TypeVar("T")
LOST = 0.2
"""How many answers do not come back."""
CALL_S = 20.0


@dataclass
class Folder:
    """The contents of one host's folder. request: the certificate request that waits for its answer."""

    identity: Identity
    request: bytes | None = None
    is_due: bool = False
    """Half of the certificate's life is over."""

    def copied(self) -> "Folder":
        """The same folder on another machine."""
        return replace(self)


def identity_of(answer: JoinAnswer, signing: SigningKey) -> Identity:
    """Returns the files that joining or a renewal leaves in the folder; the map of Accesses is the plan's own here."""
    tls = TlsIdentity(b"", answer.certificate_pem.encode(), answer.ca_pem.encode())
    found = (answer.id, answer.generation, tls, signing, answer.master_public, "", answer.not_after_ns, b"", ())
    return Identity(*found)


class Renewals:
    """In place of the thread that renewals are made on: asks the simulated Master what `enrol.renew` asks a real one.

    name: of the machine; a copy of a host has one of its own.
    """

    def __init__(self, world: "World", name: str, folder: Folder, clock: Clock) -> None:
        self._world, self._name, self._folder, self._clock = world, name, folder, clock
        self._luck = random.Random(f"{world.seed}|{name}|renewals")

    async def call(self, work: Callable[[], T]) -> T:
        """Renew; the work itself would block, and is what this stands in for."""
        folder, identity = self._folder, self._folder.identity
        if folder.request is None:
            folder.request = TlsKey.generate().csr_pem(identity.subject_id)
        request, wall_ns = folder.request, self._clock.wall_ns()
        claim = f"{identity.subject_id}|{identity.generation}|{wall_ns}|".encode() + request
        proof = identity.signing.sign(DOMAIN_RENEW, claim)
        asked = RenewRequest(identity.subject_id, identity.generation, request, wall_ns, proof)
        try:
            answer = await self._world.master.ask(lambda rooms: rooms.identity.renew(asked), CALL_S)
        except TimeoutError as error:
            raise Unavailable("The Master did not answer.") from error
        self._world.witness.granted(self._name, asked, answer.generation)
        if self._luck.random() < LOST:
            raise Unavailable("The answer was lost.")
        folder.identity, folder.request, folder.is_due = identity_of(answer, identity.signing), None, False
        return cast("T", folder.identity)

    def at_once(self, work: Callable[[], T]) -> "asyncio.Future[T] | None":
        """It takes a while."""
        return None

    def close(self) -> None:
        """Nothing to end."""


class SimulatedMembership(Membership):
    """The shipped loop over such a folder; `is_due` is when half of a certificate's day is over."""

    def __init__(self, folder: Folder, clock: Clock, rng: Rng, renewals: Renewals) -> None:
        self._simulated = folder
        self.folder = None  # type: ignore[assignment]  # only the call that `renewals` stands in for reads it
        self.identity = folder.identity
        self._clock, self._rng, self._runner = clock, rng, renewals
        self._jitter = rng.uniform()

    def due_ns(self) -> int:
        """Wall time from which the certificate should be renewed."""
        return 0 if self._simulated.is_due else self.identity.not_after_ns
