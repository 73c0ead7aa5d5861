// Sandboxes: the list, and one with its terminals, files, logs, changes and ports.
import { useEffect, useState } from 'preact/hooks';
import { base64, blob, bytesOf, lines, post, remove, save } from './api.js';
import { now, useResource } from './live.js';
import { filterText, go, Link, parseFilter, passes } from './router.jsx';
import { plain, printed, Text } from './text.jsx';
import { Ago, bytes, Chip, Dialog, Do, Empty, Failure, Field, Filter, Form, Lazy, Loaded, many, span, Sure, toast } from './ui.jsx';

const ALL = '/v1/sandboxes';
const TOPICS = { topics: ['sandboxes'] };
const KINDS = { running: 'ok', paused: 'warn', stopped: 'muted', terminated: 'muted', lost: 'danger' };

const path = (id, more = '') => `/v1/sandboxes/${encodeURIComponent(id)}${more}`;

function Left({ of }) {
	if (!of.deadline_unix)
		return 'no end';
	return `ends in ${span(of.deadline_unix - now.value / 1000)}`;
}

function Bar({ used, most, label, unit = String }) {
	if (used === undefined || !most)
		return <span class="muted">{label}: not known</span>;
	return <span class="bar">{label} {unit(used)} of {unit(most)}
		<meter min={0} max={most} high={0.9 * most} value={used} aria-label={`${label} used`} /></span>;
}

function Use({ of }) {
	return (
		<span class="use">
			<Bar label="memory" used={of.memory_bytes} most={of.memory_limit_bytes} unit={bytes} />
			<Bar label="disk" used={of.disk_bytes} most={of.disk_limit_bytes} unit={bytes} />
			<Bar label="processes" used={of.processes} most={of.processes_limit} />
		</span>
	);
}

function Row({ of, use }) {
	return (
		<li class="row">
			<div><Link to={`/s/${encodeURIComponent(of.id)}`}><strong><Text of={of.id} /></strong></Link>{' '}
				<Chip kind={KINDS[of.state] ?? 'warn'}>{of.state}</Chip></div>
			<small class="muted"><Text of={of.template_id} />, made <Ago at={of.created_at} />, <Left of={of} />
				{of.source && <>, from <Text of={of.source} /></>}
				{Object.entries(of.labels ?? {}).map(([k, v]) => <> <span class="label"><Text of={k} />=<Text of={v} /></span></>)}
			</small>
			{of.cause && <p class="two"><Text of={of.cause} prose /></p>}
			{use && <Use of={use} />}
		</li>
	);
}

function Create({ onClose }) {
	const templates = useResource('/v1/templates');
	const create = async (data) => {
		const body = { template: data.get('template') };
		for (const member of ['id', 'workspace']) {
			if (data.get(member))
				body[member] = data.get(member);
		}
		for (const member of ['memory_mb', 'timeout_seconds']) {
			if (data.get(member))
				body[member] = Number(data.get(member));
		}
		const made = await post(ALL, body);
		onClose();
		go(`/s/${encodeURIComponent(made.id)}`);
	};
	return (
		<Dialog title="New sandbox" onClose={onClose}>
			<Form button="Create" onSend={create} onCancel={onClose}>
				<label class="field"><span>Template</span>
					<select name="template">
						{(templates.data ?? [{ id: 'host' }]).map((t) => <option value={t.id}>{plain(t.id)}</option>)}
					</select>
				</label>
				<Field label="Name (one is made if empty)" name="id" maxLength={64} />
				<Field label="Memory in MiB (1024 if empty)" name="memory_mb" type="number" min={16} />
				<Field label="Seconds to live (no end if empty)" name="timeout_seconds" type="number" min={1} />
				<Field label="Workspace (none if empty)" name="workspace" maxLength={64} />
			</Form>
		</Dialog>
	);
}

export function Sandboxes() {
	const all = useResource(ALL, TOPICS);
	const usage = useResource('/v1/usage', { every: 10000 });
	const [making, setMaking] = useState(false);
	const terms = parseFilter(filterText());
	const used = new Map((usage.data?.sandboxes ?? []).map((u) => [u.sandbox, u]));
	return (
		<>
			<h1>Sandboxes</h1>
			<div class="bar-of-buttons">
				<Filter label="Filter" hint="state:running -template:host" />
				<button class="main" onClick={() => setMaking(true)}>New sandbox</button>
			</div>
			{making && <Create onClose={() => setMaking(false)} />}
			<Loaded of={all}>
				{(list) => {
					const shown = list.filter((s) => passes(terms, {
						id: s.id, state: s.state, template: s.template_id, source: s.source, labels: JSON.stringify(s.labels ?? {}) }));
					if (!list.length)
						return <Empty command="holt up">No sandbox is there. Agents make theirs; you can make one here, or by</Empty>;
					return shown.length ? <ul class="rows">{shown.map((s) => <Row key={s.id} of={s} use={used.get(s.id)} />)}</ul>
						: <p class="muted">None of {list.length} matches.</p>;
				}}
			</Loaded>
		</>
	);
}

// ---- files ------------------------------------------------------------------------------------

const SHOWN_MAX = 256 * 1024;
const PICTURE_MAX = 4 << 20; // the most that one answer has
const PICTURES = { png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp' };
const HERE = '.'; // the directory in which programs of the sandbox begin
const join = (folder, name) => (folder === '/' ? '' : folder) + '/' + name;

// A raster image, drawn by the browser; the hub's bytes are shown as nothing else.
function Picture({ of: data, at, type }) {
	const [url, setUrl] = useState('');
	useEffect(() => {
		const made = URL.createObjectURL(new Blob([bytesOf(data)], { type }));
		setUrl(made);
		return () => URL.revokeObjectURL(made);
	}, [data]);
	return url && <div class="attached"><img src={url} alt={plain(at)} /></div>;
}

function File({ sandbox, at, onClose }) {
	const [file, setFile] = useState({});
	const type = PICTURES[at.split('.').pop().toLowerCase()];
	useEffect(() => {
		post('/v1/files/read', { sandbox, path: at, limit: type ? PICTURE_MAX : SHOWN_MAX, ...(type && { encoding: 'base64' }) })
			.then((data) => setFile({ data }), (problem) => setFile({ problem }));
	}, [at]);
	return (
		<Dialog title={<Text of={at} />} onClose={onClose}>
			{file.problem && <Failure of={file.problem} />}
			{file.data && (type && file.data.eof ? <Picture of={file.data.content} at={at} type={type} />
				: file.data.encoding === 'utf-8' || file.data.encoding === 'utf8' ? <pre class="file"><Text of={file.data.content} block /></pre>
				: <p>It is not text: {bytes(file.data.size)}.</p>)}
			{file.data && !file.data.eof && <p class="warn">The first {bytes(file.data.bytes)} of {bytes(file.data.size)}.</p>}
			<div class="buttons"><button onClick={onClose}>Close</button></div>
		</Dialog>
	);
}

function Files({ id }) {
	const [folder, setFolder] = useState(HERE);
	const [list, setList] = useState({});
	const [open, setOpen] = useState(null);
	const load = () => post('/v1/files/list', { sandbox: id, path: folder })
		.then((data) => setList({ data }), (problem) => setList({ ...list, problem, reload: load }));
	useEffect(() => void load(), [folder]);
	const upload = async (files) => {
		for (const file of files)
			await post('/v1/files/write', { sandbox: id, path: join(folder, file.name), encoding: 'base64',
				content: base64(await file.arrayBuffer()) }).catch((e) => toast(e.message, 'danger'));
		load();
	};
	const drop = (event) => {
		event.preventDefault();
		upload(event.dataTransfer.files);
	};
	const names = folder.split('/').filter((n) => n && n !== HERE);
	const root = folder[0] === '/' ? '/' : HERE;
	return (
		<div onDragOver={(event) => event.preventDefault()} onDrop={drop}>
			<nav aria-label="Folder" class="crumbs">
				<button onClick={() => setFolder('/')} aria-current={folder === '/' ? 'page' : undefined}>/</button>
				<button onClick={() => setFolder(HERE)} aria-current={folder === HERE ? 'page' : undefined}>Working directory</button>
				{names.map((n, i) => <button onClick={() => setFolder(names.slice(0, i + 1).reduce(join, root))}><Text of={n} />/</button>)}
			</nav>
			<div class="bar-of-buttons">
				<label class="button">Upload<input type="file" multiple class="hidden" onChange={(event) => upload(event.currentTarget.files)} /></label>
				<span class="muted">or drop files here</span>
				<Do run={async () => save('files.tar', await blob(path(id, '/archive?path=' + encodeURIComponent(folder))))}>Download this folder</Do>
			</div>
			<Loaded of={list}>
				{({ entries, truncated }) => (
					<>
						<table class="list cards"><thead><tr><th>Name</th><th>Size</th><th>Mode</th><th>Changed</th><th><span class="hidden">Acts</span></th></tr></thead>
							<tbody>
								{entries.map((f) => (
									<tr key={f.name}>
										<td><button class="link" onClick={() => f.is_dir ? setFolder(join(folder, f.name)) : setOpen(join(folder, f.name))}>
											<Text of={f.name} />{f.is_dir && '/'}</button></td>
										<td>{f.is_dir ? f.type : bytes(f.size)}</td>
										<td><code>{f.mode.toString(8)}</code></td>
										<td><Ago at={f.modified_at * 1000} /></td>
										<td class="acts">
											{!f.is_dir && <Do run={async () => save(f.name, await blob(path(id, '/archive?path=' + encodeURIComponent(join(folder, f.name)))))}>tar</Do>}
											{/* what stands in the root is the system's */}
											{folder !== '/' && <Sure ask={<>Delete <Text of={join(folder, f.name)} />?</>} class="danger"
												run={async () => (await post('/v1/files/remove', { sandbox: id, path: join(folder, f.name), recursive: f.is_dir }), load())}>Delete</Sure>}
										</td>
									</tr>
								))}
							</tbody>
						</table>
						{!entries.length && <p class="muted">Nothing is in it.</p>}
						{truncated && <p class="warn">There are more than are shown.</p>}
					</>
				)}
			</Loaded>
			{open && <File sandbox={id} at={open} onClose={() => setOpen(null)} />}
		</div>
	);
}

// ---- logs, changes, ports ---------------------------------------------------------------------

const LOG_MAX = 64 * 1024;
const DRAW_MS = 100;

// The end of a program's output, drawn ten times a second at most.
function Log({ id, exec }) {
	const [text, setText] = useState('');
	useEffect(() => {
		const stop = new AbortController();
		const decoder = new TextDecoder();
		let all = '';
		let timer = 0;
		const draw = () => {
			timer = 0;
			setText(all);
		};
		lines(path(id, `/execs/${encodeURIComponent(exec)}/output?offset=0&follow=true`), (line) => {
			const chunk = line && JSON.parse(line);
			if (!chunk?.data)
				return;
			all += decoder.decode(bytesOf(chunk.data), { stream: true });
			all = all.length > 4 * LOG_MAX ? all.slice(-2 * LOG_MAX) : all;
			timer ||= setTimeout(draw, DRAW_MS);
		}, stop.signal).catch(() => {});
		return () => {
			stop.abort();
			clearTimeout(timer);
		};
	}, [exec]);
	if (!text)
		return <p class="muted">It has printed nothing yet.</p>;
	return (
		<>
			{text.length > LOG_MAX && <p class="muted">The last {bytes(LOG_MAX)}.</p>}
			<pre class="log" tabIndex={0} aria-label="Output"><Text of={printed(text.slice(-LOG_MAX))} block /></pre>
		</>
	);
}

function Logs({ id }) {
	const all = useResource(path(id, '/execs'), { ...TOPICS, every: 5000 });
	const [open, setOpen] = useState(null);
	return (
		<Loaded of={all}>
			{(execs) => execs.length ? (
				<ul class="rows">
					{execs.map((e) => (
						<li class="row" key={e.exec_id}>
							<button class="link" aria-expanded={open === e.exec_id} onClick={() => setOpen(open === e.exec_id ? null : e.exec_id)}>
								<code><Text of={e.command} /></code></button>{' '}
							<Chip kind={e.state === 'running' ? 'ok' : e.exit_code ? 'danger' : 'muted'}>{e.state}{e.exit_code !== undefined && ` ${e.exit_code}`}</Chip>
							<small class="muted"> <Ago at={e.started_at} /></small>
							{e.error && <p class="two"><Text of={e.error} prose /></p>}
							{open === e.exec_id && <Log id={id} exec={e.exec_id} />}
						</li>
					))}
				</ul>
			) : <Empty command={`holt exec ${id} -- COMMAND`}>No program is kept. What runs in the background shows here:</Empty>}
		</Loaded>
	);
}

const SIGNS = { added: 'ok', changed: 'warn', removed: 'danger' };

function Changes({ id }) {
	const diff = useResource(path(id, '/diff?limit=5000'));
	return (
		<>
			<button onClick={diff.reload}>Look again</button>
			<Loaded of={diff}>
				{({ changes, truncated }) => (
					<>
						{changes.length ? <ul class="rows">{changes.map((c) => <li class="row"><Chip kind={SIGNS[c.change]}>{c.change}</Chip> <code><Text of={c.path} /></code></li>)}</ul>
							: <p class="muted">It has changed nothing against its template.</p>}
						{truncated && <p class="warn">There are more than are shown.</p>}
					</>
				)}
			</Loaded>
		</>
	);
}

function Ports({ id }) {
	const all = useResource(path(id, '/forward'), TOPICS);
	const [link, setLink] = useState('');
	return (
		<>
			<Form button="Forward" onSend={async (data) => (await post(path(id, '/forward'), { guest_port: Number(data.get('port')) }), all.reload())}>
				<Field label="Port in the sandbox" name="port" type="number" min={1} max={65535} required />
			</Form>
			<Loaded of={all}>
				{({ forwards }) => forwards.length ? (
					<ul class="rows">
						{forwards.map((f) => (
							<li class="row" key={f.guest_port}>
								port {f.guest_port} at <code><Text of={`${f.host}:${f.host_port}`} /></code>, {many(f.connections, 'connection')}{' '}
								<Do run={async () => (await remove(path(id, `/forward?guest_port=${f.guest_port}`)), all.reload())}>End</Do>
							</li>
						))}
					</ul>
				) : <Empty command={`holt forward ${id} PORT`}>No port of it is open on this machine.</Empty>}
			</Loaded>
			<h3>Preview</h3>
			<Form button="Make a link" onSend={async (data) => setLink((await post('/v1/preview', { sandbox: id, port: Number(data.get('port')) })).url)}>
				<Field label="Port of a web server in it" name="port" type="number" min={1} max={65535} required />
			</Form>
			{link && <p>Whoever has this link sees the server: <a href={link} rel="noopener noreferrer" target="_blank"><Text of={link} /></a></p>}
		</>
	);
}

// ---- one --------------------------------------------------------------------------------------

const TABS = [['', 'Overview'], ['term', 'Terminal'], ['files', 'Files'], ['logs', 'Logs'], ['diff', 'Changes'], ['ports', 'Ports']];

function Overview({ of }) {
	const { id, usage, network, ...rest } = of;
	return (
		<>
			{usage && <Use of={usage} />}
			<dl>
				<dt>Template</dt><dd><Text of={of.template_id} /></dd>
				<dt>Made</dt><dd><Ago at={of.created_at} /></dd>
				<dt>End</dt><dd><Left of={of} /></dd>
				{of.source && <><dt>Made from</dt><dd><Link to={`/s/${encodeURIComponent(of.source)}`}><Text of={of.source} /></Link></dd></>}
				<dt>Limits</dt><dd>{of.limits.memory_mb} MiB of memory, {of.limits.disk_mb} MiB of disk, {of.limits.pids} processes, by {of.limits.enforced_by}</dd>
				<dt>Programs are</dt><dd>{of.user}</dd>
				<dt>Network</dt><dd><details><summary>{network.mode ?? 'as granted'}</summary><pre><Text of={JSON.stringify(network, null, 2)} block /></pre></details></dd>
			</dl>
			<details><summary>All that the hub says of it</summary><pre><Text of={JSON.stringify({ id, ...rest }, null, 2)} block /></pre></details>
		</>
	);
}

function Acts({ of, reload }) {
	const id = of.id;
	const again = (fn) => async () => (await fn(), reload());
	return (
		<div class="bar-of-buttons">
			{of.state === 'running' && <Do run={again(() => post('/v1/pause', { sandbox: id }))}>Pause</Do>}
			{(of.state === 'paused' || of.state === 'stopped') && <Do run={again(() => post('/v1/resume', { sandbox: id }))}>Resume</Do>}
			<Do run={async () => go(`/s/${encodeURIComponent((await post(path(id, '/fork'))).ids[0])}`)}>Fork</Do>
			<Do run={async () => toast(`Kept as ${(await post(path(id, '/snapshots'))).id}`)}>Snapshot</Do>
			<button popoverTarget="acts">More</button>
			<div id="acts" popover="auto" class="menu">
				<Sure ask={<>Stop <Text of={id} />? Its files are kept.</>} run={again(() => post(path(id, '/stop')))}>Stop</Sure>
				<Sure ask={<>End <Text of={id} /> and all that runs in it?</>} class="danger"
					run={async () => (await remove(path(id)), go('/s'))}>End</Sure>
			</div>
		</div>
	);
}

export function Sandbox({ id, tab = '' }) {
	const one = useResource(path(id, '?usage=true'), { ...TOPICS, every: 10000 });
	return (
		<>
			<h1><Text of={id} /></h1>
			<Loaded of={one}>
				{(s) => (
					<>
						<p><Chip kind={KINDS[s.state] ?? 'warn'}>{s.state}</Chip> {s.cause && <Text of={s.cause} prose />}</p>
						<Acts of={s} reload={one.reload} />
						<nav aria-label="Parts" class="tabs">
							{TABS.map(([t, name]) => <Link to={`/s/${encodeURIComponent(id)}${t && '/' + t}`} aria-current={t === tab ? 'page' : undefined}>{name}</Link>)}
						</nav>
						{tab === '' && <Overview of={s} />}
						{tab === 'term' && <Lazy load={() => import('./terminal.jsx')} id={id} />}
						{tab === 'files' && <Files id={id} />}
						{tab === 'logs' && <Logs id={id} />}
						{tab === 'diff' && <Changes id={id} />}
						{tab === 'ports' && <Ports id={id} />}
					</>
				)}
			</Loaded>
		</>
	);
}
