// JSON of strangers, whose numbers are shown as they were sent: one that would change becomes a
// JSON.rawJSON(). No view may calculate with what is one, and no structured clone can take it.
const keep = (changes) => (_, v, context) => typeof v === 'number' && context?.source && changes(v, context.source)
	? JSON.rawJSON(context.source) : v;
const asWritten = keep((v, source) => String(v) !== source);
const ifLarge = keep((v) => Math.abs(v) > Number.MAX_SAFE_INTEGER);

export const isRaw = (value) => JSON.isRawJSON?.(value) === true;

// What a call or a rule has, or the text if it is no JSON: 1.0 is not 1.
export function parse(text) {
	try {
		return JSON.parse(text, asWritten);
	} catch {
		return text;
	}
}

// What the hub tells. Its own numbers are all small enough to calculate with.
export const parseAnswer = (text) => JSON.parse(text, ifLarge);
