// Bundles the page and writes it as C: node build.mjs OUTPUT.c
// The files beside OUTPUT.c, in page/, are for tests that weigh them.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2];
const types = { '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' };

const result = await build({
	// Names and contents then don't depend on where this folder is.
	absWorkingDir: here,
	preserveSymlinks: true,
	entryPoints: [join(here, 'src/main.jsx'), join(here, 'src/style.css'), join(here, 'src/icon.svg')],
	outdir: 'out',
	bundle: true,
	minify: true,
	splitting: true,
	format: 'esm',
	target: 'es2022',
	jsx: 'automatic',
	jsxImportSource: 'preact',
	loader: { '.svg': 'copy' },
	entryNames: '[name]-[hash]',
	chunkNames: '[name]-[hash]',
	assetNames: '[name]-[hash]',
	legalComments: 'none',
	write: false,
	logLevel: 'warning',
});

// Bytes as a C string, in lines that a compiler reads quickly.
function literal(bytes) {
	const lines = [];
	for (let at = 0; at < bytes.length; at += 512) {
		let line = '';
		for (const byte of bytes.subarray(at, at + 512))
			line += '\\' + byte.toString(8).padStart(3, '0');
		lines.push(`\t"${line}"`);
	}
	return lines.join('\n');
}

const folder = join(dirname(output), 'page');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const rows = [];
const named = {};
for (const file of result.outputFiles.sort((a, b) => (a.path < b.path ? -1 : 1))) {
	const name = basename(file.path);
	const packed = gzipSync(file.contents, { level: 9 });
	named[name.replace(/-[A-Z0-9]{8}\./, '.')] = name;
	writeFileSync(join(folder, name + '.gz'), packed);
	rows.push(`\t{ "${name}", "${types[extname(name)]}",\n${literal(packed)},\n\t  ${packed.length} },`);
}
const html = readFileSync(join(here, 'index.html'), 'utf8')
	.replace(/\{\{file:([^}]+)\}\}/g, (_, name) => '/assets/' + named[name]);
writeFileSync(join(folder, 'index.html'), html);

writeFileSync(output, `/* Written by ui/build.mjs. */
#include "door/page/internal.h"

const struct page_file page_files[] = {
${rows.join('\n')}
};
const size_t page_files_n = sizeof(page_files) / sizeof(page_files[0]);
const char *const page_html =
${literal(Buffer.from(html))};
`);
