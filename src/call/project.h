#pragma once
/*
 * How a door shows an operation's request: the members that are not listed are as the operation
 * has them, in one place: the body, if nothing else is said. From the list and the operation's
 * table come the tables by which the door decodes a request and prints its schema, so that types,
 * bounds and texts are said once.
 *
 *	static const struct op_member members[] = {
 *		{ "cwd", .as = "working_dir" },
 *		{ "sandbox", .as = "id", .in = OP_PATH },
 *		{ "background", .in = OP_HIDDEN },
 *	};
 */
#include "call/op.h"

enum op_place { OP_BODY, OP_PATH, OP_QUERY, OP_HEADER, OP_PLACES, OP_HIDDEN = OP_PLACES };
extern const char *const op_place_names[OP_PLACES]; /* "body", "path", "query", "header" */

struct op_member {
	const char *name; /* in the operation's table */
	const char *as; /* NULL: the same */
	enum op_place in;
	/* Of OP_HEADER: this parameter of the query may stand in for the header; one of both must
	 * be there. */
	const char *or_query;
	const char *doc; /* NULL: the operation's */
	/* Instead of the operation's, if it is one; of OP_HIDDEN: what it always is. */
	struct field_default def;
	/* Whether it must be there: as the operation says, or otherwise. */
	enum { OP_AS_IS, OP_REQUIRED, OP_OPTIONAL } presence;
	const struct field_table *table; /* fewer rows of the same struct; NULL: the operation's */
	/* Narrower bounds than the operation's; 0: as that says. */
	int64_t min, max;
};

struct op_members {
	const struct op_member *p;
	size_t n;
	enum op_place others; /* where those stand that are not listed */
};
#define OP_MEMBERS(rows_) ((struct op_members){ (rows_), ARRAY_LEN(rows_) })

/* The tables of a door's places, over the operation's struct. */
struct op_shape {
	struct field_table places[OP_PLACES]; /* n 0: nothing stands there */
	struct field_table hidden; /* those that are always the same */
	struct field *rows; /* owned */
};

/* ERR_BUG where a member is named that the operation has not. */
int op_shape_init(struct op_shape *s, const struct op *op, struct op_members members,
		  struct err *e) MUST_USE;
void op_shape_fini(struct op_shape *s);

/* Of a failure of field_decode_members() with a place's table: who gave a member by the operation's
 * name of it is told the door's, and not one that only looks like it. */
void op_members_meant(struct op_members members, const struct field_table *place, struct err *e);

/* A request of which no member is read yet. */
void op_shape_defaults(const struct op_shape *s, const struct op *op, void *request);
