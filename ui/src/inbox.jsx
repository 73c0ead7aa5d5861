// What waits for a person, by deadline, each answerable here; and what was answered.
import { useRef, useState } from 'preact/hooks';
import { post } from './api.js';
import { parse } from './json.js';
import { live, useResource } from './live.js';
import { Held, useHeld } from './modules.jsx';
import { PROMPTS, Question, questionsOf } from './questions.jsx';
import { filterText, Link, parseFilter, passes } from './router.jsx';
import { Text } from './text.jsx';
import { Ago, Chip, Deadline, Empty, Failure, Filter, Guard, isLong, Loaded, noEnter, Tree, useSteady } from './ui.jsx';

// Several of the same call, of one conversation, are one card. Its answer has exactly their ids.
export function cardsOf(approvals) {
	const cards = new Map();
	for (const a of approvals.filter((one) => one.state === 'pending')) {
		const same = [a.principal, a.conversation, a.target, a.digest].join('\n');
		cards.set(same, [...(cards.get(same) ?? []), a]);
	}
	return [...cards.values()].sort((a, b) => (a[0].expires_at ?? '~') < (b[0].expires_at ?? '~') ? -1 : 1);
}

// The texts that are folded, and have to be opened before the call can be allowed.
export function foldsOf(value) {
	if (typeof value === 'string')
		return isLong(value) ? 1 : 0;
	if (value === null || typeof value !== 'object')
		return 0;
	return Object.values(value).reduce((n, v) => n + foldsOf(v), 0);
}

export function Card({ same, onDone }) {
	const [a] = same;
	const ref = useRef();
	const steady = useSteady(ref, same.length);
	const [opened, setOpened] = useState(0);
	const [sent, setSent] = useState(null);
	const call = parse(a.arguments);
	const hidden = Math.max(0, foldsOf(call) - opened);
	const why = a.arguments_cut ? 'It can only be denied here: it is too long to be shown whole.'
		: a.arguments_hidden ? 'It can only be denied: redaction hides a part of it.'
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
	const off = sent?.busy || sent?.word || !live.value.up;

	return (
		<article class="card" ref={ref} tabIndex={0} data-card={a.id} onKeyDown={keys}
			aria-label={`${a.action} for ${a.principal}`}>
			<header>
				<p class="kind">Call <span class="muted">of <Text of={a.principal} /></span></p>
				<Deadline at={a.expires_at} />
			</header>
			<h3>Allow <Text of={a.action} />{a.target && <> in <Text of={a.target} /></>}?{same.length > 1 && ` ×${same.length}`}</h3>
			<dl>
				{a.target && <><dt>Sandbox</dt><dd><Link to={`/s/${encodeURIComponent(a.target)}`}><Text of={a.target} /></Link></dd></>}
				{a.conversation && <><dt>Conversation</dt><dd><Text of={a.conversation} /></dd></>}
				<dt>Why asked</dt><dd>{a.rule ? <Text of={a.rule} /> : 'no rule has a name for it'}</dd>
				<dt>Asked</dt><dd><Ago at={a.created_at} /></dd>
			</dl>
			<h4>The call</h4>
			<Tree of={call} onOpen={() => setOpened((n) => n + 1)} />
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

const KINDS = { approved: 'ok', answered: 'ok', denied: 'danger', expired: 'warn' };

// An approval or a question that has ended.
function Done({ of }) {
	const a = of.approval;
	return (
		<li class="row">
			<Chip kind={KINDS[a?.state ?? of.state]}>{a?.state ?? of.state}</Chip>{' '}
			{a ? <><Text of={a.action} /> for <Text of={a.principal} />{a.target && <> in <Text of={a.target} /></>}{a.scope && <span class="muted"> ({a.scope})</span>}</>
				: <><Text of={of.title || of.question} prose /> <small class="muted">asked by <Text of={of.principal} /></small> {of.label && <>: <Text of={of.label} /></>}</>}
			<small class="muted">
				{of.answered_by && <> by <Text of={of.answered_by} /> over <Text of={of.answered_over} /></>}
				{' '}<Ago at={of.answered_at ?? of.created_at} />
			</small>
		</li>
	);
}

// What waits: groups of equal approvals, and questions, by deadline.
export function waitingOf(prompts) {
	const due = (one) => one.expires_at ?? '~';
	return [...cardsOf(prompts.flatMap((p) => p.approval ?? [])), ...questionsOf(prompts)]
		.sort((a, b) => due(a[0] ?? a) < due(b[0] ?? b) ? -1 : 1);
}

function Waiting({ of, onDone }) {
	return <Guard>{Array.isArray(of) ? <Card same={of} onDone={onDone} /> : <Question of={of} onDone={onDone} />}</Guard>;
}

const words = (one) => Array.isArray(one)
	? { who: one[0].principal, action: one[0].action, target: one[0].target, arguments: one[0].arguments }
	: { who: one.principal, kind: one.kind, title: one.title, question: one.question };

export function Inbox() {
	const pending = useResource(PROMPTS, { topics: ['prompts'] });
	const all = useResource(PROMPTS + '?state=all', { topics: ['prompts'] });
	const held = useHeld();
	const terms = parseFilter(filterText());
	const again = () => (pending.reload(), all.reload());
	return (
		<>
			<h1>Inbox</h1>
			<Filter label="Filter" hint="who: action: target:" />
			<Loaded of={pending}>
				{({ prompts }) => {
					const waiting = waitingOf(prompts).filter((one) => passes(terms, words(one)));
					const modules = held.filter((m) => passes(terms, { action: 'module.approve', target: m.module }));
					return waiting.length || modules.length
						? <>
							{waiting.map((one) => <Waiting key={one.request_id ?? one[0].id} of={one} onDone={again} />)}
							{modules.map((m) => <Guard key={m.module}><Held of={m} /></Guard>)}
						</>
						: <Empty command="holt inbox">
							Nothing waits for you. Questions of agents, and calls that need a person's word, come here.</Empty>;
				}}
			</Loaded>
			<h2>Done</h2>
			<Loaded of={all}>
				{({ prompts }) => {
					const at = (p) => p.answered_at ?? p.created_at;
					const done = prompts.filter((p) => p.state !== 'pending').sort((a, b) => at(a) < at(b) ? 1 : -1).slice(0, 100);
					return done.length ? <ul class="rows">{done.map((p) => <Done key={p.request_id} of={p} />)}</ul>
						: <p class="muted">Nothing was answered yet.</p>;
				}}
			</Loaded>
		</>
	);
}
