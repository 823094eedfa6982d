"""The agent's entry point: parses the command line, then joins, runs, simulates, ends, examines or uninstalls. The only
place that wires."""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import IO, Final

import structlog

from windrow_agent.app import memory_trim, own_metrics
from windrow_agent.app.capabilities import drop_ambient_capabilities
from windrow_agent.app.config import Config, parse, read_token, without_proxies
from windrow_agent.app.service import AgentService, Parts
from windrow_agent.core import egress
from windrow_agent.core.discovery import MapCopy, Place, Seed
from windrow_agent.core.doctor import Level
from windrow_agent.core.image_requirements import driver_of
from windrow_agent.core.sharing import share_of
from windrow_agent.gpu.combined import CombinedGpus
from windrow_agent.gpu.nvml import NvmlBackend
from windrow_agent.gpu.sysfs import SysfsGpus
from windrow_agent.host import benchmarks
from windrow_agent.host.metadata_service import MetadataService
from windrow_agent.host.psutil_reader import PsutilHost
from windrow_agent.host.simulated import FAULTS, Fault, SimulatedHost
from windrow_agent.link.access_connector import Look, look_nowhere
from windrow_agent.link.membership import Membership, join, join_in_thread, load_seeds, save_seeds
from windrow_agent.link.resolver import Resolver
from windrow_agent.link.spool import SpoolCaps
from windrow_agent.report.bought_host import BoughtHost
from windrow_agent.report.bought_host import words_of as bought_words
from windrow_agent.report.sampler import Sampler
from windrow_agent.runtimes import docker_socket, egress_firewall
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_agent.runtimes.mps import NvidiaMps
from windrow_agent.runtimes.port import Runtime
from windrow_agent.runtimes.process_mps import MpsProcessRuntime
from windrow_agent.runtimes.shim import boot_id
from windrow_agent.runtimes.simulated import SimulatedMachine, SimulatedRuntime
from windrow_agent.storage.disk_space import BALLAST_BYTES
from windrow_agent.threads import Runner, SharedRunner, ThreadRunner
from windrow_proto import scrape
from windrow_proto.clock import BootClock, SystemRng
from windrow_proto.conditions import ConditionCode
from windrow_proto.crashes import Crashes
from windrow_proto.disk import OsDisk
from windrow_proto.errors import Conflict, InvalidInput, WindrowError
from windrow_proto.ids import HostId
from windrow_proto.link_grpc import GrpcDialer
from windrow_proto.logs import configure_log
from windrow_proto.model import Benchmark
from windrow_proto.ports import Rng
from windrow_proto.sealed import SealKey
from windrow_proto.units import MIB, SECOND
from windrow_proto.volumes import VOLUMES

log = structlog.get_logger()

SIMULATED_DISK_THREADS: Final = 4
JOINS_AT_ONCE: Final = 4
DIALS_AT_ONCE: Final = 64
"""Of the simulated hosts of a process, which have one machine's processors: more would all be too late together."""
FAULT_AFTER_S: Final = 20.0
"""Time until a simulated host breaks; by then the market lists it as a working host."""
RESTART_ADVISED_CHECK_S: Final = 30.0
EXIT_RESTART: Final = 75
"""Asks a supervisor to start the agent again at once (EX_TEMPFAIL): the driver's library was replaced."""
MARKS: Final = {Level.OK: "ok  ", Level.NOTE: "note", Level.FIX: "FIX "}
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def agent_version() -> str:
    """Of the installed distribution, by the name of its folder (PEP 427): `importlib.metadata` loads much for it."""
    for name in ("windrow_agent", "windrow_all"):
        for folder in filter(None, sys.path):
            for found in sorted(Path(folder).glob(f"{name}-*.dist-info")):
                return found.name.removeprefix(f"{name}-").removesuffix(".dist-info")
    return "0"


@contextlib.contextmanager
def only_agent(data_dir: Path) -> Iterator[None]:
    """One agent per folder; raises Conflict while another has it. The kernel lets go of it however we end."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = data_dir / "agent.lock"
    with _locked(path):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _locked(path: Path) -> IO[str]:
    while True:
        lock = open(path, "a+")  # noqa: SIM115 - the caller closes it
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise Conflict(f"Another agent runs with {path.parent}. Stop it first.", subject=str(path.parent)) from None
        # A file that its holder removed between our open and our lock guards nothing: take the new one.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(lock.fileno()).st_ino == path.stat().st_ino:
                return lock
        lock.close()


# --- wiring -------------------------------------------------------------------------------------------------------


def real_agent(config: Config, crashes: Crashes) -> tuple[AgentService, Membership]:
    """This machine's agent. Raises InvalidInput if it never joined."""
    clock, rng, data_dir = BootClock(), SystemRng(), config.data_dir
    runner: Runner = ThreadRunner("windrow-disk")
    seeds, copies = _places(config.seeds or load_seeds(data_dir))
    membership = Membership(data_dir, clock, rng, ThreadRunner("windrow-enrol"), copies)
    sampler = Sampler(clock, CombinedGpus((NvmlBackend(), SysfsGpus())), PsutilHost(data_dir), shares=config.shares)
    runtimes: dict[str, Runtime] = {}
    if "process" in config.runtimes:
        hidden = data_dir.parent if (data_dir.parent / "cli.json").exists() else data_dir
        runtimes["process"] = MpsProcessRuntime(
            *(data_dir / "process", hidden, membership.host_id, config.is_bubblewrap_wanted, config.shown),
            cards=lambda: sampler.gpus.gpus,
            share_of=lambda uuid: share_of(uuid, sampler.gpus.gpus),
            control=NvidiaMps(),
        )
    if "docker" in config.runtimes:
        docker = DockerRuntime(data_dir / "docker", membership.host_id, config.docker_url, config.registries)
        docker.images.seal_key = SealKey.of(membership.identity.signing)
        docker.pause_containers.is_wanted = True
        docker.clock, docker.cards = clock, lambda: sampler.gpus.gpus
        docker.driver_of = lambda uuids: driver_of(uuids, sampler.gpus)
        runtimes["docker"] = docker
    metadata = MetadataService()
    instance_id = metadata.instance_id() if membership.identity.is_bought else ""
    parts = Parts(
        host_id=membership.host_id,
        signing=membership.identity.signing,
        master_public=membership.identity.master_public,
        generation=membership.generation,
        regions=membership.regions(),
        dialer=GrpcDialer(membership.tls),
        clock=clock,
        rng=rng,
        disk=OsDisk(),
        directory=str(data_dir),
        runner=runner,
        kernel_boot=boot_id(),
        sampler=sampler,
        runtimes=runtimes,
        agent_version=agent_version(),
        measure_benchmarks=partial(benchmarks.measure, data_dir, clock),
        save_regions=membership.save_regions,
        ballast_bytes=BALLAST_BYTES,
        look=_look(membership.host_id, rng, seeds),
        ask=membership.newer_regions,
        tls=membership.tls,
        layouts=config.layouts,
        line=config.line,
        more={VOLUMES: "1", **bought_words(instance_id)},
        bought=BoughtHost(data_dir, metadata if instance_id else None, ThreadRunner("windrow-notices"), clock)
        if membership.identity.is_bought
        else None,
        faults=lambda: faults(crashes),
    )
    return AgentService(parts), membership


def faults(crashes: Crashes) -> tuple[str, ...]:
    """The condition of an agent that has met a bug, for a day after the last one."""
    return (ConditionCode.AGENT_BUG_MET.value,) if crashes.is_stated else ()


def _places(places: Sequence[Place]) -> tuple[tuple[Seed, ...], tuple[str, ...]]:
    """Domains to ask DNS about, and URLs of copies of the map."""
    seeds = tuple(place for place in places if isinstance(place, Seed))
    return seeds, tuple(place.url for place in places if isinstance(place, MapCopy))


def _look(host_id: HostId, rng: Rng, seeds: Sequence[Seed]) -> Look:
    return partial(Resolver(rng).look, host_id, seeds) if seeds else look_nowhere


def simulated_agent(
    data_dir: Path,
    seed: int,
    index: int,
    disk_runner: Runner,
    calls: Runner,
    crashes: Crashes,
    places: Sequence[Place] = (),
    gate: asyncio.Semaphore | None = None,
    sample_every_s: int = 1,
    fault: Fault | None = None,
) -> tuple[AgentService, Membership]:
    """Host number `index` of the fleet that `seed` draws, with its own keys, connection and spool. calls: the thread of
    what it asks a Master outside the link; gate: of all that dial in this process; fault: it has it soon."""
    clock, rng = BootClock(), SystemRng()
    seeds, copies = _places(places)
    membership = Membership(data_dir, clock, rng, calls, copies)
    host = SimulatedHost(seed, index, clock)
    if fault is not None:
        asyncio.get_running_loop().call_later(FAULT_AFTER_S, host.break_down, fault)

    async def figures() -> tuple[Benchmark, ...]:
        return host.benchmarks()

    parts = Parts(
        host_id=membership.host_id,
        signing=membership.identity.signing,
        master_public=membership.identity.master_public,
        generation=membership.generation,
        regions=membership.regions(),
        dialer=GrpcDialer(membership.tls, gate),
        clock=clock,
        rng=rng,
        disk=OsDisk(),
        directory=str(data_dir),
        runner=disk_runner,
        kernel_boot=rng.random_bytes(8).hex(),  # what ran on a simulated machine does not outlive this process
        sampler=Sampler(clock, host.backend, host.reader, least_ns=sample_every_s * SECOND),
        runtimes={"simulated": SimulatedRuntime(SimulatedMachine(clock), host.card_rates())},
        agent_version=agent_version(),
        measure_benchmarks=figures,
        save_regions=membership.save_regions,
        benchmarks=host.benchmarks(),
        spool_caps=SpoolCaps(telemetry_bytes=8 * MIB, evidence_bytes=4 * MIB, ring_bytes=MIB, segment_bytes=MIB),
        look=_look(membership.host_id, rng, seeds),
        ask=membership.newer_regions,
        tls=membership.tls,
        faults=lambda: (*faults(crashes), *host.conditions()),
    )
    return AgentService(parts), membership


# --- commands -----------------------------------------------------------------------------------------------------


async def serve(agents: Sequence[tuple[AgentService, Membership]]) -> int:
    """Run agents until a signal; each stops in order."""
    loop = asyncio.get_running_loop()
    status = 0

    def stop_all(number: int) -> None:
        for service, _ in agents:
            service.terminate() if number == signal.SIGTERM else service.stop()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop_all, number)

    async def one(service: AgentService, membership: Membership) -> None:
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(
                membership.keep(lambda: service.is_certificate_refused, lambda: service.renewed(membership.regions())),
                name="renewal",
            )
            watching = group.create_task(advise(service), name="restart advised")
            await service.run()
            keeping.cancel()
            watching.cancel()

    async def advise(service: AgentService) -> None:
        nonlocal status
        while not (service.parts.sampler.restart_advised and service.is_idle):
            await asyncio.sleep(RESTART_ADVISED_CHECK_S)
        log.warning("restarting_for_new_driver")
        status = EXIT_RESTART
        service.stop()

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            for service, membership in agents:
                group.create_task(one(service, membership), name=str(service.parts.host_id))

    async with asyncio.TaskGroup() as group:
        beside = group.create_task(
            memory_trim.stay_small() if len(agents) == 1 else memory_trim.stay_even(), name="footprint"
        )
        await all_of_them()
        beside.cancel()
    return status


async def simulate(config: Config, crashes: Crashes) -> int:
    """Join what has not joined yet, then run all simulated hosts in this process."""
    folders = [config.data_dir / f"{index:04d}" for index in range(config.count)]
    missing = [(index, folder) for index, folder in enumerate(folders) if not _has_joined(folder)]
    if missing:
        if not config.master_url or not config.token_file:
            raise InvalidInput(f"{len(missing)} hosts have not joined yet: give --master and --token-file.")
        tokens = read_token(config.token_file).split()
        if len(tokens) < len(folders):
            raise InvalidInput(f"{len(folders)} hosts need one token each (-: has joined); there are {len(tokens)}.")
        gate = asyncio.Semaphore(JOINS_AT_ONCE)

        async def one(index: int, folder: Path) -> None:
            async with gate:  # each with its own: where a join's answer was lost, the same token joins it again
                await join_in_thread(folder, config.master_url, tokens[index], f"{config.name}-{index:04d}", True)

        async with asyncio.TaskGroup() as group:
            for index, folder in missing:
                group.create_task(one(index, folder))
    threads = [ThreadRunner(f"windrow-disk-{number}") for number in range(SIMULATED_DISK_THREADS)]
    calls, dialling = ThreadRunner("windrow-enrol"), asyncio.Semaphore(DIALS_AT_ONCE)
    runners = [SharedRunner(threads[index % len(threads)]) for index in range(len(folders))]
    common = (calls, crashes, config.seeds, dialling, config.sample_every_s)
    agents = [
        simulated_agent(
            folder, config.seed, index, runners[index], *common, FAULTS.get(index) if config.has_faults else None
        )
        for index, folder in enumerate(folders)
    ]
    return await serve(agents)


def _has_joined(data_dir: Path) -> bool:
    return (data_dir / "identity" / "identity.json").exists()


async def end(config: Config, crashes: Crashes) -> int:
    """End what runs, of this host and of the simulated hosts below its folder."""
    if _has_joined(config.data_dir):
        with only_agent(config.data_dir):
            service, _ = real_agent(config, crashes)
            await service.end_workloads()
    for folder in sorted(config.data_dir.glob("[0-9][0-9][0-9][0-9]")):
        if _has_joined(folder):
            runner = ThreadRunner("windrow-disk")
            service, _ = simulated_agent(folder, config.seed, int(folder.name), runner, runner, crashes)
            await service.end_workloads()
    return 0


def doctor(config: Config) -> int:
    """Print what was found as it is found, or all of it as one JSON array; 1 if anything needs a person."""
    from windrow_agent.app.doctor import examine

    findings = []
    for finding in examine(config.data_dir, config.docker_url, config.is_speed_wanted):
        findings.append(finding)
        if not config.is_json_wanted:
            print(f"{MARKS[finding.level]} {finding.what}", flush=True)
            if finding.repair:
                print(f"       {finding.repair}")
    if config.is_json_wanted:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    return 1 if any(finding.level is Level.FIX for finding in findings) else 0


def fenced(config: Config) -> int:
    """Put the rules into the kernel, or say why that is not possible; or take them away, with the network."""
    if os.geteuid() != 0:
        raise InvalidInput("Only root can set these rules: sudo windrow-agent fence")
    if config.is_removal:
        with contextlib.suppress(WindrowError):  # no daemon, no network, or one in use
            docker_socket.remove_network(config.docker_url, egress.NETWORK, egress_firewall.CALL_S)
        if failed := egress_firewall.remove():
            print(f"The rules were not taken away: {failed}", file=sys.stderr)
        return 1 if failed else 0
    if failed := egress_firewall.install(is_anew=True):
        print(f"Containers are not kept away from this host's network: {failed}", file=sys.stderr)
        return 1
    return 0


def uninstall(config: Config, crashes: Crashes) -> int:
    """Ask, end all workloads, delete all state."""
    if not config.is_sure:
        answer = (
            input(f"End all workloads and delete everything in {config.data_dir}? [y/N] ") if sys.stdin.isatty() else ""
        )
        if answer.strip().lower() not in ("y", "yes"):
            print("Nothing was changed. To go on without being asked: --yes")
            return 1
    asyncio.run(end(config, crashes))
    from windrow_agent.app.doctor import remove_state

    folders = [*sorted(config.data_dir.glob("[0-9][0-9][0-9][0-9]")), config.data_dir]
    failed = [line for folder in folders for line in remove_state(folder)]
    for line in failed:
        print(f"not deleted: {line}", file=sys.stderr)
    print("Removed. The Master keeps this host's records; retire it there: windrow host retire")
    return 1 if failed else 0


def run(config: Config, crashes: Crashes) -> int:
    """Serve this machine."""
    if not _has_joined(config.data_dir):
        raise InvalidInput(
            f"This machine has not joined any Master ({config.data_dir}). First: windrow-agent join URL --token-file F"
        )
    with only_agent(config.data_dir):
        note = {"pid": os.getpid(), "version": agent_version()}
        (config.data_dir / "agent.json").write_text(json.dumps(note))
        log.info("configured", **{**_printable(config), **note})

        async def one() -> int:
            agent = real_agent(config, crashes)
            async with scrape.serving(config.metrics_port, lambda: own_metrics.figures(agent[0], crashes)):
                return await serve([agent])

        return asyncio.run(one())


def _printable(config: Config) -> dict[str, str]:
    return {"data_dir": str(config.data_dir), "runtimes": ",".join(config.runtimes), "docker_url": config.docker_url}


def joined(config: Config) -> int:
    """Join and print the id."""
    identity = join(config.data_dir, config.master_url, read_token(config.token_file), config.name)
    if config.seeds:
        save_seeds(config.data_dir, config.seeds)
    print(identity.subject_id)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The console script; returns its exit status: 0 good, 1 failed with a sentence on standard error."""
    drop_ambient_capabilities()
    crashes = configure_log()
    os.umask(0o077)
    try:
        config = parse(sys.argv[1:] if arguments is None else arguments)
        if config.command != "simulate":
            memory_trim.keep_small()
        return _dispatch(config, crashes)
    except WindrowError as error:
        print(error.detail, file=sys.stderr)
    except BaseExceptionGroup as errors:
        known, rest = errors.split(WindrowError)
        if rest is not None:
            raise
        print(known, file=sys.stderr)
    return 1


def _dispatch(config: Config, crashes: Crashes) -> int:
    match config.command:
        case "run":
            return run(config, crashes)
        case "join":
            return joined(config)
        case "simulate":
            return asyncio.run(simulate(config, crashes))
        case "end":
            return asyncio.run(end(config, crashes))
        case "doctor":
            return doctor(config)
        case "fence":
            return fenced(config)
        case "speedtest":
            from windrow_agent.app import speedtest

            return speedtest.command(config.speed_paths, without_proxies(), config.is_json_wanted)
        case _:
            return uninstall(config, crashes)


if __name__ == "__main__":
    sys.exit(main())
