"""The host of tests/client/host.c and its links: commands to it, and what comes of them."""

import collections
import json
import os
import select
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get('HOLT_BUILD') or os.path.join(os.path.dirname(os.path.dirname(HERE)),
                                                     'build')
HOST = os.path.join(BUILD, 'tests/client/client-host')
EVERYTHING = os.path.join(BUILD, 'examples/everything/everything')
DEADLINE = 60  # seconds for one event, unless told


class Process:
    def __init__(self, pid):
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
            text = f.read()
        rest = text[text.rindex(')') + 2:].split()
        self.pid, self.state, self.parent = pid, rest[0], int(rest[1])


def below(root):
    """The processes below one, dead or alive, by pid."""
    everything, found, todo = {}, {}, [root]
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                everything[int(name)] = Process(int(name))
            except OSError:
                pass
    while todo:
        above = todo.pop()
        for pid, p in everything.items():
            if p.parent == above:
                found[pid] = p
                todo.append(pid)
    return found


class Link:
    def __init__(self, host, name):
        self.host, self.name = host, name
        self.events = collections.deque()
        self.last_id = 0
        self.found = None  # the event `ready`

    def send(self, do, **command):
        self.host.send({'do': do, 'link': self.name, **command})

    def wait(self, event, timeout=DEADLINE, **members):
        """Takes the first event of that kind; the others stay."""
        deadline = time.monotonic() + timeout
        while True:
            for found in self.events:
                if found['event'] == event and all(found.get(k) == v for k, v in members.items()):
                    self.events.remove(found)
                    return found
            self.host.pump(deadline,
                           f'{self.name}: {event} {members}; there are {list(self.events)[:5]}')

    def ready(self, timeout=DEADLINE):
        self.found = self.wait('ready', timeout)
        return self.found

    def over(self, timeout=DEADLINE):
        return self.wait('over', timeout)

    def start(self, do, **command):
        self.last_id += 1
        self.send(do, id=str(self.last_id), **command)
        return str(self.last_id)

    def done(self, request, timeout=DEADLINE):
        return self.wait('done', timeout, id=request)

    def request(self, method, params=None, timeout=DEADLINE, **more):
        return self.done(self.start('request', method=method,
                                    **({} if params is None else {'params': params}), **more),
                         timeout)

    def call(self, tool, arguments=None, timeout=DEADLINE, **more):
        return self.done(self.start('call', tool=tool, arguments=arguments or {}, **more), timeout)

    def text(self, tool, arguments=None, **more):
        done = self.call(tool, arguments, **more)
        assert 'result' in done, done
        return done['result']['content'][0]['text']

    def list(self, what, timeout=DEADLINE):
        listed = self.wait('listed', timeout, id=self.start('list', what=what))
        assert 'items' in listed, listed
        return listed['items']

    def about(self):
        self.send('about')
        return self.wait('about')

    def close(self, timeout=DEADLINE):
        self.send('close')
        self.wait('closed', timeout)
        self.host.links.pop(self.name)


class Host:
    def __init__(self, log, **options):
        self.log = log
        with open(log, 'wb') as stderr:
            self.proc = subprocess.Popen([HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=stderr,
                                         start_new_session=True, bufsize=0, **options)
        self.pid = self.proc.pid
        self.part = b''
        self.links = {}

    def said(self):
        with open(self.log, encoding='utf-8', errors='replace') as f:
            return f.read()[-4000:]

    def connect(self, name='link', ready=True, **target):
        link = self.links[name] = Link(self, name)
        link.send('connect', target=target)
        if ready:
            link.ready()
        return link

    def send(self, command):
        data = json.dumps(command).encode() + b'\n'
        while data:
            data = data[self.proc.stdin.write(data):]

    def pump(self, deadline, what):
        left = deadline - time.monotonic()
        if not select.select([self.proc.stdout], [], [], max(0, left))[0]:
            raise TimeoutError(f'no event in time: {what}; its log: {self.said()}')
        data = os.read(self.proc.stdout.fileno(), 1 << 20)
        assert data, f'the host has ended: {what}; {self.proc.wait(60)} {self.said()}'
        *lines, self.part = (self.part + data).split(b'\n')
        for line in lines:
            event = json.loads(line)
            if event['link'] in self.links:
                self.links[event['link']].events.append(event)

    def peak(self):
        """The most resident bytes that it ever had."""
        with open(f'/proc/{self.pid}/status', encoding='utf-8') as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith('VmHWM'))

    def children(self):
        """Processes that it started, and what these started: pid to that of the parent."""
        return {pid: p.parent for pid, p in below(self.pid).items()}

    def close(self, timeout=60):
        """At the end of its input it closes all links and ends."""
        self.proc.stdin.close()
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.pump(deadline, 'its end')
            except AssertionError:
                break
        self.proc.stdout.close()
        assert self.proc.wait(60) == 0, self.said()

    def kill(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()


def until(met, timeout=DEADLINE, what=''):
    """Asks again and again until it is true."""
    deadline = time.monotonic() + timeout
    while not (got := met()):
        assert time.monotonic() < deadline, f'not in time: {what}'
        time.sleep(0.01)
    return got


def is_gone(pid):
    """An orphan of a server becomes ours, and is collected."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
    return not os.path.exists(f'/proc/{pid}')
