"""A web server of a folder, for programs that fetch: web.py ADDRESS PORT FOLDER [CERT KEY]

/moved goes to the metadata service of clouds, /slow sends a line each tenth of a second for ever.
"""

import functools
import http.server
import socket
import ssl
import sys
import time


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        if self.path == '/moved':
            self.send_response(302)
            self.send_header('Location', 'http://169.254.169.254/latest/meta-data/')
            self.send_header('Content-Length', '0')
            self.end_headers()
        elif self.path == '/slow':
            self.send_response(200)
            self.send_header('Connection', 'close')
            self.end_headers()
            while True:
                self.wfile.write(b'line\n')
                self.wfile.flush()
                time.sleep(0.1)
        else:
            super().do_GET()

    def log_message(self, *arguments):
        pass


address, port, folder, *tls = sys.argv[1:]
if ':' in address:
    http.server.ThreadingHTTPServer.address_family = socket.AF_INET6
server = http.server.ThreadingHTTPServer((address, int(port)),
                                         functools.partial(Handler, directory=folder))
if tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*tls)
    server.socket = context.wrap_socket(server.socket, server_side=True)
print('ready', flush=True)
server.serve_forever()
