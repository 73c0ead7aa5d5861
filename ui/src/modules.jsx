// MCP servers of others: their states, their tools as agents see them, and what of them has changed
// since a person approved it.
import { signal } from '@preact/signals';
import { diffLines, diffWords } from 'diff';
import { useEffect, useState } from 'preact/hooks';
import { get, post } from './api.js';
import { useResource } from './live.js';
import { filterText, Link, parseFilter, passes } from './router.jsx';
import { Text } from './text.jsx';
import { Ago, Chip, Do, Empty, Failure, Filter, Loaded, Still, stored } from './ui.jsx';

const ALL = '/v1/modules';
const LOOK = { topics: ['modules'], every: 10000 };
const path = (name, more = '') => `${ALL}/${encodeURIComponent(name)}${more}`;

// The state in words: what is approved and reachable is not yet connected.
function stateOf(m) {
	if (m.disabled)
		return ['off', 'muted'];
	if (!m.approved)
		return ['not approved', 'warn'];
	return { idle: ['idle', 'muted'], connecting: ['starting', 'warn'], connected: ['connected', 'ok'],
		error: ['failed', 'danger'], closed: ['off', 'muted'] }[m.state] ?? [m.state, 'warn'];
}

export function Modules() {
	const all = useResource(ALL, LOOK);
	const terms = parseFilter(filterText());
	return (
		<>
			<h1>Modules</h1>
			<Filter label="Filter" hint="state:connected name" />
			<Loaded of={all}>
				{({ modules }) => modules.length ? (
					<ul class="rows">
						{modules.filter((m) => passes(terms, { name: m.module, state: stateOf(m)[0], cause: m.cause })).map((m) => {
							const [word, kind] = stateOf(m);
							return (
								<li class="row" key={m.module}>
									<Link to={`/m/${encodeURIComponent(m.module)}`}><strong><Text of={m.module} /></strong></Link> <Chip kind={kind}>{word}</Chip>
									{!m.sandboxed && m.transport === 'stdio' && <> <Chip kind="danger">not sandboxed</Chip></>}
									<small class="muted"> {m.transport}, {m.tools_count ?? 'unknown'} tools, {m.calls} calls under way</small>
									{m.tools_hidden && <p class="two">Not offered: <Text of={m.tools_hidden} prose /></p>}
									{m.cause && <p class="two"><Text of={m.cause} prose /></p>}
								</li>
							);
						})}
					</ul>
				) : <Empty command="holt mcp import --write">The operator's file names no MCP server. To take over those of another client:</Empty>}
			</Loaded>
		</>
	);
}

// ---- what has changed -------------------------------------------------------------------------

const DIFF_MS = 200;
const SIGN = (part) => (part.added ? 'ins' : part.removed ? 'del' : 'span');

function Diff({ old = '', now = '' }) {
	const parts = (old.includes('\n') || now.includes('\n') ? diffLines : diffWords)(old, now, { timeout: DIFF_MS });
	if (!parts)
		return <div class="both"><p>Too different to compare; both sides:</p><pre><del><Text of={old} block /></del></pre><pre><ins><Text of={now} block /></ins></pre></div>;
	return (
		<pre class="diff" tabIndex={0}>
			{parts.map((p) => {
				const Tag = SIGN(p);
				return <Tag><Text of={p.value} block /></Tag>;
			})}
		</pre>
	);
}

function Change({ of }) {
	const red = of.where.startsWith('/annotations');
	const kind = of.old === undefined ? 'added' : of.now === undefined ? 'removed' : 'changed';
	return (
		<li>
			<Chip kind={red ? 'danger' : 'warn'}>{kind}</Chip> <code><Text of={of.where} /></code>
			<Diff old={of.old} now={of.now} />
		</li>
	);
}

function pretty(schema) {
	return typeof schema === 'string' ? schema : JSON.stringify(schema, null, 2);
}

// accept: lets a tool that is held be called, as it is shown.
function Tool({ of, onOpen, accept }) {
	const held = isHeld(of);
	return (
		<details class={'tool' + (held ? ' held' : '')} onToggle={(e) => e.currentTarget.open && onOpen?.()}>
			<summary><code><Text of={of.name} /></code> <Chip kind={held ? 'danger' : 'ok'}>{of.state}</Chip>{' '}
				<Chip kind={{ allow: 'ok', ask: 'warn', deny: 'danger' }[of.approval]}>calls: {of.approval}</Chip>
				{of.read_only && <> <Chip>only reads</Chip></>}</summary>
			{of.title && <p>Title, claimed: <Text of={of.title} /></p>}
			<p class="said"><Text of={of.description} block /></p>
			{of.warnings?.length > 0 && (
				<ul>{of.warnings.map((w) => <li><Chip kind="danger">may mislead</Chip> <Text of={w.text} prose /> <code><Text of={w.where} /></code>: <q><Text of={w.excerpt} /></q></li>)}</ul>
			)}
			{of.changes?.length > 0 && <><h4>Changed since it was approved</h4><ul class="changes">{of.changes.map((c) => <Change of={c} />)}</ul></>}
			{of.annotations && <><h4>Annotations, claimed</h4><pre><Text of={pretty(of.annotations)} block /></pre></>}
			<h4>Schema of its arguments, as agents see it</h4>
			<pre><Text of={pretty(of.inputSchema)} block /></pre>
			{held && accept && <p><Still run={accept}>Accept this tool as shown</Still></p>}
		</details>
	);
}

const isHeld = (tool) => tool.state !== 'approved';
const opened = (m, tool) => m.digest + tool.name; // a tool as it was when it was opened

// Tools of a module; those that are held can be accepted, each as it is shown where it is open.
function Tools({ of: m, show = () => true, setSeen, approve }) {
	return m.tools.filter(show).map((t) => (
		<Tool key={opened(m, t)} of={t} accept={m.approved && (() => approve({ digest: m.digest, tools: [t.name] }))}
			onOpen={() => setSeen((all) => new Set([...all, opened(m, t)]))} />
	));
}

// What its server says to models, as it is now.
function Instructions({ of: m, as: Tag = 'h2' }) {
	return (
		<>
			<Tag>Its instructions, claimed {m.instructions_approved === false && <Chip kind="danger">changed since they were approved</Chip>}</Tag>
			{m.instructions ? <p class="said"><Text of={m.instructions} block /></p> : <p class="muted">It gives none any more.</p>}
		</>
	);
}

// The tools that must be opened before all are accepted.
export const unseenOf = (m, seen) => m.tools.filter((t) => isHeld(t) && !seen.has(opened(m, t)));
const Unseen = ({ n }) => n > 0 && <span class="warn">Open all held tools first: {n} are not.</span>;

// ---- what waits in the inbox --------------------------------------------------------------------

const LEFT = 'holt-held';

// Modules whose changes this browser's person has denied, by name: as they were then. They stay held
// either way.
const left = signal(stored(LEFT));

function leave(m, modules) {
	left.value = Object.fromEntries([...Object.entries(left.value).filter(([name]) => modules.some((one) => one.module === name)),
		[m.module, m.digest]]);
	localStorage.setItem(LEFT, JSON.stringify(left.value));
}

// Modules with tools that are new, or others than were approved.
export function useHeld() {
	const { data } = useResource(ALL, LOOK);
	return (data?.modules ?? []).filter((m) => m.approved && !m.disabled && m.tools_held > 0 && left.value[m.module] !== m.digest);
}

export function Held({ of }) {
	const all = useResource(ALL, LOOK);
	const one = useResource(path(of.module));
	const [seen, setSeen] = useState(new Set());
	useEffect(() => void one.reload(), [of.digest]);
	const approve = async (body) => {
		await post(path(of.module, '/approve'), body);
		one.reload();
		all.reload();
	};
	return (
		<article class="card" tabIndex={0} data-card={of.module} aria-label={`changed tools of ${of.module}`}>
			<header><h3><Link to={`/m/${encodeURIComponent(of.module)}`}><Text of={of.module} /></Link>: {of.tools_held} of its tools are new, or others than were approved</h3></header>
			<p class="muted">No agent sees them or can call them before they are accepted.</p>
			<Loaded of={one}>
				{(m) => {
					const unseen = unseenOf(m, seen).length;
					const told = m.instructions_approved !== false;
					// Without names the instructions are approved, too.
					const shown = { digest: m.digest, ...told && { tools: m.tools.filter(isHeld).map((t) => t.name) } };
					return (
						<>
							{!told && <Instructions of={m} as="h4" />}
							<Tools of={m} show={isHeld} setSeen={setSeen} approve={approve} />
							<Unseen n={unseen} />
							<div class="answers">
								<Still class="deny" run={async () => leave(m, all.data?.modules ?? [])}>Deny: leave them held</Still>
								{m.update ? <span class="warn">Its page shows a package to approve first.</span>
									: <Still class="allow" disabled={unseen > 0} run={() => approve(shown)}>Accept all as shown</Still>}
							</div>
						</>
					);
				}}
			</Loaded>
		</article>
	);
}

// ---- one ----------------------------------------------------------------------------------------

const list = (title, values) => values?.length > 0 && <><dt>{title}</dt><dd><ul>{values.map((v) => <li><code><Text of={v} /></code></li>)}</ul></dd></>;

// What its publisher and its registry say of a package; nothing of it has run before it is approved.
function Package({ of, title }) {
	if (!of)
		return null;
	const said = [['author', of.author], ['licence', of.license], ['repository', of.repository]].filter(([, text]) => text);
	return (
		<>
			<dt>{title}</dt>
			<dd><code><Text of={`${of.kind} ${of.name}@${of.version}`} /></code>, {(of.bytes / 1e6).toFixed(1)} MB, with {of.dependencies} others
				<ul>{said.map(([what, text]) => <li>{what}, claimed: <Text of={text} /></li>)}</ul></dd>
			{list('Maintainers, as its registry says', of.maintainers)}
			{list(of.scripts_run ? 'Install scripts that run' : 'Install scripts that have not run', of.scripts)}
			<dt>Lock</dt><dd><code><Text of={of.lock} /></code></dd>
			{list('Changes', of.changes)}
		</>
	);
}

export function Module({ name }) {
	const one = useResource(path(name), LOOK);
	const [seen, setSeen] = useState(new Set()); // tools, each as it was then
	const [logs, setLogs] = useState(null);
	const act = (what, body) => async () => (await post(path(name, '/' + what), body), one.reload());
	return (
		<>
			<h1><Text of={name} /></h1>
			<Loaded of={one}>
				{(m) => {
					const [word, kind] = stateOf(m);
					const held = m.tools.filter(isHeld).length;
					const told = m.instructions_approved !== false;
					const unseen = unseenOf(m, seen).length;
					return (
						<>
							<p><Chip kind={kind}>{word}</Chip>{held > 0 && <> <Chip kind="danger">{held} held</Chip></>}</p>
							{m.cause && <Failure of={{ code: 'last failure', message: m.cause }} />}
							<div class="bar-of-buttons">
								{m.digest && (!m.approved || held > 0 || !told || m.update) && (
									<Still class="main" disabled={unseen > 0} run={act('approve', { digest: m.digest })}>
										{m.approved && !m.update ? 'Accept all as shown' : 'Approve as shown'}</Still>
								)}
								{m.wanted && <Do run={act('update')}>Fetch its package</Do>}
								<Unseen n={unseen} />
								<Do run={act('test')}>Connect and list tools</Do>
								{m.disabled ? <Do run={act('enable')}>Enable</Do> : <Do run={act('disable')}>Disable</Do>}
								{m.approved && <Do class="danger" run={act('revoke')}>Revoke the approval</Do>}
								<Do run={async () => setLogs((await get(path(name, '/logs'))).text)}>Logs</Do>
							</div>
							{logs !== null && <pre class="log" tabIndex={0} aria-label="Logs"><Text of={logs || 'It has said nothing.'} block /></pre>}
							<dl>
								{m.command && <><dt>Program</dt><dd><ol class="argv"><li><code><Text of={m.command} /></code></li>{m.args?.map((a) => <li><code><Text of={a} /></code></li>)}</ol></dd></>}
								{m.url && <><dt>Address</dt><dd><code><Text of={m.url} /></code></dd></>}
								{m.wanted && !m.package && !m.update && <><dt>Package</dt><dd><Text of={m.wanted} />, not fetched yet</dd></>}
								<Package of={m.package} title="Package" />
								<Package of={m.update} title="Package to approve" />
								{list('Variables', m.env)}
								{list('Headers', m.headers)}
								{list('May read', m.read)}
								{list('May write', m.write)}
								{list('May reach', m.network)}
								<dt>Isolation</dt><dd>{m.sandboxed ? 'in a sandbox of its own' : m.url ? 'runs elsewhere' : 'NOT SANDBOXED: it has all rights of the hub'}</dd>
								{m.approved_at && <><dt>Approved</dt><dd><Ago at={m.approved_at} /> by <Text of={m.approved_by} /></dd></>}
								{m.digest && <><dt>Digest</dt><dd><code>{m.digest}</code></dd></>}
							</dl>
							{(m.instructions || !told) && <Instructions of={m} />}
							<h2>Tools</h2>
							{m.tools.length ? <Tools of={m} setSeen={setSeen} approve={(body) => act('approve', body)()} />
								: <p class="muted">None are known. They are listed once it is connected.</p>}
						</>
					);
				}}
			</Loaded>
		</>
	);
}
