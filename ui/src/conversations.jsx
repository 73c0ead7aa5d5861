// Conversations with agents: the list, and the dialog that begins one.
import { useMemo, useState } from 'preact/hooks';
import { post } from './api.js';
import { useResource } from './live.js';
import { filterText, go, Link, parseFilter, passes } from './router.jsx';
import { plain, Text } from './text.jsx';
import { Ago, Chip, Dialog, Empty, Field, Filter, Form, Loaded, stored } from './ui.jsx';

const ALL = '/api/sessions';
// News that change what is shown of all, or of one: pieces of a text never do.
const OF_ALL = { topics: ['conversation'], wants: (news) => news.data?.kind !== 'live' };
export const ofOne = (id) => ({ topics: ['conversation'], wants: (news) => news.id === id && !['live', 'event'].includes(news.data?.kind) });
export const path = (id, more = '') => `${ALL}/${encodeURIComponent(id)}${more}`;

// The words for each state, where its rows stand in the list.
const STATES = {
	requires_action: ['needs you', 'warn', 'Needs you'],
	running: ['working', 'ok', 'Working'],
	stalled: ['stalled', 'danger', 'Stalled'],
	needs_login: ['needs a log-in', 'warn', 'Needs you'],
	failed: ['failed', 'danger', 'Needs you'],
	idle: ['idle', 'muted', 'Other'],
	no_agent: ['no agent', 'muted', 'Other'],
};
const GROUPS = ['Needs you', 'Working', 'Stalled', 'Other'];

export const State = ({ of }) => <Chip kind={STATES[of]?.[1]}>{STATES[of]?.[0] ?? of}</Chip>;
export const Title = ({ of }) => of.title ? <Text of={of.title} prose /> : <span>Without a title</span>;

const LAST = 'holt-last'; // agent and workspace of the conversation that was begun last

// A choice that begins with what was chosen last, else with the first that there is.
function Choice({ label, name, all, none }) {
	const last = stored(LAST)[name];
	const chosen = all.some((one) => one.name === last) ? last : all[0]?.name;
	return (
		<label class="field"><span>{label}</span>
			<select name={name}>{all.map((one) => <option key={one.name} value={one.name} selected={one.name === chosen}>{plain(one.name)}</option>)}
				<option value="">{none}</option></select></label>
	);
}

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
		localStorage.setItem(LAST, JSON.stringify({ acp_server: body.acp_server, workspace: body.workspace }));
		onClose();
		go(`/c/${encodeURIComponent(made.session_id)}`);
	};
	const known = config.data && places.data;
	return (
		<Dialog title="New conversation" onClose={onClose}>
			<Form button="Start" onSend={create} onCancel={onClose}>
				<label class="field"><span>Prompt</span><textarea name="initial_prompt" rows={5} autofocus /></label>
				{known && <Choice label="Agent" name="acp_server" all={config.data.acp_servers ?? []} none="none: nobody answers" />}
				{known && <Choice label="Folder" name="workspace" all={places.data.workspaces ?? []} none="none" />}
				<Field label="Title (optional)" name="title" maxLength={200} />
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
