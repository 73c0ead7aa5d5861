"""The egress proxy alone: the test is its hub and its warden.

World makes three network namespaces of the test's own: `inside`, a sandbox's, with a loopback
device and nothing else; `host`, where the proxy runs; and `world`, where servers are, at addresses
that look public and at some that are forbidden. Nothing of it touches the machine's own network.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from ctypes import Structure, c_bool, c_char, c_int32, c_uint8, c_uint16, c_uint32, c_uint64

import pytest

from client import until
from who import BUILD

PROGRAM = os.path.join(BUILD, 'src/box/holt-egress')
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
SECONDS = 20  # until something counts as hung

HOST_IP, WEB_IP = '93.184.216.1', '93.184.216.34'
OTHER_IP, DNS_IP = '93.184.216.35', '93.184.216.53'
FORBIDDEN = {'private': '10.9.0.1', 'metadata': '169.254.169.254', 'shared': '100.64.0.1',
             'benchmark': '198.18.0.1', 'link': '169.254.7.7', 'nat': '192.168.7.7'}
WEB_IP6 = '2606:2800:220:1::34'


# ---- the wire: src/net/wire/wire.h ---------------------------------------------------------------

class Addr(Structure):
    _fields_ = [('family', c_uint8), ('bytes', c_uint8 * 16)]

    def __str__(self):
        raw = bytes(self.bytes)
        if not self.family:
            return ''
        return (socket.inet_ntop(socket.AF_INET, raw[:4]) if self.family == 4
                else socket.inet_ntop(socket.AF_INET6, raw))


def addr(text):
    family = socket.AF_INET6 if ':' in text else socket.AF_INET
    raw = socket.inet_pton(family, text)
    return Addr(6 if ':' in text else 4, (c_uint8 * 16)(*raw))


class Cidr(Structure):
    _fields_ = [('addr', Addr), ('bits', c_uint8)]


class Rule(Structure):
    _fields_ = [('kind', c_uint32), ('port', c_uint16), ('service_port', c_uint16), ('cidr', Cidr),
                ('service', Addr), ('host', c_char * 254), ('path', c_char * 108)]


class HttpRule(Structure):
    _fields_ = [('rule', c_uint32), ('what', c_uint32), ('method', c_char * 16),
                ('pattern', c_char * 256)]


class Head(Structure):
    _fields_ = [('type', c_uint32), ('seq', c_uint32)]


class Limits(Structure):
    _fields_ = [(n, c_uint32) for n in ('flows', 'flows_per_s', 'names', 'queries_per_s',
                                        'head_bytes', 'handshake_ms')] + [
        ('idle_ms', c_uint64), ('bytes_per_s', c_uint64)]


class Resolver(Structure):
    _fields_ = [('addr', Addr), ('port', c_uint16)]


class Split(Structure):
    _fields_ = [('host', c_char * 254), ('n', c_uint32), ('servers', Resolver * 4)]


class Hello(Structure):
    _fields_ = [('h', Head), ('version', c_uint32)] + [
        (n, c_uint32) for n in ('n_split', 'n_private', 'n_direct', 'n_auth', 'n_ca')] + [
        ('proxy', c_char * 254), ('proxy_port', c_uint16), ('n_resolvers', c_uint32),
        ('resolvers', Resolver * 4), ('limits', Limits)]


class Way:
    """How names are reached, as a hub says it in its hello. proxy: (HOST, PORT); split: servers by
    suffix; private, direct: names."""

    def __init__(self, proxy=None, auth='', split=None, private=(), direct=(), ca=b''):
        self.proxy, self.auth, self.ca = proxy, auth.encode(), ca
        self.split, self.private, self.direct = split or {}, private, direct

    def fill(self, m):
        m.n_split, m.n_private, m.n_direct = map(len, (self.split, self.private, self.direct))
        m.n_auth, m.n_ca = len(self.auth), len(self.ca)
        if self.proxy:
            m.proxy, m.proxy_port = self.proxy[0].encode(), self.proxy[1]
        rest = b''
        for suffix, ip in self.split.items():
            rest += bytes(Split(suffix.encode(), 1, (Resolver * 4)(Resolver(addr(ip), 0))))
        for name in (*self.private, *self.direct):
            one = rule(name + ':1')
            one.port = 0
            rest += bytes(one)
        return rest + self.auth + self.ca


class Grant(Structure):
    _fields_ = [('h', Head), ('key', c_uint64), ('id', c_char * 65), ('n_rules', c_uint32),
                ('n_http', c_uint32)]


class Socket(Structure):
    _fields_ = [('kind', c_uint32), ('ip', c_uint32), ('port', c_uint32), ('name', c_char * 254)]


class Sockets(Structure):
    _fields_ = [('h', Head), ('key', c_uint64), ('want', c_uint32), ('n', c_uint32)]


class Drop(Structure):
    _fields_ = [('h', Head), ('key', c_uint64)]


class Want(Structure):
    _fields_ = [('h', Head), ('key', c_uint64), ('ip', c_uint32), ('n_ports', c_uint32),
                ('ports', c_uint16 * 32), ('name', c_char * 254)]


class Event(Structure):
    _fields_ = [('h', Head)] + [(n, c_uint64) for n in ('key', 'flow', 'up', 'down', 'new_up',
                                                        'new_down', 'ms', 'lost')] + [
        ('what', c_uint32), ('by', c_uint32), ('reason_code', c_uint32), ('rule', c_int32),
        ('port', c_uint16), ('addr', Addr), ('host', c_char * 254), ('secret', c_char * 65),
        ('method', c_char * 16), ('path', c_char * 256), ('http', c_char * 280)]

    @property
    def reason(self):
        return REASONS[self.reason_code]

    def __repr__(self):
        return (f'{WHATS[self.what]} {self.host.decode()}:{self.port} {self.addr} {self.reason} '
                f'rule {self.rule} up {self.up} down {self.down}')


class Secrets(Structure):
    _fields_ = [('h', Head), ('key', c_uint64), ('renews', c_bool), ('n', c_uint32),
                ('n_exchanges', c_uint32), ('n_ca_key', c_uint32), ('n_ca', c_uint32)]


class Secret(Structure):
    _fields_ = [('name', c_char * 65), ('placeholder', c_char * 48), ('plain', c_bool),
                ('uses', c_uint32), ('n_hosts', c_uint32), ('n_value', c_uint32),
                ('n_trust', c_uint32)]


class Exchange(Structure):
    _fields_ = [('name', c_char * 65), ('host', c_char * 254), ('path', c_char * 128),
                ('port', c_uint16), ('begins', c_bool)]


class Tokens(Structure):
    _fields_ = [('h', Head), ('key', c_uint64), ('name', c_char * 65), ('n', c_uint32)]


class Kept(Structure):
    _fields_ = [('h', Head), ('key', c_uint64), ('ask', c_uint32), ('kept', c_bool),
                ('why', c_char * 256), ('n', c_uint32)]


class Ask(Structure):
    _fields_ = [('h', Head), ('key', c_uint64), ('port', c_uint16), ('host', c_char * 254),
                ('method', c_char * 33), ('target', c_char * 2048), ('http', c_char * 280)]


class Verdict(Structure):
    _fields_ = [('h', Head), ('key', c_uint64), ('ask', c_uint32), ('allow', c_bool),
                ('why', c_char * 256)]


(HELLO, GRANT, SOCKETS, DROP, DONE, FAILED, WANT, FLOW, SECRETS, ASK, LEAVE,
 VERDICT, TOKENS, KEPT) = range(1, 15)
IN_FIELDS, IN_TOKENS, REFRESHES, SHOWS_CLAIMS = 1, 2, 4, 8
NAME, SUFFIX, CIDR, SERVICE = range(1, 5)
LISTEN, DNS_UDP, DNS_TCP, PROXY = range(1, 5)
OPENED, CLOSED, DENIED, UNREACHED, USED, MISPLACED, MOVED = range(1, 8)
WHATS = {1: 'opened', 2: 'closed', 3: 'denied', 4: 'failed', 5: 'secret', 6: 'placeholder',
         7: 'moved'}
REASONS = ['none', 'not_granted', 'forbidden_address', 'address_literal', 'not_tls', 'not_http',
           'bad_tls', 'no_sni', 'sni_mismatch', 'ech', 'bad_http', 'host_mismatch', 'http_rule',
           'http_rule_tls', 'connect', 'upgrade', 'limit_flows', 'limit_rate', 'limit_host', 'slow',
           'idle', 'resolve_failed', 'connect_failed', 'proxy_failed', 'revoked',
           'dropped', 'broken', 'bad_proxy', 'bad_certificate', 'bad_answer', 'http_asked',
           'bad_tokens']


def rule(text, target=None):
    """As `holt net` would read it: NAME:PORT, *.SUFFIX:PORT, ADDRESS[/BITS][:PORT]."""
    host, port = text, 0
    if text.count(':') == 1 or ']:' in text:
        host, port = text.rsplit(':', 1)
    host, r = host.strip('[]'), Rule(port=int(port))
    if target:
        r.kind, r.host = SERVICE, host.encode()
        if target.startswith('unix:'):
            r.path = target[5:].encode()
        else:
            ip, service_port = target.rsplit(':', 1)
            r.service, r.service_port = addr(ip), int(service_port)
    elif host.startswith('*.'):
        r.kind, r.host = SUFFIX, host[2:].encode()
    elif ':' in host or host.replace('.', '').replace('/', '').isdigit():
        ip, _, bits = host.partition('/')
        r.kind, r.cidr = CIDR, Cidr(addr(ip), int(bits or (128 if ':' in ip else 32)))
    else:
        r.kind, r.host = NAME, host.encode()
    return r


# ---- namespaces ----------------------------------------------------------------------------------

class Namespace:
    """One that lives as long as a process that does nothing."""

    def __init__(self, setup):
        self.holder = subprocess.Popen(
            ['unshare', '-n', '-m', 'sh', '-c', f'{setup}\necho ready; exec cat'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == 'ready\n'
        self.fd = os.open(f'/proc/{self.holder.pid}/ns/net', os.O_RDONLY | os.O_CLOEXEC)

    @contextlib.contextmanager
    def entered(self):
        here = os.open('/proc/thread-self/ns/net', os.O_RDONLY | os.O_CLOEXEC)
        assert LIBC.setns(self.fd, CLONE_NEWNET) == 0
        try:
            yield
        finally:
            assert LIBC.setns(here, CLONE_NEWNET) == 0
            os.close(here)

    def socket(self, *args):
        with self.entered():
            return socket.socket(*args)

    def command(self, *args):
        return ['nsenter', f'--target={self.holder.pid}', '--net', '--mount', '--', *args]

    def run(self, *args, **more):
        return subprocess.run(self.command(*args), capture_output=True, timeout=SECONDS,
                              check=False, **more)

    def close(self):
        self.holder.stdin.close()
        self.holder.wait(SECONDS)
        os.close(self.fd)


class World:
    """names: more hosts that the servers' certificate is for."""

    def __init__(self, top, names=()):
        self.top, self.names = top, names
        self.inside = Namespace('ip link set lo up; mount --bind /dev/null /etc/resolv.conf')
        self.world = Namespace(
            'ip link set lo up; for a in ' + ' '.join(FORBIDDEN.values()) +
            '; do ip addr add $a/32 dev lo; done')
        self.host = Namespace(
            'ip link set lo up; ip link add out type veth peer name in netns '
            f'{self.world.holder.pid}; '
            f'ip addr add {HOST_IP}/24 dev out; ip link set out up; '
            'ip -6 addr add 2606:2800:220:1::1/64 dev out nodad; '
            f'nsenter --target={self.world.holder.pid} --net sh -c "'
            + ''.join(f'ip addr add {a}/24 dev in; ' for a in (WEB_IP, OTHER_IP, DNS_IP)) +
            f'ip -6 addr add {WEB_IP6}/64 dev in nodad; ip link set in up"; '
            f'ip route add default via {WEB_IP}; ip -6 route add default via {WEB_IP6}')
        self.servers = []
        self.zone = {}
        self.asked = []
        self.told = {}  # (name, kind): the last query and who sent it, and the answer
        self.dns = self.world.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.dns.bind((DNS_IP, 53))
        threading.Thread(target=self.serve_names, args=(self.dns, self.zone), daemon=True).start()
        self.make_certificates()

    def make_certificates(self):
        self.ca = os.path.join(self.top, 'cert.pem')
        self.key = os.path.join(self.top, 'key.pem')
        names = ','.join(f'DNS:{name}' for name in (
            'web.example', 'other.example', 'far.example', '*.wild.example',
            'xn--bcher-kva.example', *self.names))
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                        'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=test',
                        '-addext', f'subjectAltName={names}', '-keyout', self.key, '-out', self.ca],
                       check=True, capture_output=True)
        self.own_ca = os.path.join(self.top, 'own.pem')  # the authority of a sandbox
        self.own_key = os.path.join(self.top, 'own.key')
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                        'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/O=own',
                        '-addext', 'keyUsage=critical,keyCertSign', '-keyout', self.own_key,
                        '-out', self.own_ca], check=True, capture_output=True)

    def serve_names(self, dns, zone):
        """An operator's resolver. The zone has lists of addresses, or functions that give them."""
        while True:
            try:
                query, peer = dns.recvfrom(1500)
            except OSError:
                return
            if len(query) < 17:
                return
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode('latin-1'))
                at += 1 + query[at]
            name, kind = '.'.join(labels).lower(), struct.unpack('>H', query[at + 1:at + 3])[0]
            asked, answer = self.told.get((name, kind), (None, None))
            if asked == (query, peer):  # again, since the answer came too late
                dns.sendto(answer, peer)
                continue
            self.asked.append((name, kind))
            found = zone.get(name)
            if callable(found):
                found = found(kind)
            records = [ip for ip in found or () if (':' in ip) == (kind == 28)]
            answer = b''
            for ip in records if kind in (1, 28) else ():
                raw = socket.inet_pton(socket.AF_INET6 if ':' in ip else socket.AF_INET, ip)
                answer += struct.pack('>HHHIH', 0xc00c, kind, 1, zone.get('ttl', 0),
                                      len(raw)) + raw
            n = len(records) if kind in (1, 28) else 0
            head = query[:2] + struct.pack('>HHHHH', 0x8180 | (0 if found else 3), 1, n, 0, 0)
            answer = head + query[12:at + 5] + answer
            self.told[name, kind] = (query, peer), answer
            dns.sendto(answer, peer)

    def serve(self, handle, ip=WEB_IP, port=80, where=None, tls=False, family=None):
        """A server: handle(connection) for each, in a thread. Gives its log of connections."""
        family = family or (socket.AF_INET6 if ':' in ip else socket.AF_INET)
        listener = (where or self.world).socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ip, port))
        listener.listen(128)
        log = []
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.ca, self.key)
            context.sni_callback = lambda s, name, c: log.append(name)
            if tls == 'retry':  # only a group that clients don't offer a key for at first
                context.set_ecdh_curve('secp521r1')

        def one(connection):
            try:
                with connection:
                    if context:
                        connection = context.wrap_socket(connection, server_side=True)
                    handle(connection)
            except OSError:
                pass

        def accept():
            while True:
                try:
                    connection, peer = listener.accept()
                except OSError:
                    return
                log.append(peer[0])
                threading.Thread(target=one, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        self.servers.append(listener)
        return log

    def close(self):
        for s in self.servers + [self.dns]:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()
        for n in (self.inside, self.host, self.world):
            n.close()


# ---- a network whose only way out is a proxy -----------------------------------------------------

PROXY_AT = (WEB_IP, 3128)
COMPANY = f"""
Port {PROXY_AT[1]}
Listen {PROXY_AT[0]}
Timeout 30
Allow {HOST_IP}
BasicAuth holt password1
ConnectPort 443
ConnectPort 22
ConnectPort 9443
MaxClients 32
LogFile "%s"
"""


@contextlib.contextmanager
def company_proxy(world, folder):
    """Debian's tinyproxy. It knows far.example, as no resolver does. Gives a function: its log."""
    program = shutil.which('tinyproxy')
    if not program:
        pytest.skip('needs tinyproxy')
    config, hosts, log = (os.path.join(folder, name) for name in ('conf', 'hosts', 'log'))
    with open(config, 'w', encoding='ascii') as f:
        f.write(COMPANY % log)
    with open(hosts, 'w', encoding='ascii') as f:
        f.write(f'{WEB_IP} far.example\n{OTHER_IP} other.example\n')
    running = subprocess.Popen(world.world.command(
        'sh', '-c', f'mount --bind {hosts} /etc/hosts && exec {program} -d -c {config}'),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_up():
        assert running.poll() is None
        with world.host.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            return s.connect_ex(PROXY_AT) == 0

    def said():
        with open(log, encoding='utf-8', errors='replace') as f:
            return f.read()
    try:
        until(is_up)
        yield said
    finally:
        running.terminate()
        running.wait()


# ---- the proxy -----------------------------------------------------------------------------------

class Refused(Exception):
    pass


class Proxy:
    """A running holt-egress, and one sandbox's grants at it."""

    def __init__(self, world, limits=None, resolver=DNS_IP, wrap=(), way=None):
        self.world, self.seq, self.events, self.answers = world, 0, [], {}
        self.hub, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.hub.settimeout(SECONDS)
        self.makes_sockets = True
        self.wants, self.asks, self.left, self.tokens = [], [], [], []
        self.exact = {}
        self.lock = threading.RLock()
        self.reads = threading.Event()
        self.reads.set()

        def child():
            LIBC.setns(world.host.fd, CLONE_NEWNET)
            os.dup2(theirs.fileno(), 3)

        self.process = subprocess.Popen([*wrap, PROGRAM], preexec_fn=child, close_fds=False)
        theirs.close()
        m = Hello(version=1, limits=limits or Limits())
        if resolver:
            m.n_resolvers = 1
            m.resolvers[0] = Resolver(addr(resolver), 0)
        threading.Thread(target=self.listen, daemon=True).start()
        self.send(HELLO, m, way.fill(m) if way else b'')

    def listen(self):
        while True:
            self.reads.wait()
            try:
                data = self.hub.recv(1 << 18)
            except TimeoutError:
                continue
            except OSError:
                return
            if not data:
                return
            head = Head.from_buffer_copy(data)
            if head.type == FLOW:
                self.events.append(Event.from_buffer_copy(data))
            elif head.type == ASK:
                self.asks.append(Ask.from_buffer_copy(data))
            elif head.type == LEAVE:
                self.left.append(head.seq)
            elif head.type == TOKENS:
                m = Tokens.from_buffer_copy(data)
                self.tokens.append((m, data[ctypes.sizeof(m):]))
                assert len(self.tokens[-1][1]) == m.n
            elif head.type == WANT:
                want = Want.from_buffer_copy(data)
                self.wants.append(want)
                if self.makes_sockets:
                    ports = list(want.ports[:want.n_ports])
                    self.give([(LISTEN, want.ip, p, want.name) for p in ports], want=want.h.seq,
                              wait=False, key=want.key)
            else:
                self.answers[head.seq] = (head.type, data)

    def send(self, kind, m, rest=b'', fds=(), wait=True):
        with self.lock:
            self.seq += 1
            seq = self.seq
            m.h = Head(kind, seq)
            socket.send_fds(self.hub, [bytes(m) + rest], list(fds))
        if not wait:
            return
        until = time.monotonic() + SECONDS
        while seq not in self.answers:
            assert time.monotonic() < until and self.process.poll() is None, 'no answer'
            time.sleep(0.001)
        got, data = self.answers.pop(seq)
        if got == FAILED:
            raise Refused(data[12:].split(b'\0')[0].decode())
        assert got == DONE

    def grant(self, *rules, http=(), key=1):
        rules = [rule(r) if isinstance(r, str) else r for r in rules]
        m = Grant(key=key, id=b'sb-test', n_rules=len(rules), n_http=len(http))
        self.send(GRANT, m, b''.join(bytes(r) for r in rules) + b''.join(bytes(h) for h in http))

    def give(self, sockets, want=0, wait=True, key=1, where=None):
        made = []
        with (where or self.world.inside).entered():
            for kind, ip, port, _ in sockets:
                s = socket.socket(socket.AF_INET,
                                  socket.SOCK_DGRAM if kind == DNS_UDP else socket.SOCK_STREAM)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind((socket.inet_ntoa(struct.pack('>I', ip)), port))
                if kind != DNS_UDP:
                    s.listen(512)
                made.append(s)
        rest = b''.join(bytes(Socket(kind, ip, port, name if isinstance(name, bytes)
                                     else name.encode())) for kind, ip, port, name in sockets)
        try:
            self.send(SOCKETS, Sockets(key=key, want=want, n=len(sockets)), rest,
                      [s.fileno() for s in made], wait)
        finally:
            for s in made:
                s.close()

    def allow(self, *rules, http=(), key=1, where=None):
        """Grants, and makes what the warden would: the resolver, the explicit proxy, and an address
        for each exact name."""
        rules = [rule(r) if isinstance(r, str) else r for r in rules]
        self.grant(*rules, http=http, key=key)
        sockets = []
        if (key, None) not in self.exact:
            self.exact[key, None] = True
            local = 0x7f000001
            sockets = [(DNS_UDP, local, 53, ''), (DNS_TCP, local, 53, ''),
                       (PROXY, local, 3128, '')]
        for r in rules:
            if r.kind not in (NAME, SERVICE) or (key, r.host, r.port) in self.exact:
                continue
            ips = self.exact.setdefault(key, {})
            ip = ips.setdefault(r.host, 0x7f010001 + len(ips))
            self.exact[key, r.host, r.port] = True
            sockets.append((LISTEN, ip, r.port, r.host))
        if sockets:
            self.give(sockets, key=key, where=where)

    def bind(self, *secrets, key=1, exchanges=(), renews=False):
        """Secrets: (name, placeholder, value, hosts, trusted PEM or b'', over plain HTTP[, uses]).
        Exchanges: (name, host, path, begins)."""
        with open(self.world.own_key, 'rb') as k, open(self.world.own_ca, 'rb') as c:
            ca_key, ca = (k.read(), c.read()) if secrets else (b'', b'')
        heads, hosts, rest = b'', b'', ca_key + ca
        for name, placeholder, value, at, trust, plain, *uses in secrets:
            heads += bytes(Secret(name.encode(), placeholder.encode(), plain,
                                  *(uses or (IN_FIELDS,)), len(at), len(value), len(trust)))
            hosts += b''.join(bytes(rule(h)) for h in at)
            rest += value + trust
        at = b''.join(bytes(Exchange(n.encode(), host.encode(), path.encode(), 443, begins))
                      for n, host, path, begins in exchanges)
        self.send(SECRETS, Secrets(key=key, renews=renews, n=len(secrets),
                                   n_exchanges=len(exchanges), n_ca_key=len(ca_key), n_ca=len(ca)),
                  heads + at + hosts + rest)

    def wait_tokens(self):
        until = time.monotonic() + SECONDS
        while not self.tokens:
            assert time.monotonic() < until, self.events
            time.sleep(0.002)
        return self.tokens.pop(0)

    def kept(self, m, body=b'', why=b''):
        self.send(KEPT, Kept(key=m.key, ask=m.h.seq, kept=not why, why=why, n=len(body)), body)

    def wait_ask(self):
        until = time.monotonic() + SECONDS
        while not self.asks:
            assert time.monotonic() < until, self.events
            time.sleep(0.002)
        return self.asks.pop(0)

    def verdict(self, ask, allow, why=b''):
        self.send(VERDICT, Verdict(key=ask.key, ask=ask.h.seq, allow=allow, why=why))

    def drop(self, key=1):
        self.send(DROP, Drop(key=key))

    def wait_event(self, what, reason=None, host=None):
        """The event that is there or comes, taken from the list."""
        until = time.monotonic() + SECONDS
        while True:
            for e in list(self.events):
                if (e.what == what and reason in (None, e.reason) and
                        host in (None, e.host.decode())):
                    self.events.remove(e)
                    return e
            assert time.monotonic() < until, (WHATS[what], reason, self.events)
            time.sleep(0.002)

    def close(self):
        with contextlib.suppress(OSError):
            self.hub.shutdown(socket.SHUT_RDWR)
        self.reads.set()
        self.hub.close()
        status = self.process.wait(SECONDS)
        assert status in (0, -signal.SIGKILL), status


# ---- clients inside ------------------------------------------------------------------------------

def python_inside(world, code, *args):
    """Runs Python code in the sandbox's namespace; what it prints."""
    done = world.inside.run(sys.executable, '-c', code, *args, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Peer:
    """A connection from inside, made by hand."""

    def __init__(self, world, ip, port):
        self.s = world.inside.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.s.settimeout(SECONDS)
        self.s.connect((ip, port))

    def send(self, data):
        self.s.sendall(data)

    def read(self, n=65536):
        return self.s.recv(n)

    def read_all(self):
        """Until the end; raises ConnectionResetError where it was reset."""
        data = b''
        while piece := self.s.recv(65536):
            data += piece
        return data

    def is_reset(self):
        try:
            self.read_all()
        except ConnectionResetError:
            return True
        return False

    def close(self):
        self.s.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait(SECONDS)
