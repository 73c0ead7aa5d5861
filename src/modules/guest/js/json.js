// BigInts in JSON: the digits of an integer, which other languages read exactly.
host => {
	'use strict';
	const stringify = JSON.stringify;
	Object.defineProperty(BigInt.prototype, 'toJSON', {
		value: function toJSON() {
			return host.integer(this.valueOf());
		},
		writable: true,
		configurable: true,
	});
	Object.defineProperty(JSON, 'stringify', {
		value: function (value, replacer, space) {
			const f =
				typeof replacer !== 'function'
					? replacer
					: function (key, v) {
							const was = this[key];
							const made = replacer.call(
								this,
								key,
								typeof was === 'bigint' ? was : v,
							);
							return typeof made === 'bigint' ? made.toJSON() : made;
						};
			return host.integers(stringify(value, f, space));
		},
		writable: true,
		configurable: true,
	});
	Object.defineProperty(JSON.stringify, 'name', { value: 'stringify' });
};
