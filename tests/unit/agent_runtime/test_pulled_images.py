"""The record of pulled images is whole on the disk, however many containers are being prepared at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from windrow_agent.runtimes.pulled_images import PulledImage, Record

MANY = 200


def test_many_threads_write_images_down_and_none_is_missing(tmp_path: Path) -> None:
    record = Record(tmp_path)

    def keep(number: int) -> None:
        one = f"registry/work:{number}"
        record.keep(one, PulledImage(f"sha256:{number}", one, is_private=False, is_ours=True, used_ns=number))

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(keep, range(MANY)))

    assert len(record.images) == MANY
    assert Record(tmp_path).images == record.images
    assert [one.name for one in tmp_path.iterdir()] == ["pulled-images.json"]
