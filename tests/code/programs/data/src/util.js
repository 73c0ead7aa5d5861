export function slug(text) {
	// TODO(ada): handle umlauts
	return text.toLowerCase().replace(/\s+/g, "-");
}
