// The frame of the page: who is logged in, where one can go, what is shown.
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { loggedIn, logIn, othersLink } from './api.js';
import { Audit } from './audit.jsx';
import { Conversation } from './conversation.jsx';
import { Conversations } from './conversations.jsx';
import { Health } from './health.jsx';
import { Inbox, waitingOf } from './inbox.jsx';
import { Keys, useKeys } from './keys.jsx';
import { start, useResource } from './live.js';
import { Module, Modules, useHeld } from './modules.jsx';
import { useNotices } from './notices.js';
import { Policy } from './policy.jsx';
import { PROMPTS } from './questions.jsx';
import { go, Link, match, route } from './router.jsx';
import { Sandbox, Sandboxes } from './sandboxes.jsx';
import { applyTheme, Settings } from './settings.jsx';
import { Text } from './text.jsx';
import { Empty, Failure, Stale, Still, Toasts } from './ui.jsx';

// In the rail; those with `more` are behind "More" on a phone.
const PLACES = [
	{ to: '/inbox', name: 'Inbox', icon: 'M3 13l3-9h12l3 9v7H3zM3 13h5l2 3h4l2-3h5' },
	{ to: '/c', name: 'Conversations', icon: 'M3 4h18v13H9l-6 4z' },
	{ to: '/s', name: 'Sandboxes', icon: 'M12 2l9 5v10l-9 5-9-5V7zM3 7l9 5 9-5M12 12v10' },
	{ to: '/m', name: 'Modules', icon: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z' },
	{ to: '/audit', name: 'Audit', icon: 'M5 3h14v18H5zM8 8h8M8 12h8M8 16h5', more: true },
	{ to: '/policy', name: 'Policy', icon: 'M12 2l8 3v6c0 5-3 9-8 11-5-2-8-6-8-11V5z', more: true },
	{ to: '/health', name: 'Health', icon: 'M2 12h5l3-8 4 16 3-8h5', more: true },
	{ to: '/settings', name: 'Settings', icon: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 4v6M8 14v6', more: true },
];

const VIEWS = [
	['/inbox', () => <Inbox />],
	['/c', () => <Conversations />],
	['/c/:id', (p) => <Conversation {...p} key={p.id} />],
	['/s', () => <Sandboxes />],
	['/s/:id', (p) => <Sandbox {...p} key={p.id} />],
	['/s/:id/:tab', (p) => <Sandbox {...p} key={p.id} />],
	['/m', () => <Modules />],
	['/m/:name', (p) => <Module {...p} key={p.name} />],
	['/audit', () => <Audit />],
	['/policy', () => <Policy />],
	['/health', () => <Health />],
	['/settings', () => <Settings />],
];

function Icon({ d }) {
	return <svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d={d} /></svg>;
}

function Place({ to, name, icon, count }) {
	const here = route.value.path === to || route.value.path.startsWith(to + '/');
	return (
		<Link to={to} class="place" aria-current={here ? 'page' : undefined}>
			<Icon d={icon} /><span>{name}</span>
			{count > 0 && <span class="count">{count}<span class="hidden"> waiting</span></span>}
		</Link>
	);
}

function Rail({ waiting }) {
	const me = useResource('/session');
	return (
		<nav class="rail" aria-label="Holt">
			<span class="brand" aria-hidden="true">Holt</span>
			{me.data && <span class="who" title={me.data.name}><span class="hidden">Logged in as </span><Text of={me.data.name} /></span>}
			{PLACES.filter((p) => !p.more).map((p) => <Place key={p.to} {...p} count={p.to === '/inbox' ? waiting : 0} />)}
			<div class="rest">{PLACES.filter((p) => p.more).map((p) => <Place key={p.to} {...p} />)}</div>
			<button class="place more" popoverTarget="places"><Icon d="M5 12h.01M12 12h.01M19 12h.01" /><span>More</span></button>
			<div id="places" popover="auto" class="menu" onClick={(e) => e.currentTarget.hidePopover()}>
				{PLACES.filter((p) => p.more).map((p) => <Place key={p.to} {...p} />)}
			</div>
		</nav>
	);
}

function View() {
	for (const [pattern, show] of VIEWS) {
		const found = match(pattern);
		if (found)
			return show(found);
	}
	return <><h1>Nothing is here</h1><Empty>The address names no view.</Empty></>;
}

function Page() {
	const pending = useResource(PROMPTS, { topics: ['prompts'] });
	const waiting = waitingOf(pending.data?.prompts ?? []);
	const notices = [
		...waiting.map((one) => Array.isArray(one) ? { id: one[0].id, text: `${one[0].action} for ${one[0].principal}` }
			: { id: one.request_id, text: `a question of ${one.principal}` }),
		...useHeld().map((m) => ({ id: m.module + m.digest, text: `changed tools of ${m.module}` })),
	];
	useKeys();
	useNotices(notices);
	const first = route.value.path === '/' || route.value.path === '/login';
	useEffect(() => {
		if (first && (pending.data || pending.problem))
			go(notices.length ? '/inbox' : '/s', true);
	}, [first, pending.data, pending.problem]);
	return (
		<>
			<a class="skip" href="#main">Skip to the content</a>
			<Rail waiting={notices.length} />
			<p class="hidden" role="status">{notices.length > 0 && `${notices.length} need you`}</p>
			<main id="main" tabIndex={-1}>
				<Stale />
				{!first && <View />}
			</main>
			<Keys />
			<Toasts />
		</>
	);
}

function LogIn({ problem }) {
	return (
		<main class="login" id="main">
			<h1>Holt</h1>
			{problem && <Failure of={problem} />}
			<p>Log this browser in by the link that this prints, on the machine of the hub:</p>
			<code>holt web</code>
			<p class="muted">The link works once, for ten minutes.</p>
		</main>
	);
}

// Any page can send a browser to somebody else's link. Without a question the person would go on as
// that principal, who sees all of it.
function Change({ names: [was, name], onStay, onChange }) {
	return (
		<main class="login" id="main">
			<h1>Log in as somebody else?</h1>
			<p>This browser is logged in as <strong><Text of={was} /></strong>. The link would log it in as <strong><Text of={name} /></strong>, in
				all its tabs, and <Text of={name} /> would see what you do then.</p>
			<div class="answers">
				<button onClick={onStay}>Stay <Text of={was} /></button>
				<Still run={onChange}>Log in as <Text of={name} /></Still>
			</div>
		</main>
	);
}

function App() {
	const [state, setState] = useState({ busy: location.pathname === '/login' && location.hash.length > 1 });
	const enter = (code) => logIn(code).then(() => setState({}), (problem) => setState({ problem }));
	useEffect(() => {
		const code = location.hash.slice(1);
		if (!state.busy)
			return;
		history.replaceState(null, '', '/'); // the code leaves the history at once
		othersLink(code).then((names) => names ? setState({ busy: true, names, code }) : enter(code),
			(problem) => setState({ problem }));
	}, []);
	useEffect(() => {
		if (loggedIn.value && !state.busy)
			start();
	}, [loggedIn.value, state.busy]);
	if (state.names)
		return <Change names={state.names} onStay={() => setState({})} onChange={() => enter(state.code)} />;
	if (state.busy)
		return null;
	return loggedIn.value ? <Page /> : <LogIn problem={state.problem} />;
}

applyTheme();
render(<App />, document.getElementById('app'));
