"""Servers inside of sandboxes, whose every byte a test decides."""

# echo: gives back what comes, and its end. say: sends the bytes of its file to whoever has sent a
# head, and ends. hold: accepts and says nothing. closed over [::1] alone with "6" in front of the
# port.
SERVER = r'''
import socket, sys, threading
kind, port, *more = sys.argv[1:]
family, address = ((socket.AF_INET6, '::1') if port[0] == '6' and len(port) > 4
                   else (socket.AF_INET, '127.0.0.1'))
s = socket.socket(family)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((address, int(port[-4:])))
s.listen(64)
print('ready', flush=True)

def echo(c):
    while data := c.recv(65536):
        c.sendall(data)
    c.shutdown(socket.SHUT_WR)

def head(c):
    got = b''
    while b'\r\n\r\n' not in got:
        piece = c.recv(65536)
        if not piece:
            break
        got += piece
    return got

def say(c):
    got = head(c)
    with open('heard', 'ab') as f:
        f.write(got)
    with open(more[0], 'rb') as f:
        while piece := f.read(65536):
            c.sendall(piece)

def hold(c):
    head(c)
    kept.append(c)
    threading.Event().wait()

kept = []

def one(c):
    try:
        globals()[kind](c)
    except OSError:
        pass
    c.close()

while True:
    threading.Thread(target=one, args=s.accept()[:1], daemon=True).start()
'''


def serve(hub, box, kind, port, *more):
    """Runs one in the background; it listens when this returns. Gives the exec's id."""
    hub.post('/v1/files/write', sandbox=box, path='server.py', content=SERVER)
    return run(hub, box, 'python3', ['server.py', kind, str(port), *more])


def run(hub, box, command, args, **more):
    """The same of any program that says when it is ready."""
    started = hub.post('/v1/exec', sandbox=box, command=command, args=args, background=True,
                       **more)['exec_id']
    waited = hub.post(f'/v1/sandboxes/{box}/execs/{started}/wait', text='ready', timeout_seconds=60)
    assert waited['result'] == 'matched', (
        waited, hub.call('GET', f'/v1/sandboxes/{box}/execs/{started}/output'))
    return started
