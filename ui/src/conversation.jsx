// One conversation: its transcript, what it asks, its queue, and what its agent may do.
import { useMemo, useState } from 'preact/hooks';
import { patch, post, remove } from './api.js';
import { Composer } from './composer.jsx';
import { ofOne, path, State, Title } from './conversations.jsx';
import { changesOf, Counts } from './diff.jsx';
import { useResource } from './live.js';
import { Questions } from './questions.jsx';
import { go } from './router.jsx';
import { Text } from './text.jsx';
import { diffsOf, STATUS, Transcript, useEvents } from './transcript.jsx';
import { Chip, Dialog, Do, Failure, Field, Form, Guard, Loaded, many, Sure, toast } from './ui.jsx';

// The files that its agent has changed, as far as its events are here.
function Changed({ of: events }) {
	const files = useMemo(() => {
		const all = new Map();
		for (const e of events) {
			if (!e.type.startsWith('tool_call'))
				continue;
			// the last state of a call has its whole content
			for (const c of diffsOf(e.data ?? {}))
				all.set(c.path, new Map(all.get(c.path)).set(e.data.toolCallId ?? e.seq, changesOf(c.oldText ?? '', c.newText ?? '')));
		}
		return [...all];
	}, [events, events.length]);
	return files.length > 0 && (
		<details open><summary>{many(files.length, 'changed file')}</summary>
			<ul class="changes">{files.map(([name, calls]) => <li key={name}><code><Text of={name} /></code> <Counts of={[...calls.values()]} /></li>)}</ul>
		</details>
	);
}

const STEPS = { completed: 'done', in_progress: 'now', pending: 'next' };

function Plan({ of }) {
	const entries = [of?.data?.entries ?? []].flat().filter(Boolean);
	if (!entries.length)
		return null;
	const done = entries.filter((e) => e.status === 'completed').length;
	return (
		<details class="plan" open><summary>Plan: {done} of {entries.length}</summary>
			<ol>{entries.map((e) => <li><Chip kind={STATUS[e.status]}>{STEPS[e.status] ?? <Text of={e.status} />}</Chip> <Text of={e.content} prose /></li>)}</ol>
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

function Rename({ of: c, onClose }) {
	const rename = async (data) => (await patch(path(c.session_id), { title: data.get('title') }), onClose());
	return (
		<Dialog title="Rename" onClose={onClose}>
			<Form button="Rename" onSend={rename} onCancel={onClose}><Field label="Title" name="title" maxLength={200} defaultValue={c.title} autofocus /></Form>
		</Dialog>
	);
}

function Head({ of: c, aside, onAside, reload }) {
	const [renaming, setRenaming] = useState(false);
	return (
		<header>
			<h1 title={c.working_dir}><Title of={c} /></h1>
			<span role="status"><State of={c.state} /></span>
			<small class="muted"><Text of={c.acp_server ?? ''} /></small>
			<button class="narrow" aria-expanded={aside} onClick={onAside}>Details</button>
			<button popoverTarget="acts">More</button>
			<div id="acts" popover="auto" class="menu">
				<button onClick={() => setRenaming(true)}>Rename</button>
				<Do run={async () => (await patch(path(c.session_id), { archived: !c.archived }), reload())}>{c.archived ? 'Take out of the archive' : 'Archive'}</Do>
				<Sure ask={<>Delete <Title of={c} />? It can be taken back from the trash for a while.</>} class="danger"
					run={async () => (await remove(path(c.session_id)), go('/c'))}>Delete</Sure>
			</div>
			{renaming && <Rename of={c} onClose={() => setRenaming(false)} />}
		</header>
	);
}

export function Conversation({ id }) {
	const one = useResource(path(id), ofOne(id));
	const events = useEvents(id);
	const [aside, setAside] = useState(false);
	return (
		<Loaded of={one}>
			{(c) => (
				<div class={'talk' + (aside ? ' with-aside' : '')}>
					<Head of={c} aside={aside} onAside={() => setAside(!aside)} reload={one.reload} />
					<Transcript id={id} events={events} />
					<aside aria-label="Details">
						<Guard><Plan of={events.events.findLast((e) => e.type === 'plan')} /></Guard>
						<Guard><Changed of={events.events} /></Guard>
						<Flags id={id} />
						<Guard><Commands of={c.commands} /></Guard>
						{c.working_dir && <p class="muted"><small>In <code><Text of={c.working_dir} /></code></small></p>}
					</aside>
					<footer>
						{events.problem && <Failure of={events.problem} />}
						{c.cause && <Failure of={{ code: c.state, message: c.cause, remediation: c.remediation }} role={null} />}
						<Questions of={id} />
						<Queue id={id} length={c.queue_length} />
						<Composer of={c} />
					</footer>
				</div>
			)}
		</Loaded>
	);
}
