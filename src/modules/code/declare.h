#pragma once
/*
 * Declarations of a server's tools for programs and for models: TypeScript, stubs of Python, and
 * one line a tool. They are made from what the server says, so every text in them is cleaned, every
 * name is one of modules/code/names.h or a quoted literal, and they stay within the limits below:
 * types that go beyond them are `unknown` or `Any`. Output is valid whatever the schema is.
 */
#include "json/document/json.h"
#include "modules/code/names.h"

struct buf;

enum {
	DECLARE_TOOL_BYTES = 64 << 10, /* of one tool, after which its types are cut short */
	DECLARE_BYTES = 1 << 20, /* of a module, likewise; then a few hundred bytes a tool */
	DECLARE_LINE = 400, /* of a summary, likewise */
};

struct declared_tool {
	const struct tool_name *name;
	const struct json_val *tool; /* its definition */
};

/* Appends `declare module "host:mcp-SERVER" { … }`: for each tool the types of its input and
 * output, and the function. All results are `Result<T>`: {ok: true, data, text} or {ok: false,
 * error}. The server's name is one that name_server() accepts. ERR_TOO_LARGE, ERR_LIMIT: of the
 * buffer, or no memory. */
int declare_typescript(struct buf *to, struct str server, const struct declared_tool *tools,
		       size_t n, struct err *e) MUST_USE;

/* Appends the stub (.pyi) of `holt.mcp.SERVER`: the same, with TypedDicts. */
int declare_python(struct buf *to, struct str server, const struct declared_tool *tools, size_t n,
		   struct err *e) MUST_USE;

/* Appends one line without its end: `get_forecast(input: {location: string; days?: number}):
 * Promise<Result<{temperature: number}>>`. */
int declare_line(struct buf *to, const struct declared_tool *tool, struct err *e) MUST_USE;
