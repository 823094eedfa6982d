"""Volumes in a bucket: hosts move them by presigned calls, and nobody but the Master has the bucket's key."""

import logging
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import s3
from tests.support.canaries import Canaries, leaks, leaks_of
from tests.support.rental import Renter, renting
from tests.support.stack import wait_for
from windrow_master.storage.s3_store import S3Settings

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

MARKER = "a line that should lie sealed in the bucket"
CALL = re.compile(r'"(PUT|GET) /\S+/ckpt/volume_\w+/parts/\S+\?\S*X-Amz-Signature=\S* HTTP/1.1" 200')
"""Signed in its address: a call that was given away. What the Master asks by itself it signs in a header."""


@dataclass
class Market:
    renter: Renter
    bucket: S3Settings


@pytest.fixture(scope="module")
def market() -> Iterator[Market]:
    with s3.moto() as (endpoint, _, _):
        bucket = s3.bucket(endpoint, "A" + secrets.token_hex(16), secrets.token_hex(24))
        url = f"s3://{bucket.bucket}/{bucket.prefix}?endpoint={endpoint}&region={bucket.region}"
        keys = {"WINDROW_S3_ACCESS_KEY": bucket.access_key, "WINDROW_S3_SECRET_KEY": bucket.secret_key}
        with renting(environment={"WINDROW_ARTEFACTS_URL": url} | keys) as renter:
            yield Market(renter, bucket)


def held(bucket: S3Settings) -> dict[str, bytes]:
    """Returns the objects in the bucket for volumes; logs and files of ended clusters lie beside it."""
    import boto3

    keys = {"aws_access_key_id": bucket.access_key, "aws_secret_access_key": bucket.secret_key}
    client: Any = boto3.client("s3", endpoint_url=bucket.endpoint, region_name=bucket.region, **keys)
    listed = client.list_objects_v2(Bucket=bucket.bucket, Prefix=f"{bucket.prefix}ckpt/").get("Contents", [])
    return {one["Key"]: client.get_object(Bucket=bucket.bucket, Key=one["Key"])["Body"].read() for one in listed}


@pytest.mark.proves("volumes go to a bucket by calls for one object each; no host has the bucket's key")
def test_a_volume_goes_by_presigned_calls_and_the_key_of_the_bucket_stays_with_the_master(
    market: Market, caplog: pytest.LogCaptureFixture
) -> None:
    renter, bucket, folder = market.renter, market.bucket, '"$WINDROW_VOLUME_DATA"'
    caplog.set_level(logging.INFO, "werkzeug")
    renter.ask("POST", "/volumes", {"name": "data"})
    first = renter.create("sh", "-c", f"env; echo '{MARKER}' > {folder}/f", volumes=["data:/data"])
    renter.exited(first["id"])
    written = renter.log(first["id"])
    renter.delete(first["id"])
    assert renter.ask("GET", "/volumes/data")["version"] == 1

    lies = held(bucket)
    assert {key.split("/")[3] for key in lies} == {"parts", "manifests"}
    assert not [key for key, content in lies.items() if MARKER.encode() in content]
    assert "PUT" in CALL.findall(caplog.text), "its host stored it by a call that it was given"

    caplog.clear()
    second = renter.create("sh", "-c", f"cat {folder}/f", volumes=["data:/data:ro"])
    renter.exited(second["id"])
    assert renter.log(second["id"]).decode() == f"{MARKER}\n"
    assert set(CALL.findall(caplog.text)) == {"GET"}

    keys = Canaries()
    keys.add("the bucket's secret key", bucket.secret_key)
    keys.add("the bucket's access key", bucket.access_key)
    assert keys.in_bytes(written) == []
    assert leaks_of(keys, _others(renter)) == []
    assert leaks(keys, (), Path(renter.stack.data_dir)) == []

    renter.delete(second["id"])
    assert renter.windrow("volume", "rm", "data", "--yes").returncode == 0
    assert held(bucket) == {}


def _others(renter: Renter) -> list[int]:
    """Accesses, the agent, and whatever these have started."""
    daemons = wait_for(lambda: (d := renter.stack.daemons()) and {"master", "access", "agent"} <= set(d) and d)
    return [pid for name in ("access", "agent") for pid in daemons[name]]
