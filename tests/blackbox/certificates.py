"""Authorities and certificates for tests, made with the openssl program."""

import os
import re
import shutil
import subprocess

import pytest

CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']


def openssl(*arguments):
    if not shutil.which('openssl'):
        pytest.skip('there is no openssl to make a certificate with: scripts/deps test')
    return subprocess.run(['openssl', *arguments], check=True, capture_output=True).stdout


def validity(days):
    """-1: it was valid, long ago. OpenSSL 3.4 and later want dates for that."""
    version = re.search(rb'OpenSSL (\d+)\.(\d+)', openssl('version'))
    if days > 0 or (int(version[1]), int(version[2])) < (3, 4):
        return ['-days', str(days)]
    return ['-not_before', '20000101000000Z', '-not_after', '20000102000000Z']


class Authority:
    """A certificate authority, its files in a folder of its own."""

    def __init__(self, top, name):
        self.top, self.name = str(top), name
        self.path, self.key = self.at('ca.pem'), self.at('ca.key')
        os.makedirs(os.path.dirname(self.path))
        openssl('req', '-x509', *CURVE, '-days', '2', '-subj', f'/CN={name}', '-addext',
                'keyUsage=critical,keyCertSign,cRLSign', '-keyout', self.key, '-out', self.path)

    def at(self, name):
        return os.path.join(self.top, self.name, name)

    def sign(self, name, names='DNS:localhost,IP:127.0.0.1', days=2, usage=None):
        """A certificate and its key, by their paths."""
        made, key, asked = self.at(name + '.pem'), self.at(name + '.key'), self.at(name + '.csr')
        more = ['-addext', f'extendedKeyUsage={usage}'] if usage else []
        openssl('req', *CURVE, '-subj', f'/CN={name}', '-addext', f'subjectAltName={names}', *more,
                '-keyout', key, '-out', asked)
        openssl('x509', '-req', '-in', asked, '-CA', self.path, '-CAkey', self.key,
                '-CAcreateserial', *validity(days), '-copy_extensions', 'copy', '-out', made)
        return made, key
