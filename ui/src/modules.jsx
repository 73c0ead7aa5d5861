// MCP servers of others: their states, their tools as agents see them, and what of them has changed
// since a person approved it.
import { diffLines, diffWords } from 'diff';
import { useState } from 'preact/hooks';
import { get, post } from './api.js';
import { useResource } from './live.js';
import { filterText, Link, parseFilter, passes } from './router.jsx';
import { Text } from './text.jsx';
import { Ago, Chip, Do, Empty, Failure, Filter, Loaded } from './ui.jsx';

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
		<pre class="diff">
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

function Tool({ of, onOpen }) {
	const held = of.state !== 'approved';
	return (
		<details class={'tool' + (held ? ' held' : '')} onToggle={(e) => e.currentTarget.open && onOpen()}>
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
		</details>
	);
}

const list = (title, values) => values?.length > 0 && <><dt>{title}</dt><dd><ul>{values.map((v) => <li><code><Text of={v} /></code></li>)}</ul></dd></>;

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
					const held = m.tools.filter((t) => t.state !== 'approved');
					const shown = (t) => m.digest + t.name;
					const unseen = held.filter((t) => !seen.has(shown(t)));
					return (
						<>
							<p><Chip kind={kind}>{word}</Chip>{held.length > 0 && <> <Chip kind="danger">{held.length} held</Chip></>}</p>
							{m.cause && <Failure of={{ code: 'last failure', message: m.cause }} />}
							<div class="bar-of-buttons">
								{m.digest && (!m.approved || held.length > 0) && (
									<Do class="main" disabled={unseen.length > 0} run={act('approve', { digest: m.digest })}>
										{m.approved ? `Accept ${held.length} tools as shown` : 'Approve as shown'}</Do>
								)}
								{unseen.length > 0 && <span class="warn">Open all held tools first: {unseen.length} are not.</span>}
								<Do run={act('test')}>Connect and list tools</Do>
								{m.disabled ? <Do run={act('enable')}>Enable</Do> : <Do run={act('disable')}>Disable</Do>}
								{m.approved && <Do class="danger" run={act('revoke')}>Revoke the approval</Do>}
								<Do run={async () => setLogs((await get(path(name, '/logs'))).text)}>Logs</Do>
							</div>
							{logs !== null && <pre class="log" tabIndex={0} aria-label="Logs"><Text of={logs || 'It has said nothing.'} block /></pre>}
							<dl>
								{m.command && <><dt>Program</dt><dd><ol class="argv"><li><code><Text of={m.command} /></code></li>{m.args?.map((a) => <li><code><Text of={a} /></code></li>)}</ol></dd></>}
								{m.url && <><dt>Address</dt><dd><code><Text of={m.url} /></code></dd></>}
								{list('Variables', m.env)}
								{list('Headers', m.headers)}
								{list('May read', m.read)}
								{list('May write', m.write)}
								{list('May reach', m.network)}
								<dt>Isolation</dt><dd>{m.sandboxed ? 'in a sandbox of its own' : m.url ? 'runs elsewhere' : 'NOT SANDBOXED: it has all rights of the hub'}</dd>
								{m.approved_at && <><dt>Approved</dt><dd><Ago at={m.approved_at} /> by <Text of={m.approved_by} /></dd></>}
								{m.digest && <><dt>Digest</dt><dd><code>{m.digest}</code></dd></>}
							</dl>
							{m.instructions && <><h2>Its instructions, claimed</h2><p class="said"><Text of={m.instructions} block /></p></>}
							<h2>Tools</h2>
							{m.tools.length ? m.tools.map((t) => <Tool key={shown(t)} of={t} onOpen={() => setSeen((all) => new Set([...all, shown(t)]))} />)
								: <p class="muted">None are known. They are listed once it is connected.</p>}
						</>
					);
				}}
			</Loaded>
		</>
	);
}
