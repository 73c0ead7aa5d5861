"""Which hub, and with which token.

The hub: base_url; else HOLT_BASE_URL, MITOS_BASE_URL; else the local one, by its Unix socket:
HOLT_SOCKET, else holt.sock in HOLT_HOME, in holt/ of XDG_RUNTIME_DIR, or in the data folder, as
the program `holt` has it.

The token: api_key; else HOLT_API_KEY, MITOS_API_KEY; else of the local hub its token file, and of
one over HTTP the member `token` of credentials.json, unless that file names another `server`; else
none. credentials.json is in MITOS_CONFIG_DIR, else in Holt's configuration folder, as `holt auth
login` writes it, else in ~/.config/mitos. The token file is only ever sent over the Unix socket.
Any of these files is refused if it belongs to another user or is open to others.
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import List, Mapping, NamedTuple, Optional
from urllib.parse import urlsplit

from .errors import PolicyDeniedError, ValidationError

_FILE_MAX = 64 << 10
_TOKEN = re.compile(r'[A-Za-z0-9._~+/=-]{1,4096}')


class Token:
    """A token, which is no text: nothing prints it by mistake."""

    __slots__ = ('_value', )

    def __init__(self, value: str) -> None:
        if not _TOKEN.fullmatch(value):
            raise ValidationError('api_key: a token has letters, digits and -._~+/= only',
                                  code='invalid_token')
        self._value = value

    def __repr__(self) -> str:
        return 'Token(set)'

    def reveal(self) -> str:
        return self._value

    def hide_in(self, text: bytes) -> bytes:
        return text.replace(self._value.encode(), b'[token]')


class Endpoint(NamedTuple):
    unix: Optional[str]  # path of the socket; None: TCP
    host: str
    port: int
    tls: bool
    prefix: str  # in front of each path
    url: str  # to name it in errors

    @property
    def authority(self) -> str:
        name = f'[{self.host}]' if ':' in self.host else self.host
        usual = 443 if self.tls else 80
        return name if self.unix or self.port == usual else f'{name}:{self.port}'


def _folder(env: Mapping[str, str], xdg: str, home: str, last: str) -> str:
    for name, below in (('HOLT_HOME', ''), (xdg, '/holt'), ('HOME', home + '/holt')):
        if env.get(name, '').startswith('/'):
            return env[name] + below
    return last


def data_folder(env: Mapping[str, str]) -> str:
    """Of the hub of this user (holt-serve(1))."""
    return _folder(env, 'XDG_DATA_HOME', '/.local/share', '/var/lib/holt')


def _socket_path(env: Mapping[str, str]) -> str:
    if env.get('HOLT_SOCKET'):
        return env['HOLT_SOCKET']
    runtime = env.get('XDG_RUNTIME_DIR', '')
    if not env.get('HOLT_HOME', '').startswith('/') and runtime.startswith('/'):
        return runtime + '/holt/holt.sock'
    return data_folder(env) + '/holt.sock'


def find_endpoint(base_url: Optional[str], env: Mapping[str, str]) -> Endpoint:
    url = base_url or env.get('HOLT_BASE_URL') or env.get(
        'MITOS_BASE_URL') or 'unix:' + _socket_path(env)
    if url.startswith('unix:'):
        return Endpoint(re.sub('^//(?=/)', '', url[5:]), 'localhost', 0, False, '', url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as e:
        raise ValidationError(f'base_url: {e}', code='invalid_base_url') from None
    if parts.scheme not in (
            'http',
            'https') or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ValidationError(
            'base_url: http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH, no user, no query',
            code='invalid_base_url')
    tls = parts.scheme == 'https'
    return Endpoint(None, parts.hostname, port or (443 if tls else 80), tls,
                    parts.path.rstrip('/'), url)


def _token_file(path: str) -> Optional[Token]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(fd, encoding='ascii', errors='replace') as f:
        st = os.fstat(fd)
        if not stat.S_ISREG(st.st_mode) or st.st_uid != os.geteuid() or st.st_mode & 0o077:
            raise PolicyDeniedError(
                f'{path} must belong to you and be closed to others',
                code='token_file',
                remediation=f'chmod 600 {path}, or remove it: `holt serve` makes a new one.')
        return Token(f.read(_FILE_MAX).strip())


def _check_private(path: str, st: os.stat_result) -> None:
    known = hasattr(os, 'geteuid')  # Windows has neither such owners nor such modes
    if not stat.S_ISREG(st.st_mode):
        why = 'is not a regular file'
    elif known and st.st_uid not in (os.geteuid(), 0):
        why = 'belongs to another user'
    elif known and st.st_mode & 0o077:
        why = 'is open to other users'
    else:
        return
    raise PolicyDeniedError(f'{path} {why}',
                            code='credentials_file',
                            remediation=f'Make {path} a file of your own and chmod 600 it, '
                            'remove it, or set HOLT_API_KEY.')


def _is_for(server: object, endpoint: Endpoint) -> bool:
    """Whether a token that was stored for this server is for that endpoint, too."""
    if server is None or server == '':
        return True
    try:
        of = find_endpoint(server, {}) if isinstance(server, str) else None
    except ValidationError:
        return False
    return of is not None and (of.unix, of.tls, of.host, of.port) == (
        endpoint.unix, endpoint.tls, endpoint.host, endpoint.port)


def _credential_folders(env: Mapping[str, str]) -> List[str]:
    if env.get('MITOS_CONFIG_DIR'):
        return [env['MITOS_CONFIG_DIR']]
    return [_folder(env, 'XDG_CONFIG_HOME', '/.config', '/etc/holt'),
            os.path.join(env.get('HOME', '/'), '.config/mitos')]


def _credentials(folder: str, endpoint: Endpoint) -> Optional[Token]:
    path = os.path.join(folder, 'credentials.json')
    try:
        # Not to wait at a FIFO; Windows has neither flag.
        fd = os.open(path,
                     os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0) | getattr(os, 'O_NOCTTY', 0))
        try:
            _check_private(path, os.fstat(fd))
            text = os.read(fd, _FILE_MAX)
        finally:
            os.close(fd)
        document = json.loads(text)
        token, server = document.get('token'), document.get('server')
    except (OSError, ValueError, AttributeError, RecursionError):
        return None  # no file is no error
    if not isinstance(token, str) or not token or not _is_for(server, endpoint):
        return None
    return Token(token)


def find_token(api_key: Optional[str], endpoint: Endpoint, env: Mapping[str,
                                                                        str]) -> Optional[Token]:
    said = api_key or env.get('HOLT_API_KEY') or env.get('MITOS_API_KEY')
    if said:
        return Token(said)
    if endpoint.unix:
        return _token_file(data_folder(env) + '/token')
    for folder in _credential_folders(env):
        token = _credentials(folder, endpoint)
        if token:
            return token
    return None
