"""The contract of every repository on each database: values come back as they went in, changes are compared and set."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from tests.master_support import START_NS, opened_store
from tests.unit.clusters import made
from tests.unit.market.rentals import line, rental
from windrow_master.clusters.model import ClusterPhase, Use
from windrow_master.clusters.repository import ClusterRepository, HeldOfTier, WorkloadRepository
from windrow_master.fleet.bandwidth_repository import KEPT_PER_HOST, BandwidthRepository
from windrow_master.fleet.benchmark_repository import KEPT_PER_FIGURE, BenchmarkRepository
from windrow_master.fleet.evidence_repository import EvidenceRepository, MarkRepository
from windrow_master.fleet.model import (
    CardBenchmark,
    Claim,
    CommandRow,
    EvidenceRow,
    GapRow,
    Host,
    MeasuredRound,
    Slot,
    SlotState,
    Verification,
    VerifyOutcome,
)
from windrow_master.fleet.repository import ClaimRepository, CommandRepository, HostRepository, SlotRepository
from windrow_master.fleet.verification_repository import KEPT_PER_CARD, VerificationRepository
from windrow_master.hybrid.model import Capability, Declared, ResourceStatus, ResourceType
from windrow_master.hybrid.purchases.model import Buyer
from windrow_master.hybrid.purchases.repository import BuyerRepository
from windrow_master.hybrid.repository import ResourceRepository
from windrow_master.hybrid.search.model import Search, Try, TryState
from windrow_master.hybrid.search.repository import SearchRepository
from windrow_master.identity.model import Account, ApiToken, JoinToken, Member, MemberRole, Role, Standing
from windrow_master.identity.people import Organisation, OrganisationId, User, UserId
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.provider_repository import ProviderRepository
from windrow_master.identity.providers import Grants, Identity, Provider
from windrow_master.identity.repository import AccountRepository, JoinTokenRepository, MemberRepository, TokenRepository
from windrow_master.jobs.model import Attempt, AttemptPlace, Job, JobId, JobRequest, JobState, Verdict
from windrow_master.jobs.repository import JobRepository
from windrow_master.market.model import Ask
from windrow_master.market.repository import AskRepository, RentalRepository
from windrow_master.queue.quota import NodeLevel, Quota, QuotaItem
from windrow_master.queue.repository import QuotaRepository, RuleRepository
from windrow_master.queue.shares import Rule
from windrow_master.queue.tables import LEVELS
from windrow_master.secrets.model import Secret, SecretKind
from windrow_master.secrets.repository import SecretRepository
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_master.store.messages import Messages
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, InvalidInput
from windrow_proto.ids import AccountId, BootId, ClusterId, CommandId, GpuUuid, HostId, SlotId, TokenId, WorkloadId
from windrow_proto.model import Benchmark, CommandKind, Kind, Lane
from windrow_proto.units import Bytes, Microcents

SERVED = pytest.mark.proves("every repository on a real PostgreSQL")
LARGE = 2**63 - 1
TEXT = "Ångström ▶ 量子 '; DROP TABLE hosts; -- \t\n%s ? :x \\"
BYTES = bytes(range(256))
ACCOUNT = AccountId("account_1")
HOST = Host(HostId("host_1"), TEXT, ACCOUNT, False, LARGE)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=SERVED)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    with opened_store(tmp_path, database=url) as store:
        yield store


@contextmanager
def unit(store: Store) -> Iterator[UnitOfWork]:
    """A transaction of the test's own on the writer."""
    with store._engines.writer.begin() as connection:
        yield UnitOfWork(connection, START_NS, store.epoch, lambda count: b"\1" * count, Messages())


def test_identity_comes_back_as_it_went_in(store: Store) -> None:
    account = Account(ACCOUNT, TEXT, frozenset({Role.RENTER, Role.OPERATOR}), LARGE)
    token = ApiToken(TokenId("token_1"), ACCOUNT, TEXT, BYTES[:32], frozenset({Role.RENTER}), 1, LARGE, None)
    joining = JoinToken(TokenId("join_1"), ACCOUNT, MemberRole.HOST, BYTES[32:64], 1, LARGE, None, None, None)
    member = Member(
        *("host_1", MemberRole.HOST, ACCOUNT, TEXT, True, BYTES[:32], 1, BYTES[32:64], TEXT, LARGE),
        *(Standing.GOOD, "", ("10.0.0.1", "a.example"), 1),
    )
    with unit(store) as uow:
        uow[AccountRepository].add(account)
        uow[TokenRepository].add(token)
        uow[JoinTokenRepository].add(joining)
        uow[MemberRepository].save(member)
        uow[MemberRepository].save(replace(member, generation=2, standing=Standing.QUARANTINED))
        uow[JoinTokenRepository].use(joining.id, "host_1", 5)
        uow[JoinTokenRepository].use(joining.id, "host_2", 6)
    with unit(store) as uow:
        assert (
            uow[AccountRepository].get(ACCOUNT)
            == uow[AccountRepository].first()
            == uow[AccountRepository].by_name(TEXT)
            == account
        )
        assert uow[TokenRepository].by_hash(BYTES[:32]) == token
        used = uow[JoinTokenRepository].get(joining.id)
        assert used is not None
        assert (used.used_by, used.used_at_ns) == ("host_1", 5)
        assert uow[MemberRepository].by_key(BYTES[:32]) == replace(member, generation=2, standing=Standing.QUARANTINED)
        assert uow[MemberRepository].banned() == ["host_1"]


def test_identity_providers_and_identities_come_back_as_they_went_in(store: Store) -> None:
    grants = Grants(Role.ORG_ADMIN, {ACCOUNT: frozenset({Role.RENTER, Role.VIEWER})})
    provider = Provider(
        name="acme",
        issuer=TEXT,
        client_id=TEXT,
        sealed=BYTES,
        organisation_id="organisation_1",
        domains=("a.org", "b.org"),
        creates_users=True,
        is_private=False,
        scopes=("openid",),
        group_claim=TEXT,
        groups={TEXT: grants},
        created_at_ns=LARGE,
    )
    identity = Identity("acme", "subject", "user_1", TEXT, grants, LARGE)
    with unit(store) as uow:
        uow[OrganisationRepository].add(Organisation(OrganisationId("organisation_1"), "home", LARGE))
        uow[UserRepository].add(User(UserId("user_1"), "ada", LARGE))
        uow[ProviderRepository].save(provider)
        uow[ProviderRepository].save_identity(identity)
    with unit(store) as uow:
        repository = uow[ProviderRepository]
        assert repository.get("acme") == provider and repository.all() == [provider]
        assert repository.identity("acme", "subject") == identity and repository.identities_of("user_1") == [identity]
        repository.save(replace(provider, sealed=None, groups={}))
        repository.save_identity(replace(identity, last_used_at_ns=LARGE))
    with unit(store) as uow:
        repository = uow[ProviderRepository]
        assert repository.get("acme") == replace(provider, sealed=None, groups={})
        assert repository.identity("acme", "subject") == replace(identity, last_used_at_ns=LARGE)
        repository.remove("acme")
        assert (repository.all(), repository.identities_of("user_1")) == ([], [])


def test_hosts_are_saved_only_over_what_was_read(store: Store) -> None:
    with unit(store) as uow:
        uow[HostRepository].add(HOST)
        assert uow[HostRepository].get(HOST.host_id) == HOST
        newer = replace(HOST, version=2, boot_id=BootId(BYTES[:16]), tier_reasons=(TEXT,))
        assert uow[HostRepository].save(newer)
        assert not uow[HostRepository].save(replace(newer, admin_reason="late"))
        assert uow[HostRepository].get(HOST.host_id) == newer


def test_slots_have_one_holder_and_no_token_twice(store: Store) -> None:
    free = Slot(SlotId("slot_1"), HOST.host_id, "gpu", None)
    held = replace(free, state=SlotState.RESERVED, token=1, holder=ClusterId("cluster_1"), hold_expires_ns=LARGE)
    with unit(store) as uow:
        uow[HostRepository].add(HOST)
        uow[SlotRepository].add(free)
        assert uow[SlotRepository].swap(free, held)
        assert not uow[SlotRepository].swap(free, replace(held, holder=ClusterId("cluster_2")))
        assert uow[SlotRepository].get(free.slot_id) == held
        assert uow[SlotRepository].expired(LARGE) == [held]
        assert uow[SlotRepository].swap(held, replace(free, token=1))

    def again(uow: UnitOfWork) -> None:
        uow[SlotRepository].swap(replace(free, token=1), replace(held, holder=ClusterId("cluster_2")))

    with pytest.raises(Conflict):
        store.write_now(again, name="again")
    with unit(store) as uow:
        assert uow[SlotRepository].get(free.slot_id) == replace(free, token=1)
        assert [grant.holder for grant in uow[SlotRepository].grants(free.slot_id)] == ["cluster_1"]


def test_who_claims_a_card_is_found_by_its_uuid_and_by_its_serial_number(store: Store) -> None:
    other = replace(HOST, host_id=HostId("host_2"))
    mine, silent = Claim(HOST.host_id, GpuUuid("GPU-a"), "77", LARGE), Claim(HOST.host_id, GpuUuid("GPU-b"), None, 1)
    theirs, same = Claim(other.host_id, GpuUuid("GPU-c"), "77", 2), Claim(other.host_id, GpuUuid("GPU-b"), None, 3)
    with unit(store) as uow:
        for host in (HOST, other):
            uow[HostRepository].add(host)
        for claim in (mine, silent, theirs):
            uow[ClaimRepository].add(claim)
        assert uow[ClaimRepository].of_host(HOST.host_id) == [mine, silent]
        assert uow[ClaimRepository].of_card(mine.uuid, "77") == [mine, theirs]
        assert uow[ClaimRepository].of_card(mine.uuid, None) == [mine]
        assert uow[ClaimRepository].rivals() == {HOST.host_id, other.host_id}
        uow[ClaimRepository].drop(theirs)
        assert uow[ClaimRepository].rivals() == frozenset(), "no serial number is nobody's"
        uow[ClaimRepository].add(same)
        assert uow[ClaimRepository].of_card(silent.uuid, None) == [silent, same]
        assert uow[ClaimRepository].rivals() == {HOST.host_id, other.host_id}


def test_commands_are_open_until_they_are_done(store: Store) -> None:
    command = CommandRow(
        *(CommandId("command_1"), HOST.host_id, CommandKind(1), BYTES, TEXT, LARGE, 2, 3), result={"a": TEXT}
    )
    with unit(store) as uow:
        uow[HostRepository].add(HOST)
        uow[CommandRepository].add(command)
        assert uow[CommandRepository].open_all() == uow[CommandRepository].open_of_host(HOST.host_id) == [command]
        uow[CommandRepository].save(replace(command, done_at_ns=9))
        assert uow[CommandRepository].open_all() == []
        assert uow[CommandRepository].list(HOST.host_id) == [replace(command, done_at_ns=9)]


def test_marks_are_put_in_place_of_earlier_ones_and_evidence_is_kept_once(store: Store) -> None:
    boot = BootId(BYTES[:16])
    row = EvidenceRow(HOST.host_id, boot, LARGE, Kind.RECEIPT, BYTES, 7)
    gap = GapRow(HOST.host_id, Lane(1), boot, ((1, 2), (4, LARGE)), TEXT, 8)
    with unit(store) as uow:
        uow[MarkRepository].put(HOST.host_id, boot, ((1, 5),), 1)
        uow[MarkRepository].put(HOST.host_id, boot, ((1, 5), (7, LARGE)), 2)
        uow[EvidenceRepository].keep(row)
        uow[EvidenceRepository].add_gap(gap)
        uow[EvidenceRepository].bury(row, TEXT)
    with unit(store) as uow:
        assert uow[MarkRepository].of_host(HOST.host_id) == {boot: ((1, 5), (7, LARGE))}
        assert uow[EvidenceRepository].list(HOST.host_id, [Kind.RECEIPT]) == [row]
        assert uow[EvidenceRepository].gaps_of_host(HOST.host_id) == [gap]
        assert uow[EvidenceRepository].buried(HOST.host_id) == 1
        assert uow[MarkRepository].forget_before(3) == 1


def test_clusters_and_what_their_work_asks_of_hosts(store: Store) -> None:
    cluster, work = made.cluster(ClusterPhase.RUNNING), made.workload()
    with unit(store) as uow:
        uow[ClusterRepository].add(cluster, TEXT, BYTES[:32])
        uow[WorkloadRepository].add(work)
        assert uow[ClusterRepository].get(cluster.cluster_id) == cluster
        assert uow[ClusterRepository].by_key(cluster.account_id, TEXT) == (cluster, BYTES[:32])
        assert uow[ClusterRepository].living() == [cluster]
        assert uow[WorkloadRepository].held() == uow[WorkloadRepository].held_on(work.host_id) == [work]
        assert uow[WorkloadRepository].held_of(cluster.account_id) == [work]
        assert uow[WorkloadRepository].held_of(AccountId("account_nobody")) == []
        assert uow[ClusterRepository].living_ids() == uow[WorkloadRepository].holding_clusters() == [cluster.cluster_id]
        assert uow[ClusterRepository].readable([ClusterId("cluster_none"), cluster.cluster_id]) == [cluster]
        assert uow[WorkloadRepository].held_of_cluster(cluster.cluster_id) == [work]
        uow[VolumeRepository].use(Use("volume_1", cluster.cluster_id, True))
        assert uow[VolumeRepository].uses_of_cluster(cluster.cluster_id) == uow[VolumeRepository].uses()
        asked = uow[WorkloadRepository].committed()[work.host_id]
        assert (asked.cpus, asked.memory_bytes) == (work.cpus, work.memory_bytes)
        uow[WorkloadRepository].save(replace(work, is_released=True, ports={"80": 1}))
        assert uow[WorkloadRepository].held() == uow[WorkloadRepository].held_of(cluster.account_id) == []
        assert uow[WorkloadRepository].held_of_cluster(cluster.cluster_id) == []
        assert uow[WorkloadRepository].holding_clusters() == []
        assert uow[WorkloadRepository].of_cluster(cluster.cluster_id) == (
            replace(work, is_released=True, ports={"80": 1}),
        )


def test_rentals_lines_and_asks(store: Store) -> None:
    with unit(store) as uow:
        uow[RentalRepository].add(rental())
        uow[RentalRepository].add_line(line())
        for price in (1, 2):
            uow[AskRepository].put(Ask(None, "tier", Microcents(price), price, TEXT))
        assert uow[RentalRepository].live() == uow[RentalRepository].live_of_cluster(rental().cluster_id) == [rental()]
        assert uow[RentalRepository].live_clusters() == [rental().cluster_id]
        assert uow[RentalRepository].lines([rental().rental_id]) == [line()]
        assert uow[AskRepository].list_all() == [Ask(None, "tier", Microcents(2), 2, TEXT)]
        of_slot = [(rental().opened_at_ns, line().price_per_hour // len(line().slots))]
        asked = rental().tier, rental().simulated
        assert uow[RentalRepository].prices_since(*asked, 0, AccountId("another"), 9) == of_slot
        assert uow[RentalRepository].prices_since(*asked, 0, rental().renter, 9) == []
        assert uow[AskRepository].of(None) == {"tier": 2}
        uow[AskRepository].remove(None, "tier")
        assert uow[AskRepository].of(None) == {}


def test_answers_are_remembered_and_forgotten(store: Store) -> None:
    with unit(store) as uow:
        uow.idempotency.reserve(ACCOUNT, "key", BYTES[:32], 1, LARGE)
        uow.idempotency.remember(ACCOUNT, "key", 201, {"Location": TEXT}, BYTES)
    with unit(store) as uow:
        found = uow.idempotency.get(ACCOUNT, "key")
        assert found is not None
        assert (found.status, found.headers, found.body) == (201, {"Location": TEXT}, BYTES)
        uow.idempotency.forget_older(LARGE)
        uow.idempotency.forget(ACCOUNT, "key")
        assert uow.idempotency.get(ACCOUNT, "key") is None


def test_events_and_operations_are_read_by_their_subjects(store: Store) -> None:
    with unit(store) as uow:
        for number in range(5):
            uow.random_bytes = lambda count, n=number: bytes([n]) * count  # type: ignore[misc]
            uow.event(f"kind.{number}", ["a", "b"] if number % 2 else ["a"], TEXT, {"text": TEXT})
        operation = uow.operation("measure", "host_1", ACCOUNT, "user/ada")
        assert uow.operations.running("host_1", "measure") == [operation]
        uow.operations.finish(operation.id, LARGE, "conflict", TEXT)
        uow.operations.finish(operation.id, 1)
    with unit(store) as uow:
        assert [row.kind for row in uow.events.newest("b")] == ["kind.3", "kind.1"]
        assert [row.subjects for row in uow.events.after(0, "b")] == [("a", "b"), ("a", "b")]
        ended = uow.operations.get(operation.id)
        assert ended is not None
        assert (ended.state.value, ended.error_detail, ended.done_at_ns) == ("failed", TEXT, LARGE)
        assert uow.operations.running("host_1") == []


def test_the_audit_log_is_chained_over_whatever_people_write(store: Store) -> None:
    with unit(store) as uow:
        for reason in ("one", TEXT, ""):
            uow.audit("me", "act", "it", reason, {"text": TEXT})
    with unit(store) as uow:
        assert uow.audit_log.first_broken() is None
        assert [entry.reason for entry in uow.audit_log.list("it")] == ["one", TEXT, ""]


async def test_a_value_that_a_database_cannot_hold_is_the_askers_fault(store: Store) -> None:
    def too_large(uow: UnitOfWork) -> None:
        uow[HostRepository].add(replace(HOST, created_at_ns=2**63))

    with pytest.raises((InvalidInput, OverflowError)):
        await store.write(too_large, name="too_large")
    assert await store.read(lambda uow: uow[HostRepository].list_all()) == []


def test_challenges_come_back_as_they_went_in_and_the_oldest_of_a_card_go(store: Store) -> None:
    one, two = GpuUuid("GPU-1"), GpuUuid("GPU-2")
    failed = Verification(
        *("verification_1", HOST.host_id, one, LARGE, VerifyOutcome.FAILED, ("wrong_entry",), TEXT, TEXT, "580"),
        *(LARGE, "observed", {"places": [[0, 1, 2]], "nonce": "00"}),
    )
    unfinished = replace(failed, outcome=VerifyOutcome.UNFINISHED, reasons=(), span_ns=None, pace=None)
    with unit(store) as uow:
        uow[HostRepository].add(HOST)
        uow[VerificationRepository].add(replace(failed, gpu_uuid=two))
        uow[VerificationRepository].add(failed)
        uow[VerificationRepository].add(unfinished)
    with unit(store) as uow:
        assert uow[VerificationRepository].latest(HOST.host_id) == {one: unfinished, two: replace(failed, gpu_uuid=two)}
        assert uow[VerificationRepository].verdicts(HOST.host_id) == {one: failed, two: replace(failed, gpu_uuid=two)}
        assert uow[VerificationRepository].of_host(HOST.host_id, 2) == [unfinished, failed]
        other = replace(failed, host_id=HostId("host_2"))
        assert not uow[VerificationRepository].latest(other.host_id)
        uow[HostRepository].add(replace(HOST, host_id=other.host_id))
        for old in (replace(failed, outcome=VerifyOutcome.PASSED), other, replace(other, outcome=unfinished.outcome)):
            uow[VerificationRepository].add(old)
        uow[VerificationRepository].add(failed)
        for _ in range(KEPT_PER_CARD):
            uow[VerificationRepository].add(unfinished)
        found = uow[VerificationRepository].of_host(HOST.host_id, 2 * KEPT_PER_CARD)
        assert [row.gpu_uuid for row in found] == [one] * (KEPT_PER_CARD + 1) + [two]
        assert uow[VerificationRepository].verdicts(HOST.host_id)[one] == failed
        assert len(uow[VerificationRepository].of_host(other.host_id)) == 2, (
            "the same card on another host is another's"
        )


def test_benchmarks_of_cards_come_back_and_the_oldest_of_a_figure_go(store: Store) -> None:
    first = Benchmark("gpu.memory_bytes_per_s", 2.983e12, "By/s", LARGE, "GPU-1")
    runs = [replace(first, value=float(value)) for value in range(KEPT_PER_FIGURE + 1)]
    matrix, beside = replace(first, name="gpu.matrix_operations_per_s"), replace(first, subject="GPU-2")
    elsewhere = HostId("host_2")
    with unit(store) as uow:
        for host_id in (HOST.host_id, elsewhere):
            uow[HostRepository].add(replace(HOST, host_id=host_id))
        uow[BenchmarkRepository].add(elsewhere, "proof_0", first)
        for figure in (matrix, beside, *runs):
            uow[BenchmarkRepository].add(HOST.host_id, "proof_1", figure)
    with unit(store) as uow:
        assert uow[BenchmarkRepository].newest(HOST.host_id, 3) == [*runs[:-4:-1], beside, matrix]
        assert uow[BenchmarkRepository].newest(elsewhere, 3) == [first]
        assert uow[BenchmarkRepository].newest_of_all(3) == [*runs[:-4:-1], beside, matrix, first]
        kept = uow[BenchmarkRepository].of_card(HOST.host_id, "GPU-1", 1_000)
        assert kept == [CardBenchmark(figure, "proof_1") for figure in (*runs[:0:-1], matrix)]
        assert len(uow[BenchmarkRepository].of_card(HOST.host_id, "GPU-1")) == 20


def test_rounds_of_bandwidth_come_back_are_changed_in_place_and_the_oldest_of_a_host_go(store: Store) -> None:
    other = HostId("host_2")
    one = MeasuredRound(HOST.host_id, "n" * 64, TEXT, LARGE, LARGE, 0, {"access_1": (LARGE, 0)})
    south = replace(one, region="south")
    with unit(store) as uow:
        for host_id in (HOST.host_id, other):
            uow[HostRepository].add(replace(HOST, host_id=host_id))
        for found in (one, south, replace(one, host_id=other)):
            uow[BandwidthRepository].put(found)
    later = replace(one, at_ns=5, relays={"access_1": (1, 2), "access_2": (3, 4)})
    with unit(store) as uow:
        assert uow[BandwidthRepository].get(HOST.host_id, one.nonce, TEXT) == one
        assert uow[BandwidthRepository].get(HOST.host_id, "m", TEXT) is None
        assert list(uow[BandwidthRepository].of_round(HOST.host_id, one.nonce)) == [one, south]
        assert not uow[BandwidthRepository].of_round(HOST.host_id, "m")
        uow[BandwidthRepository].put(later)
        assert uow[BandwidthRepository].of_host(HOST.host_id, 5) == [south, later]
        assert uow[BandwidthRepository].of_host(HOST.host_id, 1) == [south]
        for number in range(KEPT_PER_HOST - 1):
            uow[BandwidthRepository].put(replace(one, nonce=str(number)))
        kept = uow[BandwidthRepository].of_host(HOST.host_id, 2 * KEPT_PER_HOST)
        assert len(kept) == KEPT_PER_HOST and kept[-1] == south
        assert len(uow[BandwidthRepository].of_host(other, 5)) == 1


def test_commands_of_a_kind_since_a_time_are_found_oldest_first(store: Store) -> None:
    def row(number: int, kind: CommandKind, at_ns: int, host_id: HostId = HOST.host_id) -> CommandRow:
        return CommandRow(CommandId(f"cmd_{number}"), host_id, kind, BYTES, "", 0, 0, at_ns)

    wanted = CommandKind.MEASURE_BANDWIDTH
    rows = [row(n, wanted, 10 + n) for n in range(3)]
    with unit(store) as uow:
        for host_id in (HOST.host_id, HostId("host_2")):
            uow[HostRepository].add(replace(HOST, host_id=host_id))
        for one in (*rows, row(8, CommandKind.BENCHMARK, 12), row(9, wanted, 12, HostId("host_2"))):
            uow[CommandRepository].add(one)
        assert uow[CommandRepository].since(HOST.host_id, wanted, 10) == rows[1:]


def test_jobs_come_back_as_they_went_in_and_are_found_while_they_live(store: Store) -> None:
    had = Attempt(ClusterId("cluster_1"), 1, 2, LARGE, -9, TEXT, LARGE, True, 0, False)
    request = JobRequest(
        argv=(TEXT,),
        name=TEXT,
        gpus=1,
        gpu_model="H100",
        gpu_memory_bytes=Bytes(LARGE),
        cpus=2,
        image="image",
        env={"A": ""},
        retries=1,
        deadline_ns=LARGE,
        budget=Microcents(LARGE),
        after=(JobId("job_0"),),
    )
    one = Job(
        *(JobId("job_1"), ACCOUNT, "job_1", request, JobState.CHECKPOINTING, LARGE, 0, TEXT, (had,), Verdict.AGAIN, 7),
        login=BYTES,
        sealed_env=BYTES,
    )
    over = replace(one, job_id=JobId("job_2"), array_index=1, state=JobState.LOST, verdict=None, ended_at_ns=LARGE)
    over = replace(over, login=b"")
    with unit(store) as uow:
        uow[JobRepository].add(one, "key", BYTES[:32])
        uow[JobRepository].add(replace(over, ended_at_ns=None), "key", BYTES[:32])
        uow[JobRepository].save(over)
    with unit(store) as uow:
        assert uow[JobRepository].by_key(ACCOUNT, "key") == ((one, over), BYTES[:32])
        assert uow[JobRepository].living() == uow[JobRepository].readable([over.job_id, one.job_id])[1:] == [one]
        assert uow[JobRepository].living_ids() == [one.job_id]
        assert uow[JobRepository].count_living(ACCOUNT) == 1
        assert uow[JobRepository].page(ACCOUNT, None, 9) == [over, one]
        assert uow[JobRepository].page(None, "job_2", 9) == uow[JobRepository].of_group("job_1")[:1] == [one]
        assert uow[JobRepository].page(AccountId("account_2"), None, 9) == []
        assert uow[JobRepository].page(None, None, 9, {"name": TEXT, "image": "image"}) != []
        assert uow[JobRepository].page(None, None, 9, {"name": "other"}) == []
        assert uow[JobRepository].all_of([JobId("job_2"), JobId("job_none")]) == {over.job_id: over}
    with pytest.raises(IntegrityError), unit(store) as uow:
        uow[JobRepository].add(replace(one, job_id=JobId("job_3")), "key", BYTES[:32])


def test_secrets_come_back_as_they_went_in_and_are_their_accounts_alone(store: Store) -> None:
    one = Secret(
        account_id=ACCOUNT,
        name="HF_TOKEN",
        kind=SecretKind.FILE,
        wrapped_key=BYTES,
        sealed=BYTES,
        created_at_ns=LARGE,
        created_by=TEXT,
        updated_at_ns=LARGE,
        updated_by=TEXT,
    )
    other = replace(one, name="A", kind=SecretKind.TEXT, last_used_at_ns=1, last_used_by="cluster_1")
    theirs = replace(one, account_id=AccountId("account_2"), sealed=b"theirs")
    with unit(store) as uow:
        for secret in (one, theirs, other):
            uow[SecretRepository].save(secret)
    with unit(store) as uow:
        assert uow[SecretRepository].of_account(ACCOUNT) == [other, one]
        uow[SecretRepository].used(ACCOUNT, "HF_TOKEN", LARGE, "cluster_2")
        used = replace(one, last_used_at_ns=LARGE, last_used_by="cluster_2")
        assert uow[SecretRepository].get(ACCOUNT, "HF_TOKEN") == used
        uow[SecretRepository].save(replace(used, sealed=b"new"))
        assert uow[SecretRepository].get(ACCOUNT, "HF_TOKEN") == replace(used, sealed=b"new")
        assert uow[SecretRepository].delete(ACCOUNT, "HF_TOKEN") and not uow[SecretRepository].delete(ACCOUNT, "B")
        assert uow[SecretRepository].get(ACCOUNT, "HF_TOKEN") is None
        assert uow[SecretRepository].of_account(AccountId("account_2")) == [theirs]


def test_what_is_not_over_is_found_by_its_account(store: Store) -> None:
    phases = (ClusterPhase.RUNNING, ClusterPhase.STOPPED, ClusterPhase.DELETED)
    rows = [replace(made.cluster(phase), cluster_id=ClusterId(f"cluster_{phase}")) for phase in phases]
    waits = Job(JobId("job_1"), rows[0].account_id, "job_1", JobRequest(argv=("true",)), JobState.QUEUED, 1)
    over = replace(waits, job_id=JobId("job_2"), group="job_2", state=JobState.FAILED, ended_at_ns=2)
    with unit(store) as uow:
        for row in rows:
            uow[ClusterRepository].add(row, None, BYTES[:32])
        for job in (waits, over):
            uow[JobRepository].add(job, None, BYTES[:32])
    with unit(store) as uow:
        assert uow[ClusterRepository].open_of(rows[0].account_id) == rows[:2]
        assert uow[JobRepository].living_of(rows[0].account_id) == [waits]
        assert not uow[ClusterRepository].open_of(AccountId("x")) and not uow[JobRepository].living_of(AccountId("x"))


def test_a_cluster_is_a_jobs_by_its_key_as_long_as_the_job_lives(store: Store) -> None:
    cluster = made.cluster(ClusterPhase.RUNNING)
    attempt = Attempt(cluster.cluster_id, 1)
    its = Job(JobId("job_1"), ACCOUNT, "job_1", JobRequest(argv=("true",)), JobState.RUNNING, 1, attempts=(attempt,))
    others = replace(cluster, cluster_id=ClusterId("cluster_2"))
    with unit(store) as uow:
        uow[JobRepository].add(its, None, BYTES[:32])
        uow[ClusterRepository].add(cluster, "job_1/1", BYTES[:32])
        uow[ClusterRepository].add(others, "job_1/2", BYTES[:32])
        uow[ClusterRepository].add(replace(cluster, cluster_id=ClusterId("cluster_3")), None, BYTES[:32])
        assert uow[JobRepository].living_of_cluster(cluster.cluster_id) == its
        for other in ("cluster_2", "cluster_3", "cluster_none"):
            assert uow[JobRepository].living_of_cluster(ClusterId(other)) is None
        uow[JobRepository].save(replace(its, state=JobState.SUCCEEDED, ended_at_ns=2))
        assert uow[JobRepository].living_of_cluster(cluster.cluster_id) is None


def test_a_resource_comes_back_and_its_number_is_given_once(store: Store) -> None:
    said: dict[str, Capability] = {"gpu": True, "gpu_count": 8, "gpu_type": TEXT, "memory_gb": 0.1}
    declared = Declared(
        resource_type=ResourceType.CLOUD,
        provider=TEXT,
        capabilities=said,
        supported_frameworks=("b", "a"),
        cost_per_hour_usd=32.77,
    )
    with unit(store) as uow:
        rows = uow[ResourceRepository]
        first, last = (rows.add(name, declared, LARGE) for name in ("b" * 128, "a"))
        assert (rows.get(first.resource_id), rows.all(), rows.count()) == (first, [first, last], 2)
        changed = replace(first, declared=replace(declared, status=ResourceStatus.BUSY), updated_at_ns=LARGE)
        rows.save(changed)
        rows.remove(last)
        assert rows.all() == [changed]
        assert rows.add("c", declared, 0).number > last.number
    with pytest.raises(IntegrityError), unit(store) as uow:
        uow[ResourceRepository].add("c", declared, 0)


def test_rules_and_quotas_come_back_and_what_is_held_is_counted_below_every_node(store: Store) -> None:
    rule = Rule(node_id="organisation_1", guarantee=LARGE, weight=3, is_borrowing=False, may_use_urgent=True)
    quota = Quota(node_id=ACCOUNT, level=NodeLevel.PROJECT, item=QuotaItem.GPUS, limit=LARGE, tier="h100")
    cluster, workload = replace(made.cluster(ClusterPhase.RUNNING), account_id=ACCOUNT), made.workload()
    with unit(store) as uow:
        account = Account(ACCOUNT, TEXT, frozenset(), 0, organisation_id="organisation_1")
        uow[AccountRepository].add(account)
        uow[AccountRepository].add(replace(account, id=AccountId("account_2"), name="other"))
        uow[RuleRepository].save(replace(rule, weight=1))
        uow[RuleRepository].save(rule)
        for limit in (1, LARGE):
            uow[QuotaRepository].save(replace(quota, limit=limit))
        uow[QuotaRepository].save(replace(quota, tier=""))
        uow[ClusterRepository].add(cluster, None, BYTES[:32])
        uow[WorkloadRepository].add(workload)
        uow[WorkloadRepository].add(replace(workload, workload_id=WorkloadId("workload_past"), is_released=True))
    with unit(store) as uow:
        assert uow[RuleRepository].get("organisation_1") == rule and uow[RuleRepository].list() == [rule]
        assert uow[QuotaRepository].of(["installation", ACCOUNT])[1:] == [quota]
        held = [HeldOfTier(cluster.tier, 1, cluster.price_per_hour, 1, workload.cpus, workload.memory_bytes)]
        for level, node_id in zip(LEVELS, ("installation", "organisation_1", ACCOUNT), strict=True):
            assert uow[ClusterRepository].held_below(level, node_id) == held
            assert uow[ClusterRepository].queued_below(level, node_id) == 0
            assert uow[JobRepository].waiting_below(level, node_id) == 0
        assert uow[ClusterRepository].held_below(NodeLevel.PROJECT, "account_2") == []
        uow[QuotaRepository].remove(ACCOUNT, QuotaItem.GPUS, "")
        assert uow[QuotaRepository].list() == [quota]
        uow[QuotaRepository].forget(ACCOUNT)
        uow[RuleRepository].remove("organisation_1")
        assert not uow[QuotaRepository].list() and not uow[RuleRepository].list()


def test_searches_and_buyers(store: Store) -> None:
    place = AttemptPlace(
        backend=TEXT,
        machine=TEXT,
        region=TEXT,
        zone=TEXT,
        is_spot=True,
        price_per_hour=Microcents(LARGE),
        currency="USD",
        purchase_id="purchase_1",
    )
    found = Try(number=1, place=place, offer_id=TEXT, state=TryState.BOOTING, said=TEXT, at_ns=LARGE, since_ns=LARGE)
    search = Search(
        entry_id="job_1",
        account_id=ACCOUNT,
        tries=(found,),
        tried=1,
        next_at_ns=LARGE,
        best_per_hour=Microcents(LARGE),
        priced_at_ns=LARGE,
    )
    other = Search(entry_id="job_2", account_id=AccountId("account_2"))

    def change(uow: UnitOfWork) -> None:
        searches, buyers = uow[SearchRepository], uow[BuyerRepository]
        for one in (other, replace(search, tries=()), search):
            searches.save(one)
        assert searches.get("job_1") == search
        assert searches.get("job_3") is None
        assert searches.of_ids(["job_1", "job_3"]) == {"job_1": search}
        assert searches.living_ids() == ["job_1", "job_2"]
        searches.save(replace(search, has_ended=True))
        assert (searches.living_ids(), searches.living_ids(ACCOUNT)) == (["job_2"], [])
        searches.forget(ACCOUNT)
        assert searches.get("job_1") is None
        mine = Buyer(backend="aws", account_id=ACCOUNT, per_day=Microcents(LARGE), created_at_ns=LARGE)
        more = replace(mine, backend="box", per_day=None, in_all=Microcents(1))
        theirs = replace(mine, account_id=AccountId("account_2"))
        for buyer in (more, theirs, replace(mine, per_day=None), mine):
            buyers.save(buyer)
        assert buyers.of_account(ACCOUNT) == [mine, more]
        assert sorted(buyers.of_backend("aws"), key=lambda one: one.account_id) == sorted(
            [mine, theirs], key=lambda one: one.account_id
        )
        assert (buyers.get("aws", ACCOUNT), buyers.get("none", ACCOUNT)) == (mine, None)
        buyers.remove("aws", ACCOUNT)
        buyers.remove(backend="box")
        assert (buyers.of_account(ACCOUNT), buyers.of_backend("aws")) == ([], [theirs])

    store.write_now(change, name="test")
