// The events of one conversation as a page holds them: a window of its log, the newest at first, and
// what is being written. It touches no document, so that a test can run it.
const PAGE = 200;
const OLDER = 500;
const LIVE_MAX = 64 << 10; // characters of what is being written
export const ROWS_MAX = 2000;

// read(query): a page of the log, { events, has_more }. draw(): something is new.
export function eventsOf(read, draw) {
	// more: older ones are in the log; cut: newer ones are, since older ones took their place here.
	const s = { events: [], live: new Map(), pieces: new Map(), more: false, cut: false, problem: null };
	let busy = false;
	let again = false; // what is being read may not have all
	let over = false;
	let turn = 0; // of the window: another one begins anew

	const last = () => s.events.at(-1)?.seq;

	const take = (events) => {
		for (const e of events) {
			if (!s.cut && e.seq > (last() ?? 0))
				s.events.push(e);
			s.live.delete(e.type);
			s.pieces.delete(e.type);
		}
		if (s.events.length > ROWS_MAX) {
			s.events = s.events.slice(-ROWS_MAX);
			s.more = true;
		}
	};

	// What follows the last one that is known, however much that is.
	const catchUp = async () => {
		if (busy) {
			again = true;
			return;
		}
		busy = true;
		try {
			for (let more = true; more && !over && !s.cut;) {
				const mine = turn;
				const after = last();
				const page = await read(`limit=${PAGE}${after === undefined ? '' : `&after_seq=${after}`}`);
				if (mine !== turn)
					continue;
				if (after === undefined)
					s.more = page.has_more;
				take(page.events);
				if (page.partial) { // what came before this page was open
					s.live.set(page.partial.type, page.partial.text.slice(-LIVE_MAX));
					s.pieces.set(page.partial.type, page.partial.piece);
				}
				more = after !== undefined && page.events.length === PAGE;
			}
			s.problem = null;
		} catch (problem) {
			s.problem = problem;
		}
		busy = false;
		draw();
		if (again && !over) {
			again = false;
			await catchUp();
		}
	};

	// News of it, as they come; none: all may be new.
	s.hear = (news) => {
		const { kind, seq, type, timestamp, data } = news ?? {};
		if (kind === 'live') {
			// What is no piece of a text is in no row.
			const whole = type?.endsWith('_chunk') && type.slice(0, -'_chunk'.length);
			if (whole && !(data?.piece <= s.pieces.get(whole)))
				s.live.set(whole, ((s.live.get(whole) ?? '') + (data?.text ?? '')).slice(-LIVE_MAX));
		} else if (kind === 'event' && data && !s.cut && seq === (last() ?? 0) + 1)
			take([{ seq, type, timestamp, data }]);
		else if (!news || (kind === 'event' && !(seq <= last())))
			return catchUp();
		draw();
	};
	s.older = async () => {
		const page = await read(`limit=${OLDER}&before_seq=${s.events[0]?.seq ?? 0}`);
		s.events = [...page.events, ...s.events];
		if (s.events.length > ROWS_MAX) {
			s.events = s.events.slice(0, ROWS_MAX);
			s.cut = true;
		}
		s.more = page.has_more;
		draw();
	};
	s.newest = () => {
		Object.assign(s, { events: [], cut: false });
		turn++;
		return catchUp();
	};
	s.close = () => (over = true);
	return s;
}

const LOOKS = ['read', 'search'];
const LOOKS_MIN = 3; // fewer stand for themselves

const kept = { calls: new WeakMap(), looks: new WeakMap(), ends: new WeakMap() };

// The row of these, which begins with the first of them: the same object as long as they are the same.
function same(rows, all, make) {
	const before = rows.get(all[0]);
	if (before && before.all.length === all.length && before.all.every((one, i) => one === all[i]))
		return before.row;
	const row = make();
	rows.set(all[0], { all, row });
	return row;
}

function rowOf({ all, began }) {
	const [first] = all;
	if (first.type === 'stop')
		return same(kept.ends, all, () => ({ ...first, began }));
	if (all.length === 1)
		return first;
	return same(kept.calls, all, () => ({ ...first, ended: all.at(-1).timestamp, data: Object.assign({}, ...all.map((e) => e.data)) }));
}

const isLook = (row) => row.type === 'tool_call' && LOOKS.includes(row.data?.kind) && row.data.status === 'completed';

// Calls that only looked at something, one after the other, are one row.
function looksOf(rows) {
	const out = [];
	for (let at = 0; at < rows.length; at++) {
		let end = at;
		while (end < rows.length && isLook(rows[end]))
			end++;
		const all = rows.slice(at, end);
		if (all.length < LOOKS_MIN) {
			out.push(rows[at]);
			continue;
		}
		out.push(same(kept.looks, all, () => ({ type: 'looks', seq: all[0].seq, timestamp: all[0].timestamp, rows: all })));
		at = end - 1;
	}
	return out;
}

// What is shown of events: the last state of each tool call, at the place where it began. A row whose
// events are the same is the same object.
export function fold(events) {
	const calls = new Map();
	const rows = [];
	let began; // the turn that is under way
	for (const e of events) {
		const call = e.data?.toolCallId ?? e.data?.tool_call_id;
		if (e.type === 'tool_call_update' && calls.has(call)) {
			calls.get(call).push(e);
			continue;
		}
		if (e.type === 'plan' || e.type === 'usage' || e.type === 'queue')
			continue;
		if (e.type === 'user_prompt')
			began = e.timestamp;
		const all = [e];
		if (call && e.type.startsWith('tool_call'))
			calls.set(call, all);
		rows.push({ all, began });
	}
	return looksOf(rows.map(rowOf));
}
