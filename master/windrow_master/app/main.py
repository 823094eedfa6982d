"""`windrow-master`: puts the Master together, serves people (HTTP, HTTPS) and Accesses (the trunk), and stops in order.

stop: streams end ─▶ trunk and HTTP close ─▶ the services' loops end ─▶ store drained, term ended, lock released
"""

import asyncio
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from windrow_master.accesses.failover_test.supervisor import SupervisorLine
from windrow_master.api.app import build_app
from windrow_master.api.event_tail import EventTail
from windrow_master.api.own_names import OwnNames
from windrow_master.api.proxied import Proxied
from windrow_master.api.rate_limits import Limits
from windrow_master.api.services import Figure
from windrow_master.app import logs, serving, standby, wiring
from windrow_master.app.clock import SteadyClock
from windrow_master.app.operator_certificate import LOOK_EVERY_NS, OperatorCertificate
from windrow_master.app.wiring import KeysUnusable, Master, Reached, Settings
from windrow_master.config import SQLITE_PREFIX, Config, default_data_dir, from_process
from windrow_master.hybrid import sweep
from windrow_master.identity.authority import Authority
from windrow_master.loops import again
from windrow_master.onboarding.join_line import is_loopback
from windrow_master.outgoing import Outgoing
from windrow_master.prices.shipped import price_book
from windrow_master.recovery import command as recovery
from windrow_master.recovery.last import way_out
from windrow_master.recovery.restore import check_whole
from windrow_master.store.bus import Bus, MemoryBus
from windrow_master.store.disk_space import DiskSpace, one_of_each_disk
from windrow_master.store.leadership import Candidate, Claim
from windrow_master.store.open_errors import DatabaseDamaged, own_folder
from windrow_master.store.store import Store
from windrow_master.telemetry.rebuild import service as rebuild
from windrow_proto.clock import BootClock, SystemRng
from windrow_proto.crashes import Crashes
from windrow_proto.data_directory import CliFile, DirectoryLock
from windrow_proto.disk import OsDisk
from windrow_proto.endure import endure
from windrow_proto.errors import Conflict, Fenced, StorageFailed, WindrowError
from windrow_proto.link_grpc import serve_trunk
from windrow_proto.master_process import EXIT_HELPLESS, HEALTH_PORT, HTTP_PORT, HTTPS_PORT, TRUNK_PORT
from windrow_proto.networks import Network, host_and_port
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import MIB, SECOND

LOOPBACK: Final = "127.0.0.1"
MAIL_EVERY_NS: Final = 2 * SECOND
KEEPING_EVERY_NS: Final = 10 * SECOND
"""How much of the audit log's end a thief of the database could rewrite unseen; a checkpoint reads only what is new."""
DRAIN_S: Final = 10.0
"""For what is already asked to be written when the Master stops."""
UNFIT_EVERY_NS: Final = SECOND // 4
CLUSTERS_EVERY_NS: Final = 5 * SECOND
M_ARENA_MAX: Final = -8
"""Of glibc's mallopt."""
ARENAS_MAX: Final = 2
"""Pools of memory that all threads share. Else there are eight for each processor, and each keeps what is freed."""
REBUILD: Final = "rebuild-history"
EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2

log = structlog.get_logger("windrow_master")


@dataclass(frozen=True, slots=True)
class Listeners:
    """The sockets that people come in by."""

    http: socket.socket
    https: socket.socket
    health: socket.socket
    trunk_port: int

    def close(self) -> None:
        """Close what was not handed over to a server."""
        for listener in (self.http, self.https, self.health):
            listener.close()


def open_listeners(config: Config, cli: CliFile) -> Listeners:
    """Bind HTTP and health on loopback, and HTTPS; find a port for the trunk: as given, else as last time, else a free
    one."""
    before = cli.ports()
    with ExitStack() as failing:

        def bound(host: str, port: int | None, name: str, usual: int) -> socket.socket:
            return failing.enter_context(serving.bind(host, port, before.get(name, usual)))

        http = bound(LOOPBACK, config.http_port, "http", HTTP_PORT)
        https = bound(config.listen, config.https_port, "https", HTTPS_PORT)
        health = bound(LOOPBACK, config.health_port, "health", HEALTH_PORT)
        # gRPC binds by itself, and would share a port that another Master has: it is found free here first.
        with serving.bind(config.listen, config.trunk_port, before.get("trunk", TRUNK_PORT)) as probe:
            listeners = Listeners(http, https, health, serving.port_of(probe))
        failing.pop_all()
    return listeners


def write_cli(config: Config, opened: Master, cli: CliFile, listeners: Listeners) -> None:
    """Tell the command line on this machine where the Master is, with a token of the first account."""
    record = cli.read()
    account = opened.identity.first_account()
    token = opened.identity.local_token(account, str(record.get("token") or "") or None)
    ports = {
        "http": serving.port_of(listeners.http),
        "https": serving.port_of(listeners.https),
        "trunk": listeners.trunk_port,
        "health": serving.port_of(listeners.health),
    }
    ca_path = config.data_dir / "identity" / "ca.pem"
    known = record.get("ports")
    cli.write(
        {
            **record,
            "url": f"http://{LOOPBACK}:{ports['http']}",
            "local_url": f"https://{host_and_port(_at_hand(config.listen), ports['https'])}",
            "https_url": opened.services.https_url,
            "health_url": f"http://{LOOPBACK}:{ports['health']}/healthz",
            "token": token,
            "ca_sha256": opened.identity.ca_sha256,
            "ca_pem": str(ca_path),
            "ports": {**(known if isinstance(known, dict) else {}), **ports},
            "pids": {**(record.get("pids") or {}), "master": os.getpid()},
        }
    )


def _https_url(config: Config, listeners: Listeners) -> str:
    return f"https://{host_and_port(config.public, serving.port_of(listeners.https))}"


def _at_hand(listen: str) -> str:
    """An address of this machine at which what listens there answers."""
    return LOOPBACK if listen in {"0.0.0.0", "::"} else listen


def open_bus(config: Config, https_url: str, store: Store, clock: Clock, rng: Rng, ca_sha256: str) -> Bus:
    """The bus to the other Masters of this market, or the one of this process."""
    name = f"master-{store.epoch}-{rng.random_bytes(4).hex()}"
    bus: Bus = MemoryBus(name, clock)
    if config.redis_url:
        # Loaded only where it is used: it takes a good part of what a Master needs to start.
        from windrow_master.store.bus_redis import RedisBus

        bus = RedisBus(config.redis_url, name, clock, rng, ca_sha256[:16])
    bus.announce({"role": "leader", "epoch": str(store.epoch), "url": https_url})
    return bus


def reached_at(
    config: Config, listeners: Listeners, clock: Clock, given: OperatorCertificate | None, authority: Authority
) -> Reached:
    """Return the addresses of this Master for people and Accesses, with its certificate, which it issues itself.
    given: the one that an operator has from elsewhere."""
    tls = authority.issue_master(serving.tls_key(config.data_dir / "identity"), _names(config), clock.wall_ns())
    trunk = host_and_port(config.public, listeners.trunk_port)
    own_pin = serving.pin_of(tls.certificate_pem)

    def pin() -> str:
        return (given.pin_for(config.public) if given else None) or own_pin

    return Reached(tls, _https_url(config, listeners), pin, (trunk,), lambda: pin() == own_pin)


def operator_certificate(config: Config, clock: Clock) -> OperatorCertificate | None:
    """Return the certificate that the operator has given, checked. Raises InvalidInput."""
    if config.tls_files is None:
        return None
    return OperatorCertificate(*config.tls_files, _names(config), clock)


def _names(config: Config) -> tuple[str, ...]:
    return serving.own_names(config.listen, config.public, config.names)


async def serve(config: Config, opened: Master, listeners: Listeners, given: OperatorCertificate | None) -> None:
    """Serve until a signal comes, then stop in order. given: the operator's certificate."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    services, tls = opened.services, opened.reached.tls
    assert tls is not None, "main gave it"
    names = OwnNames(_names(config))
    limits = Limits() if config.rate_limits else None
    app = Proxied(build_app(services, names=names, limits=limits), config.trusted_proxies)
    tail = EventTail(services.store, services.bus, services.broadcaster)
    tls_files = serving.write_tls(config.data_dir / "identity", tls)
    servers = _servers(app, listeners, tls_files, config.trusted_proxies, given)
    opened.services.health.figures.append(partial(_connection_figures, servers))
    closing = asyncio.Event()
    opened.fleet.start()
    if not is_loopback(opened.services.https_url):
        opened.services.wheelhouse.want()
    trunk = await serve_trunk(opened.hub, tls, host_and_port(config.listen, listeners.trunk_port))
    async with asyncio.TaskGroup() as group:
        loops = (
            opened.hub.run(),
            opened.fleet.run(),
            opened.telemetry.run(),
            *opened.watching(),
            opened.services.wheelhouse.run(),
            opened.services.packages.run(),
            opened.services.cli_wheels.run(),
            opened.services.bus.run(),
            tail.run(),
            opened.services.trials.run(),
            again(opened.clusters.tick, CLUSTERS_EVERY_NS, opened.services.clock, "clusters"),
            again(opened.audit.checkpoint, KEEPING_EVERY_NS, opened.services.clock, "audit"),
            again(opened.identity.asking.note_use, KEEPING_EVERY_NS, opened.services.clock, "tokens"),
            again(opened.identity.mail.turn, MAIL_EVERY_NS, opened.services.clock, "mail"),
            *([again(given.look, LOOK_EVERY_NS, opened.services.clock, "certificate")] if given else []),
        )
        keeping = [group.create_task(work) for work in loops]
        serving_tasks = [group.create_task(server.run_until(closing)) for server in servers.values()]
        watching = group.create_task(_until_unfit(opened, stop))
        endure()
        log.info("master_ready", epoch=opened.store.epoch, https_url=opened.services.https_url)
        await stop.wait()
        watching.cancel()
        log.info("master_stopping", epoch=opened.store.epoch)
        opened.services.broadcaster.close()
        closing.set()
        await trunk.stop()
        await asyncio.wait(serving_tasks)
        for task in keeping:
            task.cancel()
    await _end_well(config, opened)


async def _end_well(config: Config, opened: Master) -> None:
    """Write what is left to write; raises what the store ended with."""
    if opened.store.problem is not None:
        raise _ended(config, opened.store)
    async with asyncio.timeout(DRAIN_S):
        await opened.store.drain()
        await opened.audit.checkpoint()
    await opened.telemetry.catch_up()


def _ended(config: Config, store: Store) -> WindrowError:
    """Return why this Master stopped by itself. Whoever keeps this process up starts it again: it waits for the seat
    with others, or reads its disk anew."""
    kind = Fenced if config.is_shared else DatabaseDamaged if store.is_damaged else StorageFailed
    return kind(store.problem or "")


def _servers(
    app: serving.Application,
    listeners: Listeners,
    tls_files: tuple[Path, Path],
    proxies: Sequence[Network],
    given: OperatorCertificate | None,
) -> Mapping[str, serving.HttpServer]:
    """One server for each listener, by its name."""
    health = serving.OnlyHealth(app)
    return {
        "http": serving.HttpServer(app, listeners.http, None, proxies=proxies, has_sockets=True),
        "https": serving.HttpServer(
            *(app, listeners.https, tls_files),
            proxies=proxies,
            chooser=given.choose if given else None,
            has_sockets=True,
        ),
        "health": serving.HttpServer(health, listeners.health, None, serving.HEALTH_LIMITS),
    }


def _connection_figures(servers: Mapping[str, serving.HttpServer]) -> Iterable[Figure]:
    return [figure for name, server in servers.items() for figure in server.figures(name)]


async def _until_unfit(opened: Master, stop: asyncio.Event) -> None:
    """Stop this Master when it may write no more, overtaken or on a failed disk: what it says is old from then on."""
    while opened.store.problem is None:
        await opened.services.clock.sleep_ns(UNFIT_EVERY_NS)
    log.error("master_unfit", epoch=opened.store.epoch, error=opened.store.problem)
    stop.set()


async def stand_by(config: Config, listeners: Listeners, given: OperatorCertificate | None) -> Claim | None:
    """Wait for the leader's seat, answering 503 meanwhile; None when a signal says stop."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    holder = f"{os.uname().nodename}/{os.getpid()}"
    address = _https_url(config, listeners)
    candidate = await asyncio.to_thread(Candidate, config.database, BootClock(), holder, address)
    app = standby.StandbyApp()
    # A server closes the socket it was given: the listeners themselves are for when this Master leads.
    servers = [serving.HttpServer(app, listener.dup(), None) for listener in (listeners.http, listeners.health)]
    tls_files = serving.present_tls(config.data_dir / "identity")
    if tls_files is not None:
        chooser = given.choose if given else None
        servers.append(serving.HttpServer(app, listeners.https.dup(), tls_files, chooser=chooser))
    claim = await standby.wait(candidate, app, servers, stop)
    if claim is None:
        candidate.close()
    return claim


def run(config: Config, crashes: Crashes) -> None:
    """One Master, from its lock, or its wait for the seat, to its end."""
    os.umask(0o077)
    log.info("master_starting", pid=os.getpid(), **config.printable())
    lock = _locked(config)
    try:
        check_whole(config.data_dir)
        clock = SteadyClock(BootClock(), config.accept_clock)
        disk_space = disk_space_of(config, clock)
        disk_space.look_before_start()
        given = operator_certificate(config, clock)
        cli = CliFile(config.data_dir / "cli.json")
        listeners = open_listeners(config, cli)
        try:
            opened = _lead(config, listeners, clock, disk_space, lock, given)
            if opened is None:
                return
            opened.services.health.figures.append(partial(logs.figures, crashes))
            opened.services.health.conditions.append(partial(logs.conditions, crashes))
            if given is not None:
                opened.services.health.conditions.append(given.conditions)
            try:
                write_cli(config, opened, cli, listeners)
                asyncio.run(serve(config, opened, listeners, given))
            finally:
                opened.close()
        finally:
            listeners.close()
    finally:
        if lock is not None:
            lock.release()
        log.info("master_stopped", pid=os.getpid())


def _locked(config: Config) -> DirectoryLock | None:
    """This data directory's lock, before anything else is touched; None where the database says who leads."""
    if config.is_shared:
        return None
    own_folder(config.data_dir)
    log.info("master_locking", pid=os.getpid(), waits=config.waits)
    # All that a start needs is loaded by now: who waits here leads within a second of its turn.
    return DirectoryLock(config.data_dir, waits=config.waits)


def disk_space_of(config: Config, clock: Clock) -> DiskSpace:
    """Return the watcher of the disks of the log and, where it is a file, of the database."""
    database = config.database.removeprefix(SQLITE_PREFIX)
    folders = [config.data_dir] if config.is_shared else [config.data_dir, Path(database).parent]
    for folder in folders:
        own_folder(folder)
    return DiskSpace(OsDisk(), one_of_each_disk(folders), clock)


def _lead(
    config: Config,
    listeners: Listeners,
    clock: SteadyClock,
    disk_space: DiskSpace,
    lock: DirectoryLock | None,
    given: OperatorCertificate | None,
) -> Master | None:
    """This Master, once it may lead; None when it is told to stop before that."""
    https_url = _https_url(config, listeners)
    settings = Settings(
        reached_at=partial(reached_at, config, listeners, clock, given),
        make_bus=partial(open_bus, config, https_url),
        history=config.history,
        artefacts=config.artefacts,
        retention=config.retention,
        disk_space=disk_space,
        acceptance_tests=config.proofs,
        measure_cap_bytes=config.measure_mib * MIB,
        supervisor=None if config.supervisor_fd is None else SupervisorLine(config.supervisor_fd),
        trusts_local_user=config.trusts_local_user,
        price_book=partial(price_book, config.prices),
        mail=config.mail,
        outgoing=partial(Outgoing, allowed=config.egress_allow),
    )
    if not config.is_shared:
        return wiring.build(config.data_dir, clock, SystemRng(), settings, database=config.database, lock=lock)
    while True:
        claim = asyncio.run(stand_by(config, listeners, given))
        if claim is None:
            return None
        try:
            return wiring.build(config.data_dir, clock, SystemRng(), settings, claim=claim)
        except Conflict as error:
            log.info("seat_taken_by_another", error=str(error))


def main(arguments: Sequence[str] | None = None) -> None:
    """The daemon's entry point: exits 0 after an orderly stop, 1 with a sentence when it cannot run."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == [REBUILD]:
        sys.exit(rebuild.main(words[1:], default_data_dir()))
    if words[:1] and words[0] in recovery.NAMES:
        sys.exit(recovery.main(words))
    if words[:1] == [sweep.NAME]:
        sys.exit(sweep.main(words[1:]))
    try:
        config = from_process(words)
    except WindrowError as error:
        print(error.detail, file=sys.stderr)
        sys.exit(EXIT_USAGE)
    with suppress(OSError, AttributeError):  # another C library has no such pools
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS_MAX)
    crashes = logs.set_up(config.log_level)
    try:
        run(config, crashes)
    except (DatabaseDamaged, KeysUnusable) as error:
        # Nothing is better after another start: whoever keeps this process up waits with it.
        log.error("master_failed", error=f"{error.detail} {way_out(config.data_dir)}")
        sys.exit(EXIT_HELPLESS)
    except WindrowError as error:
        log.error("master_failed", error=str(error))
        sys.exit(EXIT_FAILURE)


if __name__ == "__main__":
    main()
