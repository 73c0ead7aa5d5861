#pragma once
/*
 * Looks for prompt injection in what a server says of its tools: texts that speak to the model
 * instead of describing. It only warns: findings are shown to the person who approves, and a text
 * without any may still be poisoned. The texts are compared in a normal form: lower case,
 * look-alikes as the Latin letters they pose as, without characters that show nothing. Each word is
 * looked at once, so the time is O(bytes).
 */
#include "base/arena.h"
#include "json/document/json.h"

enum {
	SCAN_MAX = 32, /* findings; what is over is left out */
	SCAN_EXCERPT_CHARS = 160,
};

enum scan_kind {
	SCAN_OVERRIDE, /* earlier instructions are to be ignored, or new ones given */
	SCAN_ROLE, /* poses as a message of the system or the assistant, or gives a role */
	SCAN_MARKUP, /* directives in pseudo-tags or comments */
	SCAN_SECRECY, /* something is to be kept from the user */
	SCAN_CONSENT, /* acts without asking, or claims that the user has agreed */
	SCAN_SECRETS, /* wants files or values that are secret */
	SCAN_SENDING, /* wants the conversation or data sent somewhere, or as an argument */
	SCAN_TOOLS, /* tools of others: their place, their behaviour, when to call them */
	SCAN_COMMAND, /* a command to run, or commands of a shell that fetch and run */
	SCAN_ENCODED, /* encoded text */
	SCAN_HIDDEN, /* characters that a reader does not see, or text pushed out of sight */
	SCAN_KINDS
};

/* One sentence for the person who approves; static. */
extern const char *const scan_kind_texts[SCAN_KINDS];
/* On the wire: "override"; static. */
extern const char *const scan_kind_names[SCAN_KINDS];

struct scan_finding {
	enum scan_kind kind;
	struct str where; /* JSON pointer of the string or of the member so named */
	struct str excerpt; /* CLEAN_REVEAL */
};

struct scan_findings {
	struct scan_finding p[SCAN_MAX];
	size_t n;
};

struct scan_names {
	const struct str *p;
	size_t n;
};

/* Adds to *ret what is found in all strings of a tool, names of members included: at most one
 * finding of each kind for each string. A tool may speak of itself, of its arguments, and of the
 * other tools of its server, whose names are `own`. Strings of *ret are of the arena. ERR_LIMIT: no
 * memory. */
int scan_tool(const struct json_val *tool, const struct scan_names *own, struct arena *a,
	      struct scan_findings *ret, struct err *e) MUST_USE;
