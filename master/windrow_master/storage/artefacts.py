"""Artefacts of accounts: sealed before they are stored, counted against a quota, and gone when their time is over.

put    seal ──▶ object ──▶ row (quota checked again, an older one of the name replaced) ──▶ the older object deleted
delete row ──▶ object      A crash between two steps leaves an object without a row: the hourly sweep takes it away.

The key of each object is new, and kept sealed by the account's key, which comes from one key of this Master's
(`artefacts.key` beside the other keys; without it no artefact can be read, so back it up with them).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from windrow_master.clusters.service import ClusterService
from windrow_master.identity.model import Principal
from windrow_master.loops import again, ends_alone
from windrow_master.storage.artefact_repository import ArtefactRepository
from windrow_master.storage.folder_store import FolderStore
from windrow_master.storage.messages import KeptByJobs
from windrow_master.storage.model import ARTEFACT_BYTES_MAX, Artefact, ObjectKey, Usage, object_key
from windrow_master.storage.object_store import ObjectStore, capped
from windrow_master.storage.s3_store import S3Settings, S3Store
from windrow_master.storage.sealing import Tally, opened, sealed
from windrow_master.storage.uploads import QUOTA_BYTES, Uploads
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_master.store.disk_space import DiskSpace
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.checkpoints import file_name
from windrow_proto.data_keys import DataKey
from windrow_proto.errors import InvalidInput, NotFound, TooLarge, WindrowError
from windrow_proto.frames import SALT_BYTES, Sealer, sealed_size
from windrow_proto.ids import AccountId, ClusterId, mint
from windrow_proto.keys import save_private
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import DAY, GIB, HOUR

log = structlog.get_logger(__name__)

ARTEFACTS_MAX: Final = 10_000
"""Of one account."""
KEEP_NS: Final = 30 * DAY
"""How long one is kept where nobody says otherwise."""
SWEEP_NS: Final = HOUR
LOOSE_NS: Final = 24 * HOUR
"""Before an object without a row is swept away: its upload may still be under way."""
SWEEP_MAX: Final = 1000
"""Rows of one step of the sweep."""
ROOT: Final = "artefact"
MINT_BYTES: Final = 10

Owns = Callable[[Principal, str], Awaitable[AccountId]]
"""Finds the account of the owner with this id. Raises NotFound where it is not the asker's own."""


class ArtefactService:
    """Artefacts, for routes and for the packages that make some. Other kinds of owners are added by `add_owner`."""

    def __init__(
        self,
        store: Store,
        objects: ObjectStore,
        key: DataKey,
        clusters: ClusterService,
        clock: Clock,
        rng: Rng,
        uploads: Uploads,
    ) -> None:
        self.objects, self.uploads = objects, uploads
        self._store, self._key, self._clock, self._rng = store, key, clock, rng

        async def of_cluster(principal: Principal, owner_id: str) -> AccountId:
            return (await clusters.get_own(principal, ClusterId(owner_id))).cluster.account_id

        async def of_account(principal: Principal, owner_id: str) -> AccountId:
            if owner_id != principal.account_id:
                raise NotFound("Artefacts of another account are not shown.", subject=owner_id)
            return principal.account_id

        self._owners: dict[str, Owns] = {"cluster": of_cluster, "account": of_account}

    def add_owner(self, kind: str, owns: Owns) -> None:
        """Let another kind of thing have artefacts."""
        self._owners[kind] = owns

    @classmethod
    def open(
        cls,
        store: Store,
        data_dir: Path,
        clusters: ClusterService,
        clock: Clock,
        rng: Rng,
        settings: S3Settings | None = None,
        disk_space: DiskSpace | None = None,
    ) -> "ArtefactService":
        """With the key that lies beside the Master's others, made if need be. settings: None: a folder of data_dir,
        whose disks `disk_space` watches."""
        admit = _anything if disk_space is None or settings is not None else disk_space.admit_upload
        objects = FolderStore(data_dir / "artefacts", admit) if settings is None else S3Store(settings)
        uploads = Uploads(admit)
        return cls(store, objects, root_key(data_dir / "identity"), clusters, clock, rng, uploads)

    # --- for routes ---------------------------------------------------------------------------------------------------

    async def put(
        self,
        principal: Principal,
        owner: tuple[str, str],
        name: str,
        body: AsyncIterator[bytes],
        keep_ns: int | None = KEEP_NS,
        size_bytes: int | None = None,
    ) -> Artefact:
        """Store what comes under this name, in place of an older one. Nothing is changed unless all of it came.

        keep_ns: how long; None: for ever. size_bytes: how much is announced. Raises TooLarge beyond ARTEFACT_BYTES_MAX
        or what is left of the quota beside what is on its way, DiskFull.
        """
        account_id = await self._owner(principal, owner)
        _, used_bytes = await self._store.read(lambda uow: taken(uow, account_id))
        with self.uploads.begin(account_id, used_bytes, size_bytes) as upload:
            return await self.put_for(account_id, owner, name, upload.pieces(body), keep_ns)

    async def get(
        self, principal: Principal, owner: tuple[str, str], name: str
    ) -> tuple[Artefact, AsyncIterator[bytes]]:
        """One and its bytes. Raises NotFound; BadProof, in the middle, where the store gives back something else."""
        await self._owner(principal, owner)
        artefact = await self._store.read(lambda uow: uow[ArtefactRepository].get(*owner, name))
        if artefact is None:
            raise NotFound("There is no such artefact. List yours: windrow artefact ls", subject=name[:64])
        key = self._of(artefact.account_id).unwrap(artefact.wrapped_key, artefact.object_key)
        blocks = await self.objects.get(artefact.object_key)
        return artefact, opened(key, artefact.object_key, blocks)

    async def list(
        self, principal: Principal, owner: tuple[str, str] | None, before: str | None, limit: int
    ) -> Sequence[Artefact]:
        """The asker's own, the latest first."""
        if owner is not None:
            await self._owner(principal, owner)
        return await self._store.read(
            lambda uow: uow[ArtefactRepository].page(principal.account_id, owner, before, limit)
        )

    async def usage(self, principal: Principal) -> Usage:
        """Return the space that the asker's artefacts take."""
        count, size = await self._store.read(lambda uow: taken(uow, principal.account_id))
        return Usage(count, size, QUOTA_BYTES)

    async def delete(self, principal: Principal, owner: tuple[str, str], name: str) -> None:
        """Remove one; NotFound where there is none."""
        await self._owner(principal, owner)

        def remove(uow: UnitOfWork) -> Artefact:
            found = uow[ArtefactRepository].get(*owner, name)
            if found is None:
                raise NotFound("There is no such artefact. List yours: windrow artefact ls", subject=name[:64])
            uow[ArtefactRepository].remove(found.artefact_id)
            uow.audit(principal.actor, "artefact.delete", found.artefact_id, "asked for", _fields(found))
            return found

        await self._drop((await self._store.write(remove, name="delete_artefact")).object_key)

    # --- for packages ------------------------------------------------------------------------------------------------

    async def put_for(
        self,
        account_id: AccountId,
        owner: tuple[str, str],
        name: str,
        body: AsyncIterator[bytes],
        keep_ns: int | None = KEEP_NS,
    ) -> Artefact:
        """The same for a package that knows whose it is."""
        file_name(name)
        self._store.admit()
        used = await self._store.read(lambda uow: taken(uow, account_id))
        cap = self._room_for(used, 0)
        artefact_id, data_key, tally = self._minted(), DataKey.generate(), Tally()
        key = object_key(f"{ROOT}/{account_id}/{artefact_id}")
        salt = self._rng.random_bytes(SALT_BYTES)
        blocks = sealed(Sealer(data_key, key, salt), capped(body, cap), tally)
        await self.objects.put(key, blocks, sealed_size(cap))
        wrapped = self._of(account_id).wrap(data_key, key)

        def write(uow: UnitOfWork) -> tuple[Artefact, Artefact | None]:
            older = uow[ArtefactRepository].get(*owner, name)
            if older is not None:
                uow[ArtefactRepository].remove(older.artefact_id)
            self._room_for(taken(uow, account_id), tally.size_bytes)
            now_ns = uow.now_wall_ns
            expires_ns = None if keep_ns is None else now_ns + keep_ns
            made = Artefact(
                *(artefact_id, account_id, *owner, name, key, wrapped),
                *(tally.size_bytes, tally.digest.hexdigest(), now_ns, expires_ns),
            )
            uow[ArtefactRepository].add(made)
            return made, older

        try:
            made, older = await self._store.write(write, name="put_artefact")
        except BaseException:
            await asyncio.shield(self._drop(key))
            raise
        if older is not None:
            await self._drop(older.object_key)
        return made

    def account_key(self, account_id: AccountId) -> DataKey:
        """Return the key that seals the data keys of this account's checkpoints."""
        return self._of(account_id)

    async def run(self) -> None:
        """Sweep, now and every hour, until cancelled."""
        is_checked = False

        async def turn() -> None:
            nonlocal is_checked
            if not is_checked and isinstance(self.objects, FolderStore | S3Store):
                await self.objects.check()
                is_checked = True
            await self.sweep()

        await again(turn, SWEEP_NS, self._clock, "artefacts")

    async def sweep(self) -> tuple[int, int]:
        """Remove what has expired, and objects that belong to nothing; returns how many of each."""

        def expire(uow: UnitOfWork) -> Sequence[Artefact]:
            over = uow[ArtefactRepository].expired(uow.now_wall_ns, SWEEP_MAX)
            gone = []
            for one in over:
                with ends_alone("artefact_expiry", artefact=one.artefact_id), uow.attempt():
                    uow[ArtefactRepository].remove(one.artefact_id)
                    uow.audit("master", "artefact.expire", one.artefact_id, "its time is over", _fields(one))
                    gone.append(one)
            return gone

        over = await self._store.write(expire, name="expire_artefacts")
        for one in over:
            with ends_alone("artefact_expiry", artefact=one.artefact_id):  # swept as a loose object later
                await self._drop(one.object_key)
        return len(over), await self._sweep_loose()

    async def _sweep_loose(self) -> int:
        count, after = 0, None
        while True:
            page = await self.objects.list(f"{ROOT}/", after)
            now_ns = self._clock.wall_ns()
            old = [one.key for one in page.objects if now_ns - one.modified_ns >= LOOSE_NS]
            known = await self._store.read(partial(_known, old))
            for key in old:
                if key not in known:
                    with ends_alone("object_sweep", object=key):
                        await self._drop(key)
                        count += 1
            if (after := page.after) is None:
                return count

    # --- inside -------------------------------------------------------------------------------------------------------

    async def _owner(self, principal: Principal, owner: tuple[str, str]) -> AccountId:
        owns = self._owners.get(owner[0])
        if owns is None:
            raise InvalidInput(
                f"The owner of an artefact is one of: {', '.join(sorted(self._owners))}.", subject=owner[0][:64]
            )
        return await owns(principal, owner[1])

    def _room_for(self, used: tuple[int, int], size_bytes: int) -> int:
        """The most bytes that one more artefact may have. Raises TooLarge."""
        count, taken = used
        room = min(ARTEFACT_BYTES_MAX, QUOTA_BYTES - taken)
        if room < size_bytes or room <= 0:
            raise TooLarge(
                f"Your artefacts, volumes and jobs may take {QUOTA_BYTES // GIB} GiB. Delete some: windrow artefact rm"
            )
        if count >= ARTEFACTS_MAX:
            raise TooLarge(f"An account has at most {ARTEFACTS_MAX} artefacts; delete some: windrow artefact rm")
        return room

    def _of(self, account_id: AccountId) -> DataKey:
        return self._key.below(f"account/{account_id}")

    def _minted(self) -> str:
        return mint("artefact", self._clock.wall_ns(), self._rng.random_bytes(MINT_BYTES))

    async def _drop(self, key: ObjectKey) -> None:
        """Delete these objects; the sweep finds those that cannot be deleted now."""
        try:
            await self.objects.delete(key)
        except WindrowError as error:
            log.warning("object_not_deleted", key=key, detail=error.detail)


def _anything(more_bytes: int) -> None:
    """No disk of this Master's is watched, or none takes what is uploaded."""


def taken(uow: UnitOfWork, account_id: AccountId) -> tuple[int, int]:
    """Return how many artefacts an account has, and what counts against its quota: their bytes, those of its
    volumes, and those of the folders, logs and files that its jobs keep."""
    count, size = uow[ArtefactRepository].used(account_id)
    return count, size + uow[VolumeRepository].used(account_id) + uow.ask(KeptByJobs(account_id))


def _known(keys: Sequence[ObjectKey], uow: UnitOfWork) -> frozenset[ObjectKey]:
    return uow[ArtefactRepository].known(keys)


ARTEFACTS_KEY: Final = "artefacts.key"


def root_key(directory: Path) -> DataKey:
    """The key above all data keys, made at the first start; beside the Master's other keys (0700)."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / ARTEFACTS_KEY
    if not path.exists():
        save_private(path, DataKey.generate().raw)
    return DataKey(path.read_bytes())


def _fields(artefact: Artefact) -> dict[str, str]:
    return {"owner": f"{artefact.owner_kind}/{artefact.owner_id}", "name": artefact.name}
