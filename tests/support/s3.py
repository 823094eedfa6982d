"""Buckets of S3: moto's server in this process for quick tests, and a real Ceph RGW where Debian's is installed.

Ceph: one monitor, one OSD that keeps objects in memory, and one gateway, each a process in a folder of its own. cephx
stays on (without it the gateway never comes up), the pool size is 1, and no manager is needed.
"""

import json
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests import services
from tests.support.ports import own_port
from tests.waiting import poll
from windrow_master.storage.s3_store import S3Settings

START_S = 120.0
ASK_S = 60


def bucket(endpoint: str, access_key: str, secret_key: str, region: str = "us-east-1") -> S3Settings:
    """A new bucket, used below a prefix."""
    import boto3

    name = f"b{secrets.token_hex(8)}"
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
    )
    client.create_bucket(Bucket=name)
    client.close()
    return S3Settings(name, "under/", endpoint, region, access_key, secret_key)


Where = tuple[str, str, str]
"""Address, access key and secret key."""


@contextmanager
def moto() -> Iterator[Where]:
    """A stand-in that checks no signatures."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}", "key", "secret"
    server.stop()


@contextmanager
def ceph() -> Iterator[Where]:
    """A real Ceph, for as long as this lasts."""
    folder = Path(mkdtemp(prefix="windrow-ceph-"))
    with ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        yield _start_ceph(folder, cleanup)


@pytest.fixture(scope="package")
def moto_endpoint() -> Iterator[Where]:
    with moto() as where:
        yield where


@pytest.fixture
def moto_bucket(moto_endpoint: Where) -> S3Settings:
    return bucket(*moto_endpoint)


@pytest.fixture(scope="package")
def ceph_endpoint() -> Iterator[Where]:
    services.need("ceph")
    with ceph() as where:
        yield where


@pytest.fixture
def ceph_bucket(ceph_endpoint: Where) -> S3Settings:
    return bucket(*ceph_endpoint)


def _configuration(folder: Path, cluster_id: uuid.UUID, monitor: int, gateway: int) -> str:
    return f"""[global]
fsid = {cluster_id}
mon host = [v1:127.0.0.1:{monitor}]
mon initial members = a
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
mon allow pool size one = true
mon warn on pool no redundancy = false
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 2147483648
ms bind msgr2 = false
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{gateway}
rgw dns name = 127.0.0.1
rgw thread pool size = 16
"""


def _start_ceph(folder: Path, cleanup: ExitStack) -> Where:
    monitor, gateway, cluster_id, osd_id = own_port(), own_port(), uuid.uuid4(), uuid.uuid4()
    conf, ring = folder / "ceph.conf", folder / "keyring"
    conf.write_text(_configuration(folder, cluster_id, monitor, gateway))
    for name in ("mon", "osd", "rgw"):
        (folder / name).mkdir()
    all_caps = ["--cap", "mon", "allow *", "--cap", "osd", "allow *"]
    _ran("ceph-authtool", "--create-keyring", str(ring), "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
    _ran("ceph-authtool", str(ring), "--gen-key", "-n", "client.admin", *all_caps, "--cap", "mgr", "allow *")
    _ran("monmaptool", "--create", "--addv", "a", f"[v1:127.0.0.1:{monitor}]", f"--fsid={cluster_id}", f"{folder}/map")
    asked = ("-c", str(conf))
    _ran("ceph-mon", *asked, "--mkfs", "-i", "a", "--monmap", f"{folder}/map", "--keyring", str(ring))
    _started(cleanup, folder, "ceph-mon", *asked, "-f", "-i", "a")
    ceph = ("ceph", *asked, "--connect-timeout", "10")
    poll(lambda: _answers(*ceph, "-s"), START_S, "the monitor answers")
    _ran(*ceph, "osd", "new", str(osd_id))
    _ran("ceph-authtool", str(ring), "--gen-key", "-n", "osd.0", *all_caps)
    _ran("ceph-authtool", str(ring), "--gen-key", "-n", "client.rgw.a", *all_caps)
    for name in ("osd.0", "client.rgw.a"):
        key = _ran("ceph-authtool", str(ring), "-n", name, "--print-key").strip()
        one = folder / f"{name}.ring"
        caps = 'caps mon = "allow *"\n\tcaps osd = "allow *"'
        one.write_text(f"[{name}]\n\tkey = {key}\n\t{caps}\n")
        _answers(*ceph, "auth", "rm", name)  # `osd new` makes one of its own
        _ran(*ceph, "auth", "import", "-i", str(one))
    _ran("ceph-osd", *asked, "-i", "0", "--mkfs", "--osd-uuid", str(osd_id))
    _started(cleanup, folder, "ceph-osd", *asked, "-f", "-i", "0")
    poll(lambda: "1 up" in _ran(*ceph, "osd", "stat"), START_S, "the OSD is up")
    _started(cleanup, folder, "radosgw", *asked, "-f", "-n", "client.rgw.a")
    made = ("radosgw-admin", *asked, "user", "create", "--uid=windrow", "--display-name=windrow")
    user = json.loads(_ran(*made))["keys"][0]
    poll(lambda: _listens(gateway), START_S, "the gateway listens")
    return f"http://127.0.0.1:{gateway}", user["access_key"], user["secret_key"]


def _ran(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=ASK_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr[-1000:]}"
    return done.stdout


def _answers(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=ASK_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _listens(port: int) -> bool:
    with socket.socket() as knock:
        return knock.connect_ex(("127.0.0.1", port)) == 0


def _started(cleanup: ExitStack, folder: Path, *command: str) -> None:
    with (folder / f"{command[0]}.out").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    cleanup.callback(_stop, process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
