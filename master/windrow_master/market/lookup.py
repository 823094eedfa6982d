"""Answers other packages that ask for rentals; only this package writes them."""

from collections.abc import Sequence

from windrow_master.market.model import Rental, RentalId, RentalLine
from windrow_master.market.repository import RentalRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.units import Microcents


def find_rental(uow: UnitOfWork, rental_id: RentalId) -> Rental | None:
    """One rental, if it is here."""
    return uow[RentalRepository].get(rental_id)


def renter_of(uow: UnitOfWork, rental_id: RentalId) -> AccountId | None:
    """The account that pays for a rental; None: there is no such rental."""
    rental = find_rental(uow, rental_id)
    return rental.renter if rental is not None else None


def charged(uow: UnitOfWork, rental_id: RentalId) -> Microcents:
    """The charges of a rental so far; 0 where it never began."""
    rental = find_rental(uow, rental_id)
    return rental.charged if rental is not None else Microcents(0)


def lines_of(uow: UnitOfWork, rental_id: RentalId) -> Sequence[RentalLine]:
    """The lines of one rental, one for each workload."""
    return uow[RentalRepository].lines([rental_id])


def rentals_of(uow: UnitOfWork, cluster_id: ClusterId) -> Sequence[Rental]:
    """The rentals of one cluster, the oldest first."""
    return uow[RentalRepository].of_cluster(cluster_id)


def live_rentals_of(uow: UnitOfWork, cluster_id: ClusterId) -> Sequence[Rental]:
    """Those of them that are not closed."""
    return uow[RentalRepository].live_of_cluster(cluster_id)


def clusters_with_live_rentals(uow: UnitOfWork) -> Sequence[ClusterId]:
    """The clusters with a rental that is not closed."""
    return uow[RentalRepository].live_clusters()
