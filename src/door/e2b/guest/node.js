// Runs what the hub sends line by line, in one global scope. Marks on both streams tell the hub
// where an execution begins and ends; in between they have what the code and its children print.
const fs = require('fs'), util = require('util'), vm = require('vm'), readline = require('readline')
const token = process.argv[1]
process.argv.splice(1)
globalThis.require = require
let id = 0, count = 0, stop = null

function write(fd, text) {
  let data = Buffer.from(text)
  while (data.length) {
    try {
      data = data.subarray(fs.writeSync(fd, data))
    } catch (e) {
      if (e.code !== 'EAGAIN') throw e
    }
  }
}
const mark = (fd, kind, what) =>
  write(fd, `\x1e${token} ${id} ${kind}${what === undefined ? '' : ' ' + JSON.stringify(what)}\n`)
process.stdout.write = (text, encoding, done) => {
  write(1, typeof text === 'string' ? text : Buffer.from(text))
  const f = typeof encoding === 'function' ? encoding : done
  if (f) process.nextTick(f)
  return true
}
process.stderr.write = (text, encoding, done) => {
  write(2, typeof text === 'string' ? text : Buffer.from(text))
  const f = typeof encoding === 'function' ? encoding : done
  if (f) process.nextTick(f)
  return true
}

function shown(value) {
  const found = { text: util.inspect(value) }
  for (const [name, method] of Object.entries({ html: '_toHtml', svg: '_toSvg', png: '_toPng',
    jpeg: '_toJpeg', markdown: '_toMarkdown' })) {
    try {
      if (value && typeof value[method] === 'function') found[name] = value[method]()
    } catch {}
  }
  if (value !== null && typeof value === 'object' && [Object.prototype, Array.prototype]
    .includes(Object.getPrototypeOf(value))) {
    try {
      found.json = JSON.parse(JSON.stringify(value))
    } catch {}
  }
  return found
}
globalThis.display = (...values) => {
  for (const value of values) mark(1, 'R', { ...shown(value), is_main_result: false })
}

const options = name => ({ filename: name, breakOnSigint: true,
  ...(vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER
    ? { importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER } : {}) })

// With await at the top it is the body of a function: what it declares is made global.
function asBody(code) {
  const text = code.replace(/^(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*=/gm, 'globalThis.$1 =')
  const lines = text.trimEnd().split('\n')
  for (let n = lines.length - 1; n >= 0; n--) {
    const body = [...lines.slice(0, n), `return (${lines.slice(n).join('\n').replace(/;\s*$/, '')}\n)`]
    try {
      const wrapped = `(async () => {${body.join('\n')}\n})()`
      new vm.Script(wrapped)
      return wrapped
    } catch {}
  }
  return `(async () => {${text}\n})()`
}

async function run(code, name) {
  let text = code
  try {
    new vm.Script(code)
  } catch (e) {
    if (!/\bawait\b/.test(code)) throw e
    text = asBody(code)
  }
  const value = vm.runInThisContext(text, options(name))
  const interrupted = new Promise((_, reject) => { stop = reject })
  return await Promise.race([value, interrupted])
}

function failed(e) {
  const error = e instanceof Error || (e && e.stack) ? e : new Error(util.inspect(e))
  const name = error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? 'KeyboardInterrupt' : error.name
  mark(1, 'E', { name: String(name), value: String(error.message),
    traceback: String(error.stack) })
}
process.on('SIGINT', () => {
  if (!stop) return
  const e = new Error('interrupted')
  e.name = 'KeyboardInterrupt'
  stop(e)
})
process.on('uncaughtException', e => process.stderr.write(`${(e && e.stack) || e}\n`))
process.on('unhandledRejection', e => process.stderr.write(`${(e && e.stack) || e}\n`))

async function serve() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line), kept = { ...process.env }
    await new Promise(setImmediate)  // a late signal meets nothing that runs
    id = command.id
    count++
    Object.assign(process.env, command.env || {})
    mark(2, 'B', count)
    mark(1, 'B', count)
    try {
      const value = await run(command.code, `<cell ${count}>`)
      if (value !== undefined) mark(1, 'R', { ...shown(value), is_main_result: true })
    } catch (e) {
      failed(e)
    }
    stop = null
    for (const name of Object.keys(process.env)) if (!(name in kept)) delete process.env[name]
    Object.assign(process.env, kept)
    mark(2, 'Z')
    mark(1, 'Z')
  }
}
serve()
