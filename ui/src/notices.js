// Tells of what waits where nobody looks: in the title, and as notifications of the desktop, which
// have no arguments of the call. They go when it is answered, wherever that was.
import { useEffect, useRef } from 'preact/hooks';
import { go } from './router.jsx';
import { settings } from './settings.jsx';

const MANY = 3;

export function useNotices(waiting) {
	const shown = useRef(new Map());
	useEffect(() => {
		document.title = (waiting.length ? `(${waiting.length}) ` : '') + 'Holt';
		const ids = new Set(waiting.map((a) => a.id));
		for (const [id, notice] of shown.current) {
			if (!ids.has(id)) {
				notice?.close();
				shown.current.delete(id);
			}
		}
		const fresh = waiting.filter((a) => !shown.current.has(a.id));
		for (const a of fresh) {
			let notice = null;
			if (settings.value.notify && document.hidden && Notification.permission === 'granted') {
				const many = fresh.length >= MANY;
				notice = new Notification(many ? `${fresh.length} need you` : 'Holt needs you', {
					body: many ? '' : a.text, tag: many ? 'holt-many' : a.id });
				notice.onclick = () => (window.focus(), go('/inbox'));
			}
			shown.current.set(a.id, notice);
		}
	}, [waiting.map((a) => a.id).join()]);
}
