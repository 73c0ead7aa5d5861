"""What both clients share: how a Call becomes a request, and an answer a document."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
from typing import Dict, Iterable, Mapping, NamedTuple, Optional, Tuple, Union

from ._config import find_endpoint, find_token
from ._core import Answer, Call, Opening
from ._http import Head, ProtocolError, encode_head, upgrade_fields
from .errors import HoltError, TimedOutError, TransportError, ValidationError, error_of_answer

IDLE = 30.0  # seconds that a connection is kept for the next call; the hub keeps it for 75
IDLE_CONNECTIONS = 32
ASKED = 1 << 20  # bytes of a body that the hub may refuse for its size
ASK = 2.0  # seconds for its word on that
ERROR_MAX = 16 << 20  # of an answer that tells a failure: it may have a result


def tune(sock: socket.socket) -> None:
    """A TCP connection whose peer has vanished ends within minutes; small messages go at once."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, seconds in (('TCP_KEEPIDLE', 30), ('TCP_KEEPINTVL', 10)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)


class Request(NamedTuple):
    head: bytes
    body: Union[bytes, Iterable[bytes]]  # pieces are sent as chunks
    asks: bool = False  # whether the body is wanted, before it is sent


class Hub:
    """Where the hub is, and the token for it."""

    def __init__(self, base_url: Optional[str], api_key: Optional[str], request_timeout: float,
                 retries: int) -> None:
        self.endpoint = find_endpoint(base_url, os.environ)
        self._token = find_token(api_key, self.endpoint, os.environ)
        self.request_timeout = request_timeout
        self.retries = retries
        self.tls = ssl.create_default_context() if self.endpoint.tls else None

    def __repr__(self) -> str:
        return f"{self.endpoint.url!r}, token {'set' if self._token else 'unset'}"

    def _fields(self, more: Mapping[str, str]) -> Dict[str, str]:
        token = {'Authorization': 'Bearer ' + self._token.reveal()} if self._token else {}
        return {'Host': self.endpoint.authority, **token, 'User-Agent': 'holt-python/0.1', **more}

    def request(self, call: Call, more: Optional[Mapping[str, str]] = None) -> Request:
        fields = dict(more or {})
        body: Union[bytes, Iterable[bytes]] = b''
        if call.body is not None:
            try:
                body = json.dumps(call.body, default=os.fspath).encode()
            except (TypeError, ValueError) as e:
                raise ValidationError(f'the request is no JSON: {e}',
                                      code='invalid_request') from None
            fields['Content-Type'] = 'application/json'
        elif call.content is not None:
            body = call.content
            fields.setdefault('Content-Type', 'application/x-tar')
        if not isinstance(body, bytes):
            fields['Transfer-Encoding'] = 'chunked'
        elif body or call.method in ('POST', 'PUT', 'PATCH'):
            fields['Content-Length'] = str(len(body))
        if call.key:
            fields['Idempotency-Key'] = call.key
        asks = isinstance(body, bytes) and len(body) > ASKED
        if asks:
            fields['Expect'] = '100-continue'
        try:
            target = self.endpoint.prefix + call.target()
            head = encode_head(call.method, target, self._fields(fields))
        except (ProtocolError, UnicodeEncodeError) as e:
            raise ValidationError(f'the request is no HTTP: {e}',
                                  code='invalid_request') from None
        return Request(head, body, asks)

    def upgrade(self, opening: Opening) -> Tuple[bytes, str]:
        fields, accept = upgrade_fields(opening.protocol)
        return self.request(opening.call, fields).head, accept

    def answer(self, head: Head, body: bytes) -> Answer:
        audit_id = head.fields.get('audit-id')
        if head.status != 200:
            raise self.refusal(head, body)
        try:
            return Answer(json.loads(body), audit_id)
        except (ValueError, RecursionError):
            raise TransportError('the answer is no JSON', code='bad_answer',
                                 status=head.status) from None

    def refusal(self, head: Head, body: bytes) -> HoltError:
        if self._token:
            body = self._token.hide_in(body)
        return error_of_answer(head.status, body, head.fields.get('audit-id'))

    def unreachable(self, e: Exception) -> HoltError:
        return TransportError(
            f'no hub answers at {self.endpoint.url}: {reason(e)}',
            code='unreachable',
            retryable=True,
            remediation=
            'Start one with `holt serve`, or say where it is: base_url or HOLT_BASE_URL.')

    def lost(self, call: Call, e: Exception) -> HoltError:
        if isinstance(e, (TimeoutError, socket.timeout, asyncio.TimeoutError)):
            return TimedOutError(
                f'the hub did not answer {call.method} {call.route} in time',
                code='request_timeout',
                retryable=call.again,
                remediation='Give a longer request_timeout, or look whether the hub is overloaded.'
            )
        return TransportError(
            f'the connection broke during {call.method} {call.route}: {reason(e)}',
            code='connection_lost',
            retryable=call.again,
            remediation='Look what became of it before it is done again: the hub may have done it.'
        )


def reason(e: Exception) -> str:
    """Without paths of this machine beyond what the caller has said, and never empty."""
    if isinstance(e, OSError) and e.strerror:
        return e.strerror
    return str(e) or type(e).__name__
