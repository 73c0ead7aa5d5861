// What was said and done in a conversation, and what is being said.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { bytesOf, get, save } from './api.js';
import { again } from './composer.jsx';
import { path } from './conversations.jsx';
import { changesOf, Counts, Diff } from './diff.jsx';
import { eventsOf, fold } from './events.js';
import { listen } from './live.js';
import { Markdown } from './markdown.jsx';
import { plain, Text } from './text.jsx';
import { bytes, Chip, clock, Do, Failure, Guard, span, toast, Tree } from './ui.jsx';

const SECTION = 100; // events that are laid out together, once they come into sight
const NEAR = 80; // pixels from the end within which it is followed
const DRAW_MS = 100;

// The window of its log, drawn anew ten times a second at most.
export function useEvents(id) {
	const [, draw] = useState(0);
	const store = useRef({ events: [], live: new Map() });
	useEffect(() => {
		let timer = 0;
		let drawn = 0;
		const soon = () => timer ||= setTimeout(() => {
			timer = 0;
			drawn = Date.now();
			draw((n) => n + 1);
		}, Math.max(0, drawn + DRAW_MS - Date.now()));
		const s = store.current = eventsOf((query) => get(path(id, '/events?' + query)), soon);
		const off = listen('conversation', (news) => {
			if (!news || news.id === id)
				s.hear(news?.data);
		});
		s.hear();
		return () => {
			s.close();
			clearTimeout(timer);
			off();
		};
	}, [id]);
	return store.current;
}

export const STATUS = { pending: 'warn', in_progress: 'ok', running: 'ok', completed: 'muted', failed: 'danger', cancelled: 'muted' };
const said = (d) => d.text ?? d.message ?? d.prompt ?? '';

// What a tool does, by the kinds of the protocol.
const DOES = { read: 'Read', edit: 'Edit', delete: 'Delete', move: 'Move', search: 'Search', execute: 'Run', think: 'Think', fetch: 'Fetch', switch_mode: 'Mode' };
const partsOf = (d) => [d.content ?? []].flat().filter(Boolean);
export const diffsOf = (d) => partsOf(d).filter((c) => c.type === 'diff' && typeof (c.newText ?? '') === 'string' && typeof (c.oldText ?? '') === 'string');

function took(from, to) {
	const ms = Date.parse(to) - Date.parse(from);
	return ms >= 1000 ? span(ms / 1000) : '';
}

// One line, which opens.
function ToolCall({ of: e }) {
	const d = e.data ?? {};
	const changes = useMemo(() => diffsOf(d).map((c) => changesOf(c.oldText ?? '', c.newText ?? '')), [e]);
	return (
		<details class="tool">
			<summary><span class="does">{DOES[d.kind] ?? 'Tool'}</span> <Text of={d.title ?? d.name ?? 'A tool'} />
				{changes.length > 0 && <Counts of={changes} />}
				{d.status !== 'completed' && <Chip kind={STATUS[d.status]}><Text of={d.status ?? 'called'} /></Chip>}
				{e.ended && <small class="muted">{took(e.timestamp, e.ended)}</small>}</summary>
			{(d.rawInput ?? d.raw_input) !== undefined && <><h4>Arguments</h4><Tree of={d.rawInput ?? d.raw_input} /></>}
			{partsOf(d).map((c) => diffsOf({ content: c }).length
				? <><h4><Text of={c.path} /></h4><Diff old={c.oldText ?? ''} now={c.newText ?? ''} /></>
				: <pre class="log" tabIndex={0}><Text of={c.content?.text ?? JSON.stringify(c, null, 2)} block /></pre>)}
			{(d.rawOutput ?? d.raw_output) !== undefined && <><h4>Result</h4><Tree of={d.rawOutput ?? d.raw_output} /></>}
		</details>
	);
}

// Several that only looked at something are one line.
function Looks({ of: e }) {
	return (
		<details class="tool">
			<summary><span class="does">Looked</span> at {e.rows.length} places</summary>
			{e.rows.map((row) => <Guard key={row.seq}><ToolCall of={row} /></Guard>)}
		</details>
	);
}

function Copy({ text }) {
	const [done, setDone] = useState(false);
	const copy = () => navigator.clipboard.writeText(text).then(() => setDone(true), (problem) => toast(problem.message, 'danger'));
	return navigator.clipboard && <button class="quiet" onClick={copy}>{done ? 'Copied' : 'Copy'}</button>;
}

const ENDS = { end_turn: '', done: '', cancelled: 'stopped', max_tokens: 'it has reached its limit of tokens', max_turn_requests: 'it has reached its limit of requests',
	refusal: 'the agent refused to go on', error: 'failed', interrupted: 'interrupted' };

// The end of a turn: a line, with a word where it did not end as it should.
function End({ of: e }) {
	const reason = e.data?.stop_reason ?? 'done';
	const words = ENDS[reason] ?? <Text of={reason} />;
	return <p class="end"><span class="hidden">The turn has ended. </span>{words} {e.began && took(e.began, e.timestamp)}</p>;
}

const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']; // by the hub's look at their bytes

// What a file is, once somebody wants to see it. Only raster images are drawn.
function File({ session, of: f }) {
	const [state, setState] = useState({});
	const open = (event) => {
		if (event.currentTarget.open && !state.blob)
			get(path(session, `/files/${encodeURIComponent(f.file_id)}`)).then((one) => {
				const blob = new Blob([bytesOf(one.content)], { type: IMAGES.includes(one.type) ? one.type : 'application/octet-stream' });
				setState({ blob, url: IMAGES.includes(one.type) && URL.createObjectURL(blob) });
			}, (problem) => setState({ problem }));
	};
	useEffect(() => () => state.url && URL.revokeObjectURL(state.url), [state.url]);
	return (
		<details class="attached" onToggle={open}>
			<summary><Text of={f.name} /> <small class="muted">{bytes(f.size)}</small></summary>
			{state.problem && <Failure of={state.problem} />}
			{state.url && <img src={state.url} alt={plain(f.name)} />}
			{state.blob && <button onClick={() => save(f.name, state.blob)}>Save</button>}
		</details>
	);
}

// What each type of event shows; others show as they are.
const SHOW = {
	user_prompt: (d, session) => <div class="mine"><Text of={said(d)} block prose />
		{[d.files ?? []].flat().filter(Boolean).map((f) => <File key={f.file_id} session={session} of={f} />)}
		<span class="does-with"><Copy text={said(d)} /><button class="quiet" onClick={() => (again.value = { session, text: said(d) })}>Edit and send again</button></span></div>,
	agent_message: (d) => <><Markdown of={said(d)} /><span class="does-with"><Copy text={said(d)} /></span></>,
	agent_thought: (d) => <details class="thought"><summary>Thought</summary><Markdown of={said(d)} /></details>,
	tool_call: (d, session, e) => <ToolCall of={e} />,
	tool_call_update: (d, session, e) => <ToolCall of={e} />,
	looks: (d, session, e) => <Looks of={e} />,
	error: (d) => <Failure of={{ code: d.code ?? 'error', message: d.message ?? 'the agent failed', remediation: d.remediation }} role={null} />,
	option: (d) => <p class="muted"><Text of={d.id} /> = <Text of={d.value} />{d.outcome === 'refused' && <>: refused (<Text of={d.message} />)</>}{d.unattended && ': its agent asks nobody'}</p>,
	network: (d) => <p class="muted">Not reached: <Text of={d.message} /></p>,
	dropped: (d) => <p class="muted">A message of the agent was dropped: <Text of={d.message} /></p>,
	agent_stderr: (d) => <details class="tool"><summary>The last words of its program</summary><pre class="log" tabIndex={0}><Text of={d.text} block /></pre></details>,
	stop: (d, session, e) => <End of={e} />,
	session_start: () => <p class="end"><span class="hidden">The conversation begins.</span></p>,
	session_end: () => <p class="muted">The conversation has ended.</p>,
	file_read: (d) => <p class="muted">Read <code><Text of={d.path} /></code></p>,
	file_write: (d) => <p class="muted">Wrote <code><Text of={d.path} /></code></p>,
	ui_prompt: (d) => <p class="muted">Asked: <Text of={d.question ?? d.title ?? ''} prose /></p>,
	ui_prompt_answer: (d) => <p class="muted">Answer: <Text of={d.label ?? d.free_text ?? d.outcome ?? ''} prose />{d.by && <> by <Text of={d.by} /></>}</p>,
	permission: (d) => <p class="muted">Permission for <Text of={d.title ?? 'a tool'} />{d.truncated && '…'}: <Text of={d.outcome ?? d.selected_option ?? 'asked'} />{d.message && <> (<Text of={d.message} />)</>}</p>,
};

function Event({ of, session }) {
	const show = SHOW[of.type];
	return useMemo(() => (
		<article class={'event ' + (of.type === 'user_prompt' ? 'from-me' : '')} id={`seq-${of.seq}`} aria-label={of.type}
			title={of.timestamp && clock(Date.parse(of.timestamp))}>
			{show ? show(of.data ?? {}, session, of) : <details><summary class="muted"><Text of={of.type} /></summary><Tree of={of.data ?? {}} /></details>}
		</article>
	), [of]);
}

// Rows that are laid out together; those that are the same are passed over.
function Section({ of: rows, session }) {
	return useMemo(() => <div class="part">{rows.map((e) => <Guard key={e.seq}><Event of={e} session={session} /></Guard>)}</div>, rows);
}

export function Transcript({ id, events: s }) {
	const ref = useRef();
	const follows = useRef(true);
	const seen = useRef(0);
	const place = useRef(null); // of the row that must not move when older ones come
	const rows = fold(s.events);
	const last = s.events.at(-1)?.seq ?? 0;
	// Before the browser says where the new rows have left it, which would pass for a person's scrolling.
	useLayoutEffect(() => {
		// An effect may be that of a drawing before the older ones came.
		if (place.current && `seq-${rows[0]?.seq}` !== place.current.id) {
			const now = document.getElementById(place.current.id);
			if (now)
				ref.current.scrollTop += now.getBoundingClientRect().top - place.current.top;
			place.current = null;
		}
		if (!follows.current)
			return;
		ref.current.scrollTop = ref.current.scrollHeight;
		seen.current = last;
	});
	const onScroll = () => {
		const e = ref.current;
		follows.current = !s.cut && e.scrollHeight - e.scrollTop - e.clientHeight < NEAR;
	};
	const end = async () => {
		follows.current = true;
		ref.current.scrollTop = ref.current.scrollHeight;
		if (!s.cut)
			return;
		await s.newest();
		follows.current = true; // the scrolling above is heard as if a person had scrolled
	};
	const older = async () => {
		follows.current = false;
		await s.older();
		const first = ref.current.querySelector('.event');
		place.current = first && { id: first.id, top: first.getBoundingClientRect().top };
	};
	const sections = new Map();
	for (const row of rows) {
		const at = Math.floor(row.seq / SECTION);
		sections.get(at)?.push(row) ?? sections.set(at, [row]);
	}
	const fresh = rows.filter((r) => r.seq > seen.current).length;
	return (
		<div class="transcript" role="feed" aria-label="Transcript" tabIndex={0} ref={ref} onScroll={onScroll}>
			{s.more && <Do run={older}>Older</Do>}
			{[...sections].map(([at, part]) => <Section key={at} of={part} session={id} />)}
			{!s.cut && [...s.live].map(([type, text]) => <Guard key={type}><Event of={{ type, seq: 'live', data: { text } }} /></Guard>)}
			{s.cut ? <button class="new" onClick={end}>To the newest</button>
				: !follows.current && fresh > 0 && <button class="new" onClick={end}>{fresh} new</button>}
		</div>
	);
}
