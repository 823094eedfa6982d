"""Promises of joining, renewal, clones and tokens, over the real store and real keys."""

import hashlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509

from tests.master_support import ManualClock, SeededRng, opened_store
from tests.support.wired import forget_messages
from windrow_master.identity.authority import Authority
from windrow_master.identity.messages import CloneFound, StandingChanged
from windrow_master.identity.model import JoinAnswer, JoinRequest, MemberRole, Principal, RenewRequest, Role, Standing
from windrow_master.identity.service import IdentityService
from windrow_master.mail.service import MailService
from windrow_master.outgoing import Outgoing
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import (
    BadProof,
    Banned,
    CertificateRefused,
    Conflict,
    Forbidden,
    JoinTokenRefused,
    Unauthenticated,
)
from windrow_proto.ids import HostId
from windrow_proto.keys import (
    DOMAIN_JOIN,
    DOMAIN_REGIONS,
    DOMAIN_RENEW,
    SigningKey,
    TlsKey,
    certificate_facts,
    verify_signature,
)
from windrow_proto.sealed import SealKey
from windrow_proto.units import DAY, HOUR, MINUTE


@dataclass
class World:
    store: Store
    clock: ManualClock
    identity: IdentityService
    owner: Principal
    directory: Path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        authority = Authority.make(tmp_path / "identity", clock.wall_ns())
        forget_messages(store)
        mail = MailService(store, clock, SealKey.of(authority.signing), None)
        identity = IdentityService(store, authority, clock, SeededRng(7), tuple, (), mail, Outgoing())
        account = identity.first_account()
        text = identity.local_token(account, None)
        digest = hashlib.sha256(text.encode()).digest()
        owner = store.read_now(lambda uow: identity.asking._principal(uow, digest))
        yield World(store, clock, identity, owner, tmp_path)


@dataclass
class Joiner:
    """A host as the Master's API sees it."""

    world: World
    role: MemberRole = MemberRole.HOST

    def __post_init__(self) -> None:
        self.signing = SigningKey.generate()
        self.csr = TlsKey.generate().csr_pem("host")

    async def join(self, token: str, addresses: tuple[str, ...] = ()) -> JoinAnswer:
        proof = self.signing.sign(DOMAIN_JOIN, hashlib.sha256(token.encode()).digest() + self.csr)
        request = JoinRequest(
            token, self.csr, self.signing.public, proof, "rack-7", self.role, False, addresses
        )  # fmt: skip
        return await self.world.identity.join(request)

    async def renew(self, host_id: str, generation: int, csr: bytes) -> JoinAnswer:
        wall_ns = self.world.clock.wall_ns()
        claim = f"{host_id}|{generation}|{wall_ns}|".encode() + csr
        proof = self.signing.sign(DOMAIN_RENEW, claim)
        return await self.world.identity.renew(RenewRequest(host_id, generation, csr, wall_ns, proof))


async def _token(world: World, role: MemberRole = MemberRole.HOST) -> str:
    _, text = await world.identity.make_join_token(world.owner, role)
    return text


def _csr() -> bytes:
    return TlsKey.generate().csr_pem("host")


async def test_a_host_joins_once_with_a_certificate_of_a_day_that_names_it(world: World) -> None:
    joiner = Joiner(world)
    answer = await joiner.join(await _token(world))

    facts = certificate_facts(answer.certificate_pem.encode())
    assert (facts.role, facts.subject_id, facts.generation) == ("host", answer.id, 1)
    assert facts.not_after_ns == answer.not_after_ns
    assert DAY - MINUTE < answer.not_after_ns - world.clock.wall_ns() <= DAY
    verify_signature(answer.master_public, DOMAIN_REGIONS, answer.regions.signed, answer.regions.signature)


async def test_a_join_token_works_once(world: World) -> None:
    token = await _token(world)
    await Joiner(world).join(token)

    with pytest.raises(JoinTokenRefused):
        await Joiner(world).join(token)


async def test_a_join_whose_answer_was_lost_may_be_repeated_by_the_same_key(world: World) -> None:
    joiner, token = Joiner(world), await _token(world)

    first, second = await joiner.join(token), await joiner.join(token)

    assert (first.id, first.certificate_pem) == (second.id, second.certificate_pem)


async def test_a_join_token_goes_stale_after_15_minutes(world: World) -> None:
    token = await _token(world)
    world.clock.advance(15 * MINUTE)

    with pytest.raises(JoinTokenRefused):
        await Joiner(world).join(token)


async def test_a_join_without_the_key_it_claims_is_refused(world: World) -> None:
    token = await _token(world)
    thief, owner = Joiner(world), Joiner(world)
    proof = thief.signing.sign(DOMAIN_JOIN, hashlib.sha256(token.encode()).digest() + owner.csr)
    request = JoinRequest(
        token, owner.csr, owner.signing.public, proof, "x", MemberRole.HOST, False, ()
    )  # fmt: skip

    with pytest.raises(BadProof):
        await world.identity.join(request)


async def test_an_access_has_its_addresses_in_its_certificate(world: World) -> None:
    token = await _token(world, MemberRole.ACCESS)
    answer = await Joiner(world, MemberRole.ACCESS).join(token, ("127.0.0.1", "relay.example"))

    names = x509.load_pem_x509_certificate(answer.certificate_pem.encode()).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["relay.example", "access.windrow", "*.svc.localhost"]
    assert [str(ip) for ip in names.value.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


async def test_renewal_counts_generations_and_a_lost_answer_is_said_again(world: World) -> None:
    joiner = Joiner(world)
    host = (await joiner.join(await _token(world))).id
    csr = _csr()

    second = await joiner.renew(host, 1, csr)
    again = await joiner.renew(host, 1, csr)
    third = await joiner.renew(host, 2, _csr())

    assert (second.generation, again.generation, third.generation) == (2, 2, 3)
    assert second.certificate_pem == again.certificate_pem


async def test_the_newest_certificate_that_was_heard_is_remembered_whatever_comes_later(world: World) -> None:
    joiner = Joiner(world)
    host_id = HostId((await joiner.join(await _token(world))).id)

    def used() -> int:
        member = world.store.read_now(lambda uow: world.identity.member(uow, host_id))
        assert member is not None
        return member.used_generation

    assert used() == 0
    await world.identity.generations_used({host_id: 2, HostId("host_unknown"): 9})
    assert used() == 2
    await world.identity.generations_used({host_id: 1})
    assert used() == 2
    assert (await joiner.join(await _token(world))).generation == 2
    assert used() == 2


async def test_a_cloned_identity_is_quarantined_with_both_copies(world: World) -> None:
    joiner, clones = Joiner(world), []
    world.store.messages.on(CloneFound, lambda uow, it: clones.append(it.member.id))
    host = (await joiner.join(await _token(world))).id
    await joiner.renew(host, 1, _csr())

    with pytest.raises(Banned):
        await joiner.renew(host, 1, _csr())
    with pytest.raises(Banned):
        await joiner.renew(host, 2, _csr())

    assert clones == [host]
    assert list(await world.store.read(world.identity.banned)) == [host]
    assert await world.store.read(lambda uow: world.identity.host_public_key(uow, host)) is None


async def test_an_expired_host_comes_back_for_30_days_and_not_after(world: World) -> None:
    joiner = Joiner(world)
    host = (await joiner.join(await _token(world))).id
    world.clock.advance(29 * DAY)
    back = await joiner.renew(host, 1, _csr())
    world.clock.advance(31 * DAY + HOUR)

    assert back.generation == 2
    with pytest.raises(CertificateRefused):
        await joiner.renew(host, 2, _csr())


async def test_a_renewal_signed_by_another_key_is_refused_and_changes_nothing(world: World) -> None:
    joiner, stranger = Joiner(world), Joiner(world)
    host = (await joiner.join(await _token(world))).id

    with pytest.raises(BadProof):
        await stranger.renew(host, 1, _csr())
    assert (await joiner.renew(host, 1, _csr())).generation == 2


async def test_tokens_authenticate_until_revoked_or_expired(world: World) -> None:
    token, text = await world.identity.make_token(world.owner, "laptop", frozenset({Role.RENTER}), DAY)
    principal = await world.identity.authenticate(text)
    assert (principal.account_id, set(principal.roles)) == (world.owner.account_id, {Role.RENTER})

    await world.identity.revoke_token(world.owner, token.id)
    with pytest.raises(Unauthenticated):
        await world.identity.authenticate(text)

    _, short = await world.identity.make_token(world.owner, "short", frozenset({Role.RENTER}), HOUR)
    await world.identity.authenticate(short)
    world.clock.advance(HOUR)
    with pytest.raises(Unauthenticated):
        await world.identity.authenticate(short)


async def test_no_token_has_more_roles_than_its_maker(world: World) -> None:
    _, text = await world.identity.make_token(world.owner, "laptop", frozenset({Role.RENTER}), DAY)
    renter = await world.identity.authenticate(text)

    with pytest.raises(Forbidden):
        await world.identity.make_token(renter, "up", frozenset({Role.OPERATOR}), DAY)
    with pytest.raises(Forbidden):
        await world.identity.make_join_token(renter, MemberRole.ACCESS)


async def test_the_first_account_is_made_once_and_its_token_kept(world: World) -> None:
    account = world.identity.first_account()
    text = world.identity.local_token(account, None)

    assert account.roles == frozenset(Role)
    assert world.identity.local_token(account, text) == text
    world.clock.advance(70 * DAY)
    assert world.identity.local_token(account, text) != text


async def test_no_secret_is_stored_and_key_files_are_private(world: World) -> None:
    _, api = await world.identity.make_token(world.owner, "laptop", frozenset({Role.RENTER}), DAY)
    join = await _token(world)

    stored = b"".join(path.read_bytes() for path in world.directory.glob("master.sqlite3*"))
    assert api.encode() not in stored and join.encode() not in stored
    assert {stat.S_IMODE(path.stat().st_mode) for path in (world.directory / "identity").iterdir()} == {0o600}
    assert await world.store.read(lambda uow: uow.audit_log.first_broken()) is None


async def test_standing_changes_are_told_after_the_commit(world: World) -> None:
    told: list[str] = []
    world.store.messages.on(StandingChanged, lambda uow, it: uow.after_commit(lambda: told.append(it.member_id)))
    host = (await Joiner(world).join(await _token(world))).id

    for _ in range(2):
        await world.store.write(
            lambda uow: world.identity.set_standing(uow, host, Standing.RETIRED, "account/x", "sold"), name="retire"
        )

    assert told == [host]


def _purchase_token(world: World, purchase_id: str) -> str:
    def make(uow: UnitOfWork) -> str:
        return world.identity.purchase_token(uow, world.owner.account_id, purchase_id, MINUTE)

    return world.store.write_now(make, name="test")


async def test_a_bought_machine_joins_for_its_purchase_and_is_told_so_at_each_answer(world: World) -> None:
    joiner = Joiner(world)
    answer = await joiner.join(_purchase_token(world, "purchase_1"))

    member = world.store.read_now(lambda uow: world.identity.member(uow, answer.id))
    assert member is not None and member.purchase_id == "purchase_1"
    assert answer.is_bought and (await joiner.renew(answer.id, 1, _csr())).is_bought
    assert not (await Joiner(world).join(await _token(world))).is_bought


async def test_one_machine_is_not_the_host_of_two_purchases(world: World) -> None:
    joiner = Joiner(world)
    await joiner.join(_purchase_token(world, "purchase_1"))

    for token in (_purchase_token(world, "purchase_2"), await _token(world)):
        with pytest.raises(Conflict, match="another purchase"):
            await joiner.join(token)


async def test_once_its_purchase_has_ended_no_machine_joins_for_it(world: World) -> None:
    ended, other = _purchase_token(world, "purchase_1"), _purchase_token(world, "purchase_2")
    world.store.write_now(lambda uow: world.identity.end_purchase_tokens(uow, "purchase_1"), name="test")

    with pytest.raises(JoinTokenRefused):
        await Joiner(world).join(ended)
    assert (await Joiner(world).join(other)).is_bought
