"""Both SDKs over TLS: who the hub is, streams, and both ways of a channel at once."""

import os
import threading

import pytest

import holt
from conftest import TS, node
from face import Face
from test_door import certificate  # noqa: F401 (a fixture)
from test_serve import Serve


@pytest.fixture
def tls(me, tmp_path, certificate, monkeypatch):  # noqa: F811
    os.chown(tmp_path, me.uid, me.uid)
    hub = Serve(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0', '--tls-cert',
                certificate[0], '--tls-key', certificate[1])
    hub.place = {'base_url': f'https://localhost:{hub.address[1]}', 'api_key': hub.token}
    monkeypatch.setenv('SSL_CERT_FILE', certificate[0])
    yield hub
    try:
        assert hub.end() == 0, hub.said()
    finally:
        hub.kill()


DATA = os.urandom(40000)


@pytest.mark.parametrize('kind', ['blocking', 'asyncio'])
def test_python(tls, kind):
    async def go():
        async with await face.Sandbox.create(client=face.client) as box:
            assert (await box.commands.run('echo $((6 * 7))')).stdout == '42\n'
            async with await box.files.watch() as events:
                assert await events.get(0.05) is None
                await box.files.write('a', 'b')
                assert (await events.get(20)).path == 'a'
            async with await box.commands.open(['cat']) as channel:
                if kind == 'blocking':  # one thread writes while this one reads
                    def write():
                        channel._of.write(DATA)
                        channel._of.close_stdin()
                    threading.Thread(target=write).start()
                else:
                    face.loop.create_task(channel.write(DATA)).add_done_callback(
                        lambda _: face.loop.create_task(channel.close_stdin()))
                assert b''.join([piece.data async for piece in channel]) == DATA
    with Face(kind, tls.place) as face:
        face.wait(go())


@pytest.mark.parametrize('kind', ['blocking', 'asyncio'])
def test_a_hub_that_is_not_known(tls, kind, monkeypatch):
    monkeypatch.delenv('SSL_CERT_FILE')
    with Face(kind, {**tls.place, 'retries': 0}) as face:
        with pytest.raises(holt.TransportError) as caught:
            face.wait(face.client.health())
    assert 'certificate' in caught.value.cause.lower()


SCRIPT = '''
import { Sandbox, TransportError } from '@holt/sdk';
const box = await Sandbox.create();
const data = Buffer.alloc(40000, Buffer.from(Array.from({ length: 256 }, (_, i) => i)));
const channel = await box.commands.open(['cat']);
channel.write(data).then(() => channel.closeStdin());
const got = [];
for await (const piece of channel) got.push(piece.data);
const same = Buffer.concat(got).equals(data);
console.log((await box.commands.run('echo 42')).stdout, same, await box.kill());
'''


def test_typescript(compiled, tls, certificate):  # noqa: F811
    env = {'HOLT_BASE_URL': tls.place['base_url'], 'HOLT_API_KEY': tls.token}
    script = os.path.join(TS, 'dist/examples/tls.js')  # where it finds the package
    with open(script, 'w', encoding='utf-8') as f:
        f.write(SCRIPT)
    assert node(script, env={**env, 'NODE_EXTRA_CA_CERTS': certificate[0]}) == '42\n true true\n'
    with pytest.raises(AssertionError, match='TransportError: unreachable'):
        node(script, env={**env, 'SSL_CERT_FILE': '/dev/null'})  # which Debian's Node.js reads
