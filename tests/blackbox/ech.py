"""A TLS server that has keys for encrypted server names, as those of large providers: it answers an
extension that it can't read by its keys (retry_configs). By GnuTLS, which lets programs add
extensions; OpenSSL 3 and Node have no server that speaks ECH."""

import ctypes
import ctypes.util

ECH = 0xfe0d
SERVER, CERTIFICATE, PEM, TLS = 1, 1, 1, 2
# GNUTLS_EXT_FLAG_CLIENT_HELLO, _EE, _TLS
FLAGS = 1 << 1 | 1 << 4 | 1 << 7

LIB = ctypes.CDLL(ctypes.util.find_library('gnutls'))
RECEIVE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
SEND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
LIB.gnutls_record_send.restype = LIB.gnutls_record_recv.restype = ctypes.c_ssize_t


@RECEIVE
def receive(_session, _data, _n):
    return 0


@SEND
def send(_session, to):
    keys = b'\0\4\xfe\x0d\0\0'  # a list of one, of no contents that a client could use
    LIB.gnutls_buffer_append_data(ctypes.c_void_p(to), keys, ctypes.c_size_t(len(keys)))
    return len(keys)


def server(certificate, key, keys=True):
    """A function that speaks TLS on a connection and says hello within it. keys: for ECH."""
    credentials = ctypes.c_void_p()
    LIB.gnutls_certificate_allocate_credentials(ctypes.byref(credentials))
    assert LIB.gnutls_certificate_set_x509_key_file(credentials, certificate.encode(),
                                                    key.encode(), PEM) == 0

    def serve(connection):
        session = ctypes.c_void_p()
        LIB.gnutls_init(ctypes.byref(session), SERVER)
        LIB.gnutls_set_default_priority(session)
        LIB.gnutls_credentials_set(session, CERTIFICATE, credentials)
        if keys:
            assert LIB.gnutls_session_ext_register(session, b'ech', ECH, TLS, receive, send, None,
                                                   None, None, None, FLAGS) == 0
        LIB.gnutls_transport_set_int2(session, connection.fileno(), connection.fileno())
        if LIB.gnutls_handshake(session) == 0:
            LIB.gnutls_record_send(session, b'hello', ctypes.c_size_t(5))
        LIB.gnutls_deinit(session)
    return serve
