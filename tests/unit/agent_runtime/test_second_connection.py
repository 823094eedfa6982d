"""A second connection takes the place of the first: what comes before and after."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

from tests.master_support import SeededRng
from tests.simulation.loop import VirtualClock, VirtualLoop, run
from windrow_agent.link.access_connector import AccessConnector, PreparedConnection
from windrow_proto.errors import LinkClosed
from windrow_proto.ids import HostId
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.ports import PingAnswer
from windrow_proto.units import MILLISECOND, MINUTE, SECOND


class Two:
    """Two Accesses, and a note of what befalls the second connection."""

    def __init__(self, noted, letters=None):
        self.noted = noted
        self.letters = [] if letters is None else letters

    async def connect(self, address, deadline_ns):
        return address

    async def ping(self, address, deadline_ns):
        return PingAnswer({"near:1": 1, "far:1": 90}[address] * MILLISECOND, address, "eu", 0, draining=False)

    async def warm(self, address, deadline_ns):
        async def pinged(deadline_ns, letter=b""):
            self.letters.append(letter)
            answer = await self.ping(address, deadline_ns)
            # With a letter the way to the Master and back counts as well.
            return replace(answer, letter=letter[::-1], rtt_ns=answer.rtt_ns + SECOND) if letter else answer

        async def opened(deadline_ns):
            async def closed():
                self.noted.append("its stream ends")

            return SimpleNamespace(is_closed=False, close=closed)

        async def closed():
            self.noted.append("its pings end")

        return SimpleNamespace(ping=pinged, connect=opened, close=closed)

    async def bandwidth(self, address, deadline_ns):
        raise LinkClosed("Nothing is measured here.")

    async def close(self):
        pass


def lived(served_ns):
    """The fate of the second connection, which serves for so long after the first has died in its second minute."""
    noted = []

    async def history(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)

        async def serve(link):
            await clock.sleep_ns(MINUTE)
            noted.append("the first dies")
            raise LinkClosed("It was killed.")

        async def prepare(link):
            async def serve_second():
                noted.append("it serves")
                await clock.sleep_ns(served_ns)
                noted.append("it dies")
                raise LinkClosed("It was killed, too.")

            return PreparedConnection(link, serve_second)

        regions = RegionMap(1, (AccessPoint("a", "eu", "near:1"), AccessPoint("b", "eu", "far:1")))
        connector = AccessConnector(HostId("host_1"), Two(noted), clock, SeededRng(3), regions, serve, prepare=prepare)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(connector.run())
            while "it dies" not in noted:
                await clock.sleep_ns(SECOND)
            task.cancel()

    run(1, history)
    return noted


def test_its_pings_end_when_it_serves_and_not_before_it_does():
    assert lived(30 * SECOND)[:4] == ["the first dies", "it serves", "its pings end", "it dies"]


def test_its_pings_end_with_it_where_it_is_not_served_long():
    assert lived(2 * SECOND)[:4] == ["the first dies", "it serves", "it dies", "its pings end"]


def test_a_canary_goes_with_the_ping_and_its_longer_way_makes_the_access_no_farther():
    letters: list[bytes] = []
    answers: list[bytes] = []
    rtts_ns: set[int] = set()

    class Asking:
        def canary(self):
            return b"%d." % len(letters)

        def on_letter(self, letter):
            answers.append(letter)
            return False

        def pause_ns(self):
            return 0

    async def history(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)

        async def serve(link):
            while True:
                await clock.sleep_ns(SECOND)
                rtts_ns.add(connector.answers["far:1"].rtt_ns)

        regions = RegionMap(1, (AccessPoint("a", "eu", "near:1"), AccessPoint("b", "eu", "far:1")))
        two = Two([], letters)
        connector = AccessConnector(HostId("host_1"), two, clock, SeededRng(3), regions, serve, canaries=Asking())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(connector.run())
            await clock.sleep_ns(3 * MINUTE)
            task.cancel()

    run(1, history)
    assert letters[0] == b"" and len(letters) > 8
    assert letters[1:] == [b"%d." % number for number in range(1, len(letters))]
    assert answers == [letter[::-1] for letter in letters[1:]]
    assert rtts_ns == {90 * MILLISECOND}
