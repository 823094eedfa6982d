"""Joins a Master and stays a member: the certificate is renewed at half of its life, by the host's own key.

The calls themselves are windrow_proto.enrol's; they block and are made on a thread here.
"""

import asyncio
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from windrow_agent.core.discovery import Place, parse_place
from windrow_agent.link.access_connector import Judge
from windrow_agent.threads import Runner
from windrow_proto import enrol
from windrow_proto.enrol import Identity, IdentityFolder
from windrow_proto.errors import Banned, InvalidInput, WindrowError
from windrow_proto.ids import NO_ID, HostId, resembles_id
from windrow_proto.keys import TlsIdentity, certificate_facts, save_private
from windrow_proto.messages import RegionMap
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import MINUTE, SECOND
from windrow_proto.wire_link import decode_region_map

log = structlog.get_logger()

CHECK_NS: Final = MINUTE
RETRY_NS: Final = 30 * SECOND
RETRY_MAX_NS: Final = 30 * MINUTE
CALL_S: Final = 20.0
REGIONS_CALL_S: Final = 5.0
REGIONS_FILE: Final = "regions.bin"
SEEDS_FILE: Final = "seeds.txt"


def join(data_dir: Path, master_url: str, token: str, name: str = "", simulated: bool = False) -> Identity:
    """Make this folder's host a member. Blocking. name: empty for the machine's own, which may be any.

    Raises InvalidInput if it already is one or the name is like an id, or what `enrol` raises.
    """
    folder = IdentityFolder(data_dir / "identity")
    if folder.exists():
        known = folder.load()
        raise InvalidInput(
            f"This host is {known.subject_id} at {known.master_url} already. To join anew: windrow-agent uninstall.",
            subject=known.subject_id,
        )
    if resembles_id(name):
        raise InvalidInput(f"--name {name}: a host's name is {NO_ID}.", subject="name")
    request = enrol.JoinRequest("host", name or enrol.host_name(), simulated)
    return enrol.join(folder, master_url, token, request, CALL_S)


def save_seeds(data_dir: Path, seeds: Sequence[Place]) -> None:
    """Keep where this host looks for an Access while none of its map answers, a line each."""
    save_private(data_dir / SEEDS_FILE, "".join(f"{seed}\n" for seed in seeds).encode())


def load_seeds(data_dir: Path) -> tuple[Place, ...]:
    """Reads the places that `save_seeds` wrote; a place that cannot be read is left out, and is logged."""
    path = data_dir / SEEDS_FILE
    try:
        return tuple(parse_place(line) for line in path.read_text(encoding="ascii").split())
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, InvalidInput) as error:
        log.warning("seeds_unreadable", path=str(path), detail=str(error))
        return ()


class Membership:
    """One host's present identity; every reader asks anew."""

    def __init__(self, data_dir: Path, clock: Clock, rng: Rng, runner: Runner, copies: Sequence[str] = ()) -> None:
        """copies: URLs beside the Master's own where its signed map of Accesses lies. Raises InvalidInput where there
        is no whole identity."""
        self.folder = IdentityFolder(data_dir / "identity")
        self.identity = self.folder.load()
        self._regions_path = data_dir / REGIONS_FILE
        self._clock, self._rng, self._runner, self._copies = clock, rng, runner, tuple(copies)
        self._jitter = rng.uniform()

    @property
    def host_id(self) -> HostId:
        """The id of this host."""
        return HostId(self.identity.subject_id)

    def tls(self) -> TlsIdentity:
        """For a dialer."""
        return self.identity.tls

    def generation(self) -> int:
        """Of the present certificate."""
        return self.identity.generation

    def regions(self) -> RegionMap:
        """The newest map known: what joining or renewal brought, or what a Master sent since."""
        found = [RegionMap(0, ())]
        if self.identity.region_map:
            found.append(decode_region_map(self.identity.region_map))
        try:
            found.append(decode_region_map(self._regions_path.read_bytes()))
        except (OSError, WindrowError):
            log.debug("no_saved_regions")
        return max(found, key=lambda regions: regions.version)

    def save_regions(self, body: bytes) -> None:
        """Keep a newer map; it came under the Master's signature."""
        save_private(self._regions_path, body)

    async def newer_regions(self, judge: Judge) -> None:
        """Show the judge maps that are newer than the one known, of the Master this host joined and of copies; keep the
        first that it takes. Never raises."""
        for url in (self.identity.master_url, *self._copies):
            identity = self.identity
            fetch = functools.partial(
                enrol.fetch_regions, url, identity.tls.ca_pem, identity.master_public, REGIONS_CALL_S
            )
            try:
                body = await self._runner.call(fetch)
                regions = decode_region_map(body)
                if regions.version > self.regions().version and await judge(regions):
                    log.info("regions_fetched", url=url, accesses=len(regions.points))
                    await self._runner.call(functools.partial(self.save_regions, body))
                    return
            except (WindrowError, OSError) as error:
                log.info("regions_not_fetched", url=url, detail=str(error))

    def due_ns(self) -> int:
        """Wall time from which the certificate should be renewed: half of its life, and up to a tenth later."""
        facts = certificate_facts(self.identity.tls.certificate_pem)
        life_ns = facts.not_after_ns - facts.not_before_ns
        return facts.not_before_ns + life_ns // 2 + int(self._jitter * life_ns / 10)

    async def keep(self, is_refused: Callable[[], bool], on_renewed: Callable[[], None]) -> None:
        """Renew whenever it is due or an Access refused the certificate, with growing pauses; until cancelled."""
        pause_ns = RETRY_NS
        while True:
            if self._clock.wall_ns() < self.due_ns() and not is_refused():
                await self._clock.sleep_ns(CHECK_NS)
                continue
            try:
                renew = functools.partial(enrol.renew, self.folder, self._clock.wall_ns(), CALL_S)
                self.identity = await self._runner.call(renew)
                log.info("certificate_renewed", host_id=self.host_id, generation=self.identity.generation)
                on_renewed()
                pause_ns = RETRY_NS
                await self._clock.sleep_ns(RETRY_NS)
            except Banned as error:
                log.error("renewal_refused", detail=error.detail)
                await self._clock.sleep_ns(RETRY_MAX_NS)
            except WindrowError as error:
                log.warning("renewal_failed", code=error.code, detail=error.detail)
                await self._clock.sleep_ns(int(pause_ns * (0.5 + self._rng.uniform())))
                pause_ns = min(RETRY_MAX_NS, 2 * pause_ns)


async def join_in_thread(data_dir: Path, master_url: str, token: str, name: str, simulated: bool) -> Identity:
    """`join`, awaited."""
    return await asyncio.to_thread(join, data_dir, master_url, token, name, simulated)
