// What this browser prefers, who is logged in, and the keys of programs.
import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { logOut, post, remove } from './api.js';
import { useResource } from './live.js';
import { Text } from './text.jsx';
import { Ago, Chip, Do, Empty, Field, Form, Loaded, stored, Sure } from './ui.jsx';

const KEPT = 'holt-settings';
export const settings = signal({ theme: 'system', letters: true, enter: true, notify: false, ...stored(KEPT) });

export function applyTheme() {
	document.documentElement.dataset.theme = settings.value.theme;
}

function set(change) {
	settings.value = { ...settings.value, ...change };
	localStorage.setItem(KEPT, JSON.stringify(settings.value));
	applyTheme();
}

async function askNotify() {
	set({ notify: await Notification.requestPermission() === 'granted' });
}

function Browser() {
	const { theme, letters, enter, notify } = settings.value;
	return (
		<section>
			<h2>This browser</h2>
			<fieldset>
				<legend>Theme</legend>
				{['system', 'light', 'dark'].map((t) => (
					<label key={t}><input type="radio" name="theme" checked={theme === t} onChange={() => set({ theme: t })} /> {t}</label>
				))}
			</fieldset>
			<label><input type="checkbox" checked={letters} onChange={(e) => set({ letters: e.currentTarget.checked })} /> Single letters are keys (? shows them)</label>
			<p><label><input type="checkbox" checked={enter} onChange={(e) => set({ enter: e.currentTarget.checked })} /> Enter sends a prompt (else Ctrl+Enter)</label></p>
			<p>{notify ? <button onClick={() => set({ notify: false })}>Stop notifications</button>
				: <button onClick={askNotify} disabled={!('Notification' in window)}>Notify me when something needs me</button>}</p>
		</section>
	);
}

function LogIns() {
	const all = useResource('/sessions', { every: 30000 });
	return (
		<section>
			<h2>Log-ins</h2>
			<p class="muted"><code>holt web</code> prints a link for another browser.</p>
			<Loaded of={all}>
				{({ sessions }) => (
					<ul class="rows">
						{sessions.map((s) => (
							<li class="row" key={s.id}>
								<Text of={s.name} /> {s.current && <Chip kind="ok">this one</Chip>} <small class="muted">since <Ago at={s.began_at} />, used <Ago at={s.used_at} />; may {s.scopes.join(', ')}</small>{' '}
								{s.current ? <Do run={logOut}>Log out</Do> : <Do run={async () => (await remove(`/sessions/${encodeURIComponent(s.id)}`), all.reload())}>End it</Do>}
							</li>
						))}
					</ul>
				)}
			</Loaded>
		</section>
	);
}

const SCOPES = ['read', 'execute', 'lifecycle', 'admin'];

function Keys() {
	const all = useResource('/v1/keys');
	const [token, setToken] = useState('');
	const create = async (data) => {
		const made = await post('/v1/keys', { name: data.get('name'), scopes: data.getAll('scope'),
			ttl_seconds: 86400 * Number(data.get('days') || 0) });
		setToken(made.token);
		all.reload();
	};
	return (
		<section>
			<h2>Keys of programs</h2>
			<Loaded of={all}>
				{(keys) => keys.length ? (
					<ul class="rows">
						{keys.map((k) => (
							<li class="row" key={k.id}>
								<strong><Text of={k.name} /></strong> <small class="muted">{k.scopes.join(', ')}, made <Ago at={k.created_at} />{k.used_at && <>, used <Ago at={k.used_at} /></>}</small>{' '}
								{k.expired && <Chip kind="warn">expired</Chip>}
								<Sure ask={<>Revoke <Text of={k.name} />? What its bearer does ends at once.</>} class="danger"
									run={async () => (await remove(`/v1/keys/${encodeURIComponent(k.name)}`), all.reload())}>Revoke</Sure>
							</li>
						))}
					</ul>
				) : <Empty command="holt auth keys create">No program has a key.</Empty>}
			</Loaded>
			{token && <p role="status">Its token, shown this once: <code>{token}</code></p>}
			<details>
				<summary>New key</summary>
				<Form button="Make it" onSend={create}>
					<Field label="Name" name="name" required maxLength={48} pattern="[a-zA-Z0-9][a-zA-Z0-9._\-]*" />
					<fieldset><legend>Scopes</legend>
						{SCOPES.map((s) => <label key={s}><input type="checkbox" name="scope" value={s} /> {s}</label>)}
					</fieldset>
					<Field label="Days (never ends if empty)" name="days" type="number" min={1} />
				</Form>
			</details>
		</section>
	);
}

export const Settings = () => (
	<>
		<h1>Settings</h1>
		<Browser />
		<LogIns />
		<Keys />
	</>
);
