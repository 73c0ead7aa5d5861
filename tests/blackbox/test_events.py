"""What happened: /v1/events in pages and as a stream, holt events. A follower that does not read,
while ten thousand things happen; one that comes back after what it wants is gone; and the end of
the hub."""

import collections
import json
import re

import pytest

import host
from client import until
from rest import Failed
from test_hub_cli import Hub
from who import HOLT

KEPT = 10_000
STORM = KEPT + 700  # the oldest go in steps of 256


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, tmp_path_factory.mktemp('events'), '--listen', '127.0.0.1:0',
             '--pool', '0') as shared:
        yield shared


def page(hub, query=''):
    return hub.call('GET', '/v1/events?limit=1000' + query)


class Follower:
    """A stream of events, read when the test says so."""

    def __init__(self, hub, query='', **options):
        self.wire = hub.wire(**options)
        self.wire.send(hub.request('GET', '/v1/events?follow=true' + query))
        self.started = False
        self.rest = b''
        self.waiting = collections.deque()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def lines(self):
        """Each as it comes, those that only say that it lives left out; ends with the stream."""
        if not self.started:
            status, fields = self.wire.head()
            assert status == 200 and ('Content-Type', 'application/x-ndjson') in fields
            self.started = True
        while True:
            while self.waiting:
                event = json.loads(self.waiting.popleft())
                if event['kind'] != 'alive':
                    yield event
            piece = self.wire.chunk()
            if not piece:
                return
            *whole, self.rest = (self.rest + piece).split(b'\n')
            self.waiting.extend(whole)

    def take(self, n):
        return [event for _, event in zip(range(n), self.lines())]


def test_a_life_in_events(hub):
    start = page(hub)['newest']
    name = hub.create(id='eventful')
    hub.post('/v1/pause', sandbox=name)
    hub.post('/v1/resume', sandbox=name)
    hub.post('/v1/set_timeout', sandbox=name, timeout_seconds=600)
    hub.delete(name)
    got = page(hub, f'&after={start}')
    assert [(e['sandbox'], e['kind']) for e in got['events']] == [
        (name, kind) for kind in ('created', 'paused', 'resumed', 'deadline', 'terminated')]
    assert [e['seq'] for e in got['events']] == list(range(start + 1, start + 6))
    assert got['next'] == got['newest'] == start + 5 and got['oldest'] >= 1
    assert all(re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', e['at'])
               for e in got['events'])
    first = hub.call('GET', f'/v1/events?after={start}&limit=2')
    assert ([e['kind'] for e in first['events']] == ['created', 'paused'] and first['next'] == start
            + 2)
    assert page(hub, f'&after={start + 5}')['events'] == []
    assert page(hub, f'&after={start + 5}')['next'] == start + 5


def test_those_of_one(hub):
    one, other = hub.create(), hub.create()
    hub.delete(other)
    hub.delete(one)
    assert [e['kind'] for e in page(hub, f'&sandbox={one}')['events']] == ['created', 'terminated']
    assert page(hub, '&sandbox=nobody')['events'] == []
    with Follower(hub, f'&sandbox={other}&after=0') as f:
        assert [e['kind'] for e in f.take(2)] == ['created', 'terminated']


@pytest.mark.parametrize('query', ['after=-1', 'after=x', 'limit=0', 'limit=1001', 'follow=1',
                                   'sandbox=', 'since=1'])
def test_what_is_refused(hub, query):
    with pytest.raises(Failed) as e:
        hub.call('GET', '/v1/events?' + query)
    assert e.value.code == 'invalid_input'


def test_news_come_at_once(hub):
    start = page(hub)['newest']
    with Follower(hub, f'&after={start}') as f, Follower(hub, f'&after={start}') as g:
        name = hub.create()
        for one in (f, g):
            assert ([(e['seq'], e['sandbox'], e['kind']) for e in one.take(1)]
                    == [(start + 1, name, 'created')])
        hub.delete(name)
        assert f.take(1)[0]['kind'] == 'terminated'
        assert g.take(1)[0]['kind'] == 'terminated'


def storm(hub, sandbox, n):
    """So many events, by requests that do not wait for each other."""
    body = json.dumps({'sandbox': sandbox, 'timeout_seconds': 3600})
    one = hub.request('POST', '/v1/set_timeout', body=body)
    with hub.wire() as wire:
        while n > 0:
            some = min(n, 100)
            wire.send(one * some)
            for _ in range(some):
                assert wire.reply('POST').status == 200
            n -= some


def keeps_what_it_frees():
    """For a while, as AddressSanitizer does."""
    with open(HOLT, 'rb') as f:
        return b'__asan_init' in f.read()


def test_a_reader_that_does_not_read(hub):
    """It gets each event once and in order, or is told which are gone;
    and costs the hub no memory to speak of."""
    sandbox = hub.create()
    start = page(hub)['newest']
    size = host.memory(hub.proc.pid)
    with Follower(hub, f'&after={start}', receive_buffer=4096) as f:
        storm(hub, sandbox, STORM)
        end = page(hub)['newest']
        assert end == start + STORM
        if not keeps_what_it_frees():
            assert host.memory(hub.proc.pid) - size < 24 << 20
        at = start
        for event in f.lines():
            if event['kind'] == 'missed':
                first, last = map(int, re.fullmatch(r'events (\d+) to (\d+) are not kept any more',
                                                    event['detail']).groups())
                assert (first, last) == (at + 1, event['seq'])
            else:
                assert event['seq'] == at + 1
            at = event['seq']
            if at == end:
                break
    kept = page(hub)
    assert kept['oldest'] > 1 and KEPT <= end - kept['oldest'] + 1 < KEPT + 256
    with Follower(hub, '&after=1') as f:  # what it wants is gone
        missed, first = f.take(2)
        assert missed['kind'] == 'missed' and missed['seq'] == kept['oldest'] - 1
        assert first['seq'] == kept['oldest']
    with Follower(hub) as f:  # this one wanted nothing in particular
        assert f.take(1)[0]['seq'] == kept['oldest']
    with Follower(hub, f'&after={end - 1}&sandbox=nobody') as f:  # what is gone was never its own
        storm(hub, sandbox, 300)
        other = hub.create(id='nobody')
        assert [e['kind'] for e in f.take(1)] == ['created']
        hub.delete(other)
    hub.delete(sandbox)


def test_many_followers(hub):
    start = page(hub)['newest']
    followers = [Follower(hub, f'&after={start}') for _ in range(50)]
    try:
        names = [hub.create() for _ in range(3)]
        for f in followers:
            assert [e['sandbox'] for e in f.take(3)] == names
    finally:
        for f in followers:
            f.wire.close()
    until(lambda: hub.metrics()['holt_http_streams'] == 0, what='the end of the streams')
    hub.ok('down', *names)


def test_the_verb(hub):
    start = page(hub)['newest']
    name = hub.create(id='told')
    hub.delete(name)
    rows = [line.split() for line in hub.ok('events', name).decode().splitlines()]
    assert [row[2:4] for row in rows][-2:] == [['told', 'created'], ['told', 'terminated']]
    objects = [json.loads(line) for line in hub.ok('events', '--after', str(start), '-o',
                                                   'json').splitlines()]
    assert [(e['seq'], e['kind']) for e in objects] == [(start + 1, 'created'),
                                                        (start + 2, 'terminated')]
    hub.fails(2, '--after', 'events', '--after', 'x')
    proc = hub.popen('events', '-f', '--after', str(start), '-o', 'json')
    try:
        assert [json.loads(proc.stdout.readline())['kind'] for _ in range(2)] == ['created',
                                                                                  'terminated']
        other = hub.create()
        assert json.loads(proc.stdout.readline())['sandbox'] == other
        hub.delete(other)
    finally:
        proc.kill()
        proc.communicate()


def test_the_end_of_the_hub_ends_the_stream(me, tmp_path):
    """It waits for nothing, so it holds nothing up."""
    hub = Hub(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0')
    try:
        sandbox = hub.create()
        with Follower(hub, '&after=0') as f:
            assert f.take(1)[0]['sandbox'] == sandbox
            hub.proc.terminate()
            assert [e for e in f.lines() if e['kind'] != 'terminated'] == []
        assert hub.proc.wait(60) == 0
    finally:
        hub.kill()
