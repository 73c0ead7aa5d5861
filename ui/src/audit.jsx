// The audit log as it grows, and whether its records still belong together.
import { useEffect, useState } from 'preact/hooks';
import { get } from './api.js';
import { filterText, Link, parseFilter, passes } from './router.jsx';
import { Text } from './text.jsx';
import { Ago, Chip, Empty, Failure, Filter } from './ui.jsx';

const PAGE = 200;
const KEPT = 2000; // rows
const LOOK_MS = 3000;
const ASKED = ['who', 'action', 'target', 'outcome']; // what the hub itself filters by

function query(terms) {
	const q = new URLSearchParams({ limit: PAGE });
	for (const { key, value, not } of terms) {
		if (!not && ASKED.includes(key) && value)
			q.set(key, value);
	}
	return q;
}

// The records that match, the newest last; more come as long as the view is shown.
function useRecords(terms) {
	const [state, setState] = useState({ records: [], problem: null });
	const q = query(terms).toString();
	useEffect(() => {
		let next, timer, over;
		let records = [];
		const look = async () => {
			try {
				do {
					const page = await get(`/v1/audit?${q}${next === undefined ? '' : `&after=${next}`}`);
					if (over)
						return;
					records = [...records, ...page.records].slice(-KEPT);
					const more = page.records.length === PAGE && page.next !== next;
					next = page.next;
					setState({ records, problem: null });
					if (!more)
						break;
				} while (!over);
			} catch (problem) {
				setState({ records, problem });
			}
			timer = over || setTimeout(look, LOOK_MS);
		};
		look();
		return () => {
			over = true;
			clearTimeout(timer);
		};
	}, [q]);
	return state;
}

async function sha256(text) {
	const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
	return [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, '0')).join('');
}

// Reads all records of calls up to now and follows their chain: each has the hash of the line before
// it. Lines about the log itself stand between some of them; those only the command line sees.
async function verify(tell) {
	const last = (await get('/v1/audit?limit=1')).records.at(-1)?.seq ?? 0;
	let before = { seq: 0 };
	let n = 0;
	while (before.seq < last) {
		const { records } = await get(`/v1/audit?limit=${PAGE}&after=${before.seq}`);
		for (const record of records) {
			if (record.seq === before.seq + 1 && before.hash && record.prev !== before.hash)
				return { bad: record.seq, n };
			before = { seq: record.seq, hash: await sha256(JSON.stringify(record)) };
			n++;
		}
		tell(n);
		if (!records.length)
			break;
	}
	return { n };
}

function Verify() {
	const [state, setState] = useState({});
	if (!crypto.subtle)
		return <span class="muted">holt audit verify checks the log.</span>;
	const run = async () => {
		setState({ busy: true, n: 0 });
		try {
			setState({ result: await verify((n) => setState({ busy: true, n })) });
		} catch (problem) {
			setState({ problem });
		}
	};
	return (
		<>
			<button onClick={run} disabled={state.busy}>{state.busy ? `Verifying: ${state.n}` : 'Verify'}</button>
			{state.problem && <Failure of={state.problem} />}
			{state.result && <span role="status">{state.result.bad === undefined
				? <Chip kind="ok">{state.result.n} records follow each other</Chip>
				: <Chip kind="danger">record {state.result.bad} does not follow the one before it</Chip>}</span>}
		</>
	);
}

export function Audit() {
	const terms = parseFilter(filterText());
	const { records, problem } = useRecords(terms);
	const shown = records.filter((r) => passes(terms, r)).reverse().slice(0, PAGE);
	return (
		<>
			<h1>Audit</h1>
			<div class="bar-of-buttons">
				<Filter label="Filter" hint="who:local action:sandbox.exec -outcome:ok" />
				<Verify />
			</div>
			<p class="muted">Signatures, and whether a line is missing, are checked by <code>holt audit verify</code>.</p>
			{problem && <Failure of={problem} />}
			{shown.length ? (
				<div class="scroll" tabIndex={0} role="region" aria-label="Records"><table class="list">
					<thead><tr><th>Seq</th><th>When</th><th>Who</th><th>Action</th><th>Target</th><th>Decision</th><th>Outcome</th><th>ms</th></tr></thead>
					<tbody>
						{shown.map((r) => (
							<tr key={r.seq}>
								<td>{r.seq}</td><td><Ago at={r.time} /></td>
								<td><Text of={r.who ?? ''} /></td>
								<td><Text of={r.action ?? r.event} /></td>
								<td>{r.target && (r.target.startsWith('sb') ? <Link to={`/s/${encodeURIComponent(r.target)}`}><Text of={r.target} /></Link> : <Text of={r.target} />)}</td>
								<td>{r.decision}{r.rule && <small class="muted"> <Text of={r.rule} /></small>}</td>
								<td>{r.outcome && <Chip kind={r.outcome === 'ok' ? 'ok' : 'danger'}><Text of={r.outcome} /></Chip>}</td>
								<td>{r.ms}</td>
							</tr>
						))}
					</tbody>
				</table></div>
			) : <Empty>No record matches.</Empty>}
		</>
	);
}
