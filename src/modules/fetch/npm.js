// What was fetched, for modules/package.c: package.holt.json. Nothing of it has run so far.
'use strict';
const fs = require('fs');
const path = require('path');
const child = require('child_process');
const crypto = require('crypto');

const fail = (text) => { console.error('npm error ' + text); process.exit(1); };
const read = (file) => JSON.parse(fs.readFileSync(file, 'utf8'));
const text = (v, max = 300) => (typeof v === 'string' ? v.slice(0, max) : undefined);
const person = (v) => text(typeof v === 'object' && v ? [v.name, v.email && `<${v.email}>`, v.url]
  .filter((s) => typeof s === 'string').join(' ') : v);

const { holt } = read('package.json');
const folder = path.join(process.cwd(), 'node_modules', holt.name);
const own = read(path.join(folder, 'package.json'));

// As npx chooses it; and a package can't run a file of another.
function program() {
  const bins = typeof own.bin === 'string' ? { [holt.name.split('/').pop()]: own.bin } : own.bin || {};
  const names = Object.keys(bins);
  const unscoped = holt.name.split('/').pop();
  let name = holt.program;
  if (!name) name = new Set(Object.values(bins)).size === 1 ? names[0] : unscoped;
  if (!Object.hasOwn(bins, name) || typeof bins[name] !== 'string') {
    fail(names.length ? `it has no program "${name}", but ${names.slice(0, 8).join(', ')}: ` +
      `npx -p ${holt.name} PROGRAM` : 'it has no program, so it is no server');
  }
  let file;
  try { file = fs.realpathSync(path.join(folder, bins[name])); } catch { fail(`its program "${name}" is missing`); }
  const home = fs.realpathSync(folder) + path.sep;
  if (!file.startsWith(home) || file.slice(home.length).split(path.sep).includes('node_modules')) {
    fail(`its program "${name}" is a file of another package`);
  }
  if (!fs.statSync(file).isFile()) fail(`its program "${name}" is no file`);
  const begin = fs.readFileSync(file).subarray(0, 256).toString('latin1');
  if (begin.startsWith('#!') && !/^#!.*\bnode\b/.test(begin)) return [file];
  return begin.startsWith('\x7fELF') ? [file] : ['node', file];
}

function scripts(at) {
  let have = {};
  try { have = read(path.join(at, 'package.json')).scripts || {}; } catch { /* none */ }
  const names = ['preinstall', 'install', 'postinstall'].filter((s) => have[s]);
  return names.length ? names : ['install'];
}

function size(at, count) {
  for (const e of fs.readdirSync(at, { withFileTypes: true })) {
    const one = path.join(at, e.name);
    count.files++;
    if (e.isDirectory()) size(one, count);
    else count.bytes += fs.lstatSync(one).size;
  }
  return count;
}

const packages = Object.entries(read('package-lock.json').packages).filter(([at]) => at);
const hash = crypto.createHash('sha256');
const dependencies = new Set();
const refused = [];
for (const [at, p] of packages.sort(([a], [b]) => (a < b ? -1 : 1))) {
  const name = at.slice(at.lastIndexOf('node_modules/') + 13);
  if (!fs.existsSync(at)) continue; // of another system
  if (p.link || (!p.integrity && !p.inBundle)) fail(`${name} has no digest, so it is of no registry`);
  hash.update(`${at} ${p.version} ${p.integrity || 'bundled'}\n`);
  if (at !== `node_modules/${holt.name}`) dependencies.add(`${name}@${p.version}`);
  if (p.hasInstallScript) refused.push(`${name}@${p.version}: ${scripts(at).join(', ')}`);
}
// The registry's word on who may publish it, where it gives one.
let view = {};
try {
  view = JSON.parse(child.execFileSync('npm', ['view', '--json', `${holt.name}@${own.version}`],
    { stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 16 << 20, timeout: 60000 }));
} catch { /* it gives none */ }
const repository = view.repository || own.repository;
const { bytes, files } = size('node_modules', { bytes: 0, files: 0 });

fs.writeFileSync('package.holt.json', JSON.stringify({
  wanted: holt.wanted,
  kind: 'npm',
  name: holt.name,
  version: text(own.version),
  license: text(typeof own.license === 'object' && own.license ? own.license.type : own.license),
  author: person(own.author),
  maintainers: (Array.isArray(view.maintainers) ? view.maintainers : []).slice(0, 20).map(person)
    .filter((s) => s),
  repository: text(repository && typeof repository === 'object' ? repository.url : repository),
  bytes,
  files,
  dependencies: [...dependencies].slice(0, 4000),
  scripts: refused.slice(0, 200),
  lock: hash.digest('hex'),
  program: program(),
}));
