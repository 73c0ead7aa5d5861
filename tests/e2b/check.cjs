// Drives one version of the SDKs, unmodified but for their three variables, and prints a line of
// JSON for each check: check.cjs FOLDER
const assert = require('assert'), http = require('http'), path = require('path')
const { createRequire } = require('module')
const load = createRequire(path.join(path.resolve(process.argv[2]), 'package.json'))
const { Sandbox } = load('@e2b/code-interpreter')
const e2b = load('e2b')

const version = path.basename(process.argv[2])
let n = 0
const has = (of, name) => typeof of[name] === 'function'
const sleep = ms => new Promise(done => setTimeout(done, ms))
async function until(met, what) {
  for (let i = 0; i < 2400; i++) {
    const found = await met()
    if (found) return found
    await sleep(25)
  }
  throw new Error(`never: ${what}`)
}
async function check(name, f) {
  const begun = Date.now()
  const said = { n: ++n, name }
  try {
    await f()
    said.ok = true
  } catch (e) {
    said.ok = false
    said.why = String((e && e.stack) || e)
  }
  said.ms = Date.now() - begun
  console.log(JSON.stringify(said))
}
async function fails(kind, f) {
  try {
    await f()
  } catch (e) {
    const names = Array.isArray(kind) ? kind : [kind]
    assert.ok(names.includes(e.name), `${e.name}: ${e.message}`)
    return e
  }
  assert.fail(`it did not fail with ${kind}`)
}
// Node does not resolve *.localhost itself.
const get = (host, target, headers) => new Promise((done, fail) => {
  http.get({ host: '127.0.0.1', port: host.split(':')[1], path: target,
    headers: { Host: host, ...headers }, agent: false }, res => {
    let body = ''
    res.on('data', piece => { body += piece })
    res.on('end', () => done({ status: res.statusCode, body }))
  }).on('error', fail)
})

async function interpreter(sb) {
  let context
  await check('runCode', async () => {
    const done = await sb.runCode('x = 20\nprint("hé", x)\nx + 1')
    assert.equal(done.text, '21')
    assert.deepEqual(done.logs.stdout.join(''), 'hé 20\n')
    assert.equal(done.executionCount, 1)
  })
  await check('state lasts', async () => assert.equal((await sb.runCode('x + 2')).text, '22'))
  await check('an error', async () => {
    const done = await sb.runCode('def f():\n    raise ValueError("nö")\nf()')
    assert.deepEqual([done.error.name, done.error.value], ['ValueError', 'nö'])
    assert.match(done.error.traceback, /line 2, in f/)
    assert.match((await sb.runCode('1/')).error.name, /SyntaxError/)
  })
  await check('results', async () => {
    const done = await sb.runCode(`
class Chart:
    def _repr_png_(self): return b'\\x89PNG'
    def _repr_svg_(self): return '<svg/>'
    def _repr_html_(self): return '<b>é</b>'
display(Chart())
Chart()`)
    assert.equal(done.results.length, 2)
    assert.deepEqual([done.results[0].isMainResult, done.results[1].isMainResult], [false, true])
    assert.deepEqual([done.results[0].png, done.results[0].svg, done.results[0].html],
      [Buffer.from('\x89PNG', 'latin1').toString('base64'), '<svg/>', '<b>é</b>'])
  })
  await check('callbacks and envs', async () => {
    const out = [], err = []
    const done = await sb.runCode('import os, sys, subprocess\nprint(os.environ["V"])\n'
      + 'print("e", file=sys.stderr)\nsubprocess.run("echo child", shell=True)\nNone',
    { envs: { V: 'v' }, onStdout: m => { out.push(m.line) }, onStderr: m => { err.push(m.line) } })
    assert.equal(done.error, undefined)
    assert.deepEqual([out.join(''), err.join('')], ['v\nchild\n', 'e\n'])
    assert.equal((await sb.runCode('os.environ.get("V")')).text, undefined)
  })
  await check('a timeout interrupts', async () => {
    await fails('TimeoutError', () => sb.runCode('n = 0\nwhile True: n += 1', { timeoutMs: 700 }))
    assert.ok(Number((await sb.runCode('n')).text) > 0)
  })
  await check('javascript', async () => {
    const done = await sb.runCode('const a = [1, 2]; console.log("js"); a', { language: 'javascript' })
    assert.equal(done.logs.stdout.join(''), 'js\n')
    assert.match(done.text, /\[ 1, 2 \]/)
    assert.equal((await sb.runCode('a.length', { language: 'js' })).text, '2')
    assert.equal((await sb.runCode('await Promise.resolve(5)', { language: 'js' })).text, '5')
    assert.equal((await sb.runCode('throw new TypeError("t")', { language: 'js' })).error.name,
      'TypeError')
  })
  await check('bash', async () => {
    const done = await sb.runCode('y=7\necho $y $Z; echo e >&2', { language: 'bash', envs: { Z: "it's" } })
    assert.deepEqual([done.logs.stdout.join(''), done.logs.stderr.join('')], ["7 it's\n", 'e\n'])
    assert.equal((await sb.runCode('echo $y', { language: 'bash' })).logs.stdout.join(''), '7\n')
    assert.equal((await sb.runCode('(exit 4)', { language: 'bash' })).error.value, '4')
  })
  await check('no such language', () => fails(['SandboxError', 'Error', 'InvalidArgumentError'],
    () => sb.runCode('1', { language: 'cobol' })))
  await check('contexts', async () => {
    context = await sb.createCodeContext({ cwd: '/tmp' })
    assert.equal(context.language, 'python')
    const done = await sb.runCode('import os\nprint(os.getcwd(), "x" in globals())', { context })
    assert.equal(done.logs.stdout.join(''), '/tmp False\n')
  })
  if (has(sb, 'listCodeContexts')) {
    await check('list, restart, remove', async () => {
      assert.ok((await sb.listCodeContexts()).some(c => c.id === context.id))
      await sb.runCode('z = 1', { context })
      await sb.restartCodeContext(context)
      assert.equal((await sb.runCode('z', { context })).error.name, 'NameError')
      await sb.removeCodeContext(context)
      assert.ok(!(await sb.listCodeContexts()).some(c => c.id === context.id))
      await fails(['SandboxError', 'NotFoundError', 'Error'], () => sb.runCode('1', { context }))
    })
  }
  await check('at once in one context', async () => {
    const all = await Promise.all([1, 2, 3, 4].map(i =>
      sb.runCode(`import time\nprint(${i})\ntime.sleep(0.05)\n${i}`)))
    assert.deepEqual(all.map(d => [d.text, d.logs.stdout.join('')]),
      [1, 2, 3, 4].map(i => [`${i}`, `${i}\n`]))
  })
  await check('an interpreter that ends', async () => {
    assert.ok((await sb.runCode('import os\nos._exit(1)')).error)
    assert.equal((await sb.runCode('1 + 1')).text, '2')
  })
  await check('much is printed', async () => {
    const done = await sb.runCode('print("y" * 2000000)')
    assert.equal(done.logs.stdout.join('').length, 2000001)
  })
}

async function main() {
  let sb, handle
  // ---- control plane
  await check('create', async () => {
    sb = await Sandbox.create('base', { timeoutMs: 62000, metadata: { kind: `x ${version}`, n: '1' },
      envs: { GIVEN: 'yes' } })
    assert.match(sb.sandboxId, /^sbx-[0-9a-f]{32}$/)
  })
  if (!sb) return
  await check('isRunning', async () => assert.equal(await sb.isRunning(), true))
  await check('getInfo', async () => {
    const info = await sb.getInfo()
    assert.equal(info.sandboxId, sb.sandboxId)
    assert.equal(info.templateId, 'base')
    assert.deepEqual(info.metadata, { kind: `x ${version}`, n: '1' })
    const left = info.endAt - Date.now()
    assert.ok(left > 40000 && left < 63000, left)
    if (info.state) assert.equal(info.state, 'running')
  })
  await check('list by metadata', async () => {
    const found = await Sandbox.list({ query: { metadata: { kind: `x ${version}` } } }).nextItems()
    assert.deepEqual(found.map(s => s.sandboxId), [sb.sandboxId])
    const none = await Sandbox.list({ query: { metadata: { kind: 'z' } } }).nextItems()
    assert.deepEqual(none, [])
  })
  await check('list by state and page', async () => {
    const other = await Sandbox.create({ timeoutMs: 60000 })
    const pages = Sandbox.list({ query: { state: ['running'] }, limit: 1 }), ids = []
    while (pages.hasNext) ids.push(...(await pages.nextItems()).map(s => s.sandboxId))
    assert.ok(ids.includes(sb.sandboxId) && ids.includes(other.sandboxId), ids)
    assert.notEqual(await other.kill(), false)
    if (has(sb, 'fork')) assert.equal(await other.kill(), false)
    assert.equal(await other.isRunning(), false)
  })
  await check('setTimeout', async () => {
    await sb.setTimeout(600000)
    const left = (await sb.getInfo()).endAt - Date.now()
    assert.ok(left > 590000 && left < 601000, left)
  })
  await check('connect extends only', async () => {
    const again = await Sandbox.connect(sb.sandboxId, { timeoutMs: 10000 })
    assert.equal(again.sandboxId, sb.sandboxId)
    const left = (await again.getInfo()).endAt - Date.now()
    assert.ok(left > 70000, left)
    assert.equal((await again.commands.run('echo $GIVEN')).stdout, 'yes\n')
  })
  await check('connect to none', () =>
    fails(['NotFoundError', 'SandboxNotFoundError'], () => Sandbox.connect(`sbx-${'0'.repeat(32)}`)))
  await check('getInfo of none', () =>
    fails(['NotFoundError', 'SandboxNotFoundError'], () => Sandbox.getInfo(`sbx-${'0'.repeat(32)}`)))
  await check('kill none', async () =>
    assert.equal(await Sandbox.kill(`sbx-${'0'.repeat(32)}`), false))
  await check('no such template', () => fails(['NotFoundError', 'SandboxError', 'TemplateError'],
    () => Sandbox.create('no-such-template')))
  await check('metrics', async () => {
    const m = await sb.getMetrics()
    assert.ok(m.length >= 1 && m[0].memTotal > 0 && m[0].cpuCount >= 1, JSON.stringify(m))
  })
  await check('a wrong key', () => fails(['AuthenticationError', 'RateLimitError'], () =>
    Sandbox.create('base', { apiKey: 'e2b_0000000000000000000000000000000000000000' })))
  await check('mcp fails clearly', async () => {
    const e = await fails(['SandboxError', 'Error', 'TemplateError', 'NotFoundError'], () =>
      Sandbox.create('base', { mcp: { browserbase: { apiKey: 'k' } } }))
    assert.match(e.message, /mcp/)
  })

  // ---- commands
  await check('run', async () => {
    const done = await sb.commands.run('echo out; echo err >&2')
    assert.deepEqual([done.exitCode, done.stdout, done.stderr], [0, 'out\n', 'err\n'])
  })
  await check('exit code', async () => {
    const e = await fails('CommandExitError', () => sb.commands.run('echo x; exit 3'))
    assert.deepEqual([e.exitCode, e.stdout], [3, 'x\n'])
  })
  await check('envs, cwd, callbacks', async () => {
    const seen = []
    const done = await sb.commands.run('echo "$A $PWD"; echo é', { envs: { A: 'b c' }, cwd: '/tmp',
      onStdout: text => { seen.push(text) } })
    assert.equal(done.stdout, 'b c /tmp\né\n')
    assert.equal(seen.join(''), done.stdout)
  })
  await check('home', async () => {
    await sb.files.write('rel.txt', 'r')
    assert.equal((await sb.commands.run('cat /home/user/rel.txt; cat ~/rel.txt; cat rel.txt')).stdout,
      'rrr')
  })
  await check('cwd that is not there', () => fails(['InvalidArgumentError', 'NotFoundError'],
    () => sb.commands.run('true', { cwd: '/nowhere' })))
  await check('timeout', async () => {
    const begun = Date.now()
    await fails('TimeoutError', () => sb.commands.run('sleep 30', { timeoutMs: 600 }))
    assert.ok(Date.now() - begun < 20000)
  })
  await check('background, sendStdin', async () => {
    handle = await sb.commands.run('read x; echo got $x; sleep 60', { background: true, stdin: true,
      timeoutMs: 0 })
    assert.ok(handle.pid > 0)
    await sb.commands.sendStdin(handle.pid, 'hello\n')
    await until(() => handle.stdout === 'got hello\n', 'its answer')
  })
  await check('list', async () => {
    const found = (await sb.commands.list()).filter(p => p.pid === handle.pid)
    assert.equal(found.length, 1)
    assert.equal(found[0].cmd, '/bin/bash')
    assert.ok(found[0].args.join(' ').includes('read x'), found[0].args)
  })
  await check('disconnect, connect, kill', async () => {
    await handle.disconnect()
    const again = await sb.commands.connect(handle.pid)
    assert.equal(again.pid, handle.pid)
    assert.equal(await sb.commands.kill(handle.pid), true)
    const e = await fails('CommandExitError', () => again.wait())
    assert.equal(e.exitCode, -1)
    assert.match(e.error, /killed/)
  })
  await check('kill what has ended', async () =>
    assert.equal(await sb.commands.kill(handle.pid), false))
  await check('kill none', async () => assert.equal(await sb.commands.kill(1), false))
  await check('connect to no process', () => fails('NotFoundError', () => sb.commands.connect(2)))
  await check('a client that goes away ends nothing', async () => {
    const proc = await sb.commands.run('sleep 0.7; echo done > /tmp/late', { background: true })
    await proc.disconnect()
    await until(async () => await sb.files.exists('/tmp/late'), 'the late file')
  })
  if (sb.commands.supportsStdinClose) {
    await check('closeStdin', async () => {
      const cat = await sb.commands.run('cat', { background: true, stdin: true })
      await sb.commands.sendStdin(cat.pid, new TextEncoder().encode('abc'))
      await sb.commands.closeStdin(cat.pid)
      assert.equal((await cat.wait()).stdout, 'abc')
    })
  }
  await check('much output', async () => {
    const done = await sb.commands.run('head -c 3000000 /dev/zero | tr "\\0" x')
    assert.equal(done.stdout.length, 3000000)
  })
  await check('as root', () => fails(['InvalidArgumentError', 'SandboxError', 'AuthenticationError'],
    () => sb.commands.run('id', { user: 'root' })))
  await check('no such user', () => fails('AuthenticationError',
    () => sb.commands.run('id', { user: 'mallory' })))
  await check('sixteen at once', async () => {
    const all = await Promise.all([...Array(16).keys()].map(i => sb.commands.run(`echo ${i}`)))
    assert.deepEqual(all.map(d => d.stdout), [...Array(16).keys()].map(i => `${i}\n`))
  })

  // ---- terminals
  await check('pty', async () => {
    let text = ''
    const pty = await sb.pty.create({ cols: 91, rows: 21, timeoutMs: 0,
      onData: piece => { text += new TextDecoder().decode(piece) } })
    await sb.pty.sendInput(pty.pid, new TextEncoder().encode('echo $((40+2)); stty size\n'))
    await until(() => text.includes('42') && text.includes('21 91'), 'the answer of a terminal')
    await sb.pty.resize(pty.pid, { cols: 101, rows: 31 })
    await sb.pty.sendInput(pty.pid, new TextEncoder().encode('stty size\n'))
    await until(() => text.includes('31 101'), 'the new size')
    assert.equal(await sb.pty.kill(pty.pid), true)
  })
  if (has(sb.pty, 'connect')) {
    await check('pty connect', async () => {
      let text = ''
      const pty = await sb.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: () => {} })
      await pty.disconnect()
      const again = await sb.pty.connect(pty.pid, {
        onData: piece => { text += new TextDecoder().decode(piece) } })
      await sb.pty.sendInput(pty.pid, new TextEncoder().encode('echo $((6*7))\n'))
      await until(() => text.includes('42'), 'an answer after the reconnection')
      await again.kill()
    })
  }

  // ---- files
  await check('write and read', async () => {
    const info = await sb.files.write('/home/user/a/b.txt', 'hällo')
    assert.deepEqual([info.name, info.path, info.type], ['b.txt', '/home/user/a/b.txt', 'file'])
    assert.equal(await sb.files.read('/home/user/a/b.txt'), 'hällo')
  })
  await check('bytes', async () => {
    const data = new Uint8Array(300000).map((_, i) => i % 251)
    await sb.files.write('/tmp/bytes', data.buffer)
    assert.deepEqual(await sb.files.read('/tmp/bytes', { format: 'bytes' }), data)
  })
  await check('blob and stream', async () => {
    await sb.files.write('/tmp/blob', new Blob(['blob']))
    assert.equal(await (await sb.files.read('/tmp/blob', { format: 'blob' })).text(), 'blob')
    let text = ''
    for await (const piece of await sb.files.read('/tmp/blob', { format: 'stream' })) {
      text += new TextDecoder().decode(piece)
    }
    assert.equal(text, 'blob')
  })
  await check('an empty file', async () => {
    await sb.files.write('/tmp/empty', '')
    assert.equal(await sb.files.read('/tmp/empty'), '')
  })
  await check('several files', async () => {
    const all = await sb.files.write([{ path: '/tmp/m/1', data: 'one' }, { path: 'm2', data: 'two' }])
    assert.deepEqual(all.map(f => f.path), ['/tmp/m/1', '/home/user/m2'])
    assert.equal(await sb.files.read('m2'), 'two')
  })
  await check('octet-stream', async () => {
    await sb.files.write('/tmp/octets', 'octets', { useOctetStream: true })
    assert.equal(await sb.files.read('/tmp/octets'), 'octets')
  })
  await check('gzip', async () => {
    await sb.files.write('/tmp/packed', 'p'.repeat(100000), { gzip: true })
    assert.equal((await sb.files.read('/tmp/packed', { gzip: true })).length, 100000)
  })
  await check('read none', () => fails(['NotFoundError', 'FileNotFoundError'],
    () => sb.files.read('/tmp/none')))
  await check('read a directory', () => fails(['InvalidArgumentError', 'SandboxError'],
    () => sb.files.read('/tmp')))
  await check('write where it may not', () => fails(['SandboxError', 'InvalidArgumentError'],
    () => sb.files.write('/etc/nobody-may', 'x')))
  await check('makeDir', async () => {
    assert.equal(await sb.files.makeDir('/tmp/d/e'), true)
    assert.equal(await sb.files.makeDir('/tmp/d/e'), false)
    await fails('InvalidArgumentError', () => sb.files.makeDir('/tmp/octets'))
  })
  await check('list', async () => {
    await sb.files.write('/tmp/d/f', '123')
    await sb.commands.run('ln -s f /tmp/d/link; ln -s none /tmp/d/broken')
    const found = await sb.files.list('/tmp/d')
    assert.deepEqual(found.map(f => [f.name, f.type]).filter(f => f[0] !== 'broken'),
      [['e', 'dir'], ['f', 'file'], ['link', 'file']])
    assert.deepEqual([found.find(f => f.name === 'f').size, found.find(f => f.name === 'f').path],
      [3, '/tmp/d/f'])
  })
  await check('list deeper', async () => {
    await sb.files.write('/tmp/d/e/g/h', '')
    const found = (await sb.files.list('/tmp/d', { depth: 3 })).map(f => f.path)
    assert.deepEqual(found.filter(p => !/link|broken/.test(p)),
      ['/tmp/d/e', '/tmp/d/e/g', '/tmp/d/e/g/h', '/tmp/d/f'])
  })
  await check('list none', () => fails(['NotFoundError', 'FileNotFoundError'],
    () => sb.files.list('/tmp/none')))
  await check('exists', async () => {
    assert.equal(await sb.files.exists('/tmp/d'), true)
    assert.equal(await sb.files.exists('/tmp/none'), false)
  })
  await check('getInfo of a file', async () => {
    await sb.commands.run('chmod 640 /tmp/d/f')
    const info = await sb.files.getInfo('/tmp/d/f')
    assert.deepEqual([info.name, info.type, info.size, info.mode, info.permissions],
      ['f', 'file', 3, 0o640, '-rw-r-----'])
    assert.ok(Math.abs(info.modifiedTime - Date.now()) < 60000)
  })
  await check('rename', async () => {
    const info = await sb.files.rename('/tmp/d/f', '/tmp/new/deep/f2')
    assert.equal(info.path, '/tmp/new/deep/f2')
    assert.equal(await sb.files.read('/tmp/new/deep/f2'), '123')
    await fails(['NotFoundError', 'FileNotFoundError'],
      () => sb.files.rename('/tmp/d/f', '/tmp/d/z'))
  })
  await check('remove', async () => {
    await sb.files.remove('/tmp/d')
    assert.equal(await sb.files.exists('/tmp/d'), false)
    await sb.files.remove('/tmp/d')
  })
  await check('watchDir', async () => {
    const seen = []
    await sb.files.makeDir('/tmp/w')
    const watch = await sb.files.watchDir('/tmp/w', event => { seen.push(event) })
    await sb.files.write('/tmp/w/f', '1')
    await until(() => seen.some(e => e.type === 'create' && e.name === 'f'), 'create')
    await sb.files.write('/tmp/w/f', '2')
    await until(() => seen.some(e => e.type === 'write' && e.name === 'f'), 'write')
    await sb.files.rename('/tmp/w/f', '/tmp/w/g')
    await until(() => seen.some(e => e.type === 'rename' && e.name === 'f'), 'rename')
    await sb.files.remove('/tmp/w/g')
    await until(() => seen.some(e => e.type === 'remove' && e.name === 'g'), 'remove')
    assert.ok(!seen.some(e => e.name.includes('.holt-')), JSON.stringify(seen))
    await watch.stop()
  })
  await check('watchDir recursively', async () => {
    const seen = []
    await sb.files.makeDir('/tmp/w2/sub')
    const watch = await sb.files.watchDir('/tmp/w2', event => { seen.push(event) }, { recursive: true })
    await sb.files.write('/tmp/w2/sub/f', '1')
    await until(() => seen.some(e => e.name === 'sub/f'), 'an event below')
    await watch.stop()
  })
  await check('watch none', () => fails(['NotFoundError', 'FileNotFoundError'],
    () => sb.files.watchDir('/tmp/none', () => {})))
  await check('signed addresses', async () => {
    const up = await sb.uploadUrl('/tmp/signed', { useSignatureExpiration: 60 })
    const form = new FormData()
    form.append('file', new Blob(['signed']), 'signed')
    assert.equal((await fetch(up, { method: 'POST', body: form })).status, 200)
    const down = await sb.downloadUrl('/tmp/signed')
    assert.equal(await (await fetch(down)).text(), 'signed')
    for (const wrong of [down.replace('signed', 'bytes'), up.replace(/expiration=\d/, 'expiration=9'),
      up]) assert.ok([401, 429].includes((await fetch(wrong)).status), wrong)
  })

  // ---- git is commands
  if (sb.git) {
    await check('git', async () => {
      await sb.git.init('/tmp/repo')
      await sb.files.write('/tmp/repo/f', 'x')
      await sb.git.add('/tmp/repo', { all: true })
      const status = await sb.git.status('/tmp/repo')
      assert.ok(JSON.stringify(status).includes('f'))
    })
  }

  // ---- the code interpreter; older ones than 2.7 find it by DNS and TLS alone
  if (!sb.jupyterUrl.startsWith('https')) await interpreter(sb)

  // ---- ports
  await check('getHost', async () => {
    const host = sb.getHost(8123)
    assert.match(host, new RegExp(`^8123-${sb.sandboxId}\\.localhost:\\d+$`))
    await sb.files.write('/tmp/www/index.html', 'served')
    const server = await sb.commands.run('cd /tmp/www && python3 -m http.server 8123',
      { background: true, timeoutMs: 0 })
    await until(async () => (await get(host, '/')).status === 200, 'the server')
    assert.equal((await get(host, '/index.html')).body, 'served')
    assert.equal((await get(host.replace('8123', '8124'), '/')).status, 502)
    await server.kill()
  })

  // ---- pause, snapshots, forks
  await check('pause and connect', async () => {
    const proc = await sb.commands.run('sleep 300', { background: true, timeoutMs: 0 })
    await proc.disconnect()
    const paused = has(sb, 'pause') ? await sb.pause() : await sb.betaPause()
    assert.equal(paused !== false, true)
    assert.equal(await sb.isRunning(), false)
    await fails(['TimeoutError', 'SandboxNotFoundError', 'SandboxError'],
      () => sb.commands.run('true'))
    const again = await Sandbox.connect(sb.sandboxId, { timeoutMs: 300000 })
    assert.equal(await again.isRunning(), true)
    assert.ok((await again.commands.list()).some(p => p.pid === proc.pid))
    assert.ok((await again.getInfo()).endAt - Date.now() < 301000)
  })
  if (has(sb, 'createSnapshot')) {
    await check('snapshots', async () => {
      const made = await sb.createSnapshot()
      const listed = await sb.listSnapshots().nextItems()
      assert.ok(listed.some(s => s.snapshotId === made.snapshotId))
      const copy = await Sandbox.create(made.snapshotId, { timeoutMs: 60000 })
      assert.equal(await copy.files.read('/tmp/www/index.html'), 'served')
      await copy.kill()
      assert.equal(await Sandbox.deleteSnapshot(made.snapshotId), true)
      assert.equal(await Sandbox.deleteSnapshot(made.snapshotId), false)
    })
  }
  if (has(sb, 'fork')) {
    await check('fork', async () => {
      const all = await sb.fork({ count: 2, timeoutMs: 60000 })
      assert.equal(all.length, 2)
      for (const one of all) {
        assert.equal(await one.files.read('/tmp/www/index.html'), 'served')
        await one.kill()
      }
    })
  }
  if (has(sb, 'updateNetwork')) {
    await check('updateNetwork', async () => {
      await sb.updateNetwork({ allowOut: [] })
      await fails(['SandboxError', 'InvalidArgumentError', 'Error'],
        () => sb.updateNetwork({ denyOut: ['10.0.0.0/8'] }))
    })
  }
  if (e2b.Template && has(e2b.Template, 'exists')) {
    await check('template names', async () => {
      assert.equal(await e2b.Template.exists('base'), true)
      assert.equal(await e2b.Template.exists('no-such'), false)
    })
  }
  await check('private ports', async () => {
    const hidden = await Sandbox.create('base', { timeoutMs: 60000,
      network: { allowPublicTraffic: false } })
    const server = await hidden.commands.run('cd /tmp && python3 -m http.server 8200',
      { background: true, timeoutMs: 0 })
    const headers = { 'e2b-traffic-access-token': hidden.trafficAccessToken }
    await until(async () => (await get(hidden.getHost(8200), '/', headers)).status === 200, 'it')
    assert.equal((await get(hidden.getHost(8200), '/')).status, 401)
    await server.disconnect()
    await hidden.kill()
  })
  await check('kill', async () => {
    assert.notEqual(await sb.kill(), false)
    assert.equal(await sb.isRunning(), false)
    await fails(['TimeoutError', 'SandboxNotFoundError', 'SandboxError'],
      () => sb.commands.run('true'))
  })
}
main().then(() => process.exit(0), e => {
  console.error(e)
  process.exit(1)
})
