// What waits for a person, by deadline, each answerable here; and what was answered.
import { useEffect, useRef, useState } from 'preact/hooks';
import { post } from './api.js';
import { live, now, useResource } from './live.js';
import { filterText, Link, parseFilter, passes } from './router.jsx';
import { Text } from './text.jsx';
import { Ago, Chip, clock, Empty, Failure, Filter, isLong, Loaded, span, Tree } from './ui.jsx';

const INERT_MS = 600;
export const PENDING = '/v1/approvals';

// Several of the same call, of one conversation, are one card. Its answer has exactly their ids.
export function cardsOf(approvals) {
	const cards = new Map();
	for (const a of approvals.filter((one) => one.state === 'pending')) {
		const same = [a.principal, a.conversation, a.target, a.digest].join('\n');
		cards.set(same, [...(cards.get(same) ?? []), a]);
	}
	return [...cards.values()].sort((a, b) => (a[0].expires_at ?? '~') < (b[0].expires_at ?? '~') ? -1 : 1);
}

function parse(text) {
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}

// The texts that are folded, and have to be opened before the call can be allowed.
function foldsOf(value) {
	if (typeof value === 'string')
		return isLong(value) ? 1 : 0;
	if (value === null || typeof value !== 'object')
		return 0;
	return Object.values(value).reduce((n, v) => n + foldsOf(v), 0);
}

// False for a moment after the element has appeared or moved, so that no tap meant for something
// else answers.
function useSteady(ref) {
	const place = useRef({ top: null, since: 0 });
	const look = () => {
		if (!ref.current)
			return;
		const { top, left } = ref.current.getBoundingClientRect();
		const at = `${Math.round(top)},${Math.round(left)}`;
		if (at !== place.current.at)
			place.current = { at, since: performance.now() };
	};
	useEffect(() => {
		look();
		const timer = setInterval(look, 100);
		return () => clearInterval(timer);
	}, []);
	return () => {
		look();
		return performance.now() - place.current.since >= INERT_MS;
	};
}

function Deadline({ at }) {
	if (!at)
		return null;
	const left = (Date.parse(at) - now.value) / 1000;
	return <p class="deadline">{left > 0 ? <>Until {clock(Date.parse(at))}, in {span(left)}, then refused</>
		: 'Its time is over'}</p>;
}

export function Card({ same, onDone }) {
	const [a] = same;
	const ref = useRef();
	const steady = useSteady(ref);
	const [opened, setOpened] = useState(0);
	const [sent, setSent] = useState(null);
	const call = parse(a.arguments);
	const hidden = Math.max(0, foldsOf(call) - opened);
	const why = a.arguments_cut ? 'It can only be denied here: it is too long to be shown whole.'
		: hidden ? `Open all ${hidden} folded values to allow it.` : '';

	const answer = async (decision, scope) => {
		if (!steady() || sent?.busy || !live.value.up || (decision === 'approve' && why))
			return;
		setSent({ busy: true });
		try {
			for (const one of same)
				await post(`/v1/approvals/${encodeURIComponent(one.id)}`,
					decision === 'approve' ? { decision, scope } : { decision });
			setSent({ word: decision === 'approve' ? 'Allowed' : 'Denied' });
			setTimeout(onDone, 1500);
		} catch (problem) {
			setSent({ problem });
			onDone();
		}
	};
	const keys = (event) => {
		if (event.target !== ref.current || !event.shiftKey || event.repeat)
			return;
		if (event.key === 'A')
			answer('approve', 'once');
		if (event.key === 'D')
			answer('deny');
	};
	const noEnter = (event) => (event.key === 'Enter' || event.repeat) && event.preventDefault();
	const off = sent?.busy || sent?.word || !live.value.up;

	return (
		<article class="card" ref={ref} tabIndex={0} data-card={a.id} onKeyDown={keys}
			aria-label={`${a.action} for ${a.principal}`}>
			<header>
				<h3><Text of={a.principal} /> asks for <Text of={a.action} />
					{same.length > 1 && ` ×${same.length}`}</h3>
				<Deadline at={a.expires_at} />
			</header>
			<dl>
				{a.target && <><dt>Sandbox</dt><dd><Link to={`/s/${encodeURIComponent(a.target)}`}><Text of={a.target} /></Link></dd></>}
				{a.conversation && <><dt>Conversation</dt><dd><Text of={a.conversation} /></dd></>}
				<dt>Why asked</dt><dd>{a.rule ? <Text of={a.rule} /> : 'no rule has a name for it'}</dd>
				<dt>Asked</dt><dd><Ago at={a.created_at} /></dd>
			</dl>
			<h4>The call</h4>
			<Tree of={call} onOpen={() => setOpened(opened + 1)} />
			<p class="muted">SHA-256 <code>{a.digest}</code></p>
			{why && <p class="warn">{why}</p>}
			{sent?.problem && <Failure of={sent.problem} />}
			{sent?.word ? <p role="status"><Chip kind="ok">{sent.word}</Chip></p> : (
				<>
					<div class="answers" onKeyDown={noEnter}>
						<button class="deny" disabled={off} onClick={() => answer('deny')}>
							{sent?.busy ? 'Sending…' : 'Deny'}</button>
						<button class="allow" disabled={off || !!why} onClick={() => answer('approve', 'once')}>
							{sent?.busy ? 'Sending…' : 'Allow once'}</button>
					</div>
					<details>
						<summary>Allow more than this once</summary>
						<div class="answers" onKeyDown={noEnter}>
							{a.conversation && (
								<button disabled={off || !!why} onClick={() => answer('approve', 'conversation')}>
									Allow exactly this call in this conversation, for a day at most</button>
							)}
							<button disabled={off || !!why} onClick={() => answer('approve', 'always')}>
								Allow exactly this call of <Text of={a.principal} /> always, until revoked</button>
						</div>
					</details>
				</>
			)}
		</article>
	);
}

const KINDS = { approved: 'ok', denied: 'danger', expired: 'warn' };

export function Done({ of }) {
	return (
		<li class="row">
			<Chip kind={KINDS[of.state]}>{of.state}</Chip>{' '}
			<Text of={of.action} /> for <Text of={of.principal} />
			{of.target && <> in <Text of={of.target} /></>}
			{of.scope && <span class="muted"> ({of.scope})</span>}
			<small class="muted">
				{of.answered_by && <> by <Text of={of.answered_by} /> over <Text of={of.answered_over} /></>}
				{' '}<Ago at={of.answered_at ?? of.created_at} />
			</small>
		</li>
	);
}

export function Inbox() {
	const pending = useResource(PENDING, { topics: ['approvals'] });
	const all = useResource('/v1/approvals?all=true', { topics: ['approvals'] });
	const terms = parseFilter(filterText());
	return (
		<>
			<h1>Inbox</h1>
			<Filter label="Filter" hint="who: action: target:" />
			<Loaded of={pending}>
				{({ approvals }) => {
					const cards = cardsOf(approvals).filter(([a]) => passes(terms, {
						who: a.principal, action: a.action, target: a.target, arguments: a.arguments }));
					return cards.length
						? cards.map((same) => <Card key={same[0].id} same={same} onDone={() => (pending.reload(), all.reload())} />)
						: <Empty command="holt approvals watch">
							Nothing waits for you. What policy wants a person's word for comes here.</Empty>;
				}}
			</Loaded>
			<h2>Done</h2>
			<Loaded of={all}>
				{({ approvals }) => {
					const done = approvals.filter((a) => a.state !== 'pending').reverse().slice(0, 100);
					return done.length ? <ul class="rows">{done.map((a) => <Done key={a.id} of={a} />)}</ul>
						: <p class="muted">Nothing was answered yet.</p>;
				}}
			</Loaded>
		</>
	);
}
