// Compiles the schemas of tools with Ajv (strict, draft 2020-12) and judges values by them.
import Ajv2020 from 'ajv/dist/2020.js';
import { readFileSync } from 'node:fs';

const asked = JSON.parse(readFileSync(0, 'utf8'));
const ajv = new Ajv2020.default({ strict: true, allErrors: true });
const compiled = new Map();
for (const tool of asked.tools)
	compiled.set(tool.name, { in: ajv.compile(tool.inputSchema), out: tool.outputSchema && ajv.compile(tool.outputSchema) });

const outputs = asked.outputs.map(({ name, value }) => {
	const valid = compiled.get(name).out(value);
	if (!valid)
		console.error(name, value, compiled.get(name).out.errors);
	return valid;
});
console.log(JSON.stringify({ inputs: asked.inputs.map(({ name, value }) => compiled.get(name).in(value)), outputs }));
