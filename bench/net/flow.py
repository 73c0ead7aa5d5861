"""Both ends of a flow of HTTP, for run: small requests on a kept connection, and large answers.

flow.py serve ADDRESS PORT          answers GET /N with N bytes, and says "ready" first
flow.py ask HOST PORT ROUNDS BYTES  prints the median and the 99th percentile of a request in
                                    microseconds, and gigabytes a second; through $http_proxy by
                                    CONNECT where FLOW_PROXY is set
"""

import json
import os
import socket
import sys
import time
from urllib.parse import urlsplit

BLOCK = 1 << 20


def serve(address, port):
    with socket.create_server((address, int(port)), backlog=64) as listener:
        print('ready', flush=True)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                answer(connection)
                os._exit(0)
            connection.close()


def answer(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    block = bytes(BLOCK)
    while True:
        head = connection.recv(65536)
        if not head:
            return
        left = int(head.split(b' ', 2)[1][1:])
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % left
                           + block[:min(left, 100)])
        left -= min(left, 100)
        while left:
            n = min(left, BLOCK)
            connection.sendall(block[:n] if n < BLOCK else block)
            left -= n


def connect(host, port):
    proxy = os.environ.get('FLOW_PROXY') and urlsplit(os.environ['http_proxy'])
    if not proxy:
        connection = socket.create_connection((host, int(port)))
    else:
        connection = socket.create_connection((proxy.hostname, proxy.port))
        credentials = ''
        if proxy.username:
            import base64
            word = base64.b64encode(f'{proxy.username}:{proxy.password}'.encode()).decode()
            credentials = f'Proxy-Authorization: Basic {word}\r\n'
        connection.sendall(f'CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{credentials}'
                           '\r\n'.encode())
        status = connection.recv(65536)
        if b' 200 ' not in status:
            sys.exit(f'flow: the proxy answers {status[:200]}')
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def request(connection, host, n, room):
    """Asks for n bytes, and reads them."""
    connection.sendall(f'GET /{n} HTTP/1.1\r\nHost: {host}\r\n\r\n'.encode())
    got = connection.recv_into(room)
    end = bytes(room[:got]).find(b'\r\n\r\n')
    left = n - (got - end - 4)
    while left > 0:
        got = connection.recv_into(room)
        if not got:
            sys.exit('flow: the server has gone')
        left -= got


def ask(host, port, rounds, size):
    connection = connect(host, port)
    room = memoryview(bytearray(BLOCK))
    times = []
    for i in range(int(rounds) + 100):
        begun = time.perf_counter()
        request(connection, host, 1, room)
        if i >= 100:
            times.append((time.perf_counter() - begun) * 1e6)
    rates = []
    for _ in range(5):
        begun = time.perf_counter()
        request(connection, host, int(size), room)
        rates.append(int(size) / (time.perf_counter() - begun) / 1e9)
    times.sort()
    rates.sort()
    print(json.dumps({'p50': times[len(times) // 2], 'p99': times[len(times) * 99 // 100],
                      'gb': rates[len(rates) // 2]}), flush=True)


if __name__ == '__main__':
    {'serve': serve, 'ask': ask}[sys.argv[1]](*sys.argv[2:])
