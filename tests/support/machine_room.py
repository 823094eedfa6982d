"""A machine room behind moto: each running instance is a Debian with systemd in namespaces, and runs its first script.

    moto's list ─▶ an instance is running: its machine starts ─▶ IMDSv2 on its own `lo` ─▶ its user data, as cloud-init
    an instance is terminated: its machine is taken away at once; it powers itself off: moto's list says so

It runs in the test's process, so that a Master which is killed finds it again.
"""

import json
import os
import secrets
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import StateReason

from tests.support import clean_debian
from tests.support.moto_cloud import REGION, MotoCloud, moto_cloud
from tests.support.namespaces import Namespace
from tests.support.second_host import SecondHost, bridge, clean_host, need_namespaces
from tests.waiting import poll
from windrow_master.hybrid.backends.port import TAG_MARKET, TAG_PURCHASE

ACCOUNT: Final = "123456789012"
"""Of moto, for any access key."""
METADATA: Final = "169.254.169.254"
PACKAGES: Final = ("curl", "openssl", "systemd", "dbus", "bubblewrap", "passt", "nftables")
"""Of the image: what clouds' images have, and what sandboxes of processes need. No Python: the packed agent brings
its own."""
LOOK_S: Final = 0.1
END_S: Final = 60.0
FIRST_SCRIPT, CONSOLE = "/srv/user-data", "/srv/console"
POWERED_OFF: Final = "Client.InstanceInitiatedShutdown"
TAKEN_BACK: Final = "Server.SpotInstanceTermination"


@dataclass
class Lived:
    """One machine that was ever started. host: its namespaces; None: it is not ready yet. Times are monotonic seconds;
    notice: the answer of `spot/instance-action`."""

    instance: Any
    began_s: float
    host: SecondHost | None = None
    ended_s: float | None = None
    notice: Mapping[str, str] | None = None
    asked: list[str] = field(default_factory=list)
    is_ended: threading.Event = field(default_factory=threading.Event)

    @property
    def instance_id(self) -> str:
        """As its provider names it."""
        return str(self.instance.id)

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags of the instance."""
        return {one["key"]: one["value"] for one in self.instance.get_tags()}

    @property
    def purchase_id(self) -> str:
        """Of its tag."""
        return self.tags.get(TAG_PURCHASE, "")

    @property
    def is_running(self) -> bool:
        """By its provider's own list: it is paid for."""
        return bool(self.instance.state in ("pending", "running"))

    @property
    def why_it_ended(self) -> str:
        """Its provider's code; empty: it runs."""
        return str(self.instance.state_reason.code)

    def ready(self) -> SecondHost:
        """Its namespaces, once they are there."""
        found = poll(lambda: self.host, what=f"{self.instance_id} has started")
        assert found is not None
        return found

    def console(self) -> str:
        """Returns the output of its first script until now."""
        said = self.ready().run(f"cat {CONSOLE}").stdout
        return str(said)


class MachineRoom:
    """All machines of one cloud. address: of this machine, by which they reach it."""

    def __init__(self, cloud: MotoCloud, bridge_name: str, address: str, root: Path) -> None:
        self.cloud, self.address, self._bridge, self._root = cloud, address, bridge_name, root
        self.lived: dict[str, Lived] = {}
        self._is_over, self._threads = threading.Event(), list[threading.Thread]()
        self._failed: list[str] = []

    def of_market(self, market_id: str) -> list[Lived]:
        """The machines that carry a market's tag, the first first."""
        return [one for one in list(self.lived.values()) if one.tags.get(TAG_MARKET) == market_id]

    def foreign(self, **tags: str) -> str:
        """An instance of somebody else that runs no script; its id."""
        (image, *_) = self.cloud.client().describe_images(Owners=["amazon"])["Images"]
        named = [{"Key": key, "Value": value} for key, value in tags.items()]
        more = {"TagSpecifications": [{"ResourceType": "instance", "Tags": named}]} if named else {}
        made = self.cloud.client().run_instances(
            MinCount=1, MaxCount=1, ImageId=image["ImageId"], InstanceType="m5.large", **more
        )
        return str(made["Instances"][0]["InstanceId"])

    def take_back(self, instance_id: str, in_s: float = 120.0) -> None:
        """A spot machine is to be taken back in so many seconds: its notice stands from now on."""
        ends = datetime.now(UTC) + timedelta(seconds=in_s)
        self.lived[instance_id].notice = {"action": "terminate", "time": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}
        timer = threading.Timer(in_s, self._end, (self.lived[instance_id].instance, TAKEN_BACK))
        timer.daemon = True
        timer.start()

    def must_be_well(self) -> None:
        """Raises AssertionError where a machine could not be started."""
        assert not self._failed, self._failed

    @contextmanager
    def open(self) -> Iterator["MachineRoom"]:
        """Meanwhile instances are machines; at the end all are taken away."""
        watch = threading.Thread(target=self._watch, name="machine-room")
        watch.start()
        try:
            yield self
        finally:
            self._is_over.set()
            for thread in (watch, *self._threads):
                thread.join(END_S)

    def _watch(self) -> None:
        instances = ec2_backends[ACCOUNT][REGION]
        known = {one.id for group in instances.reservations.values() for one in group.instances}
        while not self._is_over.wait(LOOK_S):
            for one in [one for group in list(instances.reservations.values()) for one in list(group.instances)]:
                if one.id in known or one.user_data is None:
                    continue
                known.add(one.id)
                lived = self.lived[one.id] = Lived(one, time.monotonic())
                thread = threading.Thread(target=self._live, args=(lived,), name=one.id)
                self._threads.append(thread)
                thread.start()

    def _live(self, lived: Lived) -> None:
        """The life of one machine, on a thread of its own."""
        try:
            with ExitStack() as cleanup:
                host = cleanup.enter_context(clean_host(self._bridge, self.address, self._root, has_systemd=True))
                _let_out(host, self.address)
                cleanup.enter_context(_metadata(host, lived))
                script = Path(f"/proc/{host.holder}/root{FIRST_SCRIPT}")
                script.write_text(lived.instance.user_data.decode())
                cleanup.enter_context(host.begun(f"sh {FIRST_SCRIPT} >{CONSOLE} 2>&1"))
                lived.host = host
                while lived.is_running and not self._is_over.wait(LOOK_S):
                    if not is_on(host):
                        stops = lived.instance.instance_initiated_shutdown_behavior == "stop"
                        self._end(lived.instance, POWERED_OFF, stops=stops)
        except Exception as error:  # of a thread: the test reads it
            if lived.is_running and not self._is_over.is_set():
                self._failed.append(f"{lived.instance_id}: {error!r}")
        lived.ended_s = time.monotonic()
        lived.is_ended.set()

    def _end(self, instance: Any, code: str, *, stops: bool = False) -> None:
        """Its provider's own doing, or the machine's: no call of the API."""
        if instance.state == "terminated":
            return
        instance.stop() if stops else instance.terminate()
        instance.state_reason = StateReason(f"{code}: {code}", code)


def is_on(host: SecondHost) -> bool:
    """False once its first process has ended."""
    try:
        return Path(f"/proc/{host.holder}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _let_out(host: SecondHost, gateway: str) -> None:
    """Give it a default route, which sandboxes of processes look for; nothing lies behind it."""
    command = ["nsenter", f"--target={host.holder}", "--net", "ip", "route", "add", "default", "via", gateway]
    subprocess.run(command, check=True, timeout=END_S)


@contextmanager
def machine_room(folder: Path, *more: str) -> Iterator[MachineRoom]:
    """A cloud with its room. folder: for the image of its machines; more: Debian's packages that it has besides. Skips
    where there are no namespaces."""
    need_namespaces()
    clean_debian.need_debian()
    root = clean_debian.make(folder / "image", *PACKAGES, *more)
    with bridge() as (name, address), moto_cloud() as cloud, MachineRoom(cloud, name, address, root).open() as room:
        yield room


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = daemon_threads = True


@contextmanager
def _metadata(host: SecondHost, lived: Lived) -> Iterator[None]:
    """IMDSv2 as that machine sees it: a token first, and answers that go as many hops as its options say."""
    network = Namespace(os.open(f"/proc/{host.holder}/ns/net", os.O_RDONLY | os.O_CLOEXEC))
    try:
        network.call("ip", "address", "add", f"{METADATA}/32", "dev", "lo")
        with network.entered():
            server = _Server((METADATA, 80), _answers(lived))
        hops = int(lived.instance.metadata_options.http_put_response_hop_limit)
        server.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
    finally:
        os.close(network.fd)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, name="metadata")
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answers(lived: Lived) -> type[BaseHTTPRequestHandler]:
    tokens: set[str] = set()
    instance = lived.instance

    def content(path: str) -> str | None:
        notice = lived.notice
        known = {
            "/latest/meta-data/instance-id": instance.id,
            "/latest/meta-data/instance-type": instance.instance_type,
            "/latest/meta-data/placement/availability-zone": instance.placement.zone,
            "/latest/user-data": instance.user_data.decode(),
            "/latest/meta-data/spot/instance-action": None if notice is None else json.dumps(dict(notice)),
        }
        return known.get(path)

    class Metadata(BaseHTTPRequestHandler):
        """The service of one machine."""

        def do_PUT(self) -> None:
            life = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
            if self.headers.get("X-Forwarded-For"):
                self._say(403)
            elif self.path != "/latest/api/token" or not life.isdecimal() or not 1 <= int(life) <= 21_600:
                self._say(400)
            else:
                tokens.add(token := secrets.token_urlsafe())
                self._say(200, token)

        def do_GET(self) -> None:
            lived.asked.append(self.path)
            said = content(self.path)
            if self.headers.get("X-aws-ec2-metadata-token") not in tokens:
                self._say(401)
            else:
                self._say(404 if said is None else 200, said or "")

        def _say(self, status: int, text: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    return Metadata
