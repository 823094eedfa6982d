"""The agent with a Python of its own: what goes in, how it is packed, and that a cut or changed file does nothing."""

import base64
import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # no stubs in the locks
from hypothesis import given
from hypothesis import strategies as st

from windrow_agent import release
from windrow_master.onboarding import archive, runtime
from windrow_master.onboarding.archive import Entry
from windrow_master.onboarding.join_line import filled
from windrow_master.onboarding.model import Artifact, Manifest, record_of
from windrow_master.onboarding.packages import MAINTAINER
from windrow_master.onboarding.service import carried
from windrow_proto.keys import SigningKey
from windrow_proto.manifest import signed

URL, PIN = "https://gpu.example:8443", "sha256//abc="
KEY = bytes(range(32))
TREE = {
    "bin/windrow-agent": Entry(b'#!/bin/sh\necho "agent $*" >>"$TOLD"\n', is_program=True),
    "lib/data": Entry(b"data"),
}
HEAD = carried("windrow-agent-onefile").read_bytes()
CONTROL = (("Package", "windrow-agent"), ("Version", "1.2"), ("Architecture", "all"), ("Maintainer", "a <a@b.c>"))


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("os.py", True),
        ("asyncio/events.py", True),
        ("lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so", True),
        ("lib-dynload/readline.cpython-311-x86_64-linux-gnu.so", False),
        ("lib-dynload/_tkinter.cpython-311-x86_64-linux-gnu.so", False),
        ("test/support/__init__.py", False),
        ("site-packages/theirs.py", False),
        ("config-3.11-x86_64-linux-gnu/Makefile", False),
        ("json/__pycache__/x.pyc", False),
    ],
)
def test_of_the_standard_library_goes_what_an_agent_runs(path: str, kept: bool) -> None:
    assert runtime.is_kept(path) is kept


def test_libraries_that_every_machine_has_stay_behind_and_missing_ones_are_named() -> None:
    said = """
\tlinux-vdso.so.1 (0x00007f3ce31c2000)
\tlibssl.so.3 => /lib/x86_64-linux-gnu/libssl.so.3 (0x00007f3ce2a00000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f3ce2fca000)
\tlibstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f3ce2fca000)
\tlibgone.so.1 => not found
\t/lib64/ld-linux-x86-64.so.2 (0x00007f3ce31c4000)
"""
    assert runtime.libraries_of(said) == (("libssl.so.3", "/lib/x86_64-linux-gnu/libssl.so.3"),)
    assert runtime.unresolved(said) == ("libgone.so.1",)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,4}(/[a-z]{1,4}){0,2}\.x", fullmatch=True), st.binary(max_size=40)))
def test_the_same_files_give_the_same_bytes_in_any_order(files: dict[str, bytes]) -> None:
    entries = {path: Entry(content) for path, content in files.items()}
    assert archive.tar_gz(entries, "./") == archive.tar_gz(dict(reversed(entries.items())), "./")


def test_an_archive_holds_programs_files_and_links_of_root(tmp_path: Path) -> None:
    packed = tmp_path / "a.tar.gz"
    packed.write_bytes(archive.tar_gz({**TREE, "usr/bin/w": Entry(link="../../bin/windrow-agent")}))
    with tarfile.open(packed) as found:
        members = {member.name: member for member in found.getmembers()}
    assert sorted(members) == ["bin", "bin/windrow-agent", "lib", "lib/data", "usr", "usr/bin", "usr/bin/w"]
    assert members["bin/windrow-agent"].mode == 0o755 and members["lib/data"].mode == 0o644
    assert members["usr/bin/w"].linkname == "../../bin/windrow-agent"
    assert {(member.uid, member.gid, member.mtime) for member in members.values()} == {(0, 0, 0)}


def test_a_package_is_one_that_dpkg_reads(tmp_path: Path) -> None:
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not here: this machine is no Debian")
    path = tmp_path / "a.deb"
    path.write_bytes(archive.deb(CONTROL, {name: carried(name).read_bytes() for name in MAINTAINER}, TREE))

    def ask(*arguments: str) -> str:
        command = ["dpkg-deb", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    assert ask("--field", str(path), "Package", "Version") == "Package: windrow-agent\nVersion: 1.2\n"
    assert ask("--field", str(path), "Installed-Size") == "2\n"
    ask("--extract", str(path), str(tmp_path / "out"))
    assert (tmp_path / "out/lib/data").read_bytes() == b"data"
    ask("--control", str(path), str(tmp_path / "control"))
    assert {one.name for one in (tmp_path / "control").iterdir()} == {"control", "md5sums", *MAINTAINER}
    md5 = hashlib.md5(b"data", usedforsecurity=False).hexdigest()
    assert f"{md5}  lib/data\n" in (tmp_path / "control/md5sums").read_text()


@pytest.mark.parametrize("name", [*MAINTAINER, "windrow-agent-onefile", "install.sh", "windrow-agent-keep"])
def test_every_script_is_one_that_a_shell_reads(name: str) -> None:
    done = subprocess.run(["sh", "-n", str(carried(name))], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["windrow-agent-onefile", "install.sh"])
def test_before_the_call_of_main_a_script_only_defines(name: str) -> None:
    """Without its last call it runs no command at all, and so a part of it cannot either: a shell that has not read the
    end of main's braces runs nothing of them."""
    text = carried(name).read_text(encoding="utf-8")
    before, call, after = text.rpartition('\nmain "$@"\n')
    assert call and after in ("", "exit\n")
    command = ["sh", "-x", "-c", f"{before}\n"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def run(path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run it in a place of its own; what the agent in it was told is in `told`."""
    top = path.parent
    return subprocess.run(
        ["sh", str(path), *arguments],
        env={"PATH": "/usr/bin:/bin", "WINDROW_AGENT_HOME": str(top / "home"), "TOLD": str(top / "told")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "windrow-agent"
    path.write_bytes(archive.one_file(HEAD, archive.tar_gz(TREE)))
    return path


def test_one_file_unpacks_once_and_becomes_the_agent(packed: Path) -> None:
    done = run(packed, "join", "a b")
    assert (done.returncode, done.stderr) == (0, "")
    (place,) = (packed.parent / "home").iterdir()
    seen = (place / "bin/windrow-agent").stat().st_ino
    assert run(packed, "doctor").returncode == 0
    assert (packed.parent / "told").read_text() == "agent join a b\nagent doctor\n"
    assert (place / "bin/windrow-agent").stat().st_ino == seen


def test_one_file_that_was_cut_does_nothing(packed: Path) -> None:
    whole = packed.read_bytes()
    for cut in [*range(0, len(whole), 23), *range(len(HEAD) - 30, len(HEAD) + 3), len(whole) - 1]:
        packed.write_bytes(whole[:cut])
        run(packed, "doctor")
        assert not (packed.parent / "told").exists(), f"cut at byte {cut} of {len(whole)}"
        assert list((packed.parent / "home").glob("*")) == []


@pytest.mark.parametrize("place", [-1, -100])
def test_one_changed_byte_behind_the_head_is_refused(packed: Path, place: int) -> None:
    content = bytearray(packed.read_bytes())
    content[place] ^= 1
    packed.write_bytes(content)
    done = run(packed, "doctor")
    assert (done.returncode, "not whole" in done.stderr) == (1, True)
    assert not (packed.parent / "told").exists()
    assert list((packed.parent / "home").iterdir()) == []


def test_a_file_that_the_hosts_own_master_did_not_sign_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, file, listed = SigningKey.generate(), tmp_path / "file", tmp_path / "packages.json"
    known = SimpleNamespace(master_public=key.public, master_url=URL, subject_id="host_1")
    monkeypatch.setattr(release, "IdentityFolder", lambda folder: SimpleNamespace(load=lambda: known))
    file.write_bytes(b"packed")
    manifest = Manifest("3.11", "linux-x86_64", "0" * 64, (Artifact.of("a.tar.gz", "archive", b"packed"),))
    listed.write_bytes(signed(record_of(manifest), key))
    arguments = [str(listed), str(tmp_path), "a.tar.gz", str(file)]
    assert (release.main(arguments), release.main(arguments[:2])) == (0, 0)
    file.write_bytes(b"pacKed")
    assert (release.main(arguments), release.main(arguments[:2])) == (1, 0)
    assert release.main([*arguments[:2], "b.tar.gz", str(file)]) == 1
    listed.write_bytes(signed(record_of(manifest), SigningKey.generate()))
    assert release.main(arguments[:2]) == 1


# --- cloud-init ---------------------------------------------------------------------------------------------------


def cloud_config() -> dict[str, Any]:
    text = filled(carried("cloud-init.yaml").read_text(encoding="utf-8"), URL, PIN, KEY)
    assert text.startswith("#cloud-config\n")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_the_cloud_config_has_the_form_that_cloud_init_reads() -> None:
    found = cloud_config()
    assert set(found) == {"package_update", "packages", "write_files", "runcmd"}
    assert found["package_update"] is True and found["packages"] == ["curl", "openssl"]
    assert all(isinstance(line, list) and all(isinstance(word, str) for word in line) for line in found["runcmd"])
    (file,) = found["write_files"]
    assert set(file) == {"path", "permissions", "content"} and file["permissions"] == "0600"
    assert file["content"] == "WINDROW_JOIN_TOKEN\n"


def test_the_cloud_config_names_its_master_and_keeps_the_token_out_of_arguments() -> None:
    commands = [" ".join(line) for line in cloud_config()["runcmd"]]
    assert f"--pinnedpubkey {PIN} {URL}/install.sh" in commands[0]
    assert commands[1].endswith(f"--url {URL} --pin {PIN} --token-file /run/windrow/join-token --yes")
    assert "WINDROW_JOIN_TOKEN" not in " ".join(commands)
    assert commands[-1] == "rm -rf /run/windrow"


def test_a_served_installer_knows_its_master_and_one_on_disk_does_not() -> None:
    text = carried("install.sh").read_text(encoding="utf-8")
    signer = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + KEY).decode()
    assert f"    ACTION=install URL={URL} PIN={PIN} SIGNER={signer} ACCESS= " in filled(text, URL, PIN, KEY)
    assert filled(text, "", "", KEY) == text
    assert filled(text, "https://a;id", PIN, KEY).count("URL='https://a;id' ") == 1
