"""An Access whose disk takes nothing or gives nothing back: its agents do not notice."""

import errno
import time
from pathlib import Path

import pytest

from tests.integration.test_access import HOST
from tests.support.one_access import EchoMaster, Running, echo, identity_folder
from tests.support.pki import issue, make_ca
from tests.waiting import poll_async
from windrow_access.config import RunConfig, parse
from windrow_access.worker import Worker
from windrow_proto import enrol, keys, link_grpc
from windrow_proto.crashes import Crashes
from windrow_proto.errors import StorageFailed


async def test_one_that_cannot_say_where_it_is_serves_all_the_same(tmp_path: Path) -> None:
    authority, master = make_ca(), EchoMaster()
    server = await link_grpc.serve_trunk(master, issue(authority, "master", "master"))
    identity_folder(tmp_path, authority)
    (tmp_path / "access.tmp").mkdir()  # so that it cannot be written, also by root
    access = Running(tmp_path, server.address)
    try:
        await poll_async(lambda: master.hellos)
        await poll_async(lambda: "not_announced" in (tmp_path / "access.log").read_text())
        assert (await echo(master.hellos[0].address, issue(authority, "host", HOST))).sealed == b"unopened"
        assert len(master.hellos) == 1
    finally:
        assert access.stop() == 0
        await server.stop(0)


async def test_one_that_cannot_read_or_renew_its_certificate_goes_on_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity_folder(tmp_path, make_ca())
    config = parse(["run", "--data-dir", str(tmp_path)])
    assert isinstance(config, RunConfig)
    worker, record = Worker(config, 0, Crashes(time.time_ns)), tmp_path / "identity" / "identity.json"
    known = record.read_bytes()

    record.unlink()
    await worker._renew_if_due()
    record.write_bytes(known)

    def refuse(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(keys, "save_private", refuse)
    with pytest.raises(StorageFailed, match="No space left"):
        enrol.renew(enrol.IdentityFolder(tmp_path / "identity"), 0)
    monkeypatch.setattr("windrow_access.worker.is_due", lambda *times: True)
    await worker._renew_if_due()
    assert record.read_bytes() == known
