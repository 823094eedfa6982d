"""`windrow up`: a whole market on this machine under one supervisor: Master, two relays, this host's Agent.

Master ─▶ Accesses join and attach ─▶ this host joins ─▶ (simulated neighbours) ─▶ work, or `--once`
stop: clusters on hosts of this machine end ─▶ agents ─▶ what they left ─▶ Accesses ─▶ Master
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from windrow_proto import enrol
from windrow_proto.data_directory import CliFile
from windrow_proto.errors import DeadlineExceeded, StorageFailed, Unavailable, WindrowError
from windrow_proto.master_process import TRUNK_PORT, is_database_shared, without_secrets
from windrow_proto.networks import host_and_port
from windrow_up import supervisor
from windrow_up.client import MasterHttp
from windrow_up.free_ports import at_hand, free_port, is_free
from windrow_up.masters import MasterLines
from windrow_up.once import FINAL, Job
from windrow_up.requests import SIMULATED_MAX, MasterRequests, Simulated
from windrow_up.supervisor import Daemon
from windrow_up.words import AS_ROOT, progress, troubles

REGIONS: Final = ("local-a", "local-b")
ACCESS_PORT: Final = 7443
SERVICE_PORT_ABOVE: Final = 300
"""The first Access serves HTTPS for services so far above the port of agents."""
START_S: Final = 60.0
JOIN_S: Final = 20.0
CLUSTERS_END_S: Final = 20.0
DRAIN_S: Final = 5.0
"""Of that, for draining the hosts of this machine first."""
LOOK_S: Final = 0.1
WATCH_S: Final = 1.0
MASTERS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class UpConfig:
    """The settings of one `windrow up`."""

    data_dir: Path
    listen: str
    public: str
    simulate: int | None
    """None: as many as were last set in the console."""
    once: bool
    masters: int = 1
    trusted_proxies: tuple[str, ...] = ()
    windrow: str = "windrow"
    """How the command is written so that it works in every folder."""
    faults: bool = False
    """A few of the simulated hosts break."""


class Market:
    """The daemons of one data directory."""

    def __init__(self, config: UpConfig) -> None:
        self._config = config
        self._data = config.data_dir
        self._cli = CliFile(self._data / "cli.json")
        is_shared = config.masters > 1 and is_database_shared(os.environ)
        self._lines = MasterLines(
            *(self._data, config.listen, config.public, config.trusted_proxies, config.masters, is_shared, self._cli)
        )
        self._stop = asyncio.Event()
        self._daemons: dict[str, Daemon] = {}
        self._http: MasterHttp | None = None
        before = self._cli.read().get("simulated")
        set_before = min(max(before, 0), SIMULATED_MAX) if isinstance(before, int) else 0
        self._simulated = Simulated(set_before if config.simulate is None else config.simulate)
        self._simulated_now: int | None = None
        self._requests = MasterRequests(self._accesses, self._simulated, self.say)
        self._group = asyncio.TaskGroup()
        self._started_at = time.monotonic()
        self._has_moved = False
        """Another program has ports that an Access had at the last start."""

    async def run(self) -> int:
        """Bring everything up, work until a signal (or the one job is done), bring everything down."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop.set)
        async with self._group as group:
            work = group.create_task(self._work())
            stopping = group.create_task(self._stop.wait())
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            is_done = work.done()
            if not is_done:
                work.cancel()
                await asyncio.wait({work})
            await self._shut_down()
        return work.result() if is_done else 0

    # --- up ----------------------------------------------------------------------------------------------------------

    async def _work(self) -> int:
        try:
            await self._start_all()
            if self._config.once:
                assert self._http is not None
                job = Job(self._http, self._host_id(), self.say, _show, self._stop.is_set)
                await asyncio.to_thread(job.run)
                return 0
            await self._watch()
        except WindrowError as error:
            self.say(f"Failed: {error.detail}")
            for daemon in self._daemons.values():
                if daemon.pid is None and not daemon.helpless and daemon.tail():
                    self.say(f"The last lines of the log of {daemon.name}:\n{daemon.tail()}")
            return 1
        except Exception:
            # The end in order comes after this, whatever it was.
            self.say(f"Failed unexpectedly:\n{traceback.format_exc()}")
            return 1
        return 0

    async def _start_all(self) -> None:
        if os.geteuid() == 0:
            self.say(AS_ROOT)
        await self._start_master()
        had_identity = self._has_joined(self._data / "agent")
        await asyncio.gather(*(self._start_access(n, region) for n, region in enumerate(REGIONS)))
        if not had_identity or self._has_moved:
            # The map of Accesses that a host starts with should already hold both where they are now.
            await self._until(_are_attached, "both relays to reach the Master")
        await self._join("agent", self._data / "agent", "host")
        await self._until(self._lead_members, "the Master to say where its relays are")
        await self._until(self._offer_again, "the Master to offer this machine again")
        self._launch("agent", supervisor.module("windrow_agent", "run", "--data-dir", str(self._data / "agent")))
        await self._simulate()
        for number in range(len(self._masters()), self._config.masters):
            self._launch_master(number)

    async def _start_master(self) -> None:
        for number in range(self._config.masters if self._lines.is_shared else 1):
            self._launch_master(number)
        await self._until(lambda http: http.is_well(), "the Master to answer")
        record = self._cli.read()
        self.say(f"Console  {record['url']}", secret=f"/#token={record['token']}")
        if self._config.listen != "127.0.0.1":
            self.say(f"HTTPS    {record['https_url']}  (public key {record['ca_sha256'][:16]}...)")
        self.say(f"Token    in {self._cli.path}", secret=f": {record['token']}")
        if not sys.stdout.isatty():  # the address above came without its key
            self.say(f"Sign in  {self._config.windrow} open    (prints the console's address with a key)")

    def _launch_master(self, number: int) -> None:
        name, line = "master" if number == 0 else f"master-{number + 1}", self._requests.open()
        arguments = [*self._lines.of(number), "--supervisor-fd", str(line)]
        self._launch(name, supervisor.module("windrow_master", *arguments), (line,))

    def _accesses(self) -> dict[str, Daemon]:
        named = {
            _identity_of(self._data / name): one for name, one in self._daemons.items() if name.startswith("access-")
        }
        return {access_id: daemon for access_id, daemon in named.items() if access_id is not None}

    def _masters(self) -> dict[str, Daemon]:
        return {name: daemon for name, daemon in self._daemons.items() if name.startswith("master")}

    def _current(self) -> MasterHttp:
        """A client of the Master of this moment; raises Unavailable between two Masters. A stranger who has taken its
        port since is told nothing: he has no certificate of the market's authority."""
        pids, record = {daemon.pid for daemon in self._masters().values()} - {None}, self._cli.read()
        if (record.get("pids") or {}).get("master") not in pids:
            raise Unavailable("The Master is starting.")
        place = record["local_url"], record["token"], Path(record["ca_pem"]), record["health_url"]
        if self._http is None or self._http.place != place:
            self._http = MasterHttp(*place)
        return self._http

    async def _start_access(self, number: int, region: str) -> None:
        name, folder = f"access-{region}", self._data / f"access-{region}"
        names = ("127.0.0.1", "localhost", *filter(None, (at_hand(self._config.listen), self._config.public)))
        await self._join(name, folder, "access", names)
        port = self._access_port("access", number, ACCESS_PORT)
        service_port = self._access_port("service", number, ACCESS_PORT + SERVICE_PORT_ABOVE)
        arguments = ["--data-dir", str(folder), "--listen", host_and_port(self._config.listen, port)]
        arguments += ["--service-port", str(service_port)]
        arguments += ["--region", region, *(word for trunk in self._lines.trunks() for word in ("--trunk", trunk))]
        if self._config.public:
            arguments += ["--advertise", host_and_port(self._config.public, port)]
        elif self._config.listen in {"0.0.0.0", "::"}:
            arguments += ["--advertise", host_and_port(at_hand(self._config.listen), port)]
        self._launch(name, supervisor.module("windrow_access", "run", *arguments))

    def _access_port(self, kind: str, number: int, first: int) -> int:
        """The port of the last start, else the next free one; remembered, because hosts and browsers know it."""
        record = self._cli.read()
        ports = record.setdefault("ports", {})
        known = [port for port in ports.get(kind, []) if isinstance(port, int)]
        others = [port for other in ("access", "service") if other != kind for port in ports.get(other, [])]
        masters = {port for one in record.get("masters", []) for port in one.values()}  # those that wait listen later
        taken = {port for port in ports.values() if isinstance(port, int)} | masters | {*known, *others, TRUNK_PORT}
        while len(known) <= number:
            candidate = first if not known else max(known) + 1
            known.append(free_port(self._config.listen, candidate, taken | {*known}))
        if not is_free(self._config.listen, known[number]):
            self._has_moved = True
            known[number] = free_port(self._config.listen, known[number] + 1, taken | {*known})
        ports[kind] = known
        self._cli.write(record)
        return known[number]

    async def _join(self, name: str, folder: Path, role: str, addresses: tuple[str, ...] = ()) -> None:
        """Join as `windrow-access join` and `windrow-agent join` do, without the second it takes to start them."""
        if self._has_joined(folder):
            return
        request = enrol.JoinRequest(role, enrol.host_name(), addresses=addresses)
        identity = enrol.IdentityFolder(folder / "identity")

        def join(http: MasterHttp) -> enrol.Identity:
            return enrol.join(identity, http.url, _join_token(http, role=role), request, JOIN_S)

        await self._until(join, f"{name} to join this Master")

    def _lead_members(self, http: MasterHttp) -> bool:
        """Tell the members of this machine, before they start, where Master and Accesses are now: at the last start
        these may have had other ports."""
        regions = http.call("GET", "/regions")
        for place in ("agent", "access-*", "simulated/*"):
            for folder in self._data.glob(place):
                if self._has_joined(folder):
                    enrol.IdentityFolder(folder / "identity").follow(http.url, regions)
        return True

    def _offer_again(self, http: MasterHttp) -> bool:
        """Offer the hosts that the last stop has drained, unless somebody has decided otherwise since."""
        drained = self._cli.read().get("drained", [])
        for host in http.items("/hosts") if drained else ():
            if self._stop.is_set():
                return True  # the next start does it
            if host["id"] in drained and host["admin_state"] == "draining":
                self._offer(http, host)
        if drained and not self._stop.is_set():
            self._cli.write({key: value for key, value in self._cli.read().items() if key != "drained"})
        return True

    def _offer(self, http: MasterHttp, host: Mapping[str, Any]) -> None:
        """Offer one, unless a GPU of it is faulty: who activates such a host says that it is sound."""
        if _is_faulty(host):
            said = "a GPU of it is faulty"
        else:
            try:
                http.call("POST", f"/hosts/{host['id']}/activate", {"reason": "windrow up has started again"})
            except WindrowError as error:
                if error.retryable:
                    raise Unavailable(error.detail) from error
                said = error.detail
            else:
                return
        self.say(f"{host['name']} stays drained: {said}. Offer it: {self._config.windrow} host activate {host['id']}")

    async def _simulate(self) -> None:
        count, folder = self._simulated.wanted, self._data / "simulated"
        if count == self._simulated_now:
            return
        if "simulated" in self._daemons:
            await supervisor.stop(self._daemons.pop("simulated"))
        await self._until(lambda http: self._retire_unwanted(http, folder, count), "the Master to answer")
        if self._simulated_now is not None:  # set in the console: it holds at the next start, too
            self._cli.write(self._cli.read() | {"simulated": count})
        if count == 0:
            self._simulated_now = count
            return
        tokens = list[str]()

        def all_tokens(http: MasterHttp) -> bool:
            while len(tokens) < count:
                has_joined = self._has_joined(folder / f"{len(tokens):04d}")
                tokens.append("-" if has_joined else _join_token(http, role="host", expires_in_s=3600))
            return True

        await self._until(all_tokens, "the Master to answer")
        token_file = self._data / "simulated.token"
        _write_secret(token_file, "\n".join(tokens) + "\n")
        arguments = ["simulate", "--count", str(count), "--data-dir", str(folder)]
        arguments += ["--master", self._cli.read()["local_url"], "--token-file", str(token_file)]
        arguments += ["--faults"] if self._config.faults else []
        self._launch("simulated", supervisor.module("windrow_agent", *arguments))
        self._simulated_now = count
        self.say(f"Simulated neighbours: {count}, marked as such everywhere")

    def _retire_unwanted(self, http: MasterHttp, folder: Path, count: int) -> bool:
        """Retire every simulated host that this start does not run, and forget its identity."""
        kept = {_identity_of(folder / f"{number:04d}") for number in range(count)} - {None}
        for host in http.items("/hosts?simulated=true"):
            if host["id"] not in kept and host["admin_state"] != "retired":
                http.call("POST", f"/hosts/{host['id']}/retire", {"reason": "not asked for at this start"})
        for path in sorted(folder.glob("[0-9][0-9][0-9][0-9]")):
            if int(path.name) >= count:
                shutil.rmtree(path)
        return True

    # --- while up ----------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Say what becomes of this host until somebody stops us."""
        said: list[str] = []
        while True:
            # Whatever is answered here is only for saying; daemons are kept up by their keepers.
            try:
                http = self._current()
                self._lead_accesses()
                await self._simulate()
                host = await asyncio.to_thread(http.call, "GET", f"/hosts/{self._host_id()}")
                health = await asyncio.to_thread(http.call, "GET", "/operators/health")
                lines = (*troubles(health), *progress(host, time.monotonic() - self._started_at, self._config.windrow))
            except WindrowError:
                lines = ()
            except Exception:
                lines = (f"Failed unexpectedly, and goes on:  {traceback.format_exc()}",)
            for line in lines:
                key = line.split("  ", 1)[0]
                if key not in said:
                    said.append(key)
                    self.say(line)
            await asyncio.sleep(WATCH_S)

    def _lead_accesses(self) -> None:
        """Have the Accesses dial the Master where it is now, if it had to move."""
        if self._lines.is_shared:
            return  # they know them all
        (trunk,) = self._lines.trunks()
        for daemon in self._daemons.values():
            if "--trunk" in daemon.arguments:
                at = daemon.arguments.index("--trunk") + 1
                if daemon.arguments[at] != trunk:
                    daemon.arguments = (*daemon.arguments[:at], trunk, *daemon.arguments[at + 1 :])
                    with contextlib.suppress(ProcessLookupError):
                        if daemon.process is not None:
                            daemon.process.terminate()  # its keeper starts it again

    # --- down --------------------------------------------------------------------------------------------------------

    async def _shut_down(self) -> None:
        self.say("Stopping: workloads, agents, relays, Master")
        await self._end_clusters()
        await self._stop_all([name for name in self._daemons if name in {"agent", "simulated"}])
        for name, folder in (("agent", self._data / "agent"), ("simulated", self._data / "simulated")):
            if name in self._daemons:
                arguments = supervisor.module("windrow_agent", "end", "--data-dir", str(folder))
                if await supervisor.run_once(arguments, self._log(name), CLUSTERS_END_S, without_secrets(os.environ)):
                    self.say(f"Some workloads may still run on this machine; {self._log(name)} says why")
        await self._stop_all([name for name in self._daemons if name.startswith("access-")])
        await self._stop_all(list(self._masters()))
        self._requests.close()
        record = self._cli.read()
        if record:
            record.pop("pids", None)
            self._cli.write(record)
        self.say("Stopped")

    async def _end_clusters(self) -> None:
        """End what runs on the hosts of this machine and wait until it is gone, but not for ever. Its log and files are
        kept, as after any end that its renter did not ask for. What waits for a place does not begin meanwhile."""
        if self._http is None or all(daemon.pid is None for daemon in self._masters().values()):
            return
        left: list[str] | None = None
        try:
            async with asyncio.timeout(CLUSTERS_END_S):
                http = self._current()
                await asyncio.to_thread(self._drain, http)
                for cluster_id in await asyncio.to_thread(self._local_clusters):
                    await asyncio.to_thread(http.call, "DELETE", f"/clusters/{cluster_id}?keep_results=true")
                while left := await asyncio.to_thread(self._local_clusters):
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            said = "The Master is slow" if left is None else f"Still running: {', '.join(left)}"
            self.say(f"{said}, after {CLUSTERS_END_S:g} s; the agent ends what is left")
        except WindrowError as error:
            self.say(f"The machines could not be ended in order ({error.detail}); the agent ends what is left")

    def _drain(self, http: MasterHttp) -> None:
        """Have nothing that waits begin on this machine until the next start, as far as DRAIN_S allows. A host with a
        faulty GPU is left as it is, since the next start could not offer it again."""
        ends = time.monotonic() + DRAIN_S
        if not http.call("GET", "/queue?limit=1")["items"]:
            return
        ours = self._local_hosts()
        active = (one for one in http.items("/hosts") if one["id"] in ours and one["admin_state"] == "active")
        drained, record = [one["id"] for one in active if not _is_faulty(one)], self._cli.read()
        try:  # with those of the stop before, where this start has not come to offering them
            self._cli.write(record | {"drained": sorted({*record.get("drained", []), *drained})})
        except OSError as error:
            self.say(f"This machine is not drained, since it could not be kept that it was: {error}")
            return
        own = _identity_of(self._data / "agent")
        for host_id in sorted(drained, key=lambda one: one != own):
            if time.monotonic() > ends:
                return
            try:
                http.call("POST", f"/hosts/{host_id}/drain", {"reason": "windrow up stops"})
            except WindrowError as error:  # what runs is ended all the same
                self.say(f"{host_id} is not drained: {error.detail}")
                if error.retryable:
                    return

    def _local_hosts(self) -> set[str]:
        folders = [self._data / "agent", *(self._data / "simulated").glob("[0-9]*")]
        return {host_id for host_id in map(_identity_of, folders) if host_id is not None}

    def _local_clusters(self) -> list[str]:
        assert self._http is not None
        ours = self._local_hosts()
        return [
            cluster["id"]
            for cluster in self._http.items("/clusters")
            if cluster["phase"] not in (*FINAL, "Stopped") and {w["host_id"] for w in cluster["workloads"]} & ours
        ]

    async def _stop_all(self, names: list[str]) -> None:
        await asyncio.gather(*(supervisor.stop(self._daemons[name]) for name in names))

    # --- parts -------------------------------------------------------------------------------------------------------

    def say(self, line: str, *, secret: str = "") -> None:
        """Print a line and keep it in the log; a terminal that has gone stops nothing.

        Its secret end is for a person at a terminal: where output is kept, in a journal or a pipeline's log, it is not.
        """
        with contextlib.suppress(OSError):
            print(line + (secret if sys.stdout.isatty() else ""), flush=True)
        with contextlib.suppress(OSError), self._log("up").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")

    def _launch(self, name: str, arguments: tuple[str, ...], pass_fds: tuple[int, ...] = ()) -> None:
        environment = None if name.startswith("master") else without_secrets(os.environ)
        daemon = self._daemons[name] = Daemon(name, arguments, self._log(name), pass_fds, environment)
        self._group.create_task(supervisor.keep(daemon, self.say))

    def _log(self, name: str) -> Path:
        folder = self._data / "logs"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder / f"{name}.log"

    def _has_joined(self, folder: Path) -> bool:
        return _identity_of(folder) is not None

    def _host_id(self) -> str:
        found = _identity_of(self._data / "agent")
        if found is None:
            raise Unavailable(f"This host's identity in {self._data / 'agent'} cannot be read.")
        return found

    async def _until(self, ask: Callable[[MasterHttp], Any], what: str) -> None:
        """Ask the Master of the moment until what it answers holds: it may die meanwhile, and its keeper starts it
        again."""
        ends, last = time.monotonic() + START_S, ""
        while time.monotonic() < ends:
            try:
                if await asyncio.to_thread(ask, self._current()):
                    return
            except Unavailable as error:
                last = f" ({error.detail})"
            self._check_daemons()
            self._lead_accesses()
            await asyncio.sleep(LOOK_S)
        raise DeadlineExceeded(f"Waited {START_S:g} s for {what}{last}. Logs: {self._data / 'logs'}")

    def _check_daemons(self) -> None:
        for daemon in self._daemons.values():
            if daemon.helpless:
                raise StorageFailed(f"The market cannot run: {daemon.helpless}")
            if daemon.restarts >= 5:
                raise DeadlineExceeded(f"{daemon.name} does not stay up. Its log: {daemon.log_path}")


def _is_faulty(host: Mapping[str, Any]) -> bool:
    return any(slot["state"] == "faulted" for slot in host["slots"])


def _are_attached(http: MasterHttp) -> bool:
    return {access["region"] for access in http.call("GET", "/operators/health")["accesses"]} >= set(REGIONS)


def _join_token(http: MasterHttp, **asked: Any) -> str:
    return str(http.call("POST", "/join-tokens", asked)["join_token"])


def _show(chunk: bytes) -> None:
    sys.stdout.write(chunk.decode(errors="replace"))
    sys.stdout.flush()


def _identity_of(folder: Path) -> str | None:
    try:
        found = json.loads((folder / "identity" / "identity.json").read_text(encoding="utf-8"))["id"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(found)


def _write_secret(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
