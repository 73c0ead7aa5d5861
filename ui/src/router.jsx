// Every view is an address.
import { signal } from '@preact/signals';

const read = () => ({ path: location.pathname, q: new URLSearchParams(location.search) });
export const route = signal(read());

addEventListener('popstate', () => (route.value = read()));

export function go(to, replace) {
	history[replace ? 'replaceState' : 'pushState'](null, '', to);
	route.value = read();
}

export function Link({ to, children, ...rest }) {
	const follow = (event) => {
		if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
			return;
		event.preventDefault();
		go(to);
	};
	return <a href={to} onClick={follow} {...rest}>{children}</a>;
}

// The parts of the path that stand for the names in a pattern such as "/s/:id/:tab"; or null.
export function match(pattern, path = route.value.path) {
	const want = pattern.split('/');
	const have = path.split('/');
	const found = {};
	if (want.length !== have.length)
		return null;
	for (let i = 0; i < want.length; i++) {
		if (want[i][0] === ':') {
			try {
				found[want[i].slice(1)] = decodeURIComponent(have[i]);
			} catch {
				return null;
			}
		} else if (want[i] !== have[i]) {
			return null;
		}
	}
	return found;
}

function setMember(name, value) {
	const q = new URLSearchParams(location.search);
	if (value)
		q.set(name, value);
	else
		q.delete(name);
	go(location.pathname + (q.size ? '?' + q : ''), true);
}

// The filter of a list, kept in the address: "state:running -owner:ci word".
export const filterText = () => route.value.q.get('q') ?? '';

export const setFilter = (text) => setMember('q', text);

// A switch of a view, kept in the address: "reads=1".
export const flag = (name) => route.value.q.has(name);

export const setFlag = (name, on) => setMember(name, on ? '1' : '');

// [{ not, key, value }]; key '': any text of a row.
export function parseFilter(text) {
	return text.split(/\s+/).filter(Boolean).map((word) => {
		const not = word[0] === '-' && word.length > 1;
		const [, key = '', value] = /^(?:([a-z_]+):)?(.*)$/s.exec(not ? word.slice(1) : word);
		return { not, key, value: value.toLowerCase() };
	});
}

// row: an object of texts.
export function passes(terms, row) {
	return terms.every(({ not, key, value }) => {
		const texts = key ? [row[key]] : Object.values(row);
		const has = texts.some((t) => String(t ?? '').toLowerCase().includes(value));
		return has !== not;
	});
}
