// Tells of what waits where nobody looks: in the title, and as notifications of the desktop. Those
// have no arguments of the call; of several tabs one shows them, none while a tab is seen; and they go
// when it is answered, wherever that was.
import { useEffect, useRef } from 'preact/hooks';
import { leads } from './live.js';
import { go } from './router.jsx';
import { settings } from './settings.jsx';
import { plain } from './text.jsx';

const MANY = 3; // become one
const TEXT_MAX = 120;

function show(title, text, tag) {
	try {
		const notice = new Notification(title, { body: plain(text, TEXT_MAX), tag });
		notice.onclick = () => (window.focus(), go('/inbox'));
		return notice;
	} catch {
		return null; // phones have none for pages
	}
}

export function useNotices(waiting) {
	const shown = useRef(new Map());
	useEffect(() => {
		document.title = (waiting.length ? `(${waiting.length}) ` : '') + 'Holt';
		const ids = new Set(waiting.map((a) => a.id));
		for (const [id, notice] of shown.current) {
			if (ids.has(id))
				continue;
			shown.current.delete(id);
			if (![...shown.current.values()].includes(notice))
				notice?.close();
		}
		const fresh = waiting.filter((a) => !shown.current.has(a.id));
		const tells = settings.value.notify && document.hidden && leads() && Notification.permission === 'granted';
		const one = tells && fresh.length >= MANY ? show(`${fresh.length} need you`, '', 'holt-many') : null;
		for (const a of fresh)
			shown.current.set(a.id, one ?? (tells ? show('Holt needs you', a.text, a.id) : null));
	}, [waiting.map((a) => a.id).join()]);
}
