"""A TCP proxy before a broker that reads requests: it cuts, slows, stalls, delivers EndTxn late or twice."""

import asyncio
import struct
from collections import Counter, deque
from collections.abc import Coroutine
from contextlib import suppress
from random import Random
from typing import Any, Final, Literal, NamedTuple

HOST: Final = "127.0.0.1"
END_TXN: Final = 26
CHUNK: Final = 65_536
ANSWER_PATIENCE_S: Final = 5.0
_ERROR_AT: Final = 12  # in an EndTxn response, behind size, correlation id and throttle time

Trick = Literal["late", "twice"]


class Trap(NamedTuple):
    """What happens to the next EndTxn that comes by, and after how many seconds it is delivered (again)."""

    trick: Trick
    after: float


class Traps:
    """Traps that lie ready, for whichever broker the next EndTxn is for; and what became of them."""

    def __init__(self) -> None:
        self.waiting: deque[Trap] = deque()
        self.delivered: Counter[str] = Counter()  # by what the broker answered

    def lay(self, trap: Trap) -> None:
        self.waiting.append(trap)

    def take(self) -> Trap | None:
        return self.waiting.popleft() if self.waiting else None


class _HeldBackError(Exception):
    """The request was kept; its client is to be cut off now."""


class Proxy:
    """Listens on `port` for clients of the broker that listens on `broker`."""

    def __init__(self, port: int, broker: int, traps: Traps) -> None:
        self.port = port
        self.broker = broker
        self.traps = traps
        self.delay = 0.0  # seconds that every request and response takes longer
        self.links: set[Link] = set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.StreamWriter] = set()  # every connection of ours, to either side

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, self.port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in list(self._open):
            await self.close(writer)
        if self._server is not None:
            await self._server.wait_closed()

    def cut(self) -> None:
        """Every connection breaks off, whatever is under way on it."""
        for link in list(self.links):
            link.cut()

    def cut_one(self, random: Random) -> None:
        if self.links:
            random.choice(self._sorted()).cut()

    def stall_some(self, random: Random, seconds: float) -> None:
        """Half of the connections say nothing for so long, while others overtake them."""
        links = self._sorted()
        for link in random.sample(links, (len(links) + 1) // 2):
            link.stall(seconds)

    def _sorted(self) -> "list[Link]":
        return sorted(self.links, key=lambda link: link.number)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        self.spawn(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker = await self._connect()
        except OSError:
            await self.close(writer)
            return
        await Link(self, (reader, writer), broker).carry()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(HOST, self.broker)
        self._open.add(writer)
        return reader, writer

    async def close(self, writer: asyncio.StreamWriter) -> None:
        self._open.discard(writer)
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()

    async def deliver(
        self, trap: Trap, frame: bytes, broker: "tuple[asyncio.StreamReader, asyncio.StreamWriter] | None"
    ) -> None:
        """Send a request that nobody waits for any more, and note what the broker says to it."""
        await asyncio.sleep(trap.after)
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            reader, writer = broker = broker or await self._connect()
            async with asyncio.timeout(ANSWER_PATIENCE_S):
                writer.write(frame)
                while (answer := await _frame(reader))[4:8] != frame[8:12]:  # the correlation id
                    pass
            [error] = struct.unpack_from(">h", answer, _ERROR_AT)
            self.traps.delivered[f"{trap.trick}, {f'refused by {error}' if error else 'taken'}:"] += 1
        if broker is not None:
            await self.close(broker[1])


class Link:
    """One connection of a client, and ours to the broker for it."""

    count = 0

    def __init__(
        self,
        proxy: Proxy,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        broker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        Link.count += 1
        self.number = Link.count
        self._proxy = proxy
        self._client = client
        self._broker = broker
        self._stalled_until = 0.0

    def cut(self) -> None:
        self._client[1].transport.abort()
        self._broker[1].transport.abort()

    def stall(self, seconds: float) -> None:
        self._stalled_until = asyncio.get_running_loop().time() + seconds

    async def carry(self) -> None:
        """Carry both ways until one side ends, or a trap closes."""
        self._proxy.links.add(self)
        ways = [asyncio.create_task(self._requests()), asyncio.create_task(self._responses())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._proxy.links.discard(self)
            for way in ways:
                way.cancel()
            done = await asyncio.gather(*ways, return_exceptions=True)
            await self._proxy.close(self._client[1])
            if not any(isinstance(one, _HeldBackError) for one in done):
                await self._proxy.close(self._broker[1])

    async def _requests(self) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(self._client[0])
                await self._slowly()
                [key] = struct.unpack_from(">h", frame, 4)
                trap = self._proxy.traps.take() if key == END_TXN else None
                if trap is not None and trap.trick == "late":
                    self._proxy.spawn(self._proxy.deliver(trap, frame, self._broker))
                    raise _HeldBackError
                if trap is not None:
                    self._proxy.spawn(self._proxy.deliver(trap, frame, None))
                self._broker[1].write(frame)
                await self._broker[1].drain()

    async def _responses(self) -> None:
        with suppress(OSError):
            while chunk := await self._broker[0].read(CHUNK):
                await self._slowly()
                self._client[1].write(chunk)
                await self._client[1].drain()

    async def _slowly(self) -> None:
        stalled = self._stalled_until - asyncio.get_running_loop().time()
        if (wait := max(self._proxy.delay, stalled)) > 0:
            await asyncio.sleep(wait)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """One whole message of Kafka's protocol, its size in front."""
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size))
