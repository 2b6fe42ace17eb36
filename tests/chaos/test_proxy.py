"""The proxy does to EndTxn, and to connections, what it says, and to nothing else."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest
from tests.chaos.proxy import END_TXN, HOST, Proxy, Trap, Traps

from holdshort.stream.embedded import free_ports

FETCH = 1


class Broker:
    """Answers every request with success, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[tuple[int, int]] = asyncio.Queue()  # API key and correlation id
        self._open: asyncio.Queue[None] = asyncio.Queue()  # one unfinished task for each connection
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.put_nowait(None)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4))
                key, _, correlation = struct.unpack_from(">hhi", await reader.readexactly(size))
                self.asked.put_nowait((key, correlation))
                writer.write(struct.pack(">iiih", 10, correlation, 0, 0))
        except (OSError, asyncio.IncompleteReadError):
            writer.close()
        self._open.task_done()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self.everyone_gone()

    async def everyone_gone(self) -> None:
        await self._open.join()


class Client:
    """One connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, key: int, correlation: int) -> int:
        """The correlation id of the answer. Raises what a broken connection raises."""
        self._writer.write(struct.pack(">ihhi", 8, key, 0, correlation))
        answer = await self._reader.readexactly(14)
        answered: int = struct.unpack_from(">i", answer, 4)[0]
        return answered

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


Connect = Callable[[], Awaitable[Client]]


@asynccontextmanager
async def proxied(traps: Traps) -> AsyncIterator[tuple[Broker, Proxy, Connect]]:
    here, there = free_ports(2)
    broker, proxy, clients = Broker(), Proxy(here, there, traps), []

    async def connect() -> Client:
        client = Client(*await asyncio.open_connection(HOST, here))
        clients.append(client)
        return client

    await broker.start(there)
    await proxy.start()
    try:
        yield broker, proxy, connect
    finally:
        for client in clients:
            await client.close()
        await proxy.stop()
        await broker.stop()


async def asked(broker: Broker) -> tuple[int, int]:
    async with asyncio.timeout(5):
        return await broker.asked.get()


async def test_without_troubles_everything_passes_in_order() -> None:
    async with proxied(Traps()) as (broker, _, connect):
        client = await connect()

        assert [await client.ask(key, number) for number, key in enumerate((FETCH, END_TXN, FETCH))] == [
            0,
            1,
            2,
        ]
        assert [await asked(broker) for _ in range(3)] == [(FETCH, 0), (END_TXN, 1), (FETCH, 2)]


async def test_a_late_end_of_a_transaction_comes_after_its_client_was_cut_off() -> None:
    traps = Traps()
    async with proxied(traps) as (broker, _, connect):
        client = await connect()
        traps.lay(Trap("late", 0.1))
        assert await client.ask(FETCH, 1) == 1  # the trap is not for this one

        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.ask(END_TXN, 2)
        again = await connect()
        assert await again.ask(END_TXN, 3) == 3

        assert [await asked(broker) for _ in range(3)] == [(FETCH, 1), (END_TXN, 3), (END_TXN, 2)]


async def test_the_end_of_a_transaction_is_delivered_twice() -> None:
    traps = Traps()
    async with proxied(traps) as (broker, _, connect):
        client = await connect()
        traps.lay(Trap("twice", 0.05))

        assert await client.ask(END_TXN, 7) == 7
        assert [await asked(broker) for _ in range(2)] == [(END_TXN, 7), (END_TXN, 7)]
        assert await client.ask(FETCH, 8) == 8


async def test_connections_break_when_they_are_cut() -> None:
    async with proxied(Traps()) as (_, proxy, connect):
        client = await connect()
        await client.ask(FETCH, 1)

        proxy.cut()

        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.ask(FETCH, 2)


async def test_a_stalled_connection_is_overtaken() -> None:
    async with proxied(Traps()) as (broker, proxy, connect):
        first = await connect()
        await first.ask(FETCH, 1)
        proxy.stall_some(Random(1), 0.3)  # half of one, rounded up
        second = await connect()

        slow = asyncio.create_task(first.ask(FETCH, 2))
        assert await second.ask(FETCH, 3) == 3
        assert await slow == 2

        assert [await asked(broker) for _ in range(3)] == [(FETCH, 1), (FETCH, 3), (FETCH, 2)]


async def test_a_proxy_that_stops_leaves_nothing_open_whatever_it_held_back() -> None:
    traps = Traps()
    async with proxied(traps) as (broker, proxy, connect):
        client = await connect()
        traps.lay(Trap("late", 60))
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.ask(END_TXN, 1)

        await proxy.stop()

        async with asyncio.timeout(5):
            await broker.everyone_gone()
