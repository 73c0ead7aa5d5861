#pragma once
/* What the printers of declarations share (modules/code/declare.h): text with a soft limit and a
 * first failure that sticks, literals, comments, and names that differ. */
#include "base/buf.h"
#include "modules/code/declare.h"
#include "modules/code/shape.h"

enum print_language { PRINT_TYPESCRIPT, PRINT_PYTHON };

enum {
	PRINT_ARENA = 32 << 20, /* of one tool */
	PRINT_MEMBER_CHARS = 400, /* of a member's description */
};

struct printer {
	struct buf *to;
	enum print_language language;
	size_t soft; /* bytes of *to after which types are cut short */
	unsigned indent; /* tabs of TypeScript, four blanks of Python */
	struct arena *arena; /* of the tool that is printed */
	struct err err;
};

void print(struct printer *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
void print_str(struct printer *p, struct str s);
void print_line_end(struct printer *p); /* and the indentation */

/* Whether the soft limit is reached. */
static inline bool print_is_full(const struct printer *p)
{
	return p->to->n >= p->soft || p->err.code;
}

/* A quoted string. Nothing in it is hidden, nor ends a script of HTML. */
void print_string(struct printer *p, struct str s);
void print_literal(struct printer *p, const struct json_val *v);

/* The lines of a comment of a schema or tool: its description, else its title, then its default and
 * bounds, as tags. Nothing if there is neither. */
void print_comment(struct printer *p, const struct json_val *schema, size_t chars);

/* Names for all that the shapes define, which begin so, and differ from each other. */
void print_name_defs(struct printer *p, struct shapes *s, const char *base);
const char *print_name(struct printer *p, struct shapes *s, const char *base, struct str word);

/* Reads both schemas of a tool. -1: p->err is set. */
int print_read(struct printer *p, const struct json_val *tool, struct shapes *ret_in,
	       struct shapes *ret_out);

/* Whether a type is so long that it gets a name. */
bool print_needs_name(const struct shape *s);

/* Whether all of an input may be left out. */
bool print_is_optional(const struct shape *s);
