"""Decides when a checkpoint exists, which one is restored, and which parts may be deleted. Pure: stores by their port.

<root>/<owner>/parts/<step>/<attempt>/<number>   first: each part, sealed, under the name of this very attempt
<root>/<owner>/manifests/<step>                  last: created only if absent; with it the checkpoint exists

Two attempts at one step never write the same object; whose manifest is created wins, and the other one's parts are
garbage. Throwing away goes the other way round: the manifest first. So at every instant what has a manifest was whole
when it got it, and what a disk or a hand did to it since is found by hashing before it is used.
"""

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.storage.model import (
    Manifest,
    ObjectKey,
    ObjectStat,
    Part,
    encode_manifest,
    object_key,
    parse_manifest,
)
from windrow_master.storage.object_store import ObjectStore
from windrow_proto.checkpoints import Piece, check_pieces
from windrow_proto.errors import InvalidInput, NotFound
from windrow_proto.units import HOUR

ROOT: Final = "ckpt"
KEEP: Final = 3
"""Checkpoints of one owner: the newest, and two before it for when its parts do not match any more."""
BEHIND: Final = "z"
"""Sorts behind whatever an owner has."""
GARBAGE_AGE_NS: Final = 24 * HOUR
"""Before parts without a manifest are thrown away: an upload under way has none, and ends within this time."""


def owner_prefix(owner: str, root: str = ROOT) -> str:
    """Return the prefix of all of an owner's checkpoints, or of other objects kept by owners below a root."""
    return object_key(f"{root}/{owner}") + "/"


def manifest_key(owner: str, step: int) -> ObjectKey:
    """The manifest of a step; keys sort as steps do."""
    return object_key(f"{ROOT}/{owner}/manifests/{step:020d}")


def part_key(owner: str, step: int, attempt: str, number: int) -> ObjectKey:
    """The object of one part of one attempt."""
    return object_key(f"{ROOT}/{owner}/parts/{step:020d}/{attempt}/{number:05d}")


def manifest_of(owner: str, step: int, attempt: str, made_ns: int, wrapped_key: str, parts: Sequence[Part]) -> Manifest:
    """The manifest of an attempt whose parts are all there. Raises InvalidInput if they are not its own, or not all."""
    check_pieces(tuple(Piece(part.name, part.offset, part.size_bytes) for part in parts))
    for number, part in enumerate(parts):
        if part.key != part_key(owner, step, attempt, number):
            raise InvalidInput("A manifest names the parts of its own attempt, in their order.", subject=part.key)
    return Manifest(owner, step, attempt, made_ns, wrapped_key, tuple(parts))


@dataclass(frozen=True, slots=True)
class Passed:
    """A manifest that could not be restored, and why."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The newest checkpoint that is whole, None where there is none; and the newer ones that were passed over."""

    manifest: Manifest | None
    passed: tuple[Passed, ...] = ()


def flaw(manifest: Manifest, seen: Mapping[ObjectKey, tuple[int, str]]) -> str:
    """Return why this manifest's parts, as they lie in the store (size and SHA-256 by key), cannot be used; "" if
    they can."""
    for part in manifest.parts:
        found = seen.get(part.key)
        if found is None:
            return f"the part {part.key} is missing"
        if found != (part.sealed_bytes, part.sealed_sha256):
            return f"the part {part.key} is not what was stored"
    return ""


async def commit(store: ObjectStore, manifest: Manifest) -> bool:
    """Make the checkpoint exist; False: another attempt at this step was first. Its parts must be stored before.

    Raises NotFound for a part that is not there in its size: what was never whole gets no manifest.
    """
    for part in manifest.parts:
        found = await store.stat(part.key)
        if found is None or found.size_bytes != part.sealed_bytes:
            raise NotFound("A part of this checkpoint is not in the store; it does not exist.", subject=part.key)
    return await store.put_if_absent(manifest_key(manifest.owner, manifest.step), encode_manifest(manifest))


async def steps(store: ObjectStore, owner: str) -> tuple[int, ...]:
    """The steps that have a manifest, the newest first."""
    prefix = owner_prefix(owner) + "manifests/"
    listed = [one.key.removeprefix(prefix) async for one in every(store, prefix)]
    return tuple(sorted((int(name) for name in listed if name.isdecimal()), reverse=True))


async def read(store: ObjectStore, owner: str, step: int) -> Manifest:
    """The manifest of a step. Raises NotFound, or InvalidInput for what is not this step's manifest."""
    content = bytearray()
    async for piece in await store.get(manifest_key(owner, step)):
        content += piece
    manifest = parse_manifest(bytes(content))
    if (manifest.owner, manifest.step) != (owner, step):
        raise InvalidInput("This manifest is of another checkpoint.", subject=owner)
    manifest_of(owner, step, manifest.attempt, manifest.made_ns, manifest.wrapped_key, manifest.parts)
    return manifest


async def newest_whole(store: ObjectStore, owner: str) -> Choice:
    """Read manifests from the newest on, and all their parts, until one matches its hashes."""
    passed: list[Passed] = []
    for step in await steps(store, owner):
        try:
            manifest = await read(store, owner, step)
        except (NotFound, InvalidInput) as error:
            passed.append(Passed(step, error.detail))
            continue
        reason = flaw(manifest, await _seen(store, manifest))
        if not reason:
            return Choice(manifest, tuple(passed))
        passed.append(Passed(step, reason))
    return Choice(None, tuple(passed))


async def _seen(store: ObjectStore, manifest: Manifest) -> dict[ObjectKey, tuple[int, str]]:
    """Up to the first part that is wrong: the others need not be read."""
    seen: dict[ObjectKey, tuple[int, str]] = {}
    for part in manifest.parts:
        try:
            digest, size = hashlib.sha256(), 0
            async for piece in await store.get(part.key):
                digest.update(piece)
                size += len(piece)
        except NotFound:
            return seen
        seen[part.key] = size, digest.hexdigest()
        if seen[part.key] != (part.sealed_bytes, part.sealed_sha256):
            return seen
    return seen


def outdated(newest_first: Sequence[int], keep: int = KEEP) -> tuple[int, ...]:
    """Of the steps that have a manifest, those to throw away, the oldest first."""
    return tuple(sorted(newest_first)[: max(0, len(newest_first) - keep)])


def garbage(objects: Iterable[ObjectStat], used: frozenset[ObjectKey], now_ns: int) -> tuple[ObjectKey, ...]:
    """Parts that no manifest names and that are too old to belong to an upload under way."""
    return tuple(one.key for one in objects if one.key not in used and now_ns - one.modified_ns >= GARBAGE_AGE_NS)


async def discard(store: ObjectStore, owner: str, step: int) -> None:
    """Throw a checkpoint away: from the first call on it does not exist. May be repeated after any of them."""
    await store.delete(manifest_key(owner, step))
    async for one in every(store, owner_prefix(owner) + f"parts/{step:020d}/"):
        await store.delete(one.key)


async def tidy(store: ObjectStore, owner: str, now_ns: int, keep: int = KEEP) -> tuple[ObjectKey, ...]:
    """Throw away what is outdated, and garbage; returns the garbage."""
    known = await steps(store, owner)
    gone = outdated(known, keep)
    for step in gone:
        await discard(store, owner, step)
    used: set[ObjectKey] = set()
    unread: set[str] = set()
    for step in set(known) - set(gone):
        try:
            used |= {part.key for part in (await read(store, owner, step)).parts}
        except (NotFound, InvalidInput):
            unread.add(f"{step:020d}")  # a manifest is there and may name any of its parts: they stay
    prefix = owner_prefix(owner) + "parts/"
    listed = [one async for one in every(store, prefix) if one.key.removeprefix(prefix).split("/")[0] not in unread]
    found = garbage(listed, frozenset(used), now_ns)
    for key in found:
        await store.delete(key)
    return found


async def drop(store: ObjectStore, owner: str, before_ns: int | None = None, root: str = ROOT) -> int:
    """Throw all of an owner's away; returns how many objects. May be repeated: keys of manifests sort before others.
    before_ns: nothing where any is younger than that."""
    found = [one async for one in every(store, owner_prefix(owner, root))]
    if before_ns is not None and any(one.modified_ns > before_ns for one in found):
        return 0
    for one in found:
        await store.delete(one.key)
    return len(found)


async def owners(store: ObjectStore, kind: str, root: str = ROOT) -> AsyncIterator[str]:
    """The owners of this kind, by their ids, that have any object."""
    first = f"{root}/{kind}_"
    after: ObjectKey | None = object_key(first)
    while after is not None:
        page = await store.list(f"{root}/", after)
        found = dict.fromkeys(one.key.split("/")[1] for one in page.objects if one.key.startswith(first))
        for owner in found:
            yield owner
        is_over = page.after is None or not page.after.startswith(first)
        after = None if is_over else object_key(owner_prefix([*found][-1], root) + BEHIND)


async def every(store: ObjectStore, prefix: str) -> AsyncIterator[ObjectStat]:
    """All objects below a prefix, page by page."""
    after: ObjectKey | None = None
    while True:
        page = await store.list(prefix, after)
        for one in page.objects:
            yield one
        if (after := page.after) is None:
            return
