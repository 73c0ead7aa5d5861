// setTimeout() and its like. The process waits for the first that is due (loop.c).
host => {
	'use strict';
	const MOST = 4096,
		LONGEST = 2 ** 31 - 1;
	const waiting = []; // by when they are due
	let last = 0;

	class Timeout {
		#timer;
		constructor(timer) {
			this.#timer = timer;
		}
		ref() {
			this.#timer.weak = false;
			return this;
		}
		unref() {
			this.#timer.weak = true;
			return this;
		}
		hasRef() {
			return !this.#timer.weak;
		}
		refresh() {
			drop(this.#timer);
			add(this.#timer);
			return this;
		}
		close() {
			drop(this.#timer);
			return this;
		}
		[Symbol.toPrimitive]() {
			return this.#timer.id;
		}
		static timer(of) {
			return #timer in of ? of.#timer : undefined;
		}
	}

	const add = timer => {
		let at = waiting.length;
		if (at >= MOST) throw new RangeError(`more than ${MOST} timers wait`);
		timer.due = host.now() + timer.delay;
		while (at > 0 && waiting[at - 1].due > timer.due) at--;
		waiting.splice(at, 0, timer);
	};
	const drop = timer => {
		const at = waiting.indexOf(timer);
		if (at >= 0) waiting.splice(at, 1);
	};
	const start = (name, repeats) => {
		const f = {
			[name](callback, delay, ...args) {
				if (typeof callback !== 'function')
					throw new TypeError(`${name}() takes a function`);
				delay = Math.trunc(Number(delay));
				const timer = {
					id: ++last,
					callback,
					args,
					repeats,
					weak: false,
					delay: delay >= 1 && delay <= LONGEST ? delay : 1,
				};
				add(timer);
				return new Timeout(timer);
			},
		};
		return f[name];
	};
	const clear = what => {
		const timer =
			what instanceof Timeout
				? Timeout.timer(what)
				: waiting.find(t => t.id === Number(what));
		if (timer) {
			timer.repeats = false;
			drop(timer);
		}
	};
	const make = (name, value) =>
		Object.defineProperty(globalThis, name, {
			value,
			writable: true,
			configurable: true,
		});
	make('setTimeout', start('setTimeout', false));
	make('setInterval', start('setInterval', true));
	make('clearTimeout', function clearTimeout(timer) {
		if (timer !== undefined && timer !== null) clear(timer);
	});
	make('clearInterval', function clearInterval(timer) {
		if (timer !== undefined && timer !== null) clear(timer);
	});

	// Milliseconds until the next is due; -1: none waits. `weak` ones are not waited for.
	host.due = all => {
		const next = all ? waiting[0] : waiting.find(t => !t.weak);
		return next ? Math.max(0, Math.ceil(waiting[0].due - host.now())) : -1;
	};
	host.fire = () => {
		const timer = waiting[0];
		if (!timer || timer.due > host.now()) return;
		waiting.splice(0, 1);
		if (timer.repeats) add(timer);
		timer.callback.apply(undefined, timer.args);
	};
	host.isTimer = v => v instanceof Timeout;
	host.weakTimeout = (callback, ms) => setTimeoutOf(callback, ms).unref();
	const setTimeoutOf = globalThis.setTimeout;
};
