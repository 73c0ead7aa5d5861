// Bundles what takes the types out of TypeScript: node bundle.mjs OUTPUT.js
// The script's value is a function; it gives one from a text to a text.
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
await build({
	absWorkingDir: here,
	preserveSymlinks: true,
	stdin: {
		contents: `import { transform } from 'sucrase';
			export default code => transform(code, { transforms: ['typescript'], disableESTransforms: true }).code;`,
		resolveDir: here,
	},
	outfile: resolve(process.argv[2]),
	bundle: true,
	minify: true,
	format: 'iife',
	globalName: 'typescript',
	banner: { js: '(() => {' },
	footer: { js: 'return typescript.default; })' },
	target: 'es2022',
	legalComments: 'none',
	logLevel: 'warning',
});
