"""One worker of an Access from its identity to its end: server, relay, renewal of the certificate, orderly stop."""

import asyncio
import json
import os
import signal
import ssl
from collections.abc import Callable
from functools import partial
from itertools import chain

import structlog

from windrow_access import bugs_met
from windrow_access.certificates import FileCertificate, OwnCertificate
from windrow_access.config import RunConfig
from windrow_access.core.admission import Callers, Limits
from windrow_access.core.renewal import is_due
from windrow_access.core.services import ServiceLimits
from windrow_access.core.speedtest import SpeedtestLimits
from windrow_access.core.strangers import StrangerLimits, connections_max
from windrow_access.core.tunnels import TunnelLimits
from windrow_access.guard import Guard
from windrow_access.probes import Bandwidth
from windrow_access.relay import Relay, RelayFacts
from windrow_access.services import Certificate, Services
from windrow_access.speedtest import Speedtests
from windrow_access.tunnels import Tunnels
from windrow_proto import enrol, keys, link_grpc, scrape
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.crashes import Crashes
from windrow_proto.endure import allow_open_files, endure
from windrow_proto.errors import Unavailable, WindrowError
from windrow_proto.ids import AccessId, ClusterId
from windrow_proto.networks import host_and_port
from windrow_proto.ports import TrunkLink
from windrow_proto.together import together
from windrow_proto.tunnels import worker_name
from windrow_proto.units import MINUTE
from windrow_proto.v1 import services_pb2
from windrow_proto.version import VERSION

log = structlog.get_logger()

RENEW_CHECK_NS = MINUTE
DRAIN_S = 2.0
"""How long agents may take to hear that they should go elsewhere, before their streams are cut."""


class Worker:
    """Runs one worker until a signal. port: the one to listen on, which workers of one Access share.

    crashes: what its log counts.
    """

    def __init__(self, config: RunConfig, port: int, crashes: Crashes) -> None:
        self._config = config
        self._port = port
        self._crashes = crashes
        self._clock = SystemClock()
        self._rng = SystemRng()
        self._folder = enrol.IdentityFolder(config.data_dir / "identity")
        self._identity: enrol.Identity = self._folder.load()
        self._made: Relay | None = None

    async def run(self) -> None:
        """Serve until SIGINT, SIGTERM or SIGHUP; then drain."""
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await self._renew_if_due()
        labels = {"region": self._config.region, "worker": str(self._worker)}
        master_public = self._identity.master_public
        name = worker_name(self._identity.subject_id, self._worker)
        tunnels = Tunnels(
            *(self._tls, master_public, self._has_host, self._clock, TunnelLimits(), labels), name, self._takes
        )
        tunnel_port = tunnels.open(self._config.host, self._config.first_tunnel_port(self._port))
        services, service_place = self._services(labels)
        access_id = AccessId(self._identity.subject_id)
        bandwidth = Bandwidth(access_id, self._identity.signing, self._clock, self._rng)
        relay = self._made = self._relay(tunnel_port, service_place, bandwidth)
        guard = Guard(relay, self._clock, Callers(Limits()), StrangerLimits(), labels)
        at_once = connections_max(allow_open_files(), Limits(), StrangerLimits())
        server = await link_grpc.serve_agents(guard, self._tls, host_and_port(self._config.host, self._port), at_once)
        speedtests = self._speedtests(guard, bandwidth, labels)
        endure()
        log.info("access_listening", address=server.address, region=self._config.region, worker=self._worker)
        base = self._config.metrics_port
        port = base + self._worker if base else base
        counting = [relay.figures, guard.figures, tunnels.figures, *([services.figures] if services else [])]
        counting.append(partial(bugs_met.figures, self._crashes, labels))
        counting += [speedtests.figures] if speedtests is not None else []
        serving = [made.run() for made in (services, speedtests) if made is not None]
        async with (
            scrape.serving(port, lambda: tuple(chain.from_iterable(figures() for figures in counting))) as metrics_port,
            asyncio.TaskGroup() as tasks,
        ):
            if port is not None:
                log.info("metrics_listening", port=metrics_port, worker=self._worker)
            working = tasks.create_task(
                together(
                    *(
                        relay.run(),
                        guard.run(server.port),
                        tunnels.run(),
                        *serving,
                        self._keep_renewed(),
                        self._announce(relay),
                    )
                )
            )
            await stop.wait()
            await relay.drain()
            await server.stop(DRAIN_S)
            working.cancel()
        log.info("access_stopped", worker=self._worker)

    @property
    def _worker(self) -> int:
        return self._config.worker or 0

    def _tls(self) -> keys.TlsIdentity:
        return self._identity.tls

    def _has_host(self, host_id: str) -> bool:
        return self._made is not None and self._made.has_host(host_id)

    def _takes(self, host_id: str) -> bool:
        made = self._made
        return made is not None and made.attached.is_set() and host_id not in made.banned

    def _services(self, labels: dict[str, str]) -> tuple[Services | None, str]:
        """The listener for services and where browsers find it, if there is to be one."""
        config = self._config
        if not config.service_domain:
            return None, ""

        def certificate(prepare: Callable[[ssl.SSLContext], None]) -> Certificate:
            if config.service_certificate is not None and config.service_key is not None:
                return FileCertificate(config.service_certificate, config.service_key, prepare)
            return OwnCertificate(self._tls, prepare)

        def authority() -> bytes:
            return self._identity.tls.ca_pem

        services = Services(
            config.service_domain, certificate, self._ask, authority, self._clock, ServiceLimits(), labels
        )
        first = config.first_service_port(self._port)
        port = services.open(config.host, first, is_shared=config.worker is not None)
        log.info("services_listening", domain=config.service_domain, port=port, worker=self._worker)
        return services, config.service_address(port)

    def _speedtests(self, guard: Guard, bandwidth: Bandwidth, labels: dict[str, str]) -> Speedtests | None:
        """The listener for speedtest-cli, if there is to be one. It and the measurements that count see each other."""
        config = self._config
        if config.speedtest_port is None:
            return None
        limits = SpeedtestLimits()
        made = Speedtests(guard.is_here, lambda: bandwidth.running, self._clock, self._rng, limits, labels)
        bandwidth.others = made.running
        first = config.speedtest_port + self._worker if config.speedtest_port else 0
        log.info("speedtest_listening", port=made.open(config.host, first), worker=self._worker)
        return made

    async def _ask(self, cluster_id: ClusterId, port: int) -> services_pb2.ServiceAnswer:
        if self._made is None:
            raise Unavailable("This relay is starting.")
        return await self._made.asks.ask(cluster_id, port)

    def _relay(self, tunnel_port: int, service_address: str, bandwidth: Bandwidth) -> Relay:
        identity = self._identity
        facts = RelayFacts(
            access_id=AccessId(identity.subject_id),
            region=self._config.region,
            worker=self._worker,
            address=self._config.advertise or host_and_port(self._config.host, self._port),
            version=VERSION,
            signing_public=identity.signing.public,
            tunnel_address=self._config.tunnel_advertise or self._config.tunnel_address(tunnel_port),
            tunnel_host_address=self._config.tunnel_address(tunnel_port),
            service_address=service_address,
            bugs=partial(bugs_met.stated, self._crashes),
        )
        return Relay(facts, self._dial, bandwidth, self._clock, self._rng, Limits())

    async def _dial(self) -> TrunkLink:
        return await link_grpc.dial_trunk(self._config.trunks or self._identity.trunk_addresses, self._tls)

    async def _keep_renewed(self) -> None:
        while True:
            await self._clock.sleep_ns(RENEW_CHECK_NS)
            await self._renew_if_due()

    async def _renew_if_due(self) -> None:
        """The first worker renews; the others find the new certificate on disk."""
        try:
            self._identity = await asyncio.to_thread(self._folder.load)
            facts = keys.certificate_facts(self._identity.tls.certificate_pem)
            if self._worker != 0 or not is_due(facts.not_before_ns, facts.not_after_ns, self._clock.wall_ns()):
                return
            self._identity = await asyncio.to_thread(enrol.renew, self._folder, self._clock.wall_ns())
        except WindrowError as error:
            log.warning("renewal_failed", access_id=self._identity.subject_id, code=error.code, error=str(error))
            return
        log.info("certificate_renewed", access_id=self._identity.subject_id, generation=self._identity.generation)

    async def _announce(self, relay: Relay) -> None:
        """Write where this Access is, each time its trunk is attached, for whoever started it."""
        await relay.attached.wait()
        if self._worker == 0:
            facts = relay.facts
            record = {
                "access_id": facts.access_id,
                "region": facts.region,
                "address": facts.address,
                "pid": os.getpid(),
            }
            path = self._config.data_dir / "access.json"
            try:
                path.with_suffix(".tmp").write_text(json.dumps(record))
                path.with_suffix(".tmp").replace(path)
            except OSError as error:  # it serves all the same: a full disk is no reason to leave its agents
                log.warning("not_announced", path=str(path), error=str(error))
        await asyncio.Event().wait()
