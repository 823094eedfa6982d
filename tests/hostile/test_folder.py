"""The folder that is sent is the one that a person has, without secrets; what comes back is what changed there."""

import hashlib
import io
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import IS_LONG
from tests.support.archives import Sent, file, put, tree
from tests.support.rental import Renter, renting
from tests.support.stack import WINDROW, wait_for
from windrow.errors import WindrowClientError
from windrow.folder import record, transfer
from windrow.folder.sending import Left, Looks, Parcel, is_of_system, pack, refuse_root, single, survey, walk

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz\n"

NOBODY = 65534


def made(root: Path, **files: str) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def fill(root: Path, *names: str) -> Path:
    return made(root, **dict.fromkeys(names, "x"))


def names(parcel: Parcel) -> set[str]:
    return {entry.name for entry in parcel.entries}


def packed(parcel: Parcel) -> dict[str, tarfile.TarInfo]:
    out = io.BytesIO()
    pack(parcel, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        return {member.name: member for member in tar}


# --- K3: what is sent ------------------------------------------------------------------------------------------------


@pytest.mark.row("K3")
def test_links_empty_folders_modes_and_times_travel(tmp_path: Path) -> None:
    root = fill(tmp_path / "in", "real.txt", "sub/x")
    (tmp_path / "outside").write_text("secret")
    (root / "empty" / "deep").mkdir(parents=True)
    for name, target in {
        "link.txt": "real.txt",
        "sublink": "sub",
        "sub/up": "../real.txt",
        "dangling": "later",
        "absolute": str(root / "real.txt"),
        "out": "../outside",
        "passwd": "/etc/passwd",
        "way": "out",
    }.items():
        (root / name).symlink_to(target)
    (root / "real.txt").chmod(0o664)
    os.utime(root / "real.txt", ns=(1, 1_700_000_000_123_456_789))

    parcel = survey(root)
    found = packed(parcel)

    links = {name: member.linkname for name, member in found.items() if member.issym()}
    assert links == {
        "link.txt": "real.txt",
        "sublink": "sub",
        "sub/up": "../real.txt",
        "dangling": "later",
        "absolute": "real.txt",
    }
    assert found["empty/deep"].isdir()
    assert oct(found["real.txt"].mode) == "0o664"
    assert found["real.txt"].pax_headers["mtime"] == "1700000000.123456789"
    assert set(parcel.left.links) == {"out", "passwd", "way"}
    assert any("3" not in line and "out" in line for line in parcel.left.lines())


@pytest.mark.row("K3")
def test_ignore_files_mean_what_they_mean_to_git(tmp_path: Path) -> None:
    paths = (
        *("data/big", "src/data/small", "a.log", "keep.log", "x.tmp", "important.tmp", "wandb/run/x", "deep/a/b/c.bin"),
        *("deep/a/keep.bin", "build/x", "src/build/y", "foo/bar", "foo/keep", "#odd", "trailing ", "out/x", "lib/x.py"),
        *("nested/only.txt", "nested/also.txt", "crlf.bin"),
    )
    root = fill(tmp_path, *paths)
    (root / ".gitignore").write_text("/data\n*.log\nwandb/\n*.bin\n!deep/a/keep.bin\nbuild/\nfoo/**\n!foo/keep\nout/\n")
    (root / "nested" / ".gitignore").write_text("/only.txt\n")
    (root / ".windrowignore").write_text(
        "# ours\n!keep.log\n*.tmp\n!important.tmp\n\\#odd\n!out/\n*.bin\r\nno-such-thing/\n!lib/\n"
    )
    parcel = survey(root)
    files = {entry.name for entry in parcel.entries if entry.is_file}
    expected = {"src/data/small", "keep.log", "important.tmp", "foo/keep", "trailing ", "out/x", "lib/x.py"}
    assert files == {*expected, "nested/also.txt", ".gitignore", ".windrowignore", "nested/.gitignore"}
    assert parcel.left.idle_lines == ["no-such-thing/"]
    if shutil.which("git"):  # without our own file git itself is the judge
        (root / ".windrowignore").unlink()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "-o", "--exclude-standard"], capture_output=True, check=True
        )
        judged = {os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
        assert {entry.name for entry in survey(root).entries if entry.is_file} == judged


@pytest.mark.row("K3")
def test_a_folder_inside_a_repository_is_judged_by_all_of_it(tmp_path: Path) -> None:
    paths = ("a/b/x.py", "a/b/data/d", "a/b/x.log", "a/b/keep.log", "a/b/local.cfg", "a/b/deep/data/d", "a/b/only")
    root = fill(tmp_path, *paths) / "a" / "b"
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("local.cfg\n")
    (tmp_path / ".gitignore").write_text("data/\n*.log\n/only\n")
    (tmp_path / "a" / ".gitignore").write_text("!keep.log\n/b/only\n")

    def sent() -> set[str]:
        return {entry.name for entry in survey(root).entries if entry.is_file}

    assert sent() == {"x.py", "keep.log"}
    if shutil.which("git"):
        shutil.rmtree(tmp_path / ".git")
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
        (tmp_path / ".git" / "info" / "exclude").write_text("local.cfg\n")
        command = ["git", "-C", str(root), "ls-files", "-z", "-o", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, check=True)
        assert sent() == {os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
    (tmp_path / ".gitignore").write_text("*\na/\n/a/b/data\n")  # who works in an ignored folder means it
    assert sent() == {"x.py", "x.log", "keep.log", "deep/data/d"}


SECRETS = (
    *(".env", ".env.local", "prod.env", ".envrc", "server.pem", "tls.key", "id_rsa", "id_ed25519", "sub/id_rsa.bak"),
    *(".netrc", ".aws/credentials", ".kube/config", ".gnupg/x", "credentials.json", "credentials-prod.json", ".pypirc"),
    *("client_secret_1.json", "my-service-account.json", ".git-credentials", "secrets.toml", "deep/er/.env", "ID_RSA"),
    *(".docker/config.json", ".config/gcloud/x", "terraform.tfstate", "a.p12", "a.PFX", ".huggingface/token"),
    *(".npmrc", "kaggle.json", ".kaggle/kaggle.json", ".dockercfg", ".config/rclone/rclone.conf", "sub/rclone.conf"),
    *("hf_token", "sub/hf_token.txt", ".vast_api_key", ".cache/huggingface/token", ".cache/huggingface/stored_tokens"),
    *("token.json", "gcp-key.json", "service-account-1.json", "application_default_credentials.json", "wallet.dat"),
    *(".s3cfg", ".boto", ".pgpass", ".my.cnf", ".azure/x", "a.kdbx", "a.jks", "a.ppk"),
)
OPEN = (
    *("id_rsa.pub", ".env.example", ".env.sample", "train.py", "monkey.py", "environment.yml", "keys.txt"),
    *("tokenizer.json", "tokens.txt", "special_tokens_map.json", "monkey.json", "hf_token.py", "config.json"),
)


@pytest.mark.row("K3")
def test_what_looks_like_a_secret_stays_here_with_one_line(tmp_path: Path) -> None:
    root = fill(tmp_path, *SECRETS, *OPEN)
    made(root, **{"notes": f"see:\n{KEY}", "bundle.txt": f"-----BEGIN CERTIFICATE-----\nx\n{KEY}", "acc.json": "{}"})
    (root / "acc.json").write_text(
        '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\\nx"}' + " " * 64
    )
    (root / "speaks.py").write_text(f'"""Of keys."""\nMARK = "-----BEGIN PRIVATE KEY-----"\nbegins({KEY[:30]!r})\n' * 3)
    (root / "sub" / "rc").write_text("//registry.example/:_authToken=npm_abcdefghijklmnopqrstuvwxyz0123456789\n\n")
    parcel = survey(root)
    sent = {entry.name for entry in parcel.entries if entry.is_file}
    assert sent == {*OPEN, "speaks.py"}
    (line,) = [line for line in parcel.left.lines() if "secret" in line]
    assert ".aws/" in line and "--include-secrets" in line
    assert {"notes", "bundle.txt", "acc.json", "sub/rc"} <= set(parcel.left.secrets)
    whole = {entry.name for entry in survey(root, include_secrets=True).entries if entry.is_file}
    assert {*SECRETS, *OPEN, "notes"} <= whole
    (root / ".windrowignore").write_text("!server.pem\n!/notes\n!.aws/\n!.aws/credentials\n")
    asked = {entry.name for entry in survey(root).entries if entry.is_file} - sent
    assert asked == {"server.pem", "notes", ".aws/credentials", ".windrowignore"}


@pytest.mark.row("K3")
def test_environments_stay_here_whatever_their_name(tmp_path: Path) -> None:
    root = fill(tmp_path, "env/pyvenv.cfg", "env/bin/python", "a/b/my/pyvenv.cfg", "a/b/x", ".git/HEAD", ".ssh/id", "x")
    fill(root, "node_modules/x", "sub/.venv/x", "sub/__pycache__/x", ".windrow/cli.json")
    parcel = survey(root)
    assert {entry.name for entry in parcel.entries if entry.is_file} == {"a/b/x", "x"}
    assert parcel.left.environments == ["a/b/my/", "env/"]
    assert not {"a/b/my", "env"} & names(parcel), "not even as an empty folder"


@pytest.mark.row("K3")
def test_homes_and_what_is_above_them_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "homes" / "me"
    fill(home, "x")
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "door").symlink_to(home)
    for place in (home, home.parent, tmp_path, Path("/"), tmp_path / "door", Path("/root"), home / ".." / "me"):
        if place.exists() and (place != Path("/root") or os.geteuid() == 0):
            with pytest.raises(WindrowClientError, match="home"):
                survey(place)
    assert names(survey(fill(home / "project", "y"))) == {"y"}
    assert names(single(home / "x")) == {"x"}


@pytest.mark.row("K3")
def test_folders_of_the_system_are_refused_and_a_persons_own_in_them_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "door").symlink_to("/etc")
    refused = ("/etc", "/etc/ssl", "/var", "/var/lib", "/var/log", "/opt", "/srv", "/usr", str(tmp_path / "door"))
    for place in refused:
        with pytest.raises(WindrowClientError, match=r"system|home"):
            refuse_root(Path(place))
    for place in ("/root", "/root/project", "/opt/project", "/srv/a/b", "/var/lib/ci/x", "/usr/src/app", "/workspace"):
        assert is_of_system(Path(place)) == (place == "/root"), place


@pytest.mark.row("K3")
def test_what_cannot_be_sent_is_named_and_the_rest_goes(tmp_path: Path) -> None:
    root = fill(tmp_path, "a", "gone", "grows", "shrinks", "swapped", "z")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(root / "sock"))
    deep = root.joinpath(*["d" * 200] * 6)
    os.makedirs(deep.parent, exist_ok=True)
    (deep.parent / ("n" * 100)).touch()
    (deep.parent / ("m" * 100)).mkdir()
    parcel = survey(root)
    (root / "gone").unlink()
    (root / "swapped").unlink()
    (root / "swapped").symlink_to("/etc/passwd")
    (root / "shrinks").write_text("")

    class Growing(io.BytesIO):
        def write(self, data: Any) -> int:
            with (root / "grows").open("a") as grown:
                grown.write("more")
            return super().write(data)

    out = Growing()
    sent = pack(parcel, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        found = {member.name for member in tar if member.isreg()}
    assert found == {"a", "shrinks", "z"} == {name for name, digest in sent.items() if digest != "folder"}
    odd = " ".join(parcel.left.odd)
    assert all(name in odd for name in ("pipe", "sock", "gone", "grows", "swapped", "1024 bytes"))


@pytest.mark.row("K3")
def test_a_large_folder_is_looked_at_quickly_again(tmp_path: Path) -> None:
    for number in range(100):
        fill(tmp_path, *(f"{number}/{one}" for one in range(20)))
    (tmp_path / ".gitignore").write_text("*.log\n/data\nwandb/\n")
    looks = Looks()
    began = time.process_time()
    assert sum(1 for _ in walk(tmp_path, Left(), looks)) == 2101
    assert time.process_time() - began < 2


# --- there and back --------------------------------------------------------------------------------------------------


@pytest.mark.row("K1", "K2")
def test_a_record_of_what_was_sent_decides_what_may_be_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = fill(tmp_path / "in", "f", "g", "h")
    sent = io.BytesIO()
    transfer.send(survey(root), ["cluster_1", "cluster_2"], lambda packed: sent.write(packed.read()))
    assert record.origin("cluster_1") == root
    (root / "g").write_text("mine")
    source = io.BytesIO(sent.getvalue())
    theirs = io.BytesIO()
    with tarfile.open(fileobj=source) as tar, tarfile.open(fileobj=theirs, mode="w") as out:
        for member in tar:
            member.size = len(b"theirs")
            out.addfile(member, io.BytesIO(b"theirs"))
    report = transfer.bring(Sent(theirs.getvalue()), "cluster_2", root)
    assert tree(root) == {"f": b"theirs", "h": b"theirs", "g": b"mine", "g.from-cluster_2": b"theirs"}
    assert report.is_whole
    elsewhere = transfer.bring(Sent(theirs.getvalue()), "cluster_2", tmp_path / "into")
    assert len(elsewhere.written) == 3
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")  # a home that cannot be written stops nothing
    assert transfer.bring(Sent(theirs.getvalue()), "cluster_2", tmp_path / "third").is_whole


# --- end to end ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def renter() -> Iterator[Renter]:
    with renting() as found:
        found.online()
        yield found


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


RESULT_MIB = 1200 if IS_LONG else 64


@pytest.mark.row("F3", "F19", "K1", "K2", "K3")
@pytest.mark.timeout(300)
def test_a_project_there_and_back(renter: Renter, here: Path) -> None:
    """Attacks, links, modes and a large result by the shipped daemons."""
    subprocess.run(["git", "init", "-q", str(here)], check=True)
    config = (here / ".git" / "config").read_bytes()
    fill(here, "real.txt", "touched", "edited", ".env")
    (here / "real.txt").chmod(0o664)
    (here / "link.txt").symlink_to("real.txt")
    (here / "outputs").mkdir()
    words = (
        "set -e; cat link.txt >outputs/r; test ! -e .env; touch touched; echo more >>real.txt; echo remote >edited;"
        "mkdir -p .git/hooks .ssh node_modules/.bin run-1; echo evil >.git/config; echo evil >.git/hooks/pre-commit;"
        "echo evil >.envrc; echo evil >.ssh/config; printf '#!/bin/sh\\n' >tool; chmod 755 tool;"
        "ln -s run-1 latest; ln -s /etc/passwd passwd; echo w >run-1/w; chmod 750 run-1;"
        "touch -d @1600000000 run-1; mkfifo a-pipe;"
        f"truncate -s {RESULT_MIB}M model.safetensors; echo end >>model.safetensors; echo z >zzz; exit 7"
    )
    out = subprocess.Popen(
        [WINDROW, "run", "--", "sh", "-c", f"echo up; sleep 3; {words}"],
        cwd=here,
        env=os.environ | {"WINDROW_URL": renter.stack.cli["url"], "WINDROW_TOKEN": renter.stack.cli["token"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: list[str] = []
    assert out.stdout is not None
    with out.stdout as told:
        for line in told:
            lines.append(line)
            if line == "up\n":
                (here / "edited").write_text("MINE")
    said = "".join(lines)
    assert out.wait() == 7, said
    found = tree(here)
    size = (here / "model.safetensors").stat().st_size
    assert size == (RESULT_MIB << 20) + 4
    cluster = next(name for name in found if name.startswith("edited.from-")).partition("from-")[2]
    assert (found["edited"], found[f"edited.from-{cluster}"]) == (b"MINE", b"remote\n")
    assert found["outputs/r"] == b"x" and found["latest"] == "run-1" and found["zzz"] == b"z\n"
    assert not {".envrc", ".ssh/config", "node_modules/.bin", "passwd"} & set(found)
    assert (here / ".git" / "config").read_bytes() == config and not (here / ".git/hooks/pre-commit").exists()
    assert oct((here / "real.txt").stat().st_mode & 0o777) == "0o664"
    assert oct((here / "tool").stat().st_mode & 0o111) == "0o0"
    assert oct((here / "run-1").stat().st_mode & 0o777) == "0o750"
    assert (here / "run-1").stat().st_mtime == 1_600_000_000
    assert "touched" not in said.partition("came back")[2].partition("\n")[0]
    assert ".env" in said and "passwd" in said and "a-pipe (a pipe" in " ".join(said.split())
    assert renter.ask("GET", f"/clusters/{cluster}")["phase"] in ("Deleted", "Finished", "Failed")


@pytest.mark.row("K1", "K4")
@pytest.mark.timeout(240)
def test_a_run_goes_on_without_its_client_and_its_files_are_fetched_twice(renter: Renter, here: Path) -> None:
    fill(here, "a")
    began = renter.windrow("run", "--detach", "--", "sh", "-c", "echo b >b; echo said; exit 0", cwd=here)
    assert began.returncode == 0, began.stderr
    cluster = began.stdout.strip().splitlines()[-1]
    renter.phase(cluster, "Finished", "Deleted")
    for into in ((), ("--into", str(here.parent / "other")), ()):
        done = renter.windrow("run", "fetch", cluster, *into, cwd=Path("/"))
        assert done.returncode == 0, done.stderr
    assert tree(here)["b"] == b"b\n" == tree(here.parent / "other")["b"]
    assert not [name for name in tree(here) if "from-" in name]
    assert renter.windrow("run", "--no-files", "--", "sh", "-c", "exit 0").returncode == 0


@pytest.mark.row("K4")
@pytest.mark.timeout(240)
def test_a_detached_run_that_its_renter_ends_has_left_its_log_and_files(renter: Renter, here: Path) -> None:
    fill(here, "a")
    began = renter.windrow("run", "--detach", "--", "sh", "-c", "echo b >b; echo said; exec sleep 600", cwd=here)
    assert began.returncode == 0, began.stderr
    cluster = began.stdout.strip().splitlines()[-1]
    wait_for(lambda: renter.windrow("cluster", "logs", cluster).stdout == "said\n")
    way = re.search(r"windrow (cluster delete --keep-results \S+)", " ".join(began.stderr.split()))
    assert way is not None, began.stderr
    ended = renter.windrow(*way[1].split(), "--yes")
    assert ended.returncode == 0, ended.stderr
    done = renter.windrow("run", "fetch", cluster, cwd=Path("/"))
    assert (done.returncode, tree(here)["b"]) == (0, b"b\n"), done.stderr
    assert renter.windrow("cluster", "logs", cluster).stdout == "said\n"


@pytest.mark.row("K4")
@pytest.mark.timeout(240)
def test_the_way_to_the_files_of_a_detached_run_without_a_folder_works_as_printed(renter: Renter, here: Path) -> None:
    began = renter.windrow("run", "--detach", "--no-files", "--", "sh", "-c", "echo b >b", cwd=here)
    assert began.returncode == 0, began.stderr
    renter.phase(began.stdout.strip().splitlines()[-1], "Finished", "Deleted")
    way = re.search(r"windrow (run fetch \S+ --into) DIR", " ".join(began.stderr.split()))
    assert way is not None, began.stderr
    done = renter.windrow(*way[1].split(), str(here), cwd=Path("/"))
    assert (done.returncode, tree(here)) == (0, {"b": b"b\n"}), done.stderr


class Slow:
    """Files of a cluster, whose reader does something else after the first piece."""

    def __init__(self, files: Any, meanwhile: Callable[[], object]) -> None:
        self.files, self.meanwhile = files, meanwhile
        self.asked: list[int] = []
        self.is_cut = self.is_resumed = False
        self.version = ""

    def pieces(self, offset: int) -> Iterator[bytes]:
        self.asked.append(offset)
        self.is_resumed = self.is_resumed or offset > 0
        for number, piece in enumerate(self.files.pieces(offset)):
            self.is_cut, self.version = self.files.is_cut, self.files.version
            yield piece
            if number == 0 and len(self.asked) == 1:
                self.meanwhile()


@pytest.mark.row("K1", "F19")
@pytest.mark.timeout(240)
def test_files_that_their_host_clears_away_meanwhile_come_from_what_is_kept(renter: Renter, here: Path) -> None:
    fill = "head -c 48000000 /dev/zero"
    done = renter.create("sh", "-c", f"{fill} >a.bin; echo up; echo z >zzz; while ! test -e end; do sleep 0.1; done")
    wait_for(lambda: renter.log(done["id"]))

    def end() -> None:
        assert renter.windrow("cluster", "exec", done["id"], "--", "touch", "end").returncode == 0
        renter.phase(done["id"], "Finished")
        renter.cleared(done["id"])

    with renter.stack.client() as api:
        source = Slow(api.files(done["id"], changed=True), end)
        report = transfer.bring(source, done["id"], here)
    assert report.is_whole and len(source.asked) > 1
    assert {name: len(data) for name, data in tree(here).items()} == {"a.bin": 48_000_000, "end": 0, "zzz": 2}


@pytest.mark.row("K4")
@pytest.mark.case("B-C1")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_what_was_rented(renter: Renter, here: Path, number: signal.Signals) -> None:
    before = {one["id"] for one in renter.all("/clusters")}
    child = subprocess.Popen(
        [WINDROW, "run", "--no-files", "--", "sh", "-c", "echo up; sleep 600"],
        cwd=here,
        env=os.environ | {"WINDROW_URL": renter.stack.cli["url"], "WINDROW_TOKEN": renter.stack.cli["token"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    with child.stdout as told:
        assert told.readline() == b"up\n"
    (mine,) = [one for one in renter.all("/clusters") if one["id"] not in before]
    assert mine["request"]["client_lease_s"] == 900
    child.send_signal(number)
    assert child.wait(30) == 128 + number
    assert renter.phase(mine["id"], "Deleted")


@pytest.mark.row("K1")
@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_a_folder_that_may_not_be_written_is_named_and_a_file_that_may_not_stays() -> None:
    with tempfile.TemporaryDirectory() as place:
        root = fill(Path(place), "ro.txt", "locked/x")
        for path in (root, root / "ro.txt"):
            os.chown(path, NOBODY, NOBODY)
        root.chmod(0o755)
        (root / "ro.txt").chmod(0o444)
        os.seteuid(NOBODY)
        try:
            sent = {"ro.txt": hashlib.sha256(b"x").hexdigest()}
            report = put(root, file("ro.txt"), file("locked/new"), file("zz"), sent=sent)
        finally:
            os.seteuid(0)
        assert [name for name, _ in report.missing] == ["locked/new"]
        assert tree(root) == {"ro.txt": b"x", "ro.txt.from-cluster_x": b"theirs", "locked/x": b"x", "zz": b"theirs"}
