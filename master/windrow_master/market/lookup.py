"""Answers other packages that ask for rentals and hold no service of the market."""

from windrow_master.market.model import Rental, RentalId
from windrow_master.market.repository import RentalRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, ClusterId, HostId
from windrow_proto.units import Microcents


def renter_of(uow: UnitOfWork, rental_id: RentalId) -> AccountId | None:
    """The account that pays for a rental; None: there is no such rental."""
    rental = uow[RentalRepository].get(rental_id)
    return rental.renter if rental is not None else None


def name_of(uow: UnitOfWork, rental_id: RentalId) -> str | None:
    """The name of the machine or cluster that a rental is for; None: there is no such rental, or it has none."""
    rental = uow[RentalRepository].get(rental_id)
    return (rental.cluster_name or None) if rental is not None else None


def on_host(uow: UnitOfWork, cluster_id: ClusterId, host_id: HostId) -> list[RentalId]:
    """The rentals of a cluster that have had something on a host, the first one first."""
    rentals = uow[RentalRepository]
    found = [rental.rental_id for rental in rentals.of_cluster(cluster_id)]
    return [one for one in found if any(line.host_id == host_id for line in rentals.lines([one]))]


def unsettled(uow: UnitOfWork, account_id: AccountId) -> int:
    """The number of rentals that an account pays for, or is paid for, and that are not closed: receipts may come."""
    rentals = uow[RentalRepository]
    return sum(
        one.renter == account_id or any(line.provider == account_id for line in rentals.lines([one.rental_id]))
        for one in rentals.live()
    )


def open_of(uow: UnitOfWork, cluster_id: ClusterId) -> Rental | None:
    """The rental of a cluster, or of a run, that is not closed."""
    return next(iter(uow[RentalRepository].live_of_cluster(cluster_id)), None)


def has_none(uow: UnitOfWork, cluster_id: ClusterId) -> None:
    """There is no rental yet of a cluster whose id was minted now: nobody need ask the database."""
    uow[RentalRepository].has_none(cluster_id)


def charged(uow: UnitOfWork, cluster_id: ClusterId) -> Microcents:
    """The charges of a cluster so far, for all its rentals together."""
    return Microcents(sum(rental.charged for rental in uow[RentalRepository].of_cluster(cluster_id)))
