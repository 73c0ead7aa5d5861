// Conversations with agents: the list, and one with its transcript, what it asks, its queue and flags.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { base64, bytesOf, get, patch, post, remove, save } from './api.js';
import { eventsOf, fold } from './events.js';
import { listen, useResource } from './live.js';
import { Markdown } from './markdown.jsx';
import { Questions } from './questions.jsx';
import { filterText, go, Link, parseFilter, passes } from './router.jsx';
import { plain, Text } from './text.jsx';
import { Ago, bytes, Chip, clock, Dialog, Do, Empty, Failure, Field, Filter, Form, Guard, Loaded, Sure, toast, Tree } from './ui.jsx';

const ALL = '/api/sessions';
// News that change what is shown of all, or of one: pieces of a text never do.
const OF_ALL = { topics: ['conversation'], wants: (news) => news.data?.kind !== 'live' };
const ofOne = (id) => ({ topics: ['conversation'], wants: (news) => news.id === id && !['live', 'event'].includes(news.data?.kind) });
const path = (id, more = '') => `${ALL}/${encodeURIComponent(id)}${more}`;

const STATES = {
	requires_action: ['needs you', 'warn', 'Needs you'],
	running: ['running', 'ok', 'Running'],
	stalled: ['stalled', 'danger', 'Stalled'],
	needs_login: ['needs a log-in', 'warn', 'Needs you'],
	failed: ['failed', 'danger', 'Needs you'],
	idle: ['idle', 'muted', 'Other'],
	no_agent: ['no agent', 'muted', 'Other'],
};
const GROUPS = ['Needs you', 'Running', 'Stalled', 'Other'];

const State = ({ of }) => <Chip kind={STATES[of]?.[1]}>{STATES[of]?.[0] ?? of}</Chip>;
const Title = ({ of }) => of.title ? <Text of={of.title} prose /> : <span>Without a title</span>;

function Create({ onClose }) {
	const config = useResource('/api/config');
	const places = useResource('/api/workspaces');
	const create = async (data) => {
		const body = {};
		for (const member of ['title', 'acp_server', 'workspace', 'initial_prompt']) {
			if (data.get(member))
				body[member] = data.get(member);
		}
		const made = await post(ALL, body);
		onClose();
		go(`/c/${encodeURIComponent(made.session_id)}`);
	};
	const choice = (label, name, all) => (
		<label class="field"><span>{label}</span>
			<select name={name}><option value="">none</option>
				{all.map((one) => <option value={one.name}>{plain(one.name)}</option>)}</select></label>
	);
	return (
		<Dialog title="New conversation" onClose={onClose}>
			<Form button="Start" onSend={create} onCancel={onClose}>
				<Field label="Title" name="title" maxLength={200} />
				{choice('Agent', 'acp_server', config.data?.acp_servers ?? [])}
				{choice('Workspace', 'workspace', places.data?.workspaces ?? [])}
				<label class="field"><span>First prompt</span><textarea name="initial_prompt" rows={4} /></label>
			</Form>
		</Dialog>
	);
}

function Row({ of: c }) {
	return useMemo(() => (
		<li class="row">
			<Link to={`/c/${encodeURIComponent(c.session_id)}`}><strong><Title of={c} /></strong></Link> <State of={c.state} />
			{c.archived && <> <Chip>archived</Chip></>}
			<small class="muted"> <Text of={c.acp_server} />{c.updated_at && <> <Ago at={c.updated_at} /></>}
				{c.queue_length > 0 && <>, {c.queue_length} queued</>}{c.cause && <>, <Text of={c.cause} /></>}</small>
		</li>
	), [c.title, c.state, c.archived, c.acp_server, c.updated_at, c.queue_length, c.cause]);
}

export function Conversations() {
	const all = useResource(ALL + '?limit=200', OF_ALL);
	const [making, setMaking] = useState(false);
	const terms = parseFilter(filterText());
	return (
		<>
			<h1>Conversations</h1>
			<div class="bar-of-buttons">
				<Filter label="Filter" hint="state:running agent:claude" />
				<button class="main" onClick={() => setMaking(true)}>New conversation</button>
			</div>
			{making && <Create onClose={() => setMaking(false)} />}
			<Loaded of={all}>
				{({ conversations, next_cursor }) => {
					const shown = conversations.filter((c) => passes(terms, { title: c.title, state: c.state,
						agent: c.acp_server, id: c.session_id, workspace: c.workspace, archived: c.archived }));
					if (!conversations.length)
						return <Empty command="holt conversations new">No conversation is there. Start one here, or by</Empty>;
					return (
						<>
							{GROUPS.map((group) => {
								const rows = shown.filter((c) => (STATES[c.state]?.[2] ?? 'Other') === group);
								return rows.length > 0 && (
									<section key={group}><h2>{group}</h2><ul class="rows">
										{rows.map((c) => <Row key={c.session_id} of={c} />)}
									</ul></section>
								);
							})}
							{next_cursor && <p class="muted">Older ones are not shown; <code>holt conversations ls</code> lists all.</p>}
						</>
					);
				}}
			</Loaded>
		</>
	);
}

// ---- the transcript -------------------------------------------------------------------------------

const SECTION = 100; // events that are laid out together, once they come into sight
const NEAR = 80; // pixels from the end within which it is followed
const DRAW_MS = 100;

// The window of its log, drawn anew ten times a second at most.
function useEvents(id) {
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

const STATUS = { pending: 'warn', in_progress: 'ok', running: 'ok', completed: 'muted', failed: 'danger', cancelled: 'muted' };
const said = (d) => d.text ?? d.message ?? d.prompt ?? '';

function ToolCall({ of: d }) {
	return (
		<details class="tool">
			<summary><Text of={d.title ?? d.name ?? 'A tool'} /> <Chip kind={STATUS[d.status]}><Text of={d.status ?? 'called'} /></Chip>
				{d.kind && <small class="muted"> <Text of={d.kind} /></small>}</summary>
			{(d.rawInput ?? d.raw_input) !== undefined && <><h4>Arguments</h4><Tree of={d.rawInput ?? d.raw_input} /></>}
			{[d.content ?? []].flat().filter(Boolean).map((c) => c.type === 'diff'
				? <><h4><Text of={c.path} /></h4><pre class="diff" tabIndex={0}>{c.oldText && <del><Text of={c.oldText} block /></del>}<ins><Text of={c.newText ?? ''} block /></ins></pre></>
				: <pre class="log" tabIndex={0}><Text of={c.content?.text ?? JSON.stringify(c, null, 2)} block /></pre>)}
			{(d.rawOutput ?? d.raw_output) !== undefined && <><h4>Result</h4><Tree of={d.rawOutput ?? d.raw_output} /></>}
		</details>
	);
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
		{[d.files ?? []].flat().filter(Boolean).map((f) => <File key={f.file_id} session={session} of={f} />)}</div>,
	agent_message: (d) => <Markdown of={said(d)} />,
	agent_thought: (d) => <details class="thought"><summary>Thought</summary><Markdown of={said(d)} /></details>,
	tool_call: (d) => <ToolCall of={d} />,
	tool_call_update: (d) => <ToolCall of={d} />,
	error: (d) => <Failure of={{ code: d.code ?? 'error', message: d.message ?? 'the agent failed', remediation: d.remediation }} role={null} />,
	option: (d) => <p class="muted"><Text of={d.id} /> = <Text of={d.value} />{d.outcome === 'refused' && <>: refused (<Text of={d.message} />)</>}{d.unattended && ': its agent asks nobody'}</p>,
	network: (d) => <p class="muted">Not reached: <Text of={d.message} /></p>,
	dropped: (d) => <p class="muted">A message of the agent was dropped: <Text of={d.message} /></p>,
	agent_stderr: (d) => <details class="tool"><summary>The last words of its program</summary><pre class="log" tabIndex={0}><Text of={d.text} block /></pre></details>,
	stop: (d) => <p class="muted">The turn has ended: <Text of={d.stop_reason ?? 'done'} />.</p>,
	session_start: () => <p class="muted">The conversation begins.</p>,
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
			{show ? show(of.data ?? {}, session) : <details><summary class="muted"><Text of={of.type} /></summary><Tree of={of.data ?? {}} /></details>}
		</article>
	), [of]);
}

// Rows that are laid out together; those that are the same are passed over.
function Section({ of: rows, session }) {
	return useMemo(() => <div class="part">{rows.map((e) => <Guard key={e.seq}><Event of={e} session={session} /></Guard>)}</div>, rows);
}

function Transcript({ id, events: s }) {
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

// ---- one ------------------------------------------------------------------------------------------

function Plan({ of }) {
	const entries = [of?.data?.entries ?? []].flat().filter(Boolean);
	if (!entries.length)
		return null;
	const done = entries.filter((e) => e.status === 'completed').length;
	return (
		<details class="plan"><summary>Plan: {done} of {entries.length}</summary>
			<ol>{entries.map((e) => <li><Chip kind={STATUS[e.status]}><Text of={e.status} /></Chip> <Text of={e.content} prose /></li>)}</ol>
		</details>
	);
}

function Queue({ id, length }) {
	const queue = useResource(path(id, '/queue'), ofOne(id));
	const items = queue.data?.messages ?? [];
	if (!items.length)
		return null;
	const item = (m, more = '') => path(id, `/queue/${encodeURIComponent(m.id)}${more}`);
	return (
		<details class="queue" open={length < 3}><summary>{items.length} queued</summary>
			<ol>
				{items.map((m, i) => (
					<li key={m.id}>
						<Chip kind={m.state === 'failed' ? 'danger' : 'muted'}>{m.state}</Chip> <Text of={m.message} prose />{' '}
						{i > 0 && <Do run={async () => (await post(item(m, '/move'), { to: i - 1 }), queue.reload())}>Up</Do>}
						{m.state === 'failed' && <Do run={async () => (await post(item(m, '/retry')), queue.reload())}>Send again</Do>}
						<Do run={async () => (await remove(item(m)), queue.reload())}>Remove</Do>
					</li>
				))}
			</ol>
		</details>
	);
}

// The draft is kept for when the page comes again. A prompt has a key of its own, so that one whose
// answer was lost is not queued twice.
function Composer({ id, off }) {
	const kept = `holt-draft-${id}`;
	const [text, setText] = useState(localStorage.getItem(kept) ?? '');
	const [problem, setProblem] = useState(null);
	const [busy, setBusy] = useState(false);
	const [files, setFiles] = useState([]);
	const key = useRef(null);
	const write = (value) => {
		setText(value);
		if (value)
			localStorage.setItem(kept, value);
		else
			localStorage.removeItem(kept);
		key.current = null;
	};
	const send = async () => {
		if (!text.trim() || busy || off)
			return;
		setBusy(true);
		key.current ??= [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');
		try {
			await post(path(id, '/queue'), { prompt: text, key: key.current, ...(files.length && { files: files.map((f) => f.file_id) }) });
			setProblem(null);
			setFiles([]);
			write('');
		} catch (e) {
			setProblem(e);
		}
		setBusy(false);
	};
	const add = async (event) => {
		const input = event.currentTarget;
		key.current = null;
		for (const file of input.files) {
			try {
				const one = await post(path(id, '/files'), { name: file.name, content: base64(await file.arrayBuffer()) });
				setFiles((all) => [...all, one]);
			} catch (e) {
				toast(e.message, 'danger');
			}
		}
		input.value = '';
	};
	const drop = async (file) => {
		key.current = null;
		setFiles((all) => all.filter((f) => f !== file));
		await remove(path(id, `/files/${encodeURIComponent(file.file_id)}`));
	};
	const keys = (event) => {
		if (!event.ctrlKey && !event.metaKey)
			return;
		if (event.key === 'Enter')
			send();
		if (event.key === '.')
			post(path(id, '/cancel')).catch((e) => toast(e.message, 'danger'));
	};
	return (
		<div class="composer">
			{problem && <Failure of={problem} />}
			<label class="hidden" for="prompt">Prompt</label>
			<textarea id="prompt" rows={3} value={text} disabled={off} readOnly={busy} onInput={(e) => write(e.currentTarget.value)} onKeyDown={keys}
				placeholder={off ? 'It is archived' : 'Ctrl+Enter sends, Ctrl+. stops the turn'} />
			{files.map((f) => <span class="label" key={f.file_id}><Text of={f.name} /> <Do run={() => drop(f)}>Take out</Do></span>)}
			<label class="button">Add a file<input type="file" multiple class="hidden" disabled={off || busy} onChange={add} /></label>
			<button class="main" disabled={!text.trim() || busy || off} onClick={send}>{busy ? 'Sending…' : 'Send'}</button>
		</div>
	);
}

// What its agent lets people choose, such as its mode.
function Options({ of: c, onDone }) {
	const set = (id) => async (e) => {
		await patch(path(c.session_id), { options: { [id]: e.currentTarget.value } }).catch((problem) => toast(problem.message, 'danger'));
		onDone();
	};
	return (
		<>
			{c.options?.map((o) => (
				<label key={o.id}><small class="muted"><Text of={o.name ?? o.id} /> </small>
					<select value={o.value} title={plain(o.description ?? '')} onChange={set(o.id)}>
						{!o.choices.some((one) => one.value === o.value) && <option value={o.value}>{plain(o.value)}</option>}
						{o.choices.map((one) => <option key={one.value} value={one.value}>{plain(one.name ?? one.value)}{one.unattended && ' (asks nobody)'}</option>)}
					</select> </label>
			))}
			{c.warning && <p role="note"><Chip kind="warn">asks nobody</Chip> <Text of={c.warning} /></p>}
		</>
	);
}

function Commands({ of: all }) {
	if (!all?.length)
		return null;
	return (
		<details><summary>Commands of its agent</summary>
			<ul>{all.map((one) => <li key={one.name}><code>/<Text of={one.name} /></code> <small class="muted"><Text of={one.hint ?? ''} /> <Text of={one.description ?? ''} /></small></li>)}</ul>
		</details>
	);
}

function Flags({ id }) {
	const flags = useResource('/api/advanced-flags');
	const set = useResource(path(id, '/settings'), ofOne(id));
	if (!flags.data || !set.data)
		return null;
	return (
		<details><summary>What its agent may do</summary>
			{flags.data.map((f) => (
				<label key={f.name} class="flag"><input type="checkbox" checked={set.data.settings[f.name] ?? f.default}
					onChange={async (e) => {
						await patch(path(id, '/settings'), { settings: { [f.name]: e.currentTarget.checked } })
							.catch((problem) => toast(problem.message, 'danger'));
						set.reload();
					}} /> {f.label} <small class="muted">{f.description}</small></label>
			))}
		</details>
	);
}

export function Conversation({ id }) {
	const one = useResource(path(id), ofOne(id));
	const events = useEvents(id);
	return (
		<Loaded of={one}>
			{(c) => (
				<div class="talk">
					<header>
						<h1><Title of={c} /></h1>
						<p><span role="status"><State of={c.state} /></span> <Text of={c.acp_server} /> <small class="muted"><Text of={c.working_dir} /></small></p>
						<div class="bar-of-buttons">
							{c.is_prompting && <Do class="danger" run={() => post(path(id, '/cancel'))}>Stop the turn</Do>}
							<Do run={async () => (await patch(path(id), { archived: !c.archived }), one.reload())}>{c.archived ? 'Take out of the archive' : 'Archive'}</Do>
							<Sure ask={<>Delete <Title of={c} />? It can be taken back from the trash for a while.</>} class="danger"
								run={async () => (await remove(path(id)), go('/c'))}>Delete</Sure>
						</div>
						<Guard><Options of={c} onDone={one.reload} /></Guard>
						<Flags id={id} />
						<Guard><Commands of={c.commands} /></Guard>
						<Guard><Plan of={events.events.findLast((e) => e.type === 'plan')} /></Guard>
					</header>
					{events.problem && <Failure of={events.problem} />}
					<Transcript id={id} events={events} />
					<footer>
						{c.cause && <Failure of={{ code: c.state, message: c.cause, remediation: c.remediation }} role={null} />}
						{c.state === 'needs_login' && c.logins?.filter((m) => m.kind === 'agent').map((m) => (
							<Do key={m.id} run={async () => (await patch(path(id), { login: m.id }), one.reload())}>Log in: <Text of={m.name ?? m.id} /></Do>))}
						<Questions of={id} />
						<Queue id={id} length={c.queue_length} />
						<Composer id={id} off={c.archived} />
					</footer>
				</div>
			)}
		</Loaded>
	);
}
