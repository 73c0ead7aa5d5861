// What was allowed for more than one call, and still holds.
import { post } from './api.js';
import { parse } from './json.js';
import { useResource } from './live.js';
import { Text } from './text.jsx';
import { Ago, Empty, Loaded, Sure, Tree } from './ui.jsx';

export function Policy() {
	const all = useResource('/v1/approvals', { topics: ['prompts'] });
	return (
		<>
			<h1>Policy</h1>
			<p class="muted">The rules are in the operator's file: <code>holt config show</code>. These were allowed by a person:</p>
			<Loaded of={all}>
				{({ approvals }) => {
					const standing = approvals.filter((a) => a.state === 'approved');
					return standing.length ? standing.map((a) => (
						<article class="card" key={a.id}>
							<h2><Text of={a.action} /> for <Text of={a.principal} />, {a.scope}</h2>
							<Tree of={parse(a.arguments)} />
							{a.pattern && <p>Where it may differ: <code><Text of={a.pattern} /></code></p>}
							<p class="muted">Allowed by <Text of={a.answered_by} /> <Ago at={a.answered_at} />
								{a.used_at && <>, last used <Ago at={a.used_at} /></>}</p>
							<Sure ask="Take this approval back?" class="danger" run={async () => (
								await post(`/v1/approvals/${encodeURIComponent(a.id)}`, { decision: 'revoke' }), all.reload())}>Revoke</Sure>
						</article>
					)) : <Empty command="holt inbox approve --always ID">No approval stands.</Empty>;
				}}
			</Loaded>
		</>
	);
}
