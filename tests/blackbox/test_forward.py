"""Ports of sandboxes on 127.0.0.1: real servers inside, what is refused, and what ends them."""

import socket

import pytest

import host
from client import until
from rest import Failed
from serving import SERVER, serve
from test_hub_cli import FAILED, Hub

PORTS, CONNECTIONS, WAIT = 16, 64, 30


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Hub(me, tmp_path_factory.mktemp('forward'), '--listen', '127.0.0.1:0',
             '--pool', '1') as shared:
        yield shared
    before.check()


@pytest.fixture
def box(hub):
    made = hub.create()
    yield made
    hub.raw('DELETE', f'/v1/sandboxes/{made}')


def forward(hub, box, port, **more):
    answer = hub.post(f'/v1/sandboxes/{box}/forward', guest_port=port, **more)
    assert answer['guest_port'] == port
    name, number = answer['host'].split(':')
    assert name == '127.0.0.1'
    return int(number)


def forwards(hub, box):
    return hub.call('GET', f'/v1/sandboxes/{box}/forward')['forwards']


def connect(port):
    return socket.create_connection(('127.0.0.1', port), timeout=WAIT)


def ended(sock):
    """Whether the other side lets go, in whatever way."""
    try:
        while sock.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def turned_away(port):
    """Whoever is let go at once may hear of it while connecting."""
    try:
        with connect(port) as sock:
            return ended(sock)
    except ConnectionResetError:
        return True


def echoes(port, data=b'hello'):
    with connect(port) as sock:
        sock.sendall(data)
        got = b''
        while len(got) < len(data):
            piece = sock.recv(65536)
            assert piece, got
            got += piece
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b''  # its end comes back as well
    return got == data


def refused(port):
    try:
        connect(port).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize('listens', ['8000', '68000'], ids=['IPv4', 'IPv6'])
def test_a_server_inside(hub, box, listens):
    if hub.exec(box, 'python3 -c "import socket; socket.create_server((\'::1\', 0), '
                'family=socket.AF_INET6)"')['exit_code'] and '6' in listens:
        pytest.skip('there is no IPv6 here')
    serve(hub, box, 'echo', listens)
    port = forward(hub, box, 8000)
    assert echoes(port) and echoes(port, bytes(range(256)) * 20000)
    assert forward(hub, box, 8000) == port  # the same again
    row = until(lambda: (r := forwards(hub, box)[0])['connections'] == 0 and r,
                what='both are over')
    assert row == {'host': f'127.0.0.1:{port}', 'guest_port': 8000, 'connections': 0,
                   'connections_total': 2}
    usage = hub.call('GET', f'/v1/sandboxes/{box}/usage')
    assert usage['bytes_in'] > 5e6 and usage['bytes_out'] > 5e6


def test_the_server_comes_later_and_goes(hub, box):
    port = forward(hub, box, 8000)
    assert turned_away(port)  # nobody listens
    started = serve(hub, box, 'echo', 8000)
    assert echoes(port)
    with connect(port) as sock:
        sock.sendall(b'x')
        assert sock.recv(1) == b'x'
        hub.call('DELETE', f'/v1/sandboxes/{box}/execs/{started}')
        assert ended(sock)


def test_a_slow_reader_holds_its_server(hub, box):
    """Nobody keeps what it has not read."""
    hub.exec(box, 'head -c 50000000 /dev/zero > big')
    serve(hub, box, 'say', 8000, 'big')
    with connect(forward(hub, box, 8000)) as sock:
        sock.sendall(b'\r\n\r\n')
        until(lambda: hub.call('GET', f'/v1/sandboxes/{box}/usage')['bytes_out'] > 0, what='bytes')
        assert hub.call('GET', f'/v1/sandboxes/{box}/usage')['bytes_out'] < 40e6
        n = 0
        while piece := sock.recv(1 << 20):
            n += len(piece)
        assert n == 50000000


def test_it_is_busy(hub):
    """An open connection keeps a sandbox from being idle; without one it ends."""
    made = hub.create(idle_seconds=5)
    hub.post('/v1/files/write', sandbox=made, path='server.py', content=SERVER)
    # no job of the hub's
    hub.exec(made, 'python3 server.py echo 8000 >out 2>&1 & until grep -q ready out; '
             'do sleep 0.05; done')
    with connect(forward(hub, made, 8000)) as sock:
        sock.sendall(b'x')
        assert sock.recv(1) == b'x'
        other = hub.create(idle_seconds=5)  # the control
        until(lambda: hub.call('GET', f'/v1/sandboxes/{other}')['state'] == 'terminated',
              what='it is idle')
        sock.sendall(b'x')
        assert sock.recv(1) == b'x'
    until(lambda: hub.call('GET', f'/v1/sandboxes/{made}')['state'] == 'terminated',
          what='it is idle')


def test_bounds(hub, box):
    ports = [forward(hub, box, 9000 + i) for i in range(PORTS)]
    assert len(set(ports)) == PORTS
    with pytest.raises(Failed) as failed:
        forward(hub, box, 9100)
    assert (failed.value.code == 'quota_exceeded' and failed.value.error['context']['dimension']
            == 'forwards')
    assert forward(hub, box, 9000) == ports[0]
    serve(hub, box, 'echo', 9000)
    socks = [connect(ports[0]) for _ in range(CONNECTIONS)]
    for sock in socks:
        sock.sendall(b'x')
        assert sock.recv(1) == b'x'
    assert turned_away(ports[0])  # one too many
    socks.pop().close()
    until(lambda: forwards(hub, box)[0]['connections'] < CONNECTIONS, what='there is room')
    assert echoes(ports[0])
    for sock in socks:
        sock.close()


def test_its_end(hub, box):
    serve(hub, box, 'echo', 8000)
    port, other = forward(hub, box, 8000), forward(hub, box, 8001)
    with connect(port) as sock:
        sock.sendall(b'x')
        assert sock.recv(1) == b'x'
        hub.call('DELETE', f'/v1/sandboxes/{box}/forward?guest_port=8000')
        assert ended(sock)
    assert refused(port) and not refused(other)
    with pytest.raises(Failed) as failed:
        hub.call('DELETE', f'/v1/sandboxes/{box}/forward?guest_port=8000')
    assert failed.value.status == 400
    port = forward(hub, box, 8000)
    assert echoes(port)
    with connect(port) as sock:
        sock.sendall(b'x')
        assert sock.recv(1) == b'x'
        hub.delete(box)
        assert ended(sock)
    assert refused(port) and refused(other)
    with pytest.raises(Failed) as failed:
        forward(hub, box, 8000)
    assert failed.value.status == 404


def test_pause_stop_fork(hub, box):
    serve(hub, box, 'echo', 8000)
    port = forward(hub, box, 8000)
    child = hub.post(f'/v1/sandboxes/{box}/fork')['id']
    assert forwards(hub, child) == []
    hub.delete(child)
    with connect(port) as sock:
        sock.sendall(b'x')
        assert sock.recv(1) == b'x'
        hub.post('/v1/pause', sandbox=box)
        sock.sendall(b'y')
        assert turned_away(port)
        with pytest.raises(Failed) as failed:
            forward(hub, box, 8001)
        assert failed.value.status == 409
        hub.post('/v1/resume', sandbox=box)
        assert sock.recv(1) == b'y' and echoes(port)
        hub.post(f'/v1/sandboxes/{box}/stop')
        assert ended(sock)
    assert refused(port)
    hub.post('/v1/resume', sandbox=box)
    assert forwards(hub, box) == []


def test_host_ports(hub, box):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Failed) as failed:
            forward(hub, box, 8000, host_port=port)
        assert failed.value.status == 409
    assert forward(hub, box, 8000, host_port=port) == port == forward(hub, box, 8000)
    with pytest.raises(Failed) as failed:
        forward(hub, box, 8000, host_port=port - 1)
    assert failed.value.status == 409 and len(forwards(hub, box)) == 1


def test_only_loopback(hub, box):
    """Nobody beyond this machine is listened to."""
    port = forward(hub, box, 8000)
    with open('/proc/net/tcp', encoding='ascii') as f:
        listening = [line.split()[1] for line in f if line.split()[3] == '0A'
                     and line.split()[1].endswith(f':{port:04X}')]
    assert listening == [f'0100007F:{port:04X}']


def test_the_sandbox_gains_nothing(hub, box):
    """It reaches no port of the host."""
    serve(hub, box, 'echo', 8000)
    port = forward(hub, box, 8000)
    with connect(port) as sock, socket.create_server(('127.0.0.1', 0)) as own:
        sock.sendall(b'x')
        assert sock.recv(1) == b'x'
        with connect(own.getsockname()[1]):
            pass  # the control
        tried = hub.exec(box, 'python3', args=['-c', f'''
import socket
for port in ({port}, {own.getsockname()[1]}, {hub.address[1]}):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5)
        print("connected")
    except ConnectionRefusedError:
        print("refused")
'''])['stdout']
    assert tried == 'refused\n' * 3


def test_the_verbs(hub, tmp_path):
    made = hub.ok('up', '-p', '8000', '--publish', '8001').decode().strip()
    assert [row['guest_port'] for row in hub.json('forward', made)] == [8000, 8001]
    serve(hub, made, 'echo', 8000)
    address = hub.ok('forward', made, '8000').decode().strip()
    assert address.startswith('127.0.0.1:') and echoes(int(address.split(':')[1]))
    assert address.encode() in hub.ok('forward', made)
    hub.ok('forward', '-d', made, '8001')
    assert [row['guest_port'] for row in hub.json('forward', made)] == [8000]
    hub.ok('forward', '-d', made)
    assert hub.json('forward', made) == []
    for wrong in ('0', '65536', 'x', '1:', ':1', '1:2:3', '', '080000'):
        hub.fails(FAILED, 'a port is a number', 'forward', made, wrong)
    before = hub.names()
    with socket.create_server(('127.0.0.1', 0)) as taken:
        hub.fails(FAILED, 'taken', 'up', '-p', f'{taken.getsockname()[1]}:8000')
    assert hub.names() == before  # with all of its ports, or none
    hub.ok('down', made)
