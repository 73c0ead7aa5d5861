// The audit log as it grows, and whether its records still belong together.
import { useEffect, useState } from 'preact/hooks';
import { get, save } from './api.js';
import { useResource } from './live.js';
import { filterText, flag, Link, parseFilter, passes, setFlag } from './router.jsx';
import { Text } from './text.jsx';
import { Ago, Chip, Dialog, Empty, Failure, Filter, Loaded, Tree } from './ui.jsx';

const PAGE = 200;
const KEPT = 2000; // rows
const LOOK_MS = 3000;
const ASKED = ['who', 'action', 'target', 'outcome']; // what the hub itself filters by

function query(terms, reads) {
	const q = new URLSearchParams({ limit: PAGE, reads });
	for (const { key, value, not } of terms) {
		if (!not && ASKED.includes(key) && value)
			q.set(key, value);
	}
	return q;
}

// The records that match, the newest last; more come as long as the view is shown.
function useRecords(terms, reads) {
	const [state, setState] = useState({ records: [], problem: null });
	const q = query(terms, reads).toString();
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

const DECISIONS = { deny: 'denied', ask: 'asked a person' };

// One record with its receipt, which proves it to others.
function Record({ of: r, onClose }) {
	const one = useResource(`/v1/audit/${encodeURIComponent(r.id)}`);
	const keep = (name, what) => save(name, new Blob([JSON.stringify(what) + '\n'], { type: 'application/json' }));
	return (
		<Dialog title={<Text of={r.action} />} onClose={onClose}>
			<Tree of={r} />
			<Loaded of={one}>
				{({ receipt }) => (
					<>
						<p>The receipt is this record with the hub's signature. <code>holt audit verify receipt.json</code> checks it.</p>
						<button onClick={() => keep('receipt.json', receipt)}>Save the receipt</button>
					</>
				)}
			</Loaded>
			<div class="buttons"><button onClick={onClose}>Close</button></div>
		</Dialog>
	);
}

// A record as a row; on a narrow screen, as a card.
function Row({ of: r, onOpen }) {
	return (
		<tr>
			<td class="when"><Ago at={r.time} /></td>
			<td><button class="link" onClick={() => onOpen(r)}><Text of={r.action} /></button></td>
			<td>{r.target && (r.target.startsWith('sb') ? <Link to={`/s/${encodeURIComponent(r.target)}`}><Text of={r.target} /></Link> : <Text of={r.target} />)}</td>
			<td><Text of={r.who ?? ''} /></td>
			<td><Chip kind={r.outcome === 'ok' ? 'ok' : 'danger'}><Text of={r.outcome} /></Chip>
				{DECISIONS[r.decision] && <small class="muted"> {DECISIONS[r.decision]}</small>}</td>
		</tr>
	);
}

export function Audit() {
	const terms = parseFilter(filterText());
	const reads = flag('reads');
	const { records, problem } = useRecords(terms, reads);
	const [open, setOpen] = useState(null);
	const matching = records.filter((r) => passes(terms, r)).reverse();
	const shown = matching.slice(0, PAGE);
	const keep = () => save('audit.jsonl', new Blob([...matching].reverse().map((r) => JSON.stringify(r) + '\n'), { type: 'application/jsonl' }));
	return (
		<>
			<h1>Audit</h1>
			<div class="bar-of-buttons">
				<Filter label="Filter" hint="who:local action:sandbox.exec -outcome:ok" />
				<label><input type="checkbox" checked={reads} onChange={(e) => setFlag('reads', e.currentTarget.checked)} /> Show reads</label>
				<button onClick={keep} disabled={!matching.length}>Save</button>
				<Verify />
			</div>
			<p class="muted">Signatures, and whether a line is missing, are checked by <code>holt audit verify</code>.</p>
			{problem && <Failure of={problem} />}
			{shown.length ? (
				<table class="list cards">
					<thead><tr><th>When</th><th>What</th><th>On</th><th>Who</th><th>Result</th></tr></thead>
					<tbody>{shown.map((r) => <Row key={r.seq} of={r} onOpen={setOpen} />)}</tbody>
				</table>
			) : <Empty>No record matches.{!reads && ' Reads that have succeeded are not shown.'}</Empty>}
			{open && <Record of={open} onClose={() => setOpen(null)} />}
		</>
	);
}
