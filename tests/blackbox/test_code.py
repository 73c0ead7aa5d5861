"""JavaScript through the real hub, over REST, MCP and the command line: what it comes to, each
limit, and code that attacks what runs it."""

import hashlib
import json
import os
import re
import shutil
import struct
import threading
import time

import pytest

from client import until
from rest import Failed, Rest
from who import BUILD


class Hub(Rest):
    def __init__(self, who, home, *arguments, **options):
        super().__init__(who, home, '--listen', '127.0.0.1:0', *arguments, **options)

    def js(self, code, **more):
        return self.post('/v1/javascript', code=code, **more)

    def value(self, code, **more):
        done = self.js(code, **more)
        assert done['ok'], done
        return json.loads(done['value'])

    def error(self, code, **more):
        done = self.js(code, **more)
        assert not done['ok'] and 'value' not in done, done
        return done['error']

    def places(self):
        return [s['id'] for s in self.call('GET', '/v1/sandboxes')
                if s.get('labels') == {'code': 'javascript'}]


@pytest.fixture(scope='module')
def hub(who):
    home = f'{who.work}/code'
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    with Hub(who, home, '--pool', '1') as shared:
        yield shared
    shutil.rmtree(home)


@pytest.mark.parametrize('code, value', [
    ('1 + 1', 2), ('"a" + "b"', 'ab'), ('({a: [1, {b: null}]})', {'a': [1, {'b': None}]}),
    ('let x = 2; x ** 10', 1024), ('await Promise.resolve(7)', 7),
    ('export default 8', 8), ('export default async () => { await 0; return 9 }', 9),
    ('async () => 10', 10), ('function f() { return 11 }\nf', 11), ('eval("6 * 2")', 12),
    ('// a comment\nimport { parallel } from "host:holt";\nexport default typeof parallel',
     'function'),
    ('typeof require("host:holt").parallel', 'function'),
    ('[typeof std, typeof os, typeof process, typeof Buffer, typeof scriptArgs]',
     ['undefined'] * 5),
    ('```js\nconst a: number = 12;\nreturn a\n```\n', 12), ('\n```\n12\n```', 12),
    ('return 12', 12), ('if (1) { return await 13 }\nthrow 1', 13),
    ('import { parallel } from "host:holt"; typeof parallel', 'function'),
    ('import * as holt from "host:holt";\nreturn Object.keys(holt).length > 0', True),
    ('new Map([["a", 1], ["b", new Set([2])]])', {'a': 1, 'b': [2]}),
    ('new Map([[{}, 1]])', [[{}, 1]]), ('[Promise.resolve(1), (async () => 2)()]', [1, 2]),
    ('JSON.stringify({a: 12345678901234567890n})', '{"a":12345678901234567890}'),
    ('setTimeout(() => {}, 1); 14', 14), ('new ArrayBuffer(2)', 'AAA='),
    ('[new DataView(new ArrayBuffer(2)), /a/g, new RangeError("r")]',
     ['AAA=', '/a/g', {'name': 'RangeError', 'message': 'r'}]),
    ('const x: number = 15;\ninterface A { a: string }\nx as number', 15),
    ('enum E { A = 16 }\nreturn E.A', 16), ('export default (x?: string): number => 17', 17),
    ('10n ** 20n', '100000000000000000000'), ('new Uint8Array([1, 2, 3])', 'AQID'),
    ('({a: undefined, b: () => 1, c: Symbol("s"), d: 1})', {'d': 1}),
    ('"\\ud83d\\ude00 \\ud800 \\udc00x"', '😀 � �x'), ('NaN', None), ('-0', 0),
    ('({"__proto__": 1, ["__proto__"]: 2})', {'__proto__': 2}),
])
def test_values(hub, code, value):
    assert hub.value(code) == value


@pytest.mark.parametrize('code', ['undefined', '(() => {})()', 'Symbol("x")', 'var x = 1',
                                  'export const a = 1'])
def test_no_value(hub, code):
    done = hub.js(code)
    assert done['ok'] and 'value' not in done, done


@pytest.mark.parametrize('code, name, line, column', [
    ('let x = ;', 'SyntaxError', 1, 9), ('1 +\n  * 2', 'SyntaxError', 2, 3),
    ('import { x from "host:holt"', 'SyntaxError', 1, 12),
    ('return 1 +;', 'SyntaxError', 1, 11), ('return nope', 'ReferenceError', 1, 8),
    ('const a: number = 1;\n  const b: string = nope(a);', 'ReferenceError', 2, 21),
    ('let n: number = 1;\nlet x: string = ;', 'SyntaxError', 2, 17),
    ('import { parallel } from "host:holt";\n\nreturn  null.x', 'TypeError', 3, 13),
    ('```js\nlet a = 1;\n  nope()\n```', 'ReferenceError', 3, 3),
    ('\nimport { parallell } from "host:holt"', 'SyntaxError', 2, 10),
    ('export default {\n a: 1,\n b 2\n}', 'SyntaxError', 3, 4),
    ('\n\n  nope()', 'ReferenceError', 3, 3), ('null.x', 'TypeError', 1, 5),
    ('throw new RangeError("r")', 'RangeError', 1, 21),
])
def test_errors_say_where(hub, code, name, line, column):
    error = hub.error(code)
    assert (error['name'], error['line'], error['column']) == (name, line, column), error


@pytest.mark.parametrize('code, says', [
    ('throw {a: 1}', '{ a: 1 }'), ('throw null', 'null'), ('throw "text"', 'text'),
    ('const o = {}; o.o = o; o', 'circular'), ('new Promise(() => {})', 'nothing can settle'),
    ('Promise.reject(new Error("alone")); 1', 'alone'),
    ('new Proxy({}, { ownKeys() { throw new Error("trap") } })', 'trap'),
    ('({ get a() { throw new Error("got") } })', 'got'),
    ('({ toJSON() { throw new Error("tj") } })', 'tj'),
    ('require("fs")', 'there is no module'), ('import "node:fs"', 'there is no module'),
    ('await import("std")', 'there is no module'), ('await import("/etc/passwd")', 'no module'),
    ('import "host:mcp-nothing"', 'there is no module'), ('require()', 'no module'),
    ('require("x".repeat(1e6))', 'no module'), ('import { nope } from "host:holt"', 'nope'),
])
def test_errors(hub, code, says):
    assert says in hub.error(code)['message']


def test_console(hub):
    done = hub.js('console.log("a", 1, {b: [2]}, null, undefined, 10n); console.info();'
                  'console.warn(Symbol("s")); console.error(new TypeError("t"));'
                  'console.debug("d");'
                  'const c = {}; c.c = c; console.log(c); console.log("\\ud800\\0\\x1b[31m")')
    lines = [(line['level'], line['text'].split('\n')[0]) for line in done['console']]
    assert lines == [('log', 'a 1 { b: [ 2 ] } null undefined 10n'), ('info', ''),
                     ('warn', 'Symbol(s)'), ('error', 'TypeError: t'), ('debug', 'd'),
                     ('log', '<ref *1> { c: [Circular *1] }'), ('log', '\ufffd\0\x1b[31m')]
    done = hub.js('console.log("before"); nope')
    assert done['console'] == [{'level': 'log', 'text': 'before'}] and not done['ok']


# ---- limits -----------------------------------------------------------------------------------

LIMITS = [
    ('for (;;);', 'cpu', {}),
    ('const f = () => { try { for (;;); } finally { f() } }; f()', 'cpu', {}),
    ('/^(a+)+$/.test("a".repeat(40) + "!")', 'cpu', {}),
    ('"a".repeat(1 << 28).replace(/(?:a*)*b/g, "")', None, {}),
    ('({ get a() { for (;;); } })', 'cpu', {}),
    ('new Proxy({}, { get() { for (;;); }, ownKeys() { return ["a"] },'
     ' getOwnPropertyDescriptor() { return { enumerable: true, configurable: true } } })', 'cpu',
     {}),
    ('const e = new Error("x"); Object.defineProperty(e, "name", { get() { for (;;); } }); throw e',
     'cpu', {}),
    ('async function f() { for (;;) await 0 } f()', 'cpu', {}),
    ('Array.from({ length: 1e9 }, (_, i) => i)', None, {}),
    ('const a = []; for (;;) a.push(new Array(1000).fill(1))', 'heap', {}),
    ('let s = "x"; for (;;) s += s', None, {}),
    ('const a = []; for (;;) a.push(new Uint8Array(1 << 20))', 'heap', {}),
    ('const a = []; for (;;) try { a.push(new Array(1e5).fill(1)) } catch {}', None, {}),
    ('"x".repeat(1 << 29)', 'heap', {}),
    ('function f() { return 1 + f() } f()', 'stack', {}),
    ('JSON.parse("[".repeat(1e6))', None, {}),
    ('let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; o', None, {}),
    ('class A { get [Symbol.toPrimitive]() { return +this } } +new A()', 'stack', {}),
    ('for (;;) console.log("x".repeat(100))', 'output', {}),
    ('for (;;) console.log()', 'output', {}), ('console.log("x".repeat(1e6))', 'output', {}),
    ('"x".repeat(1e6)', 'output', {}), ('new Array(1e6).fill(0)', 'output', {}),
    ('for (;;) try { console.log("x".repeat(100)) } catch {}', 'output', {}),
    ('const a = []; for (let i = 0; i < 3e3; i++) a.push(Promise.reject(i)); for (;;);', 'cpu', {}),
    ('setInterval(() => { for (;;); }, 1); await new Promise(() => {})', 'cpu', {}),
    ('setTimeout(() => { for (;;) try { throw 1 } catch {} }, 1); undefined', 'cpu', {}),
    ('const f = () => queueMicrotask(f); f(); await new Promise(r => setTimeout(r, 1))', 'cpu', {}),
    ('setTimeout(() => {}, 1); Array.prototype.splice = () => []; await new Promise(() => {})',
     'cpu', {}),
    ('const a = []; setInterval(() => a.push(new Array(1e5).fill(a)), 1);'
     ' await new Promise(() => {})', 'heap', {}),
    ('setInterval(() => console.log("x".repeat(1e4)), 1); await new Promise(() => {})', 'output',
     {}),
    ('for (;;) setTimeout(() => {}, 1e6)', None, {}),
    ('const t = new EventTarget(); t.addEventListener("a", () => t.dispatchEvent(new Event("a")));'
     ' t.dispatchEvent(new Event("a"))', 'stack', {}),
    ('console.log(new Proxy({}, { ownKeys() { for (;;); } }))', 'cpu', {}),
    ('console.log({ get [Symbol.for("nodejs.util.inspect.custom")]() { for (;;); } })', 'cpu', {}),
    ('console.log(Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => [i, i])))', 'output',
     {}),
    ('console.table(Array.from({ length: 1e5 }, (_, i) => [i]))', None, {}),
    ('for (;;) console.group("x")', 'output', {}),
    ('let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; structuredClone(o)', 'stack', {}),
    ('new TextDecoder().decode(new Uint8Array(1 << 30))', None, {}),
    ('btoa("x".repeat(1 << 24)); for (;;);', None, {}),
    ('let x: ' + 'a<' * 5000, None, {}), ('import {' + ' ' * 100000, None, {}),
    ('/*' * 50000 + ' let x: = 1', None, {}), ('\n' * 100000 + 'let x: number = ;', None, {}),
    ('a' * 3000 + '"x"()', None, {}), ('let f; (' + 'f' * 500 + ' , f)"!"()', None, {}),
    ('JSON.stringify({ toJSON: () => (1n).toJSON() + "}" }); for (;;);', 'cpu', {}),
]


@pytest.mark.parametrize('code, limit, more', LIMITS)
def test_limits(hub, code, limit, more):
    """None: which one it is depends on the machine, or it is an ordinary error."""
    before = hub.value('1')
    cpu_ms = 300 if limit in (None, 'cpu') else 20000  # a slow machine meets the other one first
    error = hub.error(code, cpu_ms=cpu_ms, wall_ms=60000, heap_mb=32, **more)
    assert limit is None or error.get('limit') == limit, error
    assert hub.value('2') == 2 and before == 1


def test_the_wall_clock(hub):
    error = hub.error('for (;;);', wall_ms=200, cpu_ms=60000)
    assert error['limit'] == 'wall'
    assert hub.value('3') == 3


def test_the_wall_clock_and_timers(hub):
    """A run that waits for timers sleeps."""
    for code in ('setInterval(() => {}, 0); await new Promise(() => {})',
                 'await new Promise(r => setTimeout(r, 1e9))'):
        assert hub.error(code, wall_ms=400, cpu_ms=60000)['limit'] == 'wall'
    used = hub.js('await new Promise(r => setTimeout(r, 300)); 1', cpu_ms=60)
    assert used['ok'] and used['duration_ms'] >= 300, used
    assert 'more than 4096' in hub.error('for (;;) setTimeout(() => {}, 1e6)')['message']
    assert hub.value('const all = []; for (let i = 0; i < 4000; i++) all.push(setTimeout(() => {},'
                     ' 1e6)); all.forEach(clearTimeout); await new Promise(r => setTimeout(r, 1));'
                     ' 3', cpu_ms=20000) == 3


@pytest.mark.parametrize('code, console', [
    ('setTimeout(() => console.log("late"), 20)', ['late']),
    ('setTimeout(() => console.log("late"), 20); 1', []),
    ('(async () => { await new Promise(r => setTimeout(r, 20)); console.log("main") })();'
     ' undefined', ['main']),
    ('Promise.race([1, new Promise((_, no) => setTimeout(no, 60000, 1))])', []),
    ('AbortSignal.timeout(60000); console.log("x")', ['x']),
    ('setTimeout(() => console.log(2)); queueMicrotask(() => console.log(1)); console.log(0)',
     ['0', '1', '2']),
    ('for (const ms of [30, 10, 20]) setTimeout(console.log, ms, ms)', ['10', '20', '30']),
    ('let n = 0; const t = setInterval(() => { console.log(++n); n > 2 && clearInterval(t) }, 5);'
     ' undefined', ['1', '2', '3']),
    ('const t = setTimeout(() => console.log("no"), 5); clearTimeout(+t);'
     ' setTimeout(() => console.log("yes"), 10)', ['yes']),
])
def test_timers(hub, code, console):
    done = hub.js(code, wall_ms=60000)
    assert done['ok'] and [line['text'] for line in done['console']] == console, done
    assert done['duration_ms'] < 30000


@pytest.mark.parametrize('code, says', [
    ('await fetch("https://x.test")', 'no network'), ('Buffer.from("x")', 'Uint8Array'),
    ('process.env.X', 'no environment'), ('setImmediate(() => {})', 'setTimeout'),
    ('new Date().toLocaleString("de-DE")', 'en-US, en-GB'),
    ('new Date().toLocaleString("en-US", { timeZone: "Europe/Oslo" })', 'UTC alone'),
    ('(1).toLocaleString("en-US", { roundingIncrement: 5 })', 'roundingIncrement'),
    ('new Intl.Segmenter()', 'Intl.Segmenter is not here'),
    ('crypto.subtle.encrypt()', 'it has digest'), ('crypto.subtle.digest("MD5", new Uint8Array())',
                                                   'SHA-1, SHA-256'),
    ('new TextDecoder("shift_jis")', 'it has utf-8'), ('btoa("€")', 'TextEncoder'),
    ('new URL("a/b")', 'no scheme'), ('let response = 1; respnse', 'did you mean response'),
    ('setTimeuot(() => {})', 'did you mean setTimeout'), ('const o = {a: {}}; o.a.f(1)',
                                                         'o.a.f is not a function'),
    ('const o = {}; o.list[0].name', 'o.list is undefined'), ('1n + 1', 'BigInt'),
    ('namespace A { export const b = 1 }', 'namespace with values'),
    ('structuredClone(() => {})', 'could not be cloned'),
    ('setTimeout("x")', 'takes a function'), ('new AbortSignal()', 'AbortController'),
    ('[1].forEach(x => { await x })', 'await stands in a function that is not async'),
    ('export const a = 1; return a', 'export default its value'), ('module.exports = 1', 'return'),
    ('throw new Error("outer", { cause: new TypeError("inner") })', 'TypeError: inner'),
    ('await Promise.any([Promise.reject(new Error("one")), Promise.reject(2)])', 'Error: one; 2'),
    ('for (const a of undefined);', 'undefined is not iterable'),
    ('const { a: { b } } = {}', 'is undefined'), ('const o = {}; o["a-b"]()', 'is not a function'),
    ('require("fs")', 'nothing of Node.js'), ('import "node:path"', 'nothing of Node.js'),
])
def test_errors_say_what_to_do(hub, code, says):
    assert says in hub.error(code)['message']


def test_randomness_and_digests(hub):
    """No two runs of a process that forks them have the same random numbers."""
    code = '[Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint32Array(4))[0]]'
    many = [hub.value(code) for _ in range(6)]
    for column in zip(*many):
        assert len(set(column)) == len(many), many
    assert all(0 <= n < 1 for n in hub.value('Array.from({ length: 1000 }, Math.random)'))
    texts = ['', 'abc', 'é' * 1000, *('x' * n for n in (55, 56, 63, 64, 65, 111, 112, 119, 128))]
    got = hub.value(f'''const out = [];
        for (const text of {json.dumps(texts)}) for (const of of ["SHA-1", "sha-256", "SHA-384",
            {{ name: "SHA-512" }}])
          out.push(new Uint8Array(await crypto.subtle.digest(of, new TextEncoder().encode(text)))
            .toHex());
        return out''', cpu_ms=20000)
    assert got == [hashlib.new(of, text.encode()).hexdigest() for text in texts
                   for of in ('sha1', 'sha256', 'sha384', 'sha512')]


def test_bounds_of_arguments(hub):
    for wrong in ({'cpu_ms': 0}, {'wall_ms': 600001}, {'heap_mb': 513}, {'code': ''},
                  {'code': 'x' * (512 * 1024 + 1)}, {'stack_kb': 1}, {'output_kb': 99999}):
        with pytest.raises(Failed):
            hub.post('/v1/javascript', **{'code': '1', **wrong})
    assert hub.value('//' + 'x' * 500000 + '\n4') == 4
    assert hub.value('"x".repeat(3e6).length', heap_mb=512, output_kb=4096) == 3000000
    assert len(hub.value('"x".repeat(3e6)', output_kb=4096)) == 3000000


# ---- attacks ----------------------------------------------------------------------------------

@pytest.mark.parametrize('code', [
    'Object.prototype.toString = Array.prototype.push = Function.prototype.call = null',
    'globalThis.console = globalThis.require = globalThis.JSON = null',
    'Object.prototype.kind = "run"; Object.prototype.code = "9"; Object.prototype.limit = "cpu"',
    'Promise.prototype.then = () => { throw 1 }; Promise = null',
    'Object.defineProperty(Object.prototype, "value", { get() { return 9 }, set() {} })',
    'Error.prototype.name = { toString() { throw 1 } }; Error.prepareStackTrace = () => 1',
    'delete globalThis.console; Object.freeze(Object.prototype); Object.freeze(globalThis)',
    'Symbol.iterator.x; Array.prototype[Symbol.iterator] = function* () { for (;;) yield 1 }',
])
def test_nothing_of_a_run_reaches_the_next(hub, code):
    hub.js(code)
    done = hub.js('console.log("x");'
                  'export default [typeof require, [1].push(2), JSON.stringify({})]')
    assert json.loads(done['value']) == ['function', 2, '{}'], done
    assert done['console'] == [{'level': 'log', 'text': 'x'}]
    assert 'not defined' in hub.error('globalThis.left = 1; nope')['message']
    assert hub.value('typeof left') == 'undefined'


def test_tampering_in_the_same_run(hub):
    games = '''Object.prototype.then = 1; Object.prototype.error = "x"; Array.prototype.push = null;
        Object.prototype.get = () => 3; Promise.prototype.then = null;
        Function.prototype.call = null;
        Array.prototype[Symbol.iterator] = null; JSON.stringify = () => "tampered";
        const { parallel } = require("host:holt");
        const got = parallel([() => 1, () => 2, async () => 3]);
        '''
    assert hub.value(games + '[got[0], got[1], got[2]]') == [1, 2, 3]
    assert hub.error('const h = require("host:holt"); "use strict"; h.x = 1; Object.isExtensible(h)'
                     ' || nope')['name'] == 'ReferenceError'


def test_parallel(hub):
    run = 'const { parallel } = require("host:holt"); '
    assert hub.value(run + 'parallel([])') == []
    assert hub.value(run + 'parallel([() => 1, async () => { await 0; return 2 }, 3])') == [1, 2, 3]
    assert hub.error(run + 'parallel([() => 1, () => { throw new Error("second") }, () => nope])')[
        'message'] == 'second'
    assert 'nothing can settle' in hub.error(run + 'parallel([() => new Promise(() => {})])')[
        'message']
    for wrong in '', '1', '{}', '"abc"':
        assert hub.error(run + f'parallel({wrong})')['name'] == 'TypeError'
    assert hub.value(run + 'parallel(Array.from({ length: 1e5 }, (_, i) => () => i)).length',
                     cpu_ms=60000, wall_ms=60000) == 100000


def test_a_killed_process_is_replaced(hub):
    """Somebody kills holt-js in the middle of a run: the run fails, and the next is well."""
    hub.value('1')
    place = hub.places()[0]
    failed = []

    def run():
        try:
            failed.append(hub.js('for (;;);', cpu_ms=60000, wall_ms=60000))
        except Failed as e:
            failed.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 30
    while not failed and time.monotonic() < deadline:
        hub.exec(place, "for p in /proc/[0-9]*; do grep -qs ' R ' $p/stat && "
                 "grep -qs holt-js $p/comm && kill -9 ${p#/proc/}; done; sleep 0.05")
    thread.join()
    assert isinstance(failed[0], Failed) and 'ended before' in str(failed[0]), failed
    assert hub.value('5') == 5


def test_the_program_comes_back(hub):
    """What the principal does to its own sandbox costs one run at most."""
    hub.value('1')
    place = hub.places()[0]
    hub.exec(place, 'rm -f /tmp/holt-js; pkill -9 holt-js; true')
    for _ in range(3):
        try:
            assert hub.value('6') == 6
            break
        except Failed as e:
            assert 'holt-js' in str(e) or 'ended before' in str(e)
    else:
        raise AssertionError('it does not come back')
    hub.call('DELETE', f'/v1/sandboxes/{place}')
    assert hub.value('7') == 7 and hub.places() != [place]


LIAR = '''#!/bin/sh
cat > /dev/null &
printf '%b' '{}'
sleep 1000
'''


@pytest.mark.parametrize('says', [
    '\\\\377\\\\377\\\\377\\\\377',
    '\\\\002\\\\000\\\\000\\\\000{}', '\\\\001\\\\000\\\\000\\\\000x',
    '\\\\017\\\\000\\\\000\\\\000{"kind":"call"}',
    '\\\\022\\\\000\\\\000\\\\000{"kind":"nothing"}',
])
def test_a_holt_js_that_lies(hub, says):
    """One that was taken over: here, one that the principal put in its place."""
    hub.value('1')
    place = hub.places()[0]
    hub.exec(place, 'pkill -9 holt-js; true')
    hub.post('/v1/files/write', sandbox=place, path='/tmp/holt-js',
             content=LIAR.replace('{}', says.replace('\\\\', '\\')), mode=0o755)
    with pytest.raises(Failed):
        for _ in range(3):
            hub.js('1', wall_ms=5000)
    hub.call('DELETE', f'/v1/sandboxes/{place}')
    assert hub.value('1') == 1


def test_at_once(hub):
    results = []

    def run(i):
        results.append(hub.value(f'let s = 0; for (let i = 0; i < 1e5; i++) s += i; [{i}, s]'))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(i for i, _ in results) == list(range(12)), results
    assert {s for _, s in results} == {4999950000}


def test_principals_share_nothing(hub):
    """Each key has a sandbox of its own, which others do not see."""
    keys = {name: hub.post('/v1/keys', name=name, scopes=['read', 'execute', 'lifecycle'])['token']
            for name in ('ann', 'ben')}
    mine = {}
    for name, token in keys.items():
        assert hub.call('POST', '/v1/javascript', {'code': '1 + 1'}, token=token)['ok']
        mine[name] = {s['id'] for s in hub.call('GET', '/v1/sandboxes', token=token)}
        assert len(mine[name]) == 1
    assert not mine['ann'] & mine['ben']
    for name in keys:
        for sandbox in mine[name]:
            hub.call('DELETE', f'/v1/sandboxes/{sandbox}')
        hub.call('DELETE', f'/v1/keys/{name}')


def test_a_client_that_goes_ends_its_run(hub):
    """Its process ends at once, and not at its limits."""
    hub.value('1')
    place = hub.places()[0]
    text = hub.request('POST', '/v1/javascript',
                       body=json.dumps({'code': 'for (;;);', 'cpu_ms': 60000, 'wall_ms': 600000}))
    with hub.wire() as wire:
        wire.send(text)
        until(lambda: b'R' in running(hub, place), what='it runs')
    until(lambda: b'R' not in running(hub, place), what='it has ended')
    assert hub.value('2') == 2


def running(hub, place):
    """States of the processes of holt-js."""
    said = hub.exec(place, "for p in /proc/[0-9]*; do grep -qs holt-js $p/comm && "
                    "sed 's/.*) \\(.\\).*/\\1/' $p/stat; done; true")
    return said['stdout'].encode()


def test_over_mcp(who):
    mcp = who.mcp('--pool', '1', '--tools', 'code')
    mcp.initialize()
    listed = mcp.request('tools/list')['result']['tools']
    assert [t['name'] for t in listed] == [  # without modules
        'execute_javascript', 'register_module', 'list_modules', 'module_info', 'search_modules']

    def result_of(code, **more):
        result = mcp.request('tools/call', {'name': 'execute_javascript',
                                            'arguments': {'code': code, **more}})['result']
        return {'isError': False, **result}

    def said(code, **more):
        return result_of(code, **more)['content'][0]['text']

    assert said('console.log("said"); console.warn("w"); 6 * 7') == 'said\n[warn] w\n=> 42'
    assert not result_of('1')['isError'] and result_of('nope')['isError']
    assert result_of('for (;;);', cpu_ms=50)['isError']
    assert said('undefined') == '=> undefined'
    assert said('nope') == ("ReferenceError: 'nope' is not defined (line 1, column 1)\n"
                            '    at <eval> (code.js:1:1)')
    assert said('for (;;);', cpu_ms=50).startswith('InternalError: interrupted [limit: cpu]')
    assert mcp.close() == 0


def test_the_verb(hub):
    path = f'{hub.who.work}/a.js'
    with open(path, 'w', encoding='utf-8') as file:
        file.write('console.log("out"); console.error("err");\n[1, 2]')
    os.chmod(path, 0o644)
    done = hub.who.run('js', path, env=hub.env)
    assert (done.returncode, done.stdout) == (0, b'out\n[1,2]\n'), done
    assert done.stderr == b'err\n'
    done = hub.who.run('js', '-', env=hub.env, input=b'\nlet x = ;')
    assert done.returncode == 1 and done.stderr.startswith(b'-:2:9: SyntaxError: '), done
    done = hub.who.run('js', '-o', 'json', '-', env=hub.env, input=b'1')
    assert json.loads(done.stdout)['value'] == '1', done


def test_a_stack_is_no_command_to_the_terminal(hub):
    done = hub.who.run('js', '-', env=hub.env, input=(
        'const o = {["f\\x9b1m\\x7f\\u202e"]() { throw new Error("x"); }};\n'
        'o["f\\x9b1m\\x7f\\u202e"]()').encode())
    told = done.stderr.decode()
    assert done.returncode == 1 and r'at f\x9b1m\x7f\u202e (' in told, done
    assert not re.search('[\x7f-\x9f\u202e]', told), told


def test_the_program_is_small_and_static():
    with open(os.path.join(BUILD, 'src/box/holt-js'), 'rb') as file:
        data = file.read()
    at, = struct.unpack_from('<Q', data, 32)
    size, n = struct.unpack_from('<HH', data, 54)
    kinds = {struct.unpack_from('<I', data, at + i * size)[0] for i in range(n)}
    assert 1 in kinds and not kinds & {2, 3}  # PT_LOAD; PT_DYNAMIC, PT_INTERP
    assert len(data) < 2500000
