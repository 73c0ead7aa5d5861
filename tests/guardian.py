"""Whatever ends the process that runs tests, SIGKILL too: the hubs that it started end after it,
and their wardens, which would else keep sandboxes for a day. Importing it is enough.

All that is started has a mark in its environment. A second process holds the other end of a pipe;
when that ends, it asks the hubs of that mark to end, and kills what is left; janitors of wardens
have time to remove the control groups.
"""

import os
import secrets
import select
import signal
import subprocess
import sys
import time

MARK = 'HOLT_TEST_RUN'
GRACE = 5  # seconds that hubs have to end with all that is theirs
TIDY = 15  # seconds that janitors have
JANITOR = 'holt-janitor'


def marked(mark):
    """The processes with this mark, by pid, with their command lines."""
    found = {}
    for name in os.listdir('/proc'):
        try:
            if name.isdigit() and int(name) != os.getpid():
                with open(f'/proc/{name}/environ', 'rb') as f:
                    if mark.encode() not in f.read().split(b'\0'):
                        continue
                with open(f'/proc/{name}/cmdline', 'rb') as f:
                    found[int(name)] = f.read().split(b'\0')
        except OSError:
            pass
    return found


def name_of(pid):
    try:
        with open(f'/proc/{pid}/comm', encoding='utf-8') as f:
            return f.read().rstrip('\n')
    except OSError:
        return ''


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def sweep(mark):
    send([pid for pid, argv in marked(mark).items() if b'serve' in argv], signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while any(b'serve' in argv for argv in marked(mark).values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    deadline = time.monotonic() + TIDY
    while (left := marked(mark)) and time.monotonic() < deadline + GRACE:
        send([pid for pid in left if name_of(pid) != JANITOR or time.monotonic() > deadline],
             signal.SIGKILL)
        time.sleep(0.05)


def guard():
    mark = f'{os.getpid()}-{secrets.token_hex(8)}'
    theirs, _held = os.pipe()  # ours is closed by our end alone: nothing inherits it
    subprocess.Popen([sys.executable, '-I', '-S', __file__, f'{MARK}={mark}'], stdin=theirs,
                     stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL, start_new_session=True, cwd='/')
    os.close(theirs)
    os.environ[MARK] = mark


if __name__ == '__main__':
    select.select([0], [], [])
    sweep(sys.argv[1])
else:
    guard()
