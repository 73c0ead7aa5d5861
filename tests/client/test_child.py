"""Programs as servers: how they are started, how they end, and all that they can do meanwhile."""

import json
import os
import signal
import sys

import pytest

from links import EVERYTHING, HERE, Host, Link, is_gone, until
from soak import soak

HOSTILE = [sys.executable, f'{HERE}/hostile.py']
KNOWN = {'legacy': {'wire': 'stdio', 'era': 'legacy'}, 'modern': {'wire': 'stdio', 'era': 'modern'}}
MIB = 1 << 20


@pytest.fixture(params=['legacy', 'modern'])
def hostile(host, request):
    """A hostile program, and beside it one that is not:
    it must hear nothing of what the other does."""
    def start(how, **target):
        good = host.connect('good', argv=[*HOSTILE, 'none', request.param],
                            known=KNOWN[request.param])
        link = host.connect('bad', argv=[*HOSTILE, how, request.param], known=KNOWN[request.param],
                            **{'stop_ms': 200, **target})
        link.good = good
        return link
    yield start
    assert host.links['good'].text('x') == 'x'
    about = host.links['good'].about()
    assert (about['pending'], about['strays'], about['garbage']) == (0, 0, 0)


def test_how_it_is_started(host, tmp_path):
    link = host.connect(argv=[*HOSTILE, 'environment', 'modern', '$HOME; "x"'], cwd=str(tmp_path),
                        known=KNOWN['modern'])
    seen = json.loads(link.text('now'))
    assert seen['argv'] == ['environment', 'modern', '$HOME; "x"']  # no shell has read it
    assert seen['cwd'] == str(tmp_path) and seen['sid'] and seen['pgid']
    assert seen['fds'] == [0, 1, 2]
    assert set(seen['env']) - {'LC_CTYPE'} <= {'HOME', 'LANG', 'LC_ALL', 'LC_MESSAGES', 'LOGNAME',
                                               'PATH', 'SHELL', 'TERM', 'TMPDIR', 'TZ',
                                               'USER', *(name for name in os.environ
                                                         if name.startswith('XDG_'))}
    link.close()


def test_its_environment_is_what_is_said(host):
    link = host.connect(argv=[*HOSTILE, 'environment', 'modern'], env=['A=1', 'B=x=y'],
                        known=KNOWN['modern'])
    assert (set(json.loads(link.text('now'))['env'].items()) - {('LC_CTYPE', 'C.UTF-8')}
            == {('A', '1'), ('B', 'x=y')})
    link.close()


def test_lines_that_are_no_messages(hostile):
    link = hostile('garbage')
    assert link.text('now') == 'well'
    assert link.about()['garbage'] >= 1
    assert link.text('x') == 'x'


def test_an_answer_that_is_not_quite_json(hostile):
    """The request whose id it has will get no other, so it does not wait until its time is over."""
    link = hostile('partial-utf8')
    assert link.call('now')['error'] == 'invalid_arguments'
    assert link.about()['garbage'] >= 1
    assert link.text('x') == 'x'


def test_ids_that_nobody_gave(hostile):
    link = hostile('ids')
    assert link.text('now') == 'right'
    assert link.text('x') == 'x'
    about = link.about()
    assert about['strays'] + about['garbage'] >= 8, about


def test_a_very_long_line(hostile, host):
    """Of a gibibyte (soak.py). The request that it answers fails, the next one does not."""
    link = hostile(f'large={soak(1024)}', message_max=4 * MIB)
    assert link.call('now', timeout=60)['error'] == 'too_large'
    assert link.text('x') == 'x'
    assert host.peak() < 64 * MIB


def test_a_line_that_never_ends(hostile, host):
    link = hostile('endless-line', message_max=4 * MIB, timeout_ms=1500)
    assert link.call('now')['error'] == 'timeout'
    link.close()
    assert host.peak() < 64 * MIB


def test_silence(hostile):
    link = hostile('silent')
    assert link.call('now', timeout_ms=200)['error'] == 'timeout'
    assert link.text('x') == 'x'


@pytest.mark.parametrize('how, word, status',
                         [('crash', f'signal {signal.SIGSEGV.value}', signal.SIGSEGV.value),
                          ('exit', 'status 7', 7 << 8)])
def test_an_end_in_a_call(hostile, how, word, status):
    link = hostile(how)
    request = link.start('call', tool='now', arguments={})
    over = link.over()
    assert over['error'] == 'transport_failed' and word in over['message'], over
    assert over['status'] & ~0x80 == status
    assert link.done(request)['error'] == 'transport_failed'
    assert link.request('tools/call', {'name': 'x'})['error'] == 'transport_failed'


def test_output_that_is_closed(hostile):
    link = hostile('close-output')
    assert link.call('now')['error'] == 'transport_failed'
    assert link.over()['error'] == 'transport_failed'


def test_input_that_is_closed(hostile):
    link = hostile('close-input')
    assert link.text('now') == 'closed'
    link.start('call', tool='x', arguments={})
    assert link.over()['error'] == 'transport_failed'


def test_a_flood(hostile, host):
    """It is read as fast as it comes; others have their turn, and memory its bound."""
    link = hostile('flood', timeout_ms=1500)
    request = link.start('call', tool='now', arguments={})
    for _ in range(20):
        assert link.good.text('y') == 'y'
    link.send('cancel', id=request)
    link.close()
    assert host.peak() < 64 * MIB


def test_questions_without_end_from_who_reads_no_answer(hostile, host):
    link = hostile('pings', timeout_ms=2000)
    link.start('call', tool='now', arguments={})
    for _ in range(20):
        assert link.good.text('y') == 'y'
    link.close()
    assert host.peak() < 400 * MIB


def test_standard_error_without_end(hostile):
    """Whoever wants to hear nothing of it must not make the server wait."""
    link = hostile('endless-stderr')
    assert link.text('now') == 'well'
    assert link.text('x') == 'x'


def test_standard_error_is_handed_on(host):
    link = host.connect(argv=[*HOSTILE, 'endless-stderr', 'modern'], known=KNOWN['modern'],
                        stderr=True)
    assert link.text('now') == 'well'
    got = 0
    while got < 4096 * 65536:
        got += link.wait('stderr')['bytes']
    link.close()


def test_the_last_words(host):
    link = host.connect(ready=False, argv=['/bin/sh', '-c', 'echo "no such option" >&2; exit 9'],
                        stderr=True)
    over = link.over()
    assert 'status 9' in over['message'] and over['status'] == 9 << 8
    assert link.wait('stderr')['text'] == 'no such option\n'


@pytest.mark.parametrize('how', ['fork', 'deaf', 'silent'])
def test_the_whole_group_ends(hostile, host, how):
    """Also what ignores SIGTERM, and what its server left behind."""
    link = hostile(how, timeout_ms=1000)
    link.call('now')
    assert len(host.children()) >= 2
    link.close()
    until(lambda: len(host.children()) == 1, what='the end of the group')


def test_a_host_that_has_others_wait_for_its_children(nothing_is_left, tmp_path):
    """No process is waited for, and its group ends all the same:
    nothing goes by a number that may be another's."""
    host = Host(tmp_path / 'host.log',
                preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    try:
        link = host.connect(argv=[*HOSTILE, 'fork', 'legacy'], known=KNOWN['legacy'])
        link.text('now')
        child, server = next((pid, parent) for pid, parent in host.children().items()
                             if parent != host.pid)
        os.kill(server, signal.SIGKILL)
        over = link.over()
        assert over['error'] == 'transport_failed' and over['status'] == -1, over
        until(lambda: is_gone(child), what='the end of its child')
        host.close()
    finally:
        host.kill()


def test_what_a_crashed_server_left_ends(hostile, host):
    link = hostile('fork')
    link.text('now')
    child, server = next((pid, parent)
                         for pid, parent in host.children().items() if parent != host.pid)
    os.kill(server, signal.SIGKILL)
    assert 'signal 9' in link.over()['message']
    until(lambda: is_gone(child), what='the end of its child')


def test_large_messages_both_ways(host):
    """Larger than any pipe, while neither side reads before it has written."""
    link = host.connect(argv=[*HOSTILE, 'none', 'modern'], known=KNOWN['modern'])
    requests = [link.start('call', tool='x', arguments={'fill': 'y' * MIB}) for _ in range(8)]
    for request in requests:
        assert 'result' in link.done(request)
    link.close()


def test_the_end_of_the_host_ends_all(host):
    for name in 'abc':
        host.connect(name, argv=[*HOSTILE, 'none', 'modern'], known=KNOWN['modern'], stop_ms=200)
    assert len(host.children()) == 3
    host.close()


@pytest.mark.parametrize('event, wire',
                         [(event, wire) for wire in ('stdio', 'http', 'sse') for event in (
                             # that has no end of its own
                             'ready', 'done', 'over', 'notified', 'asked')
                          if (event, wire) != ('over', 'http')])
def test_a_link_that_is_closed_from_inside(host, server, event, wire):
    """Nothing more is heard of it."""
    peer = server(EVERYTHING, '127.0.0.1:0') if wire != 'stdio' else None
    target = ({'argv': [EVERYTHING]} if wire == 'stdio'
              else {'url': peer.url.replace('/mcp', '/sse' if wire == 'sse' else '/mcp')})
    link = host.links['link'] = Link(host, 'link')
    link.send('close_at', event=event)
    link.send('connect', target={'version': '2025-11-25', **target})
    if event != 'ready':
        link.ready()
        link.start('call', tool='test_tool_with_progress', arguments={})
        link.start('call', tool='test_sampling', arguments={'prompt': 'x'})
        for _ in range(3):
            link.start('call', tool='test_simple_text', arguments={})
    if event == 'over' and wire == 'stdio':
        os.kill(next(iter(host.children())), signal.SIGKILL)
    elif event == 'over':
        peer.stop(signal.SIGKILL)
    if event == 'notified':
        link.start('call', tool='test_trigger_tool_change', arguments={})
        link.send('close_at', event='done')
    link.wait('closed')
    del host.links['link']
    names = [e['event'] for e in link.events]
    assert names.count(event) <= 1 and 'over' not in names[:-1], names


@pytest.mark.parametrize('version', ['2025-11-25', '2026-07-28'])
def test_a_deadline_beside_what_is_watched(host, version):
    """What we ask for ourselves may take long; what is asked of us meanwhile keeps its time."""
    # no tasks: they take as long as they take
    link = host.connect(argv=[EVERYTHING], version=version, can=15)
    link.send('watch', lists=7, uris=['test://watched-resource'])
    assert 'result' in link.call('test_trigger_tool_change')
    assert link.wait('changed')['lists']
    assert link.call('slow_compute', {'seconds': 5}, timeout_ms=200)['error'] == 'timeout'
    link.close()
