"""A market that lost its disk comes back: its fleet finds it, nobody pays twice, and it says what it knows."""

import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import IS_LONG
from tests.support.rental import Renter
from tests.support.stack import WINDROW, stack, wait_for
from windrow_master.app.wiring import KeysUnusable, Master, build
from windrow_master.recovery import command, manifest
from windrow_master.recovery.restore import check_whole
from windrow_master.store.model import AuditQuery
from windrow_master.store.open_errors import DatabaseDamaged
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.enrol import IdentityFolder, renew
from windrow_proto.errors import Conflict, InvalidInput, StorageFailed

RENTALS = 100 if IS_LONG else 1
SIMULATED = 5 if IS_LONG else 1
BACK_S = 60.0

pytestmark = pytest.mark.timeout(900 if IS_LONG else 420)


def master(*words: str | Path, code: int = 0) -> str:
    """Run `windrow-master ...`; returns what it said."""
    command = [sys.executable, "-m", "windrow_master", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said, said
    return said


def renew_all(data_dir: Path, times: int = 2) -> None:
    """Give every member of this market its next certificates, as half a day each would."""
    for path in sorted(data_dir.glob("**/identity/identity.json")):
        for _ in range(times):
            renew(IdentityFolder(path.parent), time.time_ns())


def paid(renter: Renter) -> dict[str, Any]:
    """Returns the cost of each rental so far, by its cluster."""
    return {one["cluster_id"]: one["amount"] for one in renter.all("/receipts")}


@pytest.mark.row("F18")
@pytest.mark.long
def test_a_fleet_that_has_renewed_since_the_backup_is_back_within_a_minute_and_nobody_pays_twice(
    tmp_path: Path,
) -> None:
    backup, data_dir = tmp_path / "market.tar", tmp_path / "data"
    flags = ("--simulate", str(SIMULATED))
    with stack(*flags, folder=tmp_path) as running:
        renter = Renter(running)
        renter.online()
        wait_for(lambda: sum(one["admin_state"] == "active" for one in renter.all("/hosts")) == 1 + SIMULATED)
        ended_since = renter.create("sleep", "600")["id"]
        ended_before = renter.create("true", until="", simulated=True)["id"] if IS_LONG else None
        master("backup", backup, "--data-dir", data_dir)
        assert backup.stat().st_mode & 0o777 == 0o600
        assert "stop it first" in master("restore", backup, "--data-dir", data_dir, code=1)
        renter.delete(ended_since)
        for _ in range(RENTALS):
            renter.delete(renter.create("true", until="")["id"])
        truth = paid(renter)
        hosts = {host["id"] for host in renter.all("/hosts")}
        renew_all(data_dir)
    assert ended_before is None or ended_before in truth

    said = master("restore", backup, "--data-dir", data_dir)
    assert "before-restore" in said and list(data_dir.glob("before-restore-*/master.sqlite3"))
    assert "is whole" in done(0, "check", "--data-dir", data_dir)

    with stack(*flags, folder=tmp_path) as running:
        renter, began = Renter(running), time.monotonic()
        wait_for(lambda: {one["id"] for one in renter.all("/hosts") if one["link_state"] == "online"} == hosts, BACK_S)
        assert time.monotonic() - began < BACK_S
        cluster = renter.phase(ended_since, "Failed", "Deleted", "Lost")
        # Of what ended since, the last receipt was acknowledged before: its rental closes later, without it.
        wait_for(lambda: all(one["ended_at"] or one["cluster_id"] == ended_since for one in renter.all("/receipts")))
        assert float(paid(renter)[ended_since]) <= float(truth[ended_since]), cluster
        assert renter.windrow("run", "--no-files", "--", "echo", "back").returncode == 0
        renew_all(data_dir, times=1)
        assert renter.windrow("audit", "verify").returncode == 0
    assert "ledger         it balances" in done(0, "check", "--data-dir", data_dir)


# --- one Master, without a fleet -------------------------------------------------------------------------------------

ANY_PORT = ("--http-port", "0", "--https-port", "0", "--trunk-port", "0", "--health-port", "0")


@contextmanager
def opened(data_dir: Path) -> Iterator[Master]:
    """The services of a Master, as main opens them, in this process."""
    data_dir.mkdir(mode=0o700, exist_ok=True)
    rooms = build(data_dir, SystemClock(), SystemRng())
    try:
        rooms.identity.first_account()
        yield rooms
    finally:
        rooms.close()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data`, a market that ran once, and `market.tar`, a backup that was made while it did."""
    folder = tmp_path_factory.mktemp("kept")
    with opened(folder / "data"):
        done(0, "backup", folder / "market.tar", "--data-dir", folder / "data")
    return folder


@pytest.fixture
def data_dir(kept: Path, tmp_path: Path) -> Path:
    """A copy of the market."""
    return Path(shutil.copytree(kept / "data", tmp_path / "data"))


def done(code: int, *words: str | Path) -> str:
    """Returns the output of `windrow-master ...`, run in this process."""
    said = io.StringIO()
    mask = os.umask(0o077)
    with redirect_stdout(said), redirect_stderr(said):
        found = command.main([str(word) for word in words])
    os.umask(mask)
    assert found == code, said.getvalue()
    return said.getvalue()


def damaged(path: Path, damage: str) -> None:
    """Harm a database as disks do."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    if damage == "noise":
        data[4096 : 41 * 4096] = os.urandom(40 * 4096)
    elif damage == "cut":
        del data[len(data) // 3 :]
    else:
        data[:100] = os.urandom(100)
    path.write_bytes(data)


@pytest.mark.row("F26")
@pytest.mark.parametrize("damage", ["noise", "cut", "header"])
def test_a_damaged_database_is_called_so(data_dir: Path, kept: Path, damage: str) -> None:
    damaged(data_dir / "master.sqlite3", damage)

    with pytest.raises(DatabaseDamaged) as refused, opened(data_dir):
        pass

    assert "is damaged" in refused.value.detail and "may write" not in refused.value.detail
    assert "PROBLEM  database" in done(1, "check", "--data-dir", data_dir)
    done(0, "restore", kept / "market.tar", "--data-dir", data_dir)
    assert "is whole" in done(0, "check", "--data-dir", data_dir)
    with opened(data_dir) as rooms:
        assert rooms.store.epoch > 1_000_000_000


@pytest.mark.row("F26")
def test_windrow_up_says_once_how_to_get_a_damaged_database_back_and_does_not_loop(data_dir: Path, kept: Path) -> None:
    damaged(data_dir / "master.sqlite3", "noise")

    up = subprocess.run(
        [WINDROW, "up", "--data-dir", data_dir], capture_output=True, text=True, timeout=120, check=False
    )

    way_back = f"windrow-master restore {kept / 'market.tar'} --data-dir {data_dir}"
    assert up.returncode == 1 and way_back in up.stdout and "windrow-master check" in up.stdout, up.stdout
    assert "starts again" not in up.stdout and "user 0" not in up.stdout, up.stdout


@pytest.mark.row("F26")
async def test_damage_that_is_met_while_it_runs_stops_every_write(data_dir: Path) -> None:
    with opened(data_dir) as rooms:
        with closing(sqlite3.connect(data_dir / "master.sqlite3")) as connection:
            root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()[0]
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with (data_dir / "master.sqlite3").open("r+b") as file:
            file.seek((root - 1) * 4096)
            file.write(os.urandom(4096))

        with pytest.raises(StorageFailed):
            await rooms.store.read(lambda uow: uow.events.newest())

        assert rooms.store.is_damaged and "damaged" in str(rooms.store.problem)


@pytest.mark.row("F21")
@pytest.mark.parametrize("name", ["ca.key", "ca.pem", "sign.key", "artefacts.key"])
def test_lost_keys_are_never_made_anew_in_silence(data_dir: Path, kept: Path, name: str) -> None:
    path = data_dir / "identity" / name
    before = path.read_bytes()
    path.unlink()

    with pytest.raises(KeysUnusable) as refused, opened(data_dir):
        pass

    assert f"{name} is missing" in refused.value.detail and "restore these from a backup" in refused.value.detail
    assert not path.exists()
    assert f"{name} is missing" in done(1, "check", "--data-dir", data_dir)
    done(0, "restore", kept / "market.tar", "--data-dir", data_dir)
    assert path.read_bytes() == before


@pytest.mark.row("F21")
def test_keys_of_another_market_are_not_taken_for_ones_own(data_dir: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "other"):
        pass
    shutil.copy(tmp_path / "other" / "identity" / "ca.key", data_dir / "identity" / "ca.key")

    with pytest.raises(KeysUnusable, match=r"is not the key of"), opened(data_dir):
        pass


@pytest.mark.row("F21")
@pytest.mark.parametrize("loss", ["no anchor", "older database", "no database", "emptied log", "another key"])
async def test_an_audit_log_that_is_not_intact_is_a_condition_until_a_person_has_looked(
    data_dir: Path, kept: Path, tmp_path: Path, loss: str
) -> None:
    database = data_dir / "master.sqlite3"
    if loss == "no anchor":
        (data_dir / "audit.anchor").unlink()
    elif loss == "older database":
        with opened(data_dir) as rooms:
            await rooms.audit.checkpoint()
        with tarfile.open(kept / "market.tar") as archive:
            archive.extract("master.sqlite3", data_dir, filter="data")
    elif loss == "no database":
        database.unlink()
    elif loss == "emptied log":
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("DELETE FROM audit")
            connection.commit()
    else:
        with opened(tmp_path / "other"):
            pass
        shutil.copy(tmp_path / "other" / "identity" / "sign.key", data_dir / "identity" / "sign.key")
    before = [path.read_bytes() for path in data_dir.glob("audit.anchor")]

    with opened(data_dir) as rooms:
        await rooms.audit.checkpoint()
        ((code, _, _),) = rooms.audit.conditions()
        assert (code, rooms.store.problem) == ("audit.broken", None)
        assert "windrow audit reanchor" in code.remedy and "windrow-master restore" in code.remedy
        assert [path.read_bytes() for path in data_dir.glob("audit.anchor")] == before, "not made anew in silence"

        await rooms.audit.reanchor("account/operator", "the disk was replaced")

        await rooms.audit.checkpoint()
        assert list(rooms.audit.conditions()) == []
        (entry,) = await rooms.audit.list(AuditQuery(action="audit.reanchor"), None, 2)
        assert entry.reason == "the disk was replaced" and entry.fields["problem"]


@pytest.mark.long
@pytest.mark.row("F21")
def test_a_wrong_anchor_is_told_by_health_and_doctor_and_taken_away_by_one_command(data_dir: Path) -> None:
    (data_dir / "audit.anchor").write_text("xx\n")
    command = [sys.executable, "-m", "windrow_master", "--data-dir", str(data_dir), *ANY_PORT]

    def cli() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((data_dir / "cli.json").read_text())
        return found

    def healthz() -> dict[str, Any]:
        with urllib.request.urlopen(cli()["health_url"], timeout=30) as answer:  # an error of HTTP is raised
            found: dict[str, Any] = json.load(answer)
            return found

    def windrow(*words: str) -> tuple[int, str]:
        known = {"WINDROW_URL": cli()["url"], "WINDROW_TOKEN": cli()["token"]}
        ended = subprocess.run(
            [WINDROW, *words], env=os.environ | known, capture_output=True, text=True, timeout=120, check=False
        )
        return ended.returncode, ended.stdout + ended.stderr

    with (data_dir.parent / "master.log").open("ab") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            wait_for(lambda: healthz()["conditions"] == ["audit.broken"])
            assert healthz()["status"] == "ok"
            code, said = windrow("doctor")
            assert code == 1 and "audit.broken" in said, said
            assert windrow("audit", "reanchor")[0] == 2, "nobody takes it as it is without a reason"
            assert windrow("audit", "reanchor", "--reason", "I wrote it")[0] == 0
            assert healthz()["conditions"] == []
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


CHANGED: dict[str, dict[str, Any]] = {
    "newer": {"format": 2},
    "ahead": {"schema": "9999"},
    "older": {"schema": "0029_job_files"},
}
"""The fields of a backup's manifest."""


@pytest.mark.row("F18")
@pytest.mark.parametrize("flaw", ["cut", "bit", "more", "link", "newer", "ahead", "older", "letter"])
def test_a_backup_that_is_damaged_newer_or_too_old_changes_nothing(
    data_dir: Path, kept: Path, tmp_path: Path, flaw: str
) -> None:
    backup = tmp_path / "bad.tar"
    data = bytearray((kept / "market.tar").read_bytes())
    if flaw == "cut":
        del data[len(data) // 2 :]
    elif flaw == "bit":
        data[len(data) // 2] ^= 1
    elif flaw == "letter":
        data = bytearray(b"a letter to my grandmother" * 100)
    backup.write_bytes(data)
    if flaw in {"more", "link", *CHANGED}:
        rewrite(kept / "market.tar", backup, flaw)
    before = {path: path.read_bytes() for path in data_dir.rglob("*") if path.is_file()}

    said = done(1, "restore", backup, "--data-dir", data_dir)

    assert {"newer": "newer Windrow", "ahead": "newer Windrow", "older": "too old"}.get(flaw, "backup") in said, said
    assert {path: path.read_bytes() for path in data_dir.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "escaped").exists()
    done(1, "check", backup, "--data-dir", data_dir)


def rewrite(source: Path, target: Path, flaw: str) -> None:
    """The backup with one thing more or other than was made."""
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for entry in old:
            content = old.extractfile(entry)
            assert content is not None
            data = content.read()
            if flaw in CHANGED and entry.name == "manifest.json":
                data = json.dumps({**json.loads(data), **CHANGED[flaw]}).encode()
            if flaw == "link" and entry.name == "identity/ca.key":
                entry.type, entry.linkname, data = tarfile.SYMTYPE, "/etc/passwd", b""
            entry.size = len(data)
            new.addfile(entry, io.BytesIO(data))
        if flaw == "more":
            new.addfile(tarfile.TarInfo("../escaped"), io.BytesIO(b""))


@pytest.mark.row("F18")
def test_a_market_elsewhere_starts_from_the_backup_alone(kept: Path, tmp_path: Path) -> None:
    data_dir = tmp_path / "elsewhere"

    said = done(0, "restore", kept / "market.tar", "--data-dir", data_dir)

    assert "before-restore" not in said
    for name in ("ca.key", "sign.key", "artefacts.key"):
        assert (data_dir / "identity" / name).read_bytes() == (kept / "data" / "identity" / name).read_bytes()
    with opened(data_dir) as rooms:
        assert rooms.store.read_now(lambda uow: uow.terms.backup_at_ns()) is not None
        assert "restored from a backup" in rooms.identity.forgetting()


@pytest.mark.row("F18")
def test_a_restore_that_was_cut_short_is_not_started_on_and_goes_on(
    data_dir: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_paths: object) -> None:
        raise OSError("the power went")

    with monkeypatch.context() as patched:
        patched.setattr("windrow_master.recovery.restore.shutil.move", cut)
        assert "the power went" in done(1, "restore", kept / "market.tar", "--data-dir", data_dir)
    with pytest.raises(Conflict, match="cut short"):
        check_whole(data_dir)

    done(0, "restore", kept / "market.tar", "--data-dir", data_dir)

    check_whole(data_dir)
    assert "is whole" in done(0, "check", "--data-dir", data_dir)


@pytest.mark.row("F26")
@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"{}", b"[]", b"null", b"9" * 10_000])
def test_a_manifest_that_is_none_is_called_so(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="no backup of Windrow"):
        manifest.decoded(data)
