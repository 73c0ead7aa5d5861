// How the hub is: six numbers over the last minutes, as /metrics has them.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { text } from './api.js';
import { useResource } from './live.js';
import { Text } from './text.jsx';
import { bytes, Failure, Loaded, many, Plot } from './ui.jsx';

const EVERY_MS = 5000;
const KEPT = 120;

// What is drawn: the value itself, or how much it grows a second.
const PLOTS = [
	{ title: 'Sandboxes', of: 'holt_sandboxes' },
	{ title: 'Requests a second', of: 'holt_http_requests_total', rate: true, unit: (v) => v.toFixed(1) },
	{ title: 'Refused a second', of: 'holt_http_refused_total', rate: true, unit: (v) => v.toFixed(1), kind: 'warn' },
	{ title: 'Connections', of: 'holt_http_connections' },
	{ title: 'Streams and WebSockets', of: 'holt_http_streams', and: 'holt_http_websockets' },
	{ title: 'Memory of requests', of: 'holt_http_body_bytes', unit: bytes },
];
const samples = signal([]);
const problem = signal(null);

function parse(page) {
	const values = {};
	for (const [, name, value] of page.matchAll(/^([a-z_]+) (\S+)$/gm))
		values[name] = Number(value);
	return values;
}

async function sample() {
	const one = { at: Date.now(), values: null };
	try {
		one.values = parse(await text('/metrics'));
		problem.value = null;
	} catch (e) {
		problem.value = e;
	}
	samples.value = [...samples.value, one].slice(-KEPT);
}

function points({ of, and, rate }) {
	return samples.value.map(({ at, values }, i, all) => {
		const before = all[i - 1];
		if (values?.[of] === undefined)
			return null;
		if (!rate)
			return values[of] + (and ? values[and] ?? 0 : 0);
		return before?.values ? Math.max(0, (values[of] - before.values[of]) / ((at - before.at) / 1000)) : null;
	});
}

export function Health() {
	const health = useResource('/v1/health', { every: 30000 });
	useEffect(() => {
		sample();
		const timer = setInterval(() => document.hidden || sample(), EVERY_MS);
		return () => clearInterval(timer);
	}, []);
	return (
		<>
			<h1>Health</h1>
			<Loaded of={health}>
				{(h) => <p>holt <Text of={h.version} />: {h.status}. {many(h.sandboxes, 'sandbox', 'sandboxes')}, {many(h.templates, 'template')}, isolated by <Text of={h.tier} />.</p>}
			</Loaded>
			{problem.value && <Failure of={problem.value} />}
			<div class={'plots' + (problem.value ? ' old' : '')}>
				{PLOTS.map((p) => <Plot key={p.title} title={p.title} points={points(p)} unit={p.unit} kind={p.kind} />)}
			</div>
		</>
	);
}
