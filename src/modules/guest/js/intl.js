// Numbers, dates and names in the form of a language. There are en-US, en-GB, en-CA and sv-SE with
// their usual options, and the time zone UTC. All else is an error, for an option that is ignored is
// a wrong answer.
host => {
	'use strict';
	const refuse = (what, has) => {
		throw new RangeError(`${what} is not here${has ? `: ${has}` : ''}`);
	};
	const LOCALES = ['en-US', 'en-GB', 'en-CA', 'sv-SE'];
	const locale = given => {
		const all = given === undefined ? [] : Array.isArray(given) ? given : [given];
		for (const one of all.map(String)) {
			const found = LOCALES.find(l => l.toLowerCase() === one.toLowerCase());
			if (found) return found;
			if (/^en(-001)?$/i.test(one) || /^(c|und|default)$/i.test(one)) return 'en-US';
		}
		if (all.length)
			refuse(`the locale ${all.map(String).join(', ')}`, `code has ${LOCALES.join(', ')}`);
		return 'en-US';
	};
	const options = (what, given, known) => {
		const all = Object(given ?? {});
		for (const key in all) {
			if (all[key] === undefined) continue;
			if (!Object.hasOwn(known, key))
				refuse(`the option ${key} of ${what}`, `it has ${Object.keys(known).join(', ')}`);
			const values = known[key];
			if (Array.isArray(values) && !values.includes(all[key]))
				refuse(
					`${key}: ${host.inspect(all[key])} of ${what}`,
					`it has ${values.map(v => host.inspect(v)).join(', ')}`,
				);
			if (
				typeof values === 'number' &&
				!(Number(all[key]) >= 0 && Number(all[key]) <= values)
			)
				throw new RangeError(`${key} value is out of range.`);
		}
		return all;
	};

	// ---- numbers ----

	const CURRENCIES = {
		USD: '$',
		EUR: '€',
		GBP: '£',
		JPY: '¥',
		INR: '₹',
		CNY: 'CN¥',
		KRW: '₩',
		BRL: 'R$',
		CAD: 'CA$',
		AUD: 'A$',
		MXN: 'MX$',
		NZD: 'NZ$',
		ILS: '₪',
		VND: '₫',
		TWD: 'NT$',
		HKD: 'HK$',
		PHP: '₱',
	};
	const NO_CENTS = ['JPY', 'KRW', 'VND', 'CLP', 'ISK', 'XAF', 'XOF', 'XPF', 'UGX', 'PYG'];
	const UNITS = {
		byte: ['byte', 'byte', 'byte'],
		kilobyte: ['kB', 'kB', 'kilobyte'],
		megabyte: ['MB', 'MB', 'megabyte'],
		gigabyte: ['GB', 'GB', 'gigabyte'],
		terabyte: ['TB', 'TB', 'terabyte'],
		millisecond: ['ms', 'ms', 'millisecond'],
		second: ['s', 'sec', 'second'],
		minute: ['m', 'min', 'minute'],
		hour: ['h', 'hr', 'hour'],
		day: ['d', 'day', 'day'],
		week: ['w', 'wk', 'week'],
		month: ['m', 'mth', 'month'],
		year: ['y', 'yr', 'year'],
		meter: ['m', 'm', 'meter'],
		kilometer: ['km', 'km', 'kilometer'],
		centimeter: ['cm', 'cm', 'centimeter'],
		mile: ['mi', 'mi', 'mile'],
		gram: ['g', 'g', 'gram'],
		kilogram: ['kg', 'kg', 'kilogram'],
		liter: ['L', 'L', 'liter'],
		celsius: ['°C', '°C', 'degree Celsius'],
		fahrenheit: ['°F', '°F', 'degree Fahrenheit'],
		percent: ['%', '%', 'percent'],
		degree: ['°', 'deg', 'degree'],
	};
	const NUMBER = {
		style: ['decimal', 'currency', 'percent', 'unit'],
		currency: true,
		currencyDisplay: ['symbol', 'narrowSymbol', 'code', 'name'],
		currencySign: ['standard', 'accounting'],
		unit: Object.keys(UNITS),
		unitDisplay: ['short', 'narrow', 'long'],
		minimumIntegerDigits: 21,
		minimumFractionDigits: 100,
		maximumFractionDigits: 100,
		minimumSignificantDigits: 21,
		maximumSignificantDigits: 21,
		useGrouping: [true, false, 'auto', 'always', 'min2', 'true', 'false'],
		notation: ['standard', 'compact', 'scientific', 'engineering'],
		compactDisplay: ['short', 'long'],
		signDisplay: ['auto', 'always', 'never', 'exceptZero', 'negative'],
		roundingMode: ['halfExpand'],
		trailingZeroDisplay: ['auto', 'stripIfInteger'],
		localeMatcher: ['lookup', 'best fit'],
		numberingSystem: ['latn'],
	};

	// Decimal digits of a number, exact: [digits before the point, behind it].
	const decimal = n => {
		let [head, exponent = '0'] = n.toString().split('e');
		let [whole, part = ''] = head.split('.');
		exponent = Number(exponent);
		for (; exponent > 0; exponent--) {
			whole += part[0] ?? '0';
			part = part.slice(1);
		}
		for (; exponent < 0; exponent++) {
			part = (whole.at(-1) ?? '0') + part;
			whole = whole.slice(0, -1);
		}
		return [whole.replace(/^0+(?=\d)/, '') || '0', part];
	};
	// Half away from zero, as it is written.
	const round = (whole, part, places) => {
		if (places >= 0 && part.length <= places) return [whole, part];
		let all = whole + part,
			keep = whole.length + places;
		if (keep < 0) return ['0', ''];
		const up = all[keep] >= '5';
		let kept = BigInt(all.slice(0, keep) || '0') + (up ? 1n : 0n);
		let text = kept.toString().padStart(keep, '0');
		if (places < 0) return [(text + '0'.repeat(-places)).replace(/^0+(?=\d)/, ''), ''];
		return [text.slice(0, text.length - places) || '0', places ? text.slice(-places) : ''];
	};
	const group = (whole, by) => whole.replace(/\B(?=(\d{3})+$)/g, by);

	class NumberFormat {
		#o;
		#locale;
		constructor(locales, given) {
			this.#locale = locale(locales);
			const o = { ...options('NumberFormat', given, NUMBER) };
			o.style ??= 'decimal';
			if (o.style === 'currency') {
				if (o.currency === undefined)
					throw new TypeError('Currency code is required with currency style.');
				o.currency = `${o.currency}`.toUpperCase();
				if (!/^[A-Z]{3}$/.test(o.currency))
					throw new RangeError(`Invalid currency code : ${o.currency}`);
			}
			if (o.style === 'unit' && o.unit === undefined)
				throw new TypeError('Unit is required with unit style.');
			const cents = o.style === 'currency' ? (NO_CENTS.includes(o.currency) ? 0 : 2) : 0;
			o.significant =
				o.minimumSignificantDigits !== undefined ||
				o.maximumSignificantDigits !== undefined;
			o.compact =
				o.notation === 'compact' &&
				o.minimumFractionDigits === undefined &&
				o.maximumFractionDigits === undefined &&
				!o.significant;
			const min = o.minimumFractionDigits,
				max = o.maximumFractionDigits;
			const most = o.style === 'currency' ? cents : o.style === 'percent' ? 0 : 3;
			if (min !== undefined && max !== undefined && Number(min) > Number(max))
				throw new RangeError('maximumFractionDigits value is out of range.');
			o.min =
				min !== undefined
					? Number(min)
					: Math.min(cents, max === undefined ? cents : Number(max));
			o.max = max !== undefined ? Number(max) : Math.max(o.min, most);
			this.#o = o;
		}
		#digits([whole, part]) {
			const o = this.#o;
			if (o.significant) {
				const max = Number(o.maximumSignificantDigits ?? 21),
					min = Number(o.minimumSignificantDigits ?? 1);
				const lead = whole === '0' ? -/^0*/.exec(part)[0].length : whole.length;
				[whole, part] = round(whole, part, max - lead);
				part = part.replace(/0+$/, '');
				const has =
					whole === '0'
						? part.replace(/^0+/, '').length || 1
						: whole.length + part.length;
				return [whole, part + '0'.repeat(Math.max(0, min - has))];
			}
			if (o.compact) {
				[whole, part] = round(whole, part, whole.length >= 2 ? 0 : whole === '0' ? 2 : 1);
				return [whole, part.replace(/0+$/, '')];
			}
			[whole, part] = round(whole, part, o.max);
			part = part.replace(/0+$/, '').padEnd(o.min, '0');
			return [
				whole,
				o.trailingZeroDisplay === 'stripIfInteger' && /^0*$/.test(part) ? '' : part,
			];
		}
		format(value) {
			const o = this.#o,
				swedish = this.#locale === 'sv-SE';
			let v =
				typeof value === 'bigint'
					? value
					: typeof value === 'string' && /^\s*[-+]?\d+\s*$/.test(value)
						? BigInt(value)
						: Number(value);
			const negative = typeof v === 'bigint' ? v < 0n : v < 0 || Object.is(v, -0);
			let text,
				suffix = '',
				zero = false;
			if (Number.isNaN(v)) {
				text = 'NaN';
			} else if (v === Infinity || v === -Infinity) {
				text = '∞';
			} else {
				let parts = decimal(negative ? -v : v);
				if (o.style === 'percent') parts = decimalShift(parts, 2);
				if (o.notation === 'compact') {
					let step = Math.min(4, Math.floor((parts[0].length - 1) / 3));
					let scaled = this.#digits(decimalShift(parts, -3 * step));
					if (scaled[0].length > 3 && step < 4)
						scaled = this.#digits(decimalShift(parts, -3 * ++step));
					parts = scaled;
					suffix =
						o.compactDisplay === 'long'
							? ['', ' thousand', ' million', ' billion', ' trillion'][step]
							: ['', 'K', 'M', 'B', 'T'][step];
				} else if (o.notation === 'scientific' || o.notation === 'engineering') {
					const lead =
						parts[0] === '0'
							? -/^0*/.exec(parts[1])[0].length - 1
							: parts[0].length - 1;
					const power = /^0*$/.test(parts.join(''))
						? 0
						: o.notation === 'engineering'
							? Math.floor(lead / 3) * 3
							: lead;
					parts = this.#digits(decimalShift(parts, -power));
					suffix = `E${power}`;
				} else {
					parts = this.#digits(parts);
				}
				let [whole, part] = parts;
				zero = /^0*$/.test(whole + part);
				whole = whole.padStart(Number(o.minimumIntegerDigits ?? 1), '0');
				const grouped =
					o.useGrouping !== false &&
					o.useGrouping !== 'false' &&
					!((o.useGrouping === 'min2' || o.notation === 'compact') && whole.length < 5);
				text =
					(grouped ? group(whole, swedish ? '\u00a0' : ',') : whole) +
					(part ? (swedish ? ',' : '.') + part : '') +
					suffix;
			}
			const sign = o.signDisplay ?? 'auto';
			const minus =
				negative &&
				sign !== 'never' &&
				!(zero && (sign === 'exceptZero' || sign === 'negative'));
			const plus =
				!negative && (sign === 'always' || (sign === 'exceptZero' && !zero && v === v));
			return this.#dress(
				text,
				minus ? (swedish ? '\u2212' : '-') : plus ? '+' : '',
				text === '1',
			);
		}
		#dress(text, sign, one) {
			const o = this.#o,
				swedish = this.#locale === 'sv-SE';
			if (o.style === 'percent') return `${sign}${text}${swedish ? '\u00a0' : ''}%`;
			if (o.style === 'unit') {
				const name =
					UNITS[o.unit][['narrow', 'short', 'long'].indexOf(o.unitDisplay ?? 'short')];
				const glued = o.unitDisplay === 'narrow' || /^[°%]/.test(name);
				const plural =
					(o.unitDisplay === 'long' ||
						['day', 'wk', 'mth', 'yr', 'byte'].includes(name)) &&
					!one &&
					!glued &&
					name !== 'percent';
				return `${sign}${text}${glued ? '' : ' '}${
					plural
						? name
								.replace(/^degree/, 'degrees')
								.replace(/^(?!degrees)(.*)$/, '$1s')
								.replace(/^(degrees)s?/, '$1')
						: name
				}`;
			}
			if (o.style !== 'currency') return sign + text;
			const display = o.currencyDisplay ?? 'symbol';
			if (display === 'name')
				refuse(
					"currencyDisplay: 'name' of NumberFormat",
					"it has 'symbol', 'narrowSymbol', 'code'",
				);
			const home = { 'en-CA': 'CAD' }[this.#locale];
			let symbol = display === 'code' ? o.currency : (CURRENCIES[o.currency] ?? o.currency);
			if (display === 'narrowSymbol' || o.currency === home)
				symbol = symbol.replace(/^[A-Z]+(?=[$¥])/, '');
			else if (
				o.currency === 'USD' &&
				display === 'symbol' &&
				(this.#locale === 'en-CA' || this.#locale === 'en-GB')
			)
				symbol = 'US$';
			else if (o.currency === 'JPY' && this.#locale === 'en-GB') symbol = 'JP¥';
			if (swedish) return `${sign}${text}\u00a0${{ SEK: 'kr' }[o.currency] ?? symbol}`;
			const space = /[A-Za-z]$/.test(symbol) ? '\u00a0' : '';
			return o.currencySign === 'accounting' && sign === '-'
				? `(${symbol}${space}${text})`
				: `${sign}${symbol}${space}${text}`;
		}
		resolvedOptions() {
			const { min, max, significant, compact, ...o } = this.#o;
			return {
				locale: this.#locale,
				numberingSystem: 'latn',
				...o,
				minimumIntegerDigits: o.minimumIntegerDigits ?? 1,
				minimumFractionDigits: min,
				maximumFractionDigits: max,
			};
		}
		static supportedLocalesOf(list) {
			return [list].flat().filter(l => LOCALES.includes(l) || l === 'en');
		}
	}
	const decimalShift = ([whole, part], by) => {
		for (; by > 0; by--) {
			whole += part[0] ?? '0';
			part = part.slice(1);
		}
		for (; by < 0; by++) {
			part = (whole.at(-1) ?? '0') + part;
			whole = whole.slice(0, -1);
		}
		return [whole.replace(/^0+(?=\d)/, '') || '0', part];
	};

	// ---- dates ----

	const MONTHS = [
		'January',
		'February',
		'March',
		'April',
		'May',
		'June',
		'July',
		'August',
		'September',
		'October',
		'November',
		'December',
	];
	const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
	const DATE = {
		weekday: ['long', 'short', 'narrow'],
		era: [],
		year: ['numeric', '2-digit'],
		month: ['numeric', '2-digit', 'long', 'short', 'narrow'],
		day: ['numeric', '2-digit'],
		hour: ['numeric', '2-digit'],
		minute: ['numeric', '2-digit'],
		second: ['numeric', '2-digit'],
		fractionalSecondDigits: [1, 2, 3],
		hour12: [true, false],
		hourCycle: ['h12', 'h23', 'h24', 'h11'],
		timeZone: true,
		timeZoneName: ['short', 'long'],
		dateStyle: ['full', 'long', 'medium', 'short'],
		timeStyle: ['full', 'long', 'medium', 'short'],
		localeMatcher: ['lookup', 'best fit'],
		formatMatcher: ['basic', 'best fit'],
		calendar: ['gregory', 'iso8601'],
		numberingSystem: ['latn'],
		dayPeriod: [],
	};
	const STYLES = {
		date: {
			full: { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' },
			long: { year: 'numeric', month: 'long', day: 'numeric' },
			medium: { year: 'numeric', month: 'short', day: 'numeric' },
			short: { year: '2-digit', month: 'numeric', day: 'numeric' },
		},
		time: {
			full: {
				hour: 'numeric',
				minute: '2-digit',
				second: '2-digit',
				timeZoneName: 'long',
			},
			long: {
				hour: 'numeric',
				minute: '2-digit',
				second: '2-digit',
				timeZoneName: 'short',
			},
			medium: { hour: 'numeric', minute: '2-digit', second: '2-digit' },
			short: { hour: 'numeric', minute: '2-digit' },
		},
	};
	const two = n => String(n).padStart(2, '0');
	const ZONES = /^(utc|gmt|etc\/(utc|gmt)|z|\+00:?00)$/i;

	class DateTimeFormat {
		#o;
		#locale;
		constructor(locales, given, need = 'date', what = 'DateTimeFormat') {
			this.#locale = locale(locales);
			const o = { ...options(what, given, DATE) };
			if (o.timeZone !== undefined && !ZONES.test(`${o.timeZone}`))
				refuse(
					`the time zone ${o.timeZone}`,
					'code has UTC alone: add the offset yourself, as in new Date(date.getTime() + hours * 3600000)',
				);
			const any = [
				'weekday',
				'year',
				'month',
				'day',
				'hour',
				'minute',
				'second',
				'fractionalSecondDigits',
			].some(k => o[k] !== undefined);
			if (o.dateStyle !== undefined || o.timeStyle !== undefined) {
				if (any)
					throw new TypeError(
						`Can't set option ${['weekday', 'year', 'month', 'day', 'hour', 'minute', 'second'].find(k => o[k] !== undefined)} when ${o.dateStyle ? 'dateStyle' : 'timeStyle'} is used`,
					);
				if ((need === 'only date' && o.timeStyle) || (need === 'only time' && o.dateStyle))
					throw new TypeError(
						`Invalid option : ${need === 'only date' ? 'timeStyle' : 'dateStyle'}`,
					);
				o.joined = o.dateStyle === 'full' || o.dateStyle === 'long' ? ' at ' : ', ';
				Object.assign(o, STYLES.date[o.dateStyle], STYLES.time[o.timeStyle]);
			} else {
				const dates = ['weekday', 'year', 'month', 'day'].some(k => o[k] !== undefined),
					times = ['hour', 'minute', 'second', 'fractionalSecondDigits'].some(
						k => o[k] !== undefined,
					);
				const wantsDate =
					need === 'only date' ? !dates : need === 'only time' ? false : !dates && !times;
				const wantsTime =
					need === 'only time' ? !times : need === 'both' && !dates && !times;
				if (wantsDate)
					Object.assign(o, {
						year: 'numeric',
						month: 'numeric',
						day: 'numeric',
					});
				if (wantsTime)
					Object.assign(o, {
						hour: 'numeric',
						minute: 'numeric',
						second: 'numeric',
					});
			}
			this.#o = o;
		}
		#date(d) {
			const o = this.#o,
				at = this.#locale;
			const year =
				o.year === '2-digit'
					? two(d.getUTCFullYear() % 100)
					: o.year && String(d.getUTCFullYear());
			const named = o.month === 'long' || o.month === 'short' || o.month === 'narrow',
				style = o.dateStyle;
			const day =
				o.day &&
				(o.day === '2-digit' || (at !== 'en-US' && o.month && !named)
					? two(d.getUTCDate())
					: String(d.getUTCDate()));
			const name = DAYS[d.getUTCDay()],
				weekday =
					o.weekday &&
					(o.weekday === 'long'
						? name
						: o.weekday === 'short'
							? name.slice(0, 3)
							: name[0]);
			if (at === 'sv-SE' && (named || weekday))
				refuse('a name of a month or day in sv-SE', 'it has numbers');
			if (named) {
				const long = MONTHS[d.getUTCMonth()];
				const brief = at === 'en-GB' && d.getUTCMonth() === 8 ? 'Sept' : long.slice(0, 3);
				const month = o.month === 'long' ? long : o.month === 'short' ? brief : long[0];
				if (at === 'en-GB')
					return [weekday, [day, month, year].filter(Boolean).join(' ')]
						.filter(Boolean)
						.join(year ? ', ' : ' ');
				const front = [month, day].filter(Boolean).join(' ');
				return [
					weekday,
					year && day ? `${front}, ${year}` : [front, year].filter(Boolean).join(' '),
				]
					.filter(Boolean)
					.join(', ');
			}
			const n = d.getUTCMonth() + 1,
				month =
					o.month &&
					(o.month === '2-digit' || (at !== 'en-US' && (o.day || o.year))
						? two(n)
						: String(n));
			if (at === 'en-CA' || at === 'sv-SE')
				return [
					weekday,
					[style === 'short' ? String(d.getUTCFullYear()) : year, month, day]
						.filter(Boolean)
						.join('-'),
				]
					.filter(Boolean)
					.join(', ');
			const list =
				at === 'en-GB'
					? [day, month, style === 'short' ? String(d.getUTCFullYear()) : year]
					: [month, day, year];
			const numbers = list.filter(Boolean).join('/');
			return weekday && numbers && /^\d+$/.test(numbers) && o.day && !o.month
				? `${numbers} ${weekday}`
				: [weekday, numbers].filter(Boolean).join(', ');
		}
		#time(d) {
			const o = this.#o,
				at = this.#locale;
			if (
				!['hour', 'minute', 'second', 'fractionalSecondDigits'].some(
					k => o[k] !== undefined,
				)
			)
				return '';
			const twelve =
				o.hour !== undefined &&
				(o.hour12 ??
					(o.hourCycle
						? o.hourCycle === 'h12' || o.hourCycle === 'h11'
						: at === 'en-US' || at === 'en-CA'));
			let h = d.getUTCHours();
			const half = h < 12 ? 'AM' : 'PM';
			if (twelve) h = h % 12 || 12;
			const parts = [];
			if (o.hour !== undefined)
				parts.push(o.hour === '2-digit' || !twelve ? two(h) : String(h));
			if (o.minute !== undefined)
				parts.push(
					parts.length || o.second !== undefined
						? two(d.getUTCMinutes())
						: String(d.getUTCMinutes()),
				);
			if (o.second !== undefined)
				parts.push(parts.length ? two(d.getUTCSeconds()) : String(d.getUTCSeconds()));
			let text = parts.join(':');
			if (o.fractionalSecondDigits)
				text +=
					(text ? '.' : '') +
					String(d.getUTCMilliseconds())
						.padStart(3, '0')
						.slice(0, o.fractionalSecondDigits);
			return twelve
				? `${text} ${at === 'en-CA' ? (half === 'AM' ? 'a.m.' : 'p.m.') : at === 'en-GB' ? half.toLowerCase() : half}`
				: text;
		}
		format(date) {
			const d = date === undefined ? new Date() : new Date(date);
			if (Number.isNaN(d.getTime())) throw new RangeError('Invalid time value');
			const o = this.#o,
				day = this.#date(d),
				time = this.#time(d);
			const zone =
				o.timeZoneName === 'long'
					? 'Coordinated Universal Time'
					: o.timeZoneName
						? 'UTC'
						: '';
			const alone = o.weekday && !o.year && !o.month && !o.day;
			const joined =
				o.joined ??
				(alone
					? ' '
					: o.month === 'long' && time
						? ' at '
						: this.#locale === 'sv-SE'
							? ' '
							: ', ');
			return [[day, time].filter(Boolean).join(joined), zone]
				.filter(Boolean)
				.join(time || !day ? ' ' : ', ');
		}
		formatToParts(date) {
			const o = this.#o;
			const days = { 'en-US': ['month', 'day', 'year'], 'en-GB': ['day', 'month', 'year'] };
			const order = [
				...(days[this.#locale] ?? ['year', 'month', 'day']),
				'hour',
				'minute',
				'second',
			];
			const left = order.filter(k => o[k] !== undefined);
			const typeOf = (text, isFirst) => {
				if (/^[^\p{L}\d]/u.test(text) || text === 'at') return 'literal';
				if (/^[ap]\.?m/i.test(text)) return 'dayPeriod';
				if (text === 'UTC') return 'timeZoneName';
				if (/^\d/.test(text)) return left.shift() ?? 'fractionalSecond';
				if (isFirst && o.weekday !== undefined) return 'weekday';
				left.splice(left.indexOf('month'), 1);
				return 'month';
			};
			const pieces = this.format(date).match(/[\p{L}.]+|\d+|[^\p{L}\d]+/gu);
			return pieces.map((value, i) => ({ type: typeOf(value, i === 0), value }));
		}
		formatRange(a, b) {
			return `${this.format(a)} – ${this.format(b)}`;
		}
		resolvedOptions() {
			const { joined, ...o } = this.#o;
			return {
				locale: this.#locale,
				calendar: 'gregory',
				numberingSystem: 'latn',
				timeZone: 'UTC',
				...o,
			};
		}
		static supportedLocalesOf(list) {
			return [list].flat().filter(l => LOCALES.includes(l) || l === 'en');
		}
	}

	// ---- order ----

	const COLLATOR = {
		sensitivity: ['base', 'accent', 'case', 'variant'],
		numeric: [true, false],
		usage: ['sort', 'search'],
		caseFirst: ['false', 'lower', 'upper'],
		ignorePunctuation: [true, false],
		localeMatcher: ['lookup', 'best fit'],
		collation: ['default'],
	};
	const ranks = c => (/\s/.test(c) ? 0 : /[\p{P}\p{S}]/u.test(c) ? 1 : /\p{N}/u.test(c) ? 2 : 3);
	const PUNCTUATION = '_-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$';
	const compareChars = (a, b) => {
		if (a === b) return 0;
		const ra = ranks(a),
			rb = ranks(b);
		if (ra !== rb) return ra - rb;
		if (ra === 1) {
			const [i, j] = [PUNCTUATION.indexOf(a), PUNCTUATION.indexOf(b)];
			if (i >= 0 && j >= 0) return i - j;
		}
		return a < b ? -1 : 1;
	};
	const collate = (x, y, o) => {
		if (x === y) return 0;
		let a = x.normalize('NFD'),
			b = y.normalize('NFD');
		if (o.ignorePunctuation) [a, b] = [a, b].map(s => s.replace(/[\p{P}\s]/gu, ''));
		const base = s =>
			s
				.replace(/\p{M}/gu, '')
				.toLowerCase()
				.match(o.numeric ? /\d+|[^]/gu : /[^]/gu) ?? [];
		const [p, q] = [base(a), base(b)];
		for (let i = 0; i < p.length && i < q.length; i++) {
			const numbers = o.numeric && /^\d/.test(p[i]) && /^\d/.test(q[i]);
			const [m, n] = numbers ? [BigInt(p[i]), BigInt(q[i])] : [];
			const order = numbers
				? m < n
					? -1
					: m > n
						? 1
						: 0
				: compareChars(p[i][0] === undefined ? '' : numbers ? '' : p[i], q[i]);
			if (order) return order < 0 ? -1 : 1;
		}
		if (p.length !== q.length) return p.length < q.length ? -1 : 1;
		const by = o.sensitivity ?? 'variant';
		const accents = s => s.toLowerCase();
		if ((by === 'accent' || by === 'variant') && accents(a) !== accents(b))
			return accents(a) < accents(b) ? -1 : 1;
		if (by === 'case' || by === 'variant') {
			const [c, d] = by === 'case' ? [a, b].map(s => s.replace(/\p{M}/gu, '')) : [a, b];
			for (let i = 0; i < c.length && i < d.length; i++) {
				if (c[i] !== d[i])
					return (
						(c[i] === c[i].toLowerCase() ? -1 : 1) * (o.caseFirst === 'upper' ? -1 : 1)
					);
			}
		}
		return 0;
	};
	class Collator {
		#o;
		#locale;
		constructor(locales, given) {
			this.#locale = locale(locales);
			this.#o = options('Collator', given, COLLATOR);
			this.compare = (a, b) => collate(`${a}`, `${b}`, this.#o);
			Object.defineProperty(this, 'compare', { enumerable: false });
		}
		resolvedOptions() {
			return {
				locale: this.#locale,
				usage: 'sort',
				sensitivity: 'variant',
				numeric: false,
				caseFirst: 'false',
				ignorePunctuation: false,
				...this.#o,
			};
		}
	}

	// ---- words ----

	class PluralRules {
		#ordinal;
		constructor(locales, given) {
			locale(locales);
			this.#ordinal =
				options('PluralRules', given, {
					type: ['cardinal', 'ordinal'],
					localeMatcher: ['lookup', 'best fit'],
				}).type === 'ordinal';
		}
		select(n) {
			if (!this.#ordinal) return Number(n) === 1 ? 'one' : 'other';
			const [one, ten] = [n % 10, n % 100];
			return one === 1 && ten !== 11
				? 'one'
				: one === 2 && ten !== 12
					? 'two'
					: one === 3 && ten !== 13
						? 'few'
						: 'other';
		}
	}
	class ListFormat {
		#o;
		constructor(locales, given) {
			locale(locales);
			this.#o = options('ListFormat', given, {
				type: ['conjunction', 'disjunction', 'unit'],
				style: ['long', 'short', 'narrow'],
				localeMatcher: ['lookup', 'best fit'],
			});
		}
		format(list) {
			const all = [...list],
				{ type = 'conjunction', style = 'long' } = this.#o;
			if (type === 'unit') return all.join(style === 'narrow' ? ' ' : ', ');
			const word = type === 'disjunction' ? 'or' : style === 'short' ? '&' : 'and';
			if (style === 'narrow' && type === 'conjunction') return all.join(', ');
			return all.length < 2
				? all.join('')
				: all.length === 2
					? all.join(` ${word} `)
					: `${all.slice(0, -1).join(', ')}, ${word} ${all.at(-1)}`;
		}
	}
	class RelativeTimeFormat {
		#o;
		constructor(locales, given) {
			locale(locales);
			this.#o = options('RelativeTimeFormat', given, {
				numeric: ['always', 'auto'],
				style: ['long'],
				localeMatcher: ['lookup', 'best fit'],
			});
		}
		format(value, unit) {
			const n = Number(value),
				by = `${unit}`.replace(/s$/, '');
			if (
				!['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'].includes(
					by,
				)
			)
				throw new RangeError(`Invalid unit argument for format() '${unit}'`);
			if (this.#o.numeric === 'auto') {
				if (by === 'day' && [-1, 0, 1].includes(n))
					return ['yesterday', 'today', 'tomorrow'][n + 1];
				if (n === 0 && by === 'second') return 'now';
				if ([-1, 0, 1].includes(n) && !['second', 'minute', 'hour', 'day'].includes(by))
					return `${['last', 'this', 'next'][n + 1]} ${by}`;
				if (n === 0) return `this ${by}`;
			}
			const text = `${Math.abs(n).toLocaleString('en-US')} ${by}${Math.abs(n) === 1 ? '' : 's'}`;
			return n < 0 || Object.is(n, -0) ? `${text} ago` : `in ${text}`;
		}
	}

	const Intl = {
		NumberFormat,
		DateTimeFormat,
		Collator,
		PluralRules,
		ListFormat,
		RelativeTimeFormat,
		getCanonicalLocales: l => (l === undefined ? [] : [l].flat()),
		supportedValuesOf: key =>
			key === 'timeZone' ? ['UTC'] : refuse(`Intl.supportedValuesOf(${key})`),
	};
	for (const name of ['Segmenter', 'DisplayNames', 'Locale', 'DurationFormat'])
		Object.defineProperty(Intl, name, {
			value: class {
				constructor() {
					refuse(`Intl.${name}`);
				}
			},
			writable: true,
			configurable: true,
		});
	// As the standard has them: format() needs no `this`, and they work without `new`.
	const callable = C => {
		const F = function (...args) {
			const made = Reflect.construct(C, args.slice(0, 2), new.target ?? F);
			if (typeof made.format === 'function')
				Object.defineProperty(made, 'format', {
					value: C.prototype.format.bind(made),
					writable: true,
					configurable: true,
				});
			return made;
		};
		Object.defineProperty(F, 'name', { value: C.name });
		F.prototype = C.prototype;
		Object.defineProperty(C.prototype, 'constructor', { value: F });
		if (C.supportedLocalesOf) F.supportedLocalesOf = C.supportedLocalesOf;
		return F;
	};
	for (const name of ['NumberFormat', 'DateTimeFormat', 'Collator'])
		Intl[name] = callable(Intl[name]);
	for (const name of Object.keys(Intl)) Object.defineProperty(Intl, name, { enumerable: false });
	Object.defineProperty(Intl, Symbol.toStringTag, { value: 'Intl', configurable: true });
	Object.defineProperty(globalThis, 'Intl', {
		value: Intl,
		writable: true,
		configurable: true,
	});

	// ---- methods ----

	const method = (to, name, f) =>
		Object.defineProperty(to, name, {
			value: {
				[name](...args) {
					return f(this, ...args);
				},
			}[name],
			writable: true,
			configurable: true,
		});
	method(Number.prototype, 'toLocaleString', (n, l, o) =>
		new NumberFormat(l, o).format(Number.prototype.valueOf.call(n)),
	);
	method(BigInt.prototype, 'toLocaleString', (n, l, o) =>
		new NumberFormat(l, o).format(BigInt.prototype.valueOf.call(n)),
	);
	for (const [name, need] of [
		['toLocaleString', 'both'],
		['toLocaleDateString', 'only date'],
		['toLocaleTimeString', 'only time'],
	])
		method(Date.prototype, name, (d, l, o) =>
			Number.isNaN(Date.prototype.getTime.call(d))
				? 'Invalid Date'
				: new DateTimeFormat(
						l,
						need === 'only date'
							? dated(o, true)
							: need === 'only time'
								? dated(o, false)
								: o,
						need,
						name,
					).format(d),
		);
	// toLocaleDateString() has a date whatever else is asked for, toLocaleTimeString() a time.
	const dated = (o, date) => {
		if (!o || o.dateStyle || o.timeStyle) return o;
		const has = (
			date
				? ['weekday', 'year', 'month', 'day']
				: ['hour', 'minute', 'second', 'fractionalSecondDigits']
		).some(k => o[k] !== undefined);
		return has
			? o
			: {
					...o,
					...(date
						? {
								year: 'numeric',
								month: 'numeric',
								day: 'numeric',
							}
						: {
								hour: 'numeric',
								minute: 'numeric',
								second: 'numeric',
							}),
				};
	};
	method(String.prototype, 'localeCompare', (s, other, l, o) =>
		l === undefined && o === undefined
			? collate(`${s}`, `${other}`, {})
			: new Collator(l, o).compare(s, other),
	);
};
