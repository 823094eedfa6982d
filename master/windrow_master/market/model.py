"""The values of the market: asks, offers, rentals and their lines, receipts as they came, transfers. Pure.

Money is in microcents, time in nanoseconds; wall times end in `_at_ns` and decide nothing but what a lease covers.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NewType

from windrow_proto.ids import AccountId, ClusterId, GpuUuid, HostId, ReceiptId, TransferId, WorkloadId
from windrow_proto.model import Isolation, SlotGrant
from windrow_proto.units import Bytes, Microcents

RentalId = NewType("RentalId", str)
LedgerAccount = NewType("LedgerAccount", str)
PROOF_ACCOUNT: Final = AccountId("account_proof")
"""The Master's own, which rents hosts to prove them: it has no token, so nobody signs in as it. Its test credits are
minted for this alone."""
PROOF_NAME: Final = "test rentals by the Master"
"""Its name, wherever people see it."""
NOTHING: Final = Microcents(0)

MINT: Final = LedgerAccount("mint:test")
"""The source of test money; the one account that may fall below zero."""
FEES: Final = LedgerAccount("platform:fees")


def account_of(account_id: AccountId) -> LedgerAccount:
    """The ledger account of a person or organisation."""
    return LedgerAccount(f"acct:{account_id}")


def hold_of(rental_id: RentalId) -> LedgerAccount:
    """The ledger account that keeps what a rental has set aside."""
    return LedgerAccount(f"hold:{rental_id}")


def receipt_of(rental_id: RentalId) -> ReceiptId:
    """The id of a rental's receipt: one of each, so the number is the same."""
    return ReceiptId("receipt_" + rental_id.removeprefix("rental_"))


def may_be_negative(account: LedgerAccount) -> bool:
    """Only the mint creates money."""
    return account == MINT


class PriceUnit(StrEnum):
    """The unit of a price per hour."""

    GPU = "gpu"
    PROCESSOR = "processor"


@dataclass(frozen=True, slots=True)
class Ask:
    """The price that an owner asks for an hour of a tier; account_id None is the operator's price for all who ask
    nothing."""

    account_id: AccountId | None
    tier: str
    price_per_hour: Microcents
    set_at_ns: int
    set_by: str


@dataclass(frozen=True, slots=True)
class Listing:
    """One slot of the fleet, as an offer counts it; memory of the GPU, or of the host for its processors. note: what
    there is to know of processes there; container_users: as of its host. cpus: processors of the host where the slot is
    its processors; else 0; cpus_free: of these, which no work has. name: of the card, as its driver says it; up_bps,
    down_bps: of the host's link as measured, None where it was not; card: the UUID of the card that it is, or is a part
    of; holders: who rents it, or part of it where it is processors."""

    host_id: HostId
    owner: AccountId
    tier: str
    is_gpu: bool
    is_free: bool
    simulated: bool
    runtimes: tuple[str, ...]
    memory_bytes: Bytes | None
    isolation: Isolation = Isolation.UNSPECIFIED
    share_milli: int = 1000
    note: str = ""
    container_users: str = ""
    cpus: int = 0
    cpus_free: int = 0
    name: str = ""
    region: str = ""
    up_bps: int | None = None
    down_bps: int | None = None
    is_verified: bool = False
    driver: str = ""
    card: GpuUuid | None = None
    holders: tuple[ClusterId, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """One tier as it can be had now. Simulated hosts make offers of their own and never mix with real ones. notes: what
    there is to know of processes on some of its hosts; container_users: as of the host that says least. on_one_host,
    free_on_one_host: the most GPUs, or where the tier is of processors the most processors, that one host has, and has
    free."""

    tier: str
    unit: PriceUnit
    simulated: bool
    free: int
    total: int
    hosts: int
    price_per_hour: Microcents
    suggestion: Microcents
    suggestion_reason: str
    runtimes: tuple[str, ...]
    min_memory_bytes: Bytes | None
    isolation: Isolation = Isolation.UNSPECIFIED
    notes: tuple[str, ...] = ()
    container_users: str = ""
    on_one_host: int = 0
    free_on_one_host: int = 0


class RentalState(StrEnum):
    """OPEN while it runs; ENDING from the wish to end until the last signed second is known; CLOSED is final."""

    OPEN = "open"
    ENDING = "ending"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Rental:
    """A rental of one account: one cluster at one frozen price.

    held: all that was ever set aside; charged: all that was ever posted; what is left of the hold is their difference.
    budget: the most that is ever charged, None: no limit. spenders: the ids of the tokens, or of the service account,
    whose spending it counts for beside its renter's.
    """

    rental_id: RentalId
    cluster_id: ClusterId
    cluster_name: str
    renter: AccountId
    tier: str
    price_per_hour: Microcents
    fee_permille: int
    simulated: bool
    state: RentalState
    opened_at_ns: int
    ended_at_ns: int | None = None
    end_reason: str = ""
    held: Microcents = NOTHING
    charged: Microcents = NOTHING
    balance_after: Microcents | None = None
    budget: Microcents | None = None
    spenders: tuple[str, ...] = ()

    @property
    def held_left(self) -> Microcents:
        return Microcents(self.held - self.charged)


@dataclass(frozen=True, slots=True)
class RentalLine:
    """The part of a rental that one host runs, and the running time that its receipts have proved so far.

    lease_from, lease_until: the window in which the Master let it run. seen: when a relay last brought a word of it.
    signed_ns: the longest running time that a valid receipt has named. runs_from_ns: the earliest that it can have
    started by the Master's own clock, None before its first receipt. cut_at_ns: nothing after it is charged, since its
    end was wished for. silent_ns: how long its host was not heard of, beyond what is charged of that; silent_since_ns:
    since when it is not.
    """

    workload_id: WorkloadId
    rental_id: RentalId
    host_id: HostId
    provider: AccountId
    price_per_hour: Microcents
    slots: tuple[SlotGrant, ...]
    lease_from_ns: int
    lease_until_ns: int
    seen_at_ns: int
    signed_ns: int = 0
    receipts: int = 0
    first_number: int | None = None
    last_number: int | None = None
    final_number: int | None = None
    started_at_ns: int | None = None
    end_reason: str = ""
    exit_code: int | None = None
    charged: Microcents = NOTHING
    fee_charged: Microcents = NOTHING
    runs_from_ns: int | None = None
    cut_at_ns: int | None = None
    silent_ns: int = 0
    silent_since_ns: int | None = None

    @property
    def is_final(self) -> bool:
        return self.final_number is not None


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """One signed receipt as it came; `sealed` is the evidence: the bytes the host signed, with its signature."""

    workload_id: WorkloadId
    number: int
    rental_id: RentalId
    host_id: HostId
    running_ns: int
    is_final: bool
    end_reason: str
    exit_code: int | None
    started_at_ns: int
    signed_at_ns: int
    received_at_ns: int
    sealed: bytes


class TransferKind(StrEnum):
    """MINT gives test money, HOLD sets aside, CHARGE pays the provider, FEE the platform, VOID gives the rest back.
    MOVE gives what an account has to another one, WRITE_OFF to the mint."""

    MINT = "mint"
    HOLD = "hold"
    CHARGE = "charge"
    FEE = "fee"
    VOID = "void"
    MOVE = "move"
    WRITE_OFF = "write_off"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One row of the ledger: it debits one account and credits another by the same amount > 0, for ever.

    The id follows from what the transfer is for: posting it twice is posting it once.
    """

    transfer_id: TransferId
    debit: LedgerAccount
    credit: LedgerAccount
    amount: Microcents
    kind: TransferKind
    rental_id: RentalId | None
    at_ns: int
    memo: str
