"""An authorization server and a protected resource on loopback,
whose every answer a test may replace.

	with World() as w:
	    w.auth.meta['issuer'] = 'https://elsewhere.example'
	    w.auth.on['/token'] = lambda q: (400, {}, {'error': 'invalid_grant'})
	    lines = w.run(client_id='me')
"""

import base64
import hashlib
import json
import os
import resource
import secrets
import signal
import subprocess
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from who import BUILD

HOST = os.path.join(BUILD, 'tests/oauth/mcp-oauth-host')
RUN_SECONDS = 40


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


# --- ECDSA with P-256, enough to verify -----------------------------------------------------------

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551
G = (0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296,
     0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5)


def add(a, b):
    if a is None or b is None:
        return a or b
    if a[0] == b[0]:
        if (a[1] + b[1]) % P == 0:
            return None
        m = 3 * (a[0] * a[0] - 1) * pow(2 * a[1], -1, P)
    else:
        m = (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (m * m - a[0] - b[0]) % P
    return x, (m * (a[0] - x) - a[1]) % P


def mul(k, point):
    total = None
    while k:
        if k & 1:
            total = add(total, point)
        point = add(point, point)
        k >>= 1
    return total


def es256_ok(jwk, signed, signature):
    x, y = (int.from_bytes(unb64(jwk[c]), 'big') for c in 'xy')
    r, s = int.from_bytes(signature[:32], 'big'), int.from_bytes(signature[32:], 'big')
    z = int.from_bytes(hashlib.sha256(signed).digest(), 'big')
    w = pow(s, -1, N)
    point = add(mul(z * w % N, G), mul(r * w % N, (x, y)))
    return (len(signature) == 64 and (
        y * y - x**3 + 3 * x - 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b)
            % P == 0
            and point is not None and point[0] % N == r)


def jwt_parts(text):
    head, claims, signature = text.split('.')
    return (json.loads(unb64(head)), json.loads(unb64(claims)), f'{head}.{claims}'.encode(),
            unb64(signature))


def thumbprint(jwk):
    names = ('crv', 'kty', 'x', 'y')
    return b64(hashlib.sha256(json.dumps({n: jwk[n] for n in names},
                                         separators=(',', ':')).encode()).digest())


def check_proof(proof, method, url, token=None):
    """The claims of a DPoP proof, and the thumbprint of its key."""
    head, claims, signed, signature = jwt_parts(proof)
    assert head['typ'] == 'dpop+jwt' and head['alg'] == 'ES256' and 'd' not in head['jwk']
    assert es256_ok(head['jwk'], signed, signature)
    assert (claims['htm'] == method and claims['htu'] == url and abs(claims['iat'] - time.time())
            < 60)
    if token:
        assert claims['ath'] == b64(hashlib.sha256(token.encode()).digest())
    return claims, thumbprint(head['jwk'])


# --- sites ----------------------------------------------------------------------------------------

class Request:
    def __init__(self, handler):
        parts = urllib.parse.urlsplit(handler.path)
        size = int(handler.headers.get('Content-Length') or 0)
        self.method, self.path, self.headers = handler.command, parts.path, handler.headers
        self.query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        self.body = handler.rfile.read(size)
        self.form = dict(urllib.parse.parse_qsl(self.body.decode('latin-1'),
                                                keep_blank_values=True))


class Site:
    """Answers by self.on[path], called with a Request; gives (status, headers, body). A body that
    is a function is called with the connection's stream."""

    def __init__(self):
        self.on, self.seen = {}, []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def serve(self):
                q = Request(self)
                site.seen.append(q)
                route = site.on.get(q.path)
                status, headers, body = route(q) if route else (404, {}, b'nothing here')
                stream = callable(body)
                raw = (b'' if stream else body if isinstance(body, bytes)
                       else json.dumps(body).encode())
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        for line in value if isinstance(value, list) else [value]:
                            self.send_header(name, line)
                    self.send_header('Connection', 'close')
                    if not stream:
                        self.send_header('Content-Length', str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                    if stream:
                        body(self.wfile)
                except OSError:
                    pass
                self.close_connection = True

            do_GET = do_POST = serve

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}'
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={'poll_interval': 0.02})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def count(self, path):
        return sum(q.path == path for q in self.seen)

    def last(self, path):
        return [q for q in self.seen if q.path == path][-1]


class Auth(Site):
    """The authorization server. meta: its metadata; secrets: of clients; tokens:
    that it has issued."""

    def __init__(self):
        super().__init__()
        self.meta = {
            'issuer': self.url,
            'authorization_endpoint': f'{self.url}/authorize',
            'token_endpoint': f'{self.url}/token',
            'registration_endpoint': f'{self.url}/register',
            'response_types_supported': ['code'],
            'code_challenge_methods_supported': ['S256'],
            'authorization_response_iss_parameter_supported': True,
            'token_endpoint_auth_methods_supported': ['none'],
        }
        self.clients, self.codes, self.tokens, self.refreshes = {}, {}, {}, {}
        self.keys = {}  # JWKs of clients
        self.redirect_with = {}  # what the redirect has beside or in place of what it should
        self.answer_with = {}  # the same of the token endpoint's answer
        self.without_refresh = False
        self.nonce = None
        self.pending = 0  # questions about a device that get "not yet"
        self.secrets = []  # nothing of it may be seen in the client's output
        self.on = {
            '/.well-known/oauth-authorization-server': lambda q: (200, {}, self.meta),
            '/register': self.register,
            '/authorize': self.authorize,
            '/token': self.token,
            '/device': self.device,
        }

    def new(self, prefix):
        value = f'{prefix}-{secrets.token_hex(12)}'
        self.secrets.append(value)
        return value

    def register(self, q):
        asked = json.loads(q.body)
        method = asked['token_endpoint_auth_method']
        answer = {**asked, 'client_id': f'client-{len(self.clients)}'}
        if method != 'none':
            answer['client_secret'] = self.new('secret')
        self.clients[answer['client_id']] = answer
        return 201, {}, answer

    def authorize(self, q):
        p = q.query
        assert p['response_type'] == 'code' and p['code_challenge_method'] == 'S256'
        code = self.new('code')
        self.codes[code] = p
        back = {'code': code, 'state': p['state'], 'iss': self.meta['issuer'], **self.redirect_with}
        back = {k: v for k, v in back.items() if v is not None}
        return 302, {'Location': f'{p["redirect_uri"]}?{urllib.parse.urlencode(back)}'}, b''

    def who(self, q):
        """The client id that is proven, or None."""
        f = q.form
        if q.headers.get('Authorization', '').startswith('Basic '):
            pair = base64.b64decode(q.headers['Authorization'][6:]).decode().split(':')
            name, secret = map(urllib.parse.unquote_plus, pair)
            return name if self.clients.get(name, {}).get('client_secret') == secret else None
        if 'client_assertion' in f:
            head, claims, signed, signature = jwt_parts(f['client_assertion'])
            assert (claims['aud'] == self.meta['issuer'] and claims['exp'] > time.time()
                    and claims['jti'])
            return claims['sub'] if es256_ok(self.keys[claims['sub']], signed, signature) else None
        known = self.clients.get(f.get('client_id'))
        return (f['client_id'] if known is not None and known.get('client_secret')
                == f.get('client_secret') else None)

    def issue(self, scope, jkt, refresh=True, **more):
        token = self.new('token')
        self.tokens[token] = {'scope': scope.split(), 'jkt': jkt}
        answer = {'access_token': token, 'token_type': 'DPoP' if jkt else 'Bearer',
                  'expires_in': 3600, **more}
        if scope:
            answer['scope'] = scope
        if refresh and not self.without_refresh:
            answer['refresh_token'] = self.new('refresh')
            self.refreshes[answer['refresh_token']] = (scope, jkt)
        answer.update(self.answer_with)
        return 200, {'Cache-Control': 'no-store'}, {k: v for k, v in answer.items()
                                                    if v is not None}

    def token(self, q):
        f, jkt = q.form, None
        if self.who(q) is None:
            return 401, {}, {'error': 'invalid_client'}
        if q.headers.get('DPoP'):
            claims, jkt = check_proof(q.headers['DPoP'], 'POST', f'{self.url}/token')
            if self.nonce and claims.get('nonce') != self.nonce:
                return 400, {'DPoP-Nonce': self.nonce}, {'error': 'use_dpop_nonce'}
        assert f['resource']
        return getattr(self, 'grant_' + f['grant_type'].split(':')[-1].replace('-', '_'))(f, jkt)

    def grant_authorization_code(self, f, jkt):
        asked = self.codes.pop(f['code'], None)
        if (not asked or asked['redirect_uri'] != f['redirect_uri']
            or asked['resource'] != f['resource'] or
            asked['code_challenge'] != b64(hashlib.sha256(f['code_verifier'].encode()).digest())):
            return 400, {}, {'error': 'invalid_grant'}
        self.secrets.append(f['code_verifier'])
        assert asked.get('dpop_jkt') == jkt
        return self.issue(asked.get('scope', ''), jkt)

    def grant_refresh_token(self, f, jkt):
        kept = self.refreshes.pop(f['refresh_token'], None)
        if not kept or kept[1] != jkt:
            return 400, {}, {'error': 'invalid_grant'}
        return self.issue(kept[0], jkt)

    def grant_client_credentials(self, f, jkt):
        return self.issue(f.get('scope', ''), jkt, refresh=False)

    def grant_jwt_bearer(self, f, jkt):
        if f['assertion'] not in self.secrets:
            return 400, {}, {'error': 'invalid_grant'}
        return self.issue(f.get('scope', ''), jkt, refresh=False)

    def device(self, q):
        assert self.who(q)
        code = self.new('device')
        self.codes[code] = q.form
        return 200, {}, {'device_code': code, 'user_code': 'WDJB-MJHT',
                         'verification_uri': f'{self.url}/go',
                         'expires_in': 60, 'interval': 1}

    def grant_device_code(self, f, jkt):
        if self.pending:
            self.pending -= 1
            return 400, {}, {'error': 'authorization_pending'}
        asked = self.codes.pop(f['device_code'])
        return self.issue(asked.get('scope', ''), jkt)


class Resource(Site):
    """The protected server at /mcp. needs: scopes; challenge:
    parameters of WWW-Authenticate beside the usual."""

    def __init__(self, auth):
        super().__init__()
        self.auth, self.needs, self.nonce, self.named, self.scheme = auth, [], None, True, 'Bearer'
        self.mcp = f'{self.url}/mcp'
        self.meta = {'resource': self.mcp, 'authorization_servers': [auth.url]}
        self.metadata_path = '/.well-known/oauth-protected-resource/mcp'
        self.on = {'/mcp': self.serve, self.metadata_path: lambda q: (200, {}, self.meta)}

    def refuse(self, status, **more):
        if self.named:
            more['resource_metadata'] = f'{self.url}{self.metadata_path}'
        if self.needs:
            more.setdefault('scope', ' '.join(self.needs))
        said = ', '.join(f'{k}="{v}"' for k, v in more.items())
        headers = {'WWW-Authenticate': f'{self.scheme} {said}'.strip()}
        if self.nonce:
            headers['DPoP-Nonce'] = self.nonce
        return status, headers, {'error': 'refused'}

    def serve(self, q):
        scheme, _, token = q.headers.get('Authorization', '').partition(' ')
        known = self.auth.tokens.get(token)
        if not known:
            return self.refuse(401)
        assert scheme == ('DPoP' if known['jkt'] else 'Bearer')
        if known['jkt']:
            claims, jkt = check_proof(q.headers['DPoP'], 'POST', self.mcp, token)
            assert jkt == known['jkt']
            if self.nonce and claims.get('nonce') != self.nonce:
                return self.refuse(401, error='use_dpop_nonce')
        if not set(self.needs) <= set(known['scope']):
            return self.refuse(403, error='insufficient_scope')
        return 200, {}, {}


class World:
    def __init__(self):
        self.auth = Auth()
        self.server = Resource(self.auth)
        self.sites = [self.auth, self.server]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for site in self.sites:
            site.close()

    def site(self):
        self.sites.append(Site())
        return self.sites[-1]

    def run(self, file_max=None, **options):
        """The lines that the client prints; nothing of it, and of its whole log, has a secret.
        file_max: bytes of the files that it may write, as if the disk were full behind them."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_max, file_max))
        options.setdefault('server', self.server.mcp)
        options.setdefault('redirect', 'http://127.0.0.1:1/callback')
        argv = [HOST] + [f'{k}={v}' for k, v in options.items() if v is not None]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=RUN_SECONDS,
                              check=False, env={**os.environ, 'HOLT_LOG': 'debug'},
                              preexec_fn=None if file_max is None else limit)
        assert done.returncode == 0, done.stderr
        for secret in self.auth.secrets:
            assert secret not in done.stdout and secret not in done.stderr
        return done.stdout.splitlines()
