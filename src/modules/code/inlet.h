#pragma once
/*
 * How programs of a sandbox ask the hub for calls of modules (docs/mcp.md): a connection to the
 * hub's socket in the sandbox's own network carries one request and its answer. Both begin with
 * the length of what follows, four bytes, the lowest first.
 *
 * The request is a JSON object:
 *
 *	do		"list", "info" or "call"
 *	module		of info and call: its name, or what Python calls it
 *	tool		of a call, by its server's name
 *	arguments	of a call, an object
 *	text		true: the answer is for people and shells
 *
 * The answer is a byte of enum inlet_answer, and a text.
 */
enum {
	INLET_IP = 0x7f030001, /* 127.3.0.1, where no port of a sandbox is exposed from */
	INLET_PORT = 3129,
	INLET_HEAD = 4,
	INLET_REQUEST_MAX = (1 << 20) + 4096, /* bytes */
	INLET_ANSWER_MAX = 8 << 20,
	INLET_TOGETHER_MAX = 32, /* connections of a sandbox */
};

enum inlet_answer {
	INLET_RESULT = 'r', /* JSON, or with "text" a text; of a call as that of MCP's tools/call */
	INLET_ERROR = 'e', /* with "text": the tool says that it has failed */
	INLET_FAILED = 'f', /* why there is none, such as "denied: …" */
};
