"""Wheels for a joining machine are locked, whole, signed and the same for the same sources."""

import asyncio
import hashlib
import importlib.util
import io
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import poll_async
from windrow_master.onboarding import closure
from windrow_master.onboarding.join_line import is_loopback, join_line, link_note
from windrow_master.onboarding.model import Artifact, Manifest, Phase, Progress, record_of
from windrow_master.onboarding.service import CARRIED, Wheelhouse, _has_none_that_fits, carried, not_ready
from windrow_master.onboarding.wheel import Declared, pack
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.keys import SigningKey
from windrow_proto.manifest import signed, verified

ROOT = Path(__file__).parents[3]
NONE_FITS = "ERROR: No matching distribution found for msgpack==1.0.0"
DECLARED = Declared("windrow-thing", "1.2", "A thing.", ">=3.11", "Apache-2.0", ("psutil>=7",), {"thing": "thing:main"})
FILES = {"thing.py": b"def main():\n    print('it runs')\n"}
LOCK = f"""# made by hand
one==1.0 \\
    --hash=sha256:{"a" * 64} \\
    --hash=sha256:{"b" * 64}
Two_Parts==2.0 ; sys_platform == 'linux' \\
    --hash=sha256:{"c" * 64}
unused==3.0 \\
    --hash=sha256:{"d" * 64}
"""


def test_the_closure_follows_requirements_and_leaves_extras_out() -> None:
    declares = {
        "one": ["two.parts>=1; python_version > '3'", "never ; extra == 'docs'"],
        "two-parts": ["one", "absent"],
    }

    def requires(name: str) -> Sequence[str]:
        return declares.get(name, ())

    assert closure.needed(["One>=1"], requires) == {"one", "two-parts", "absent"}


def test_the_lines_of_the_lock_are_kept_with_marker_and_hashes() -> None:
    pins = closure.locked(frozenset({"one", "two-parts", "absent"}), closure.read_lock(LOCK))
    assert closure.requirements_text(pins) == LOCK.split("\n", 1)[1].split("unused")[0]
    assert pins[0].sha256 == {"a" * 64, "b" * 64}


def test_a_packed_wheel_installs_and_its_command_runs(tmp_path: Path) -> None:
    name, content = pack(DECLARED, FILES)
    (tmp_path / name).write_bytes(content)
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(tmp_path / name)], check=True, timeout=60, capture_output=True)
    done = subprocess.run(
        [sys.executable, target / "bin" / "thing"],
        env={"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "it runs\n"


def test_every_file_of_a_wheel_stands_in_its_record() -> None:
    archive = zipfile.ZipFile(io.BytesIO(pack(DECLARED, FILES)[1]))
    record = archive.read("windrow_thing-1.2.dist-info/RECORD").decode()
    assert {line.split(",")[0] for line in record.splitlines()} == set(archive.namelist())


@given(st.dictionaries(st.from_regex(r"p/[a-z]{1,8}\.py", fullmatch=True), st.binary(max_size=64), max_size=6))
def test_the_same_files_give_the_same_bytes_in_any_order(files: dict[str, bytes]) -> None:
    assert pack(DECLARED, files) == pack(DECLARED, dict(reversed(files.items())))


def test_a_manifest_is_believed_only_from_the_master_that_signed_it() -> None:
    key = SigningKey.generate()
    manifest = Manifest("3.11", "linux-x86_64", "0" * 64, (Artifact.of("a.whl", "wheel", b"a"),))
    content = signed(record_of(manifest), key)
    assert verified(content, key.public)["release"] == manifest.release
    with pytest.raises(BadProof):
        verified(content, SigningKey.generate().public)
    with pytest.raises(BadProof):
        verified(content.replace(b'"a.whl"', b'"b.whl"'), key.public)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"signature": "?", "manifest": 1}', b" " * 300_000])
def test_what_is_no_manifest_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInput):
        verified(content, SigningKey.generate().public)


def test_the_release_changes_whenever_any_file_does() -> None:
    one = Manifest("3.11", "linux-x86_64", "0" * 64, (Artifact.of("a.whl", "wheel", b"a"),))
    two = Manifest("3.11", "linux-x86_64", "0" * 64, (Artifact.of("a.whl", "wheel", b"b"),))
    assert one.release != two.release


def test_the_join_line_pins_the_key_and_keeps_the_token_out_of_arguments() -> None:
    line = join_line("https://gpu.example:8443", "sha256//abc=", "wj_secret.0123")
    assert "--pinnedpubkey sha256//abc=" in line
    assert " WINDROW_JOIN_TOKEN=wj_secret.0123 sh -s -- " in line
    assert "wj_secret" not in line.split("sh -s -- ")[1] + line.split("|")[0]
    assert "--this-machine-only" not in line


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_the_line_of_a_master_on_loopback_says_so(host: str) -> None:
    url = f"https://{host}:8443"
    assert is_loopback(url)
    assert join_line(url, "sha256//abc=", "wj_x.0").endswith(" --this-machine-only")


def test_a_link_says_why_it_may_not_open_for_others() -> None:
    assert "--listen 0.0.0.0 --public ADDRESS" in (link_note("https://127.0.0.1:8443", True) or "")
    assert "--tls-cert-file" in (link_note("https://gpu.example:8443", True) or "")
    assert link_note("https://gpu.example", False) is None


async def test_without_an_index_the_state_says_why_and_it_can_be_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    wheels = Wheelhouse(tmp_path / "wheels", SigningKey.generate())
    assert wheels.progress == Progress(Phase.ABSENT)
    wheels.want()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(wheels.run())
        await poll_async(lambda: wheels.progress.phase == "failed", 60, "the wheels have failed")
        running.cancel()
    assert "pip download ended with 1" in wheels.progress.sentence()
    assert wheels.file("manifest.json") is None
    assert not_ready(wheels.progress).retryable is False


@pytest.mark.parametrize(
    ("said", "is_left_out"),
    [
        ([NONE_FITS], True),
        (["WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'", NONE_FITS], False),
        (["ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."], False),
        ([], False),
    ],
)
def test_a_python_is_left_out_only_where_nothing_fits_it(said: list[str], is_left_out: bool) -> None:
    assert _has_none_that_fits(said) is is_left_out


def test_while_wheels_are_prepared_the_answer_is_to_come_again() -> None:
    answer = not_ready(Progress(Phase.PREPARING, "fetching", 3, 16))
    assert (answer.retryable, answer.http) == (True, 503)
    assert "fetching (3 of 16)" in answer.detail


def hook() -> dict[str, str]:
    """The files that master/hatch_build.py copies into a wheel."""
    spec = importlib.util.spec_from_file_location("hatch_build_of_master", ROOT / "master" / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, str] = module.CARRIED
    return found


def test_a_wheel_of_the_master_carries_what_it_reads_from_the_repository() -> None:
    assert hook() == CARRIED
    assert [name for name in CARRIED if not carried(name).is_file()] == []


def test_the_lock_holds_all_that_the_agent_declares() -> None:
    lock = closure.read_lock(carried("requirements.lock").read_text(encoding="utf-8"))
    declared = [
        text
        for name in ("agent.toml", "proto.toml", "tunnel.toml")
        for text in tomllib.loads(carried(name).read_text(encoding="utf-8"))["project"]["dependencies"]
    ]
    names = {closure.normal(re.split(r"[><=]", text)[0]) for text in declared} - {"windrow-proto", "windrow-tunnel"}
    assert names - lock.keys() == set()


def test_an_artifact_says_what_its_bytes_are() -> None:
    assert Artifact.of("a", "wheel", b"xyz") == Artifact("a", "wheel", 3, hashlib.sha256(b"xyz").hexdigest())
    assert json.dumps(record_of(Manifest("3.11", "l", "0", ())))


@pytest.mark.parametrize(
    ("wheel", "minors"),
    [
        ("rich-15.0.0-py3-none-any.whl", ["3.11", "3.12", "3.13"]),
        ("six-1.17.0-py2.py3-none-any.whl", ["3.11", "3.12", "3.13"]),
        ("cffi-2.1.1-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", ["3.12"]),
        ("cffi-2.1.1-cp312-cp312t-manylinux2014_x86_64.whl", []),
        ("cryptography-50.0.2-cp312-abi3-manylinux_2_28_x86_64.whl", ["3.12", "3.13"]),
        ("old-1.0-py2-none-any.whl", []),
        ("built-1.0-2-cp311-none-win_amd64.whl", []),
    ],
)
def test_a_wheel_fits_the_python_versions_that_its_name_says(wheel: str, minors: list[str]) -> None:
    assert [minor for minor in ("3.11", "3.12", "3.13") if closure.fits(wheel, minor)] == minors


def test_a_list_for_a_shell_names_no_python_that_something_is_missing_for() -> None:
    names = ("a-1-py3-none-any.whl", "b_c-1-cp311-cp311-linux_x86_64.whl", "b_c-1-cp313-cp313-linux_x86_64.whl")
    files = tuple(Artifact.of(name, "wheel", b"") for name in names)
    text = closure.list_text(Manifest("3.11", "linux-x86_64", "0", files), ("3.11", "3.12", "3.13"))
    head, *lines = text.splitlines()
    assert head.split()[1:] == ["linux-x86_64", "3.11,3.13"]
    assert [line.split()[0] for line in lines] == ["3.11,3.13", "3.11", "3.13"]


def test_only_what_is_for_one_platform_is_fetched_for_other_pythons() -> None:
    pins = closure.locked(frozenset({"one", "two-parts"}), closure.read_lock(LOCK))
    wheels = ["one-1.0-py3-none-any.whl", "two_parts-2.0-cp311-cp311-linux_x86_64.whl"]
    assert [pin.name for pin in closure.compiled(pins, wheels)] == ["two-parts"]


def test_the_lock_holds_all_that_the_command_declares() -> None:
    lock = closure.read_lock(carried("requirements.lock").read_text(encoding="utf-8"))
    declared = tomllib.loads(carried("sdk.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = {closure.normal(re.split(r"[><=]", text)[0]) for text in declared} - {"windrow-tunnel"}
    assert names - lock.keys() == set()
