"""Fifty sandboxes at once."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import holt
from conftest import place
from holt import Limits

MANY = 50
SMALL = Limits(memory_mb=32, disk_mb=8, pids=16)


def test_threads_that_share_a_client(hub):
    def life(i):
        with holt.Sandbox.create(limits=SMALL, client=client) as box:
            box.files.write('mine', str(i))
            return box.commands.run(['cat', 'mine'], check=True).stdout

    with holt.Client(**place(hub, 'unix')) as client, ThreadPoolExecutor(MANY) as threads:
        assert list(threads.map(life, range(MANY))) == [str(i) for i in range(MANY)]


def test_tasks_that_share_a_client(hub):
    async def life(client, i):
        async with await holt.AsyncSandbox.create(limits=SMALL, client=client) as box:
            await box.files.write('mine', str(i))
            return (await box.commands.run(['cat', 'mine'], check=True)).stdout

    async def all_of_them():
        async with holt.AsyncClient(**place(hub, 'http')) as client:
            return await asyncio.gather(*(life(client, i) for i in range(MANY)))
    assert asyncio.run(all_of_them()) == [str(i) for i in range(MANY)]
