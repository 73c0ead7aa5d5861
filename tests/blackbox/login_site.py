"""What agents talk to when they log in and ask their models: a TLS server of ours under the real
hosts' names, which knows which tokens hold. Models answer one sentence in three dialects."""

import base64
import json
import threading
import urllib.parse

from egress import WEB_IP, World

HOSTS = ['platform.claude.com', 'claude.ai', 'claude.com', 'api.anthropic.com', 'auth.openai.com',
         'chatgpt.com', 'api.openai.com', 'accounts.google.com', 'oauth2.googleapis.com',
         'www.googleapis.com', 'cloudcode-pa.googleapis.com', 'generativelanguage.googleapis.com',
         'play.googleapis.com']
SAID = 'the sentence of the model'


def word(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip('=')


class Site:
    """access, refresh: the tokens that hold now. log: (host, method, target, fields, body)."""

    def __init__(self, top):
        self.world = World(str(top), HOSTS)
        self.world.zone.update({host: [WEB_IP] for host in HOSTS})
        self.world.serve(self.serve, WEB_IP, 443, tls=True)
        self.log, self.lock, self.made = [], threading.Lock(), 0
        self.access, self.refresh, self.code = None, None, 'code-of-the-person'
        self.keys = set()  # API keys that hold
        self.lives = 3600  # seconds of an access token
        self.secrets = []  # all values that no sandbox may have

    def close(self):
        self.world.close()

    # ---- HTTP ------------------------------------------------------------------------------------

    def serve(self, connection):
        data = b''
        while True:
            while b'\r\n\r\n' not in data:
                piece = connection.recv(65536)
                if not piece:
                    return
                data += piece
            head, _, data = data.partition(b'\r\n\r\n')
            first, *lines = head.decode('latin-1').split('\r\n')
            fields = dict(line.split(': ', 1) if ': ' in line else (line.rstrip(':'), '')
                          for line in lines)
            fields = {name.lower(): value for name, value in fields.items()}
            body = b''
            if 'chunked' in fields.get('transfer-encoding', ''):
                while True:
                    while b'\r\n' not in data:
                        data += connection.recv(65536)
                    size, _, data = data.partition(b'\r\n')
                    while len(data) < int(size, 16) + 2:
                        data += connection.recv(65536)
                    body += data[:int(size, 16)]
                    data = data[int(size, 16) + 2:]
                    if size == b'0':
                        break
            else:
                n = int(fields.get('content-length', 0))
                while len(data) < n:
                    data += connection.recv(65536)
                body, data = data[:n], data[n:]
            method, target, _ = first.split(' ')
            path, _, query = target.partition('?')
            with self.lock:
                self.log.append((fields['host'], method, target, fields, body))
                status, kind, text = self.answer(fields['host'], method, path, query, fields, body)
            text = text if isinstance(text, bytes) else text.encode()
            connection.sendall(f'HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n'
                               f'request-id: req_1\r\nContent-Length: {len(text)}\r\n\r\n'.encode()
                               + text)

    def asked(self, path):
        return [one for one in self.log if one[2].startswith(path)]

    # ---- tokens ----------------------------------------------------------------------------------

    def make(self, kind):
        self.made += 1
        value = f'canary-{kind}-{self.made}-{"x" * 40}'
        self.secrets.append(value)
        return value

    def make_jwt(self, kind, **claims):
        """Its signature is what must not be inside."""
        return f'{word({"alg": "RS256", "typ": "JWT"})}.{word(claims)}.{self.make(kind)}'

    def grant(self, jwt):
        auth = {'chatgpt_account_id': 'account-1', 'chatgpt_plan_type': 'pro',
                'chatgpt_user_id': 'user-1', 'user_id': 'user-1'}
        claims = {'exp': 4102444800, 'iat': 1, 'email': 'me@example.org', 'sub': 'user-1',
                  'aud': 'app', 'iss': 'https://auth.openai.com',
                  'https://api.openai.com/auth': auth,
                  'https://api.openai.com/profile': {'email': 'me@example.org'}}
        self.access = self.make_jwt('access', **claims) if jwt else self.make('access')
        self.refresh = self.make('refresh')
        more = {'id_token': self.make_jwt('id', **claims)} if jwt else {}
        return 200, 'application/json', json.dumps({
            'access_token': self.access, 'refresh_token': self.refresh, **more,
            'token_type': 'Bearer', 'expires_in': self.lives,
            'scope': 'user:inference user:profile openid',
            'account': {'uuid': 'a-1', 'email_address': 'me@example.org'},
            'organization': {'uuid': 'o-1', 'name': 'org'}})

    def token(self, fields, body, jwt):
        asks = (json.loads(body) if 'json' in fields.get('content-type', '')
                else dict(urllib.parse.parse_qsl(body.decode())))
        kind = asks.get('grant_type')
        good = (asks.get('code') == self.code if kind == 'authorization_code'
                else kind == 'refresh_token' and asks.get('refresh_token') == self.refresh)
        if not good:
            return 400, 'application/json', json.dumps({'error': 'invalid_grant'})
        return self.grant(jwt)

    def may(self, fields, query):
        bearer = fields.get('authorization', '').removeprefix('Bearer ')
        key = fields.get('x-api-key') or fields.get('x-goog-api-key') or bearer
        return (self.access and bearer == self.access) or key in self.keys

    # ---- what is at which host -------------------------------------------------------------------

    def answer(self, host, method, path, query, fields, body):
        if path in ('/v1/oauth/token', '/oauth/token', '/token') and method == 'POST':
            return self.token(fields, body, jwt=host == 'auth.openai.com')
        if host == 'auth.openai.com' and path.endswith('/deviceauth/usercode'):
            return 200, 'application/json', json.dumps({
                'device_auth_id': 'device-1', 'user_code': 'ABCD-EFGH', 'interval': '1',
                'expires_at': '2099-01-01T00:00:00+00:00'})
        if host == 'auth.openai.com' and path.endswith('/deviceauth/token'):
            return 200, 'application/json', json.dumps({
                'authorization_code': self.code, 'code_challenge': 'x' * 43,
                'code_verifier': 'v' * 43})
        if not self.may(fields, query):
            return 401, 'application/json', json.dumps({
                'type': 'error',
                'error': {'type': 'authentication_error', 'code': 401, 'message': 'invalid token',
                          'status': 'UNAUTHENTICATED'}})
        if path == '/v1/messages':
            return self.messages(json.loads(body))
        if path.endswith('/responses'):
            return 200, 'text/event-stream', self.responses()
        if 'streamGenerateContent' in path or 'generateContent' in path:
            return self.gemini(host, path, query)
        if path == '/api/oauth/profile':
            return 200, 'application/json', json.dumps({
                'account': {'uuid': 'a-1', 'email': 'me@example.org', 'has_claude_max': True,
                            'has_claude_pro': False, 'display_name': 'me'},
                'organization': {'uuid': 'o-1', 'organization_type': 'claude_max',
                                 'rate_limit_tier': 'default', 'name': 'org'}})
        if path.endswith('/accounts/check'):
            account = {'id': 'account-1', 'account_id': 'account-1', 'structure': 'personal',
                       'plan_type': 'pro', 'name': 'me', 'is_default': True,
                       'backend_origin': 'https://chatgpt.com',
                       'backend_base_url': 'https://chatgpt.com/backend-api'}
            return 200, 'application/json', json.dumps({
                'accounts': [account], 'account_ordering': ['account-1'],
                'default_account_id': 'account-1'})
        if path.endswith('/codex/models'):
            return 200, 'application/json', '{"models": []}'
        if path == '/tokeninfo':
            return 200, 'application/json', json.dumps({'expires_in': 3600, 'scope': 'openid',
                                                        'aud': 'x'})
        if 'userinfo' in path:
            return 200, 'application/json', json.dumps({'email': 'me@example.org', 'id': '1'})
        if path.endswith(':loadCodeAssist'):
            return 200, 'application/json', json.dumps({
                'currentTier': {'id': 'standard-tier', 'name': 'x'},
                'cloudaicompanionProject': 'project-1'})
        if path.endswith(':onboardUser'):
            return 200, 'application/json', json.dumps({
                'done': True, 'response': {'cloudaicompanionProject': {'id': 'project-1'}}})
        return 200, 'application/json', '{}'

    @staticmethod
    def messages(asks):
        message = {'id': 'msg_1', 'type': 'message', 'role': 'assistant', 'content': [],
                   'model': asks['model'], 'stop_reason': None, 'stop_sequence': None,
                   'usage': {'input_tokens': 1, 'output_tokens': 1}}
        if not asks.get('stream'):
            return 200, 'application/json', json.dumps({
                **message, 'content': [{'type': 'text', 'text': SAID}], 'stop_reason': 'end_turn'})
        events = [
            {'type': 'message_start', 'message': message},
            {'type': 'content_block_start', 'index': 0,
             'content_block': {'type': 'text', 'text': ''}},
            {'type': 'content_block_delta', 'index': 0,
             'delta': {'type': 'text_delta', 'text': SAID}},
            {'type': 'content_block_stop', 'index': 0},
            {'type': 'message_delta', 'delta': {'stop_reason': 'end_turn', 'stop_sequence': None},
             'usage': {'output_tokens': 5}},
            {'type': 'message_stop'}]
        return 200, 'text/event-stream', ''.join(
            f'event: {e["type"]}\ndata: {json.dumps(e)}\n\n' for e in events)

    @staticmethod
    def responses():
        item = {'type': 'message', 'role': 'assistant', 'id': 'msg_1',
                'content': [{'type': 'output_text', 'text': SAID, 'annotations': []}]}
        events = [{'type': 'response.created', 'response': {'id': 'resp_1'}},
                  {'type': 'response.output_item.done', 'output_index': 0, 'item': item},
                  {'type': 'response.completed', 'response': {
                      'id': 'resp_1', 'output': [item],
                      'usage': {'input_tokens': 1, 'input_tokens_details': None,
                                'output_tokens': 1, 'output_tokens_details': None,
                                'total_tokens': 2}}}]
        return ''.join(f'event: {e["type"]}\ndata: {json.dumps(e)}\n\n' for e in events)

    @staticmethod
    def gemini(host, path, query):
        part = {'candidates': [{'content': {'role': 'model', 'parts': [{'text': SAID}]},
                                'finishReason': 'STOP', 'index': 0}],
                'usageMetadata': {'promptTokenCount': 1, 'candidatesTokenCount': 1,
                                  'totalTokenCount': 2}}
        if host.startswith('cloudcode'):
            part = {'response': part, 'traceId': 't'}
        if 'stream' not in path:
            return 200, 'application/json', json.dumps(part)
        return 200, 'text/event-stream', f'data: {json.dumps(part)}\n\n'
