// Changes of a text by lines, as reviews show them: numbers of both sides, and what is around.
import { structuredPatch } from 'diff';
import { useMemo } from 'preact/hooks';
import { Text } from './text.jsx';

const DIFF_MS = 200;
const AROUND = 3; // lines
const KINDS = { '+': 'ins', '-': 'del', ' ': 'span' };

// { hunks, added, removed }, or null where both sides are too different to compare in time.
export function changesOf(old, now) {
	const patch = structuredPatch('', '', old, now, '', '', { context: AROUND, timeout: DIFF_MS });
	if (!patch)
		return null;
	const count = (sign) => patch.hunks.reduce((n, h) => n + h.lines.filter((l) => l[0] === sign).length, 0);
	return { hunks: patch.hunks, added: count('+'), removed: count('-') };
}

// "+3 −1", of a change or of several.
export function Counts({ of: all }) {
	if (all.some((one) => !one))
		return null;
	const sum = (member) => all.reduce((n, one) => n + one[member], 0);
	return <small class="counts"><ins>+{sum('added')}</ins> <del>−{sum('removed')}</del></small>;
}

function Hunk({ of: h }) {
	let before = h.oldStart;
	let after = h.newStart;
	return h.lines.filter((line) => line[0] !== '\\').map((line) => {
		const Tag = KINDS[line[0]];
		return (
			<tr class={Tag}>
				<td class="number">{line[0] === '+' ? '' : before++}</td>
				<td class="number">{line[0] === '-' ? '' : after++}</td>
				<td>{line[0]}</td>
				<td><Tag><Text of={line.slice(1)} block /></Tag></td>
			</tr>
		);
	});
}

export function Diff({ old, now }) {
	const changes = useMemo(() => changesOf(old, now), [old, now]);
	if (!changes)
		return <div class="both"><p>Too different to compare; both sides:</p><pre class="diff"><del><Text of={old} block /></del></pre><pre class="diff"><ins><Text of={now} block /></ins></pre></div>;
	return (
		<div class="diff" tabIndex={0} role="region" aria-label="Changed lines">
			<table class="lines">{changes.hunks.map((h, i) => (
				<tbody key={i}>
					{i > 0 && <tr><td class="gap" colSpan={4}>⋯</td></tr>}
					<Hunk of={h} />
				</tbody>
			))}</table>
		</div>
	);
}
