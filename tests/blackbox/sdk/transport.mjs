// The way to a server: a program, or a URL with a token.
export function transportTo(server, Stdio, Http, Sse) {
	if (!server.url)
		return new Stdio(server);
	const requestInit = { headers: { Authorization: `Bearer ${server.token}` } };
	return new (server.sse ? Sse : Http)(new URL(server.url), { requestInit });
}

// Prints what was seen, and ends: fetch of Node.js 18 keeps its connections, and the process with them, for minutes.
export function end(seen) {
	process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit());
}
