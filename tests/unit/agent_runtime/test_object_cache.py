"""The host's cache: what it keeps is noise without a key, and the key does not outlive the lease."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from windrow_agent.storage.object_cache import Cache
from windrow_proto.data_keys import DataKey
from windrow_proto.errors import BadProof, Conflict, NotFound
from windrow_proto.frames import open_sealed

MARKER = b"WINDROW-WIPE-MARKER"
CONTENT = MARKER * (2 * 2**20 // len(MARKER))
IMAGE_BYTES = 64 * 2**20
TOOL_S = 60


def blocks(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), 100_000):
        yield content[start : start + 100_000]


def test_what_is_kept_is_read_back_and_is_sealed_on_the_disk(tmp_path):
    cache, key = Cache(tmp_path / "cache"), DataKey.generate()
    kept = cache.keep("ckpt/a", key, blocks(CONTENT))
    at_rest = kept.path.read_bytes()

    assert b"".join(cache.open("ckpt/a")) == CONTENT
    assert MARKER not in at_rest
    assert len(at_rest) == kept.sealed_bytes
    assert open_sealed(key, "ckpt/a", at_rest) == CONTENT
    assert kept.path.stat().st_mode & 0o777 == 0o600


def test_what_was_sealed_elsewhere_is_taken_in_and_an_altered_one_is_noticed(tmp_path):
    cache, key = Cache(tmp_path / "cache"), DataKey.generate()
    first = cache.keep("a", key, blocks(CONTENT)).path.read_bytes()
    taken = cache.take("a", key, blocks(first))
    taken.path.write_bytes(first[:-1] + bytes([first[-1] ^ 1]))

    with pytest.raises(BadProof):
        b"".join(cache.open("a"))


def test_a_wipe_destroys_the_key_removes_the_files_and_says_what_it_did(tmp_path):
    cache, key = Cache(tmp_path / "cache"), DataKey.generate()
    first = cache.keep("a", key, [b"x"])
    cache.keep("b", key, [b"y"])
    wiped = cache.wipe()

    assert (wiped.files, wiped.left, wiped.keys) == (2, 0, 1)
    assert wiped.size_bytes == 2 * first.sealed_bytes
    assert not (tmp_path / "cache").exists()
    with pytest.raises(NotFound):
        list(cache.open("a"))
    with pytest.raises(Conflict):
        cache.keep("c", key, [b"z"])
    assert (cache.wipe().files, cache.wipe().keys) == (0, 0)


def test_what_an_earlier_process_left_is_taken_away_and_counted(tmp_path):
    kept = Cache(tmp_path / "cache").keep("a", DataKey.generate(), [b"x"])
    again = Cache(tmp_path / "cache")

    assert not kept.path.exists()
    assert again.wipe().files == 1


def test_an_object_that_is_dropped_is_gone(tmp_path):
    cache = Cache(tmp_path / "cache")
    kept = cache.keep("a", DataKey.generate(), [b"x"])
    cache.drop("a")
    cache.drop("a")

    assert not kept.path.exists()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """An image with an ext4 file system of its own, and where it is mounted."""
    image, mount = tmp_path / "image", tmp_path / "mount"
    if os.geteuid() != 0:
        pytest.skip("mounting a file system takes root")
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    mount.mkdir()
    made = _ran("mkfs.ext4", "-q", "-F", str(image)) or _ran("mount", "-o", "loop", str(image), str(mount))
    if made:
        pytest.skip(f"no loop-mounted ext4 can be made here: {made}")
    yield image, mount
    _ran("umount", str(mount))


def _ran(*command: str) -> str:
    """ "" if it worked, else why not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"{command[0]} ended with {done.returncode}"


def found_on(image: Path, mount: Path) -> int:
    """Counts the marker on the raw disk, once all of it was written there."""
    os.sync()
    assert _ran("umount", str(mount)) == ""
    return image.read_bytes().count(MARKER)


@pytest.mark.proves("a marker written through the encrypted cache is not on the raw disk afterwards")
def test_a_marker_written_through_the_cache_is_not_on_the_raw_disk_after_the_wipe(disk):
    image, mount = disk
    cache = Cache(mount / "cache")
    cache.keep("ckpt/a", DataKey.generate(), blocks(CONTENT))
    os.sync()
    assert b"".join(cache.open("ckpt/a")) == CONTENT
    assert cache.wipe().files == 1

    assert found_on(image, mount) == 0


def test_the_control_a_plain_file_that_was_deleted_is_still_on_the_raw_disk(disk):
    image, mount = disk
    (mount / "plain").write_bytes(CONTENT)
    os.sync()
    (mount / "plain").unlink()

    assert found_on(image, mount) > len(CONTENT) // len(MARKER) // 2
