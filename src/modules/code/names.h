#pragma once
/*
 * Names that are safe to write in code, for what servers call their tools. They depend on the set
 * of names alone, not on its order. A name that serves as it is stays; others are made to serve,
 * and where two then are the same, all but the one that was so from the start get a suffix from
 * the digest of their own name. So a tool that is added later renames no other tool, except where
 * it itself claims a name that was only derived.
 *
 * Nothing is dispatched by these names: a function knows its tool by the index.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum {
	NAME_MAX_BYTES = 64, /* of each name made here */
	NAME_SERVER_MAX = 32,
	NAMES_MAX = 4096, /* tools of a server */
};

struct tool_name {
	/* A function, in JavaScript as in Python: [A-Za-z][A-Za-z0-9_]*, reserved in neither, no
	 * member of every object or module, no name that the declarations use themselves. */
	struct str function;
	struct str type; /* the beginning of its types' names: "GetForecast" */
	struct str gateway; /* "server__tool" in [a-zA-Z0-9_-], for a plain list of tools */
};

/* Names for the n tools of a server, whose name name_server() accepts. ret[i] is that of tools[i];
 * its strings are of the arena. ERR_INVALID: two tools have the same name, or one is empty.
 * ERR_TOO_LARGE: n > NAMES_MAX. */
int names_make(struct str server, const struct str *tools, size_t n, struct arena *a,
	       struct tool_name *ret, struct err *e) MUST_USE;

/* Whether a server, or a module of a client, may be called so: [a-z][a-z0-9-]*, NAME_SERVER_MAX
 * bytes at most, and neither reserved nor with a reserved beginning. ERR_INVALID says why not. */
int name_server(struct str name, struct err *e) MUST_USE;

/* The last part of `holt.mcp.NAME` in Python, for such a name: "my-server" is my_server, "import"
 * is import_. No two servers share one. */
void name_python(struct str server, char ret[NAME_SERVER_MAX + 2]);

/* A member's name that needs no quotes in TypeScript. */
bool name_is_plain(struct str name);

/* A word that no function may be called, and no attribute in Python. */
bool name_is_reserved(struct str name);

/* The words of a text, each with a capital: "get_forecast" is GetForecast. At most NAME_MAX_BYTES,
 * never empty, never with a digit at its start. */
struct str name_pascal(struct str text, char ret[NAME_MAX_BYTES + 1]);
