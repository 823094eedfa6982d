"""Stores objects in any S3-compatible store: the adapter of boto3 (control, presigned calls) and obstore (bulk).

Both come with the extra `s3` and are imported when a store is opened, so that a Master without one never loads them.
A large object goes up in parts and appears when the last call completes it; what a crash leaves of parts the bucket's
own lifecycle rule takes away (docs/artefacts.md). The store must refuse a second creation (If-None-Match), which Ceph's
does not in a versioned bucket: `check` refuses those.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qs, urlsplit

from windrow_master.storage.model import (
    LIST_MAX,
    SMALL_BYTES_MAX,
    ObjectKey,
    ObjectPage,
    ObjectStat,
    Presigned,
    key_prefix,
    object_key,
)
from windrow_master.storage.object_store import BLOCK_BYTES, capped
from windrow_proto.errors import InvalidInput, NotFound, StorageFailed, TooLarge, Unavailable, WindrowError
from windrow_proto.units import MIB

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import S3Config
    from obstore.store import S3Store as Bulk

T = TypeVar("T")

CONNECT_S: Final = 5
READ_S: Final = 60
"""Without a byte; a store of disks that spin up answers within half of it."""
TRIES: Final = 3
PART_BYTES: Final = 8 * MIB
"""Of a large upload: S3 takes at least 5 MiB, and 10,000 of them make 78 GiB."""
PARTS_AT_ONCE: Final = 4
ABSENT: Final = frozenset({"404", "NoSuchKey", "NotFound"})
EXISTS: Final = frozenset({"412", "PreconditionFailed"})
CONFLICT: Final = frozenset({"409", "ConditionalRequestConflict"})
REFUSED: Final = frozenset({"403", "401", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"})


@dataclass(frozen=True, slots=True)
class S3Settings:
    """The address of the store and its credentials. prefix: "" or ending with a slash; endpoint: None for Amazon's
    own."""

    bucket: str
    prefix: str
    endpoint: str | None
    region: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    @property
    def shown(self) -> str:
        """For the log, without its keys."""
        return f"s3://{self.bucket}/{self.prefix} at {self.endpoint or 'Amazon'} ({self.region})"


def read_settings(url: str, access_key: str, secret_key: str) -> S3Settings:
    """Of `s3://bucket/prefix?endpoint=https://host:port&region=name`. Raises InvalidInput."""
    parts, said = urlsplit(url), parse_qs(urlsplit(url).query)
    if parts.scheme != "s3" or not parts.netloc or set(said) - {"endpoint", "region"}:
        raise InvalidInput("A store of artefacts is s3://BUCKET/PREFIX?endpoint=URL&region=NAME.")
    if not access_key or not secret_key:
        raise InvalidInput("An S3 store needs WINDROW_S3_ACCESS_KEY and WINDROW_S3_SECRET_KEY.")
    endpoint = said.get("endpoint", [""])[0] or None
    if endpoint is not None and urlsplit(endpoint).scheme not in {"http", "https"}:
        raise InvalidInput("The endpoint of an S3 store is an http or https address.")
    prefix = parts.path.strip("/")
    return S3Settings(
        bucket=parts.netloc,
        prefix=key_prefix(prefix + "/") if prefix else "",
        endpoint=endpoint,
        region=said.get("region", ["us-east-1"])[0],
        access_key=access_key,
        secret_key=secret_key,
    )


class S3Store:
    """One bucket, or a part of one."""

    def __init__(self, settings: S3Settings) -> None:
        """Loads both libraries; asks the store nothing yet. Raises InvalidInput where the extra is not installed."""
        try:
            import boto3
            import botocore.config
            import obstore.store
        except ImportError as error:
            raise InvalidInput("An S3 store needs two packages: python -m pip install boto3 obstore") from error
        self._settings = settings
        keys = {"aws_access_key_id": settings.access_key, "aws_secret_access_key": settings.secret_key}
        config = botocore.config.Config(
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            retries={"total_max_attempts": TRIES, "mode": "standard"},
            signature_version="s3v4",
            s3={"addressing_style": "path" if settings.endpoint else "auto"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        session = boto3.session.Session(region_name=settings.region, **keys)
        self._control: Any = session.client("s3", endpoint_url=settings.endpoint, config=config)
        where: S3Config = {
            "bucket": settings.bucket,
            "region": settings.region,
            "access_key_id": settings.access_key,
            "secret_access_key": settings.secret_key,
            "virtual_hosted_style_request": settings.endpoint is None,
        }
        if settings.endpoint is not None:
            where["endpoint"] = settings.endpoint
        self._bulk: Bulk = obstore.store.S3Store(
            config=where,
            client_options={
                "connect_timeout": timedelta(seconds=CONNECT_S),
                "read_timeout": timedelta(seconds=READ_S),
                "allow_http": settings.endpoint is not None and settings.endpoint.startswith("http:"),
            },
        )

    async def check(self) -> None:
        """Check that the bucket is there and can be used. Raises NotFound, StorageFailed, Unavailable, InvalidInput."""
        try:
            answer = await self._asked("get_bucket_versioning")
        except _Refused as refused:
            raise refused.translated(ObjectKey(self._settings.bucket)) from refused
        if answer.get("Status") == "Enabled":
            raise InvalidInput("The bucket keeps versions; a store of artefacts needs one that does not.")

    async def put(self, key: ObjectKey, chunks: AsyncIterator[bytes], cap_bytes: int) -> ObjectStat:
        """In parts, several at once; it appears when all are there."""
        import obstore

        path, failed = self._path(key), list[BaseException]()

        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for block in capped(chunks, cap_bytes):
                    yield block
            except BaseException as error:
                failed.append(error)
                raise

        try:
            await obstore.put_async(self._bulk, path, pieces(), chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
        except Exception as error:
            raise (failed[0] if failed else _translated(error, key)) from error
        found = await self.stat(key)
        if found is None:
            raise StorageFailed("The store took an object and does not have it.", subject=key)
        return found

    async def put_if_absent(self, key: ObjectKey, content: bytes) -> bool:
        """In one call that the store refuses where the object is."""
        if len(content) > SMALL_BYTES_MAX:
            raise TooLarge(f"What is created only if absent has at most {SMALL_BYTES_MAX} bytes.", subject=key)
        path = self._path(key)
        for turn in range(TRIES):
            try:
                await self._asked("put_object", Key=path, Body=content, IfNoneMatch="*")
                return True
            except _Refused as refused:
                if refused.code in EXISTS:
                    return False
                if refused.code not in CONFLICT or turn == TRIES - 1:
                    raise refused.translated(key) from refused
        raise AssertionError("unreachable: the last turn returns or raises")

    async def get(self, key: ObjectKey, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """One answer of the store, so that a put meanwhile changes nothing for this reader."""
        import obstore

        path = self._path(key)
        options: GetOptions = {}
        if length is not None:
            options = {"range": (offset, offset + length)}
        elif offset:
            options = {"range": {"offset": offset}}
        try:
            answer = await obstore.get_async(self._bulk, path, options=options)
        except Exception as error:
            raise _translated(error, key) from error
        return _pieces(answer.stream(min_chunk_size=BLOCK_BYTES), key)

    async def stat(self, key: ObjectKey) -> ObjectStat | None:
        """By a HEAD."""
        path = self._path(key)
        try:
            found = await self._asked("head_object", Key=path)
        except _Refused as refused:
            if refused.code in ABSENT:
                return None
            raise refused.translated(key) from refused
        return ObjectStat(key, found["ContentLength"], _ns(found["LastModified"]))

    async def list(self, prefix: str, after: ObjectKey | None = None, limit: int = LIST_MAX) -> ObjectPage:
        """One page of ListObjectsV2."""
        start = {} if after is None else {"StartAfter": self._path(after)}
        whole = self._settings.prefix + key_prefix(prefix)
        try:
            answer = await self._asked("list_objects_v2", Prefix=whole, MaxKeys=limit, **start)
        except _Refused as refused:
            raise refused.translated(ObjectKey(prefix)) from refused
        cut = len(self._settings.prefix)
        found = tuple(
            ObjectStat(ObjectKey(one["Key"][cut:]), one["Size"], _ns(one["LastModified"]))
            for one in answer.get("Contents", ())
        )
        return ObjectPage(found, found[-1].key if answer.get("IsTruncated") and found else None)

    async def delete(self, key: ObjectKey) -> None:
        """S3 answers the same for what is not there."""
        path = self._path(key)
        try:
            await self._asked("delete_object", Key=path)
        except _Refused as refused:
            if refused.code not in ABSENT:
                raise refused.translated(key) from refused

    def presign_put(self, key: ObjectKey, size_bytes: int, expires_s: int) -> Presigned | None:
        """Size and If-None-Match are signed, so that the call cannot write anything else, nor twice."""
        signed = {"Bucket": self._settings.bucket, "Key": self._path(key)}
        more = {"ContentLength": size_bytes, "IfNoneMatch": "*"}
        url = self._control.generate_presigned_url("put_object", Params=signed | more, ExpiresIn=expires_s)
        return Presigned("PUT", url, (("Content-Length", str(size_bytes)), ("If-None-Match", "*")))

    def presign_get(self, key: ObjectKey, expires_s: int) -> Presigned | None:
        """Of this object alone."""
        signed = {"Bucket": self._settings.bucket, "Key": self._path(key)}
        return Presigned("GET", self._control.generate_presigned_url("get_object", Params=signed, ExpiresIn=expires_s))

    async def close(self) -> None:
        """Close the connections of the control calls; obstore's go with it."""
        await asyncio.to_thread(self._control.close)

    def _path(self, key: ObjectKey) -> str:
        return self._settings.prefix + object_key(key)

    async def _asked(self, call: str, **parameters: object) -> dict[str, Any]:
        """One control call, on a thread. Raises _Refused for what the store answers, Unavailable where it does not."""
        import botocore.exceptions as failures

        try:
            return await asyncio.to_thread(self._call, call, parameters)
        except failures.ClientError as error:
            raise _Refused(str(error.response["Error"]["Code"])) from error
        except failures.BotoCoreError as error:
            raise Unavailable(f"The store of artefacts does not answer: {type(error).__name__}.") from error

    def _call(self, call: str, parameters: dict[str, object]) -> dict[str, Any]:
        asked: Callable[..., dict[str, Any]] = getattr(self._control, call)
        return asked(Bucket=self._settings.bucket, **parameters)


class _Refused(Exception):
    """The store answered with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code

    def translated(self, key: ObjectKey) -> WindrowError:
        """As an error of ours."""
        if self.code in ABSENT:
            return NotFound("There is no such object.", subject=key)
        if self.code in REFUSED:
            return StorageFailed("The store of artefacts refuses this Master's key, or what it may do.", subject=key)
        if self.code == "NoSuchBucket":
            return StorageFailed("The store of artefacts has no such bucket.", subject=key)
        return Unavailable(f"The store of artefacts answered {self.code}.", subject=key)


def _translated(error: Exception, key: ObjectKey) -> WindrowError:
    """Return the error that obstore raised, as an error of ours."""
    from obstore import exceptions as failures

    if isinstance(error, (failures.NotFoundError, FileNotFoundError)):
        return NotFound("There is no such object.", subject=key)
    if isinstance(error, (failures.PermissionDeniedError, failures.UnauthenticatedError)):
        return StorageFailed("The store of artefacts refuses this Master's key, or what it may do.", subject=key)
    return Unavailable(f"The store of artefacts does not answer: {type(error).__name__}.", subject=key)


async def _pieces(stream: AsyncIterator[Any], key: ObjectKey) -> AsyncGenerator[bytes]:
    try:
        async for piece in stream:
            yield bytes(piece)
    except Exception as error:
        raise _translated(error, key) from error


def _ns(at: Any) -> int:
    return int(at.timestamp()) * 1_000_000_000
