"""The two faces of the Python SDK as one: what blocks is awaited, too, so that a scenario is
written once, as for asyncio."""

import asyncio
import inspect

import pytest

import holt

PLAIN = (str, bytes, int, float, dict, tuple, type(None), holt.NetworkPolicy, holt.CommandResult)
BLOCKING = (holt.Sandbox, holt.Files, holt.Commands, holt.Ports, holt.Network, holt.Process,
            holt.Channel, holt.Events, holt.Bytes, holt.Client)


class Awaited:
    """An object that blocks, in clothes of asyncio."""

    def __init__(self, of):
        self._of = of

    def __getattr__(self, name):
        found = getattr(self._of, name)
        if not callable(found) or isinstance(found, PLAIN):
            return dressed(found)
        if name == 'connect' and isinstance(self._of, holt.Commands):
            return lambda *a, **k: dressed(found(*a, **k))

        async def call(*arguments, **more):
            return dressed(found(*map(bare, arguments), **{k: bare(v) for k, v in more.items()}))
        return call

    def __repr__(self):
        return repr(self._of)

    async def __aenter__(self):
        return dressed(self._of.__enter__())

    async def __aexit__(self, *ended):
        return self._of.__exit__(*ended)

    async def __aiter__(self):
        for one in self._of:
            yield one


def dressed(value):
    if isinstance(value, list):
        return [dressed(one) for one in value]
    return Awaited(value) if isinstance(value, BLOCKING) or inspect.isclass(value) else value


def bare(value):
    return value._of if isinstance(value, Awaited) else value


class Face:
    def __init__(self, kind, place):
        self.kind, self.place = kind, place
        self.loop = asyncio.new_event_loop()
        blocks = kind == 'blocking'
        self.Sandbox = Awaited(holt.Sandbox) if blocks else holt.AsyncSandbox
        self.clients = []
        self.client = self.new_client()

    def new_client(self, **more):
        place = {**self.place, **more}
        self.clients.append(Awaited(holt.Client(**place)) if self.kind == 'blocking'
                            else holt.AsyncClient(**place))
        return self.clients[-1]

    def wait(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            self.wait(client.close())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


EVERY = [f'{kind}-{door}' for kind in ('blocking', 'asyncio') for door in ('unix', 'http')]
every = pytest.mark.parametrize('face', EVERY, indirect=True)


def scenario(test):
    """A test that is a coroutine, of a face."""
    def run(face, **more):
        face.wait(test(face, **more))
    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    run.__signature__ = inspect.signature(test)
    return run
