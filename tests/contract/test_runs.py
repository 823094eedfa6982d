"""One contract of services that run code: Modal's own client against its stub, and the twin, with one helper."""

import io
import json
import tarfile
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.master_support import ManualClock
from tests.support.backend_worlds import ModalWorld, numbers, order
from tests.support.memory_backend import MemoryCloud, Planned
from tests.support.memory_runs import Helpers, MemoryRuns
from tests.support.modal_cloud import TOKEN_SECRET
from tests.waiting import poll_async
from windrow_master.hybrid.backends.port import MachineState, Wanted
from windrow_master.hybrid.runs.orders import Orders, orders_key, out_key
from windrow_master.hybrid.runs.port import Runs, Start, Stream, why_not
from windrow_master.jobs.files import files_key
from windrow_master.jobs.model import JobId, JobRequest
from windrow_master.prices.offers import Kind
from windrow_master.storage.model import ObjectKey, object_key
from windrow_master.storage.object_store import ObjectStore
from windrow_master.storage.s3_store import S3Store
from windrow_proto.units import parse_money
from windrow_proto.volumes import Mount

FILES = files_key(JobId("job_1"), 1)
FOLDER = object_key("jobs/job_1/folder")


class Market:
    """The market's side of one run: writes its orders, and hears its helper."""

    def __init__(self, world: Any, runs: Runs, objects: ObjectStore) -> None:
        self.world, self.runs, self.objects, self.calls = world, runs, objects, Orders(objects)
        self.run_id, self.market_id, self.beat = "", f"market-{next(numbers)}", 0
        self.said: dict[str, Any] = {"look_s": 0.05, "ttl_s": 30}

    async def begin(self) -> None:
        offer = (await self.runs.offers(Wanted()))[0]
        purchase_id = f"purchase-{next(numbers)}"
        start = Start(self.calls.get(orders_key(purchase_id))[1]).text
        asked = order(self.world, offer, self.market_id, user_data=start, purchase_id=purchase_id)
        self.key = purchase_id
        await self.order()
        self.run_id = (await self.runs.provision(asked)).machine_id

    async def order(self, **more: Any) -> None:
        self.said |= more
        self.beat += 1
        await put(self.objects, orders_key(self.key), json.dumps({**self.said, "beat": self.beat}).encode())

    async def job(self, script: str, **more: Any) -> None:
        """Start one, with this script for a shell."""
        await self.begin()
        known = {"argv": ["sh", "-c", script], "env": {"GIVEN": "to it"}, "folder": None, "checkpoint": None}
        await self.order(job={**known, "save_every_s": 0.05, **more})

    async def word(self, say: str) -> dict[str, Any]:
        """The first such word, once it is said."""
        async with aclosing(self.runs.follow(self.run_id, Stream.WORDS)) as pieces:
            held = b""
            async for piece in pieces:
                *lines, held = (held + piece).split(b"\n")
                for line in lines:
                    assert line.startswith(b"{"), line
                    if (word := json.loads(line))["say"] == say:
                        return word
        raise AssertionError(f"it never said {say}")

    async def log(self) -> bytes:
        return b"".join([piece async for piece in self.runs.follow(self.run_id, Stream.LOG)])

    async def take_files(self) -> dict[str, bytes]:
        """Let it store its changed files; what these are."""
        ended = await self.word("ended")
        await self.order(files=self.calls.put(FILES, ended["files_bytes"]))
        assert (await self.word("left"))["files"] is True
        with tarfile.open(fileobj=io.BytesIO(await read(self.objects, FILES))) as tar:
            return {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]  # all are files

    async def is_over(self) -> bool:
        found = await self.runs.describe(self.market_id)
        return all(one.state is MachineState.TERMINATED for one in found)


async def put(objects: ObjectStore, key: ObjectKey, data: bytes) -> None:
    async def once() -> AsyncIterator[bytes]:
        yield data

    await objects.put(key, once(), len(data))


async def read(objects: ObjectStore, key: ObjectKey) -> bytes:
    return b"".join([piece async for piece in await objects.get(key)])


def packed(**files: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.fixture
async def objects(moto_bucket) -> AsyncIterator[ObjectStore]:
    made = S3Store(moto_bucket)
    yield made
    await made.close()


@pytest.fixture
async def twin(objects: ObjectStore, tmp_path: Path) -> AsyncIterator[Market]:
    helpers, clock = Helpers(tmp_path), ManualClock()
    world = type("Twin", (), {"clock": clock, "user_data": ""})
    cloud = MemoryCloud(clock.wall_ns, Planned(is_stale=False))
    yield Market(world, MemoryRuns(cloud, clock, helpers), objects)
    helpers.close()


@pytest.fixture
def at_modal(objects: ObjectStore, modal_world: ModalWorld) -> Market:
    return Market(modal_world, modal_world.backend(), objects)


@pytest.fixture(params=["twin", "at_modal"])
def market(request: pytest.FixtureRequest) -> Market:
    found: Market = request.getfixturevalue(request.param)
    return found


async def test_a_command_runs_with_its_folder_and_leaves_its_log_its_code_and_what_it_changed(market: Market) -> None:
    await put(market.objects, FOLDER, packed(given="as it was", changed="before"))
    script = "cat given; echo $GIVEN >&2; echo after >changed; mkdir new; echo more >new/one; echo x >ckpt/no; exit 3"
    await market.job(script, folder=market.calls.get(FOLDER))

    files = await market.take_files()

    assert (await market.word("ended"))["code"] == 3
    assert await market.log() == b"as it wasto it\n"
    assert files == {"changed": b"after\n", "new/one": b"more\n"}
    await poll_async(market.is_over)
    assert await market.log() == b"as it wasto it\n", "all of it, as often as it is asked for"


async def test_nothing_that_it_runs_in_holds_a_key_of_the_store_or_a_token(market: Market) -> None:
    await market.job("env; cat /proc/self/environ")

    await market.take_files()

    said = (await market.log()).decode()
    assert "GIVEN=to it" in said and "CKPT_DIR=" in said
    assert [word for word in ("WINDROW_ORDERS", TOKEN_SECRET, "secret", "AWS_") if word in said] == []


async def test_a_checkpoint_goes_out_as_it_is_whole_and_the_next_run_goes_on_from_it(market: Market) -> None:
    step = "mkdir -p $CKPT_DIR/.new/deep; echo weights >$CKPT_DIR/.new/deep/w; : >$CKPT_DIR/.new/empty"
    await market.job(f"{step}; mv $CKPT_DIR/.new $CKPT_DIR/step-7; sleep 60")

    found = await market.word("found")

    assert (found["step"], found["pieces"]) == (7, [["deep/w", 0, 8], ["empty", 0, 0]])
    keys = [out_key(market.key, 7, number) for number in range(2)]
    calls = [market.calls.put(key, size) for key, (_, _, size) in zip(keys, found["pieces"], strict=True)]
    await market.order(puts={"7": calls})
    assert (await market.word("saved"))["step"] == 7
    assert [await read(market.objects, key) for key in keys] == [b"weights\n", b""]
    await market.runs.terminate(market.run_id)
    await poll_async(market.is_over)

    after = Market(market.world, market.runs, market.objects)
    laid = {"step": 7, "pieces": [["deep/w", market.calls.get(keys[0])], ["empty", market.calls.get(keys[1])]]}
    await after.job("cat $CKPT_DIR/step-7/deep/w; cd $CKPT_DIR; echo * */*", checkpoint=laid)
    await after.word("ended")
    await after.order(files=None)
    await after.word("left")
    assert await after.log() == b"weights\nstep-7 step-7/deep step-7/empty\n"


async def test_a_command_that_is_asked_to_end_has_its_time_and_its_last_checkpoint_goes_out(market: Market) -> None:
    end = "mkdir $CKPT_DIR/step-9; echo saved; exit 0"
    await market.job(f"trap '{end}' TERM; echo up; while :; do sleep 0.1; done")
    await market.word("runs")

    await poll_async(lambda: said(market, b"up"))
    await market.order(end={"grace_s": 20})

    assert (await market.word("found"))["pieces"] == []
    await market.order(puts={"9": []}, files=None)
    assert (await market.word("ended"))["code"] == 0
    assert await market.log() == b"up\nsaved\n"


async def test_a_command_that_does_not_end_when_asked_is_killed_with_all_that_it_started(twin: Market) -> None:
    await twin.job("trap '' TERM; sleep 61.25 & echo up; wait; sleep 61.25")
    await poll_async(lambda: said(twin, b"up"))

    await twin.order(end={"grace_s": 0.2}, files=None)

    assert (await twin.word("ended"))["code"] == 137
    await poll_async(lambda: not running("61.25"))


async def test_a_run_that_hears_of_no_market_any_more_ends_by_itself(market: Market) -> None:
    market.said["ttl_s"] = 1
    await market.job("echo up; sleep 62.5")

    await market.word("alone")

    await poll_async(market.is_over)
    await poll_async(lambda: not running("62.5"))


async def test_a_run_that_is_cancelled_is_gone_with_its_command(market: Market) -> None:
    await market.job("echo up; sleep 63.75")
    await poll_async(lambda: said(market, b"up"))

    await market.runs.terminate(market.run_id)

    await poll_async(market.is_over)
    await poll_async(lambda: not running("63.75"))


@pytest.mark.parametrize(("argv", "code"), [(["/no/such"], 127), (["/etc/passwd"], 126)])
async def test_a_command_that_cannot_be_started_ends_as_in_a_shell(twin: Market, argv: list[str], code: int) -> None:
    await twin.job("", argv=argv)

    assert (await twin.word("ended"))["code"] == code
    assert argv[0].encode() in await log_so_far(twin)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("truncate -s 6G large", "larger than 5 GiB"),
        ('rm -rf "$(dirname $PWD)"', "could not be packed"),
    ],
)
async def test_files_that_cannot_be_packed_are_left_out_and_the_command_has_ended_as_it_did(
    twin: Market, script: str, why: str
) -> None:
    await twin.job(f"{script}; exit 3", save_every_s=0)

    ended = await twin.word("ended")
    assert (ended["code"], ended["files_bytes"]) == (3, None)
    assert why in ended["why"]
    assert (await twin.word("left"))["files"] is False


async def test_a_command_that_removes_its_checkpoints_goes_on(twin: Market) -> None:
    await twin.job("rm -rf $CKPT_DIR; sleep 0.5; echo up; exit 0")

    await twin.take_files()

    assert await twin.log() == b"up\n"


async def test_a_folder_that_cannot_be_had_breaks_the_run_and_nothing_is_started(twin: Market) -> None:
    await twin.job("echo up", folder=twin.calls.get(object_key("jobs/nobody/folder")))

    assert "404" in (await twin.word("broken"))["why"]
    assert await twin.log() == b""


async def said(market: Market, text: bytes) -> bool:
    return text in await log_so_far(market)


async def log_so_far(market: Market) -> bytes:
    """What is there at the first look."""
    async with aclosing(market.runs.follow(market.run_id, Stream.LOG)) as pieces:
        async for piece in pieces:
            return piece
    return b""


def running(argument: str) -> bool:
    """True while any process of this machine has this argument."""
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if argument.encode() in one.read_bytes().split(b"\0"):
                return True
    return False


# ----- Modal alone -----


async def test_modal_a_sandbox_has_what_its_offer_says_and_no_more(modal_world: ModalWorld) -> None:
    backend = modal_world.backend()
    offer = next(one for one in await backend.offers(Wanted(gpus=2)) if one.gpu_count == 2)

    await backend.provision(order(modal_world, offer, "market-gpu"))

    (made,) = modal_world.cloud.sandboxes.values()
    asked = made.definition.resources
    assert (asked.gpu_config.gpu_type, asked.gpu_config.count) == ("A10", 2)
    assert (asked.milli_cpu, asked.milli_cpu_max, asked.memory_mb, asked.memory_mb_max) == (8000, 8000, 65536, 65536)
    assert 3500 < made.definition.timeout_secs <= 3600, "Modal ends it, whoever else is there"


async def test_modal_the_price_has_processors_and_memory_and_gpus_may_be_taken_back(modal_world: ModalWorld) -> None:
    found = {one.offer_id: one for one in await modal_world.backend().offers(Wanted())}

    one, plain = found["gpu=A10:1"], found["cpu=8"]
    assert one.price_per_hour - plain.price_per_hour == parse_money("1.1016")
    assert plain.price_per_hour == 4 * parse_money("0.141912") + 32 * parse_money("0.024192")
    assert (one.kind, plain.kind, one.billing.minimum_s, one.is_run) == (Kind.SPOT, Kind.ON_DEMAND, 1, True)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"argv": ("true",)}, ""),
        ({}, "no command"),
        ({"argv": ("true",), "volumes": (Mount("data", "/data"),)}, "volumes"),
        ({"argv": ("true",), "secrets": ("TOKEN",)}, "secrets"),
        ({"argv": ("true",), "slice": "1g.10gb", "entrypoint": "sh"}, "a slice of a GPU, an entrypoint"),
    ],
)
def test_a_job_that_needs_what_no_service_has_does_not_go_there(asked: dict[str, Any], words: str) -> None:
    why = why_not(JobRequest(**asked))

    assert (words in why) if words else not why
