#pragma once
/*
 * What a JSON Schema (2020-12, draft-07 and their mixtures) says of the type of a value, as a tree
 * from which declarations are printed. The schema is a stranger's: what can't be told, such as a
 * reference to nowhere or to another document, is SHAPE_ANY, and so is what exceeds a limit.
 * Nothing is fetched. Reading takes O(bytes); a tree has at most SHAPE_NODES nodes.
 */
#include "base/arena.h"
#include "json/document/json.h"

enum {
	SHAPE_NODES = 4096,
	SHAPE_DEPTH = 24,
	SHAPE_MEMBERS = 256, /* of an object */
	SHAPE_PARTS = 64, /* of a union or tuple */
	SHAPE_LITERALS = 100, /* of an enum; with more it is only their types */
	SHAPE_DEFS = 128,
	SHAPE_TEXT = 200, /* bytes of a member's name or of a literal */
};

enum shape_kind {
	SHAPE_ANY,
	SHAPE_NEVER,
	SHAPE_NULL,
	SHAPE_BOOL,
	SHAPE_INT,
	SHAPE_NUMBER,
	SHAPE_STRING,
	SHAPE_LITERAL, /* a string, number or boolean */
	SHAPE_ARRAY, /* rest: its elements */
	SHAPE_TUPLE, /* parts; the first `needed` are always there; rest: what follows, or NULL */
	SHAPE_OBJECT, /* members; rest: other members, or NULL where none are spoken of */
	SHAPE_UNION, /* parts */
	SHAPE_BOTH, /* parts, all of which it is */
	SHAPE_REF, /* def */
};

struct shape_member {
	struct str name; /* borrowed from the document */
	struct shape *type;
	const struct json_val *schema; /* with its description; may be NULL */
	bool optional;
};

struct shape {
	enum shape_kind kind;
	const struct json_val *literal;
	struct shape *rest;
	struct shape **parts;
	size_t parts_n, needed;
	struct shape_member *members;
	size_t members_n;
	bool more; /* members were left out */
	struct shape_def *def;
};

/* The target of a $ref. Definitions that are only one another, in a circle, do not occur. */
struct shape_def {
	struct str ref;
	struct str word; /* the end of ref, for a name: "Node" */
	const struct json_val *schema;
	struct shape *type;
	const char *name; /* the printer's */
	int state; /* private */
};

struct shapes {
	struct shape *root;
	struct shape_def *defs; /* SHAPE_DEFS have room */
	size_t defs_n;
};

/* All of the arena; schema NULL: SHAPE_ANY. ERR_TOO_LARGE, ERR_LIMIT: of the arena. */
int shape_read(const struct json_val *schema, struct arena *a, struct shapes *ret,
	       struct err *e) MUST_USE;

/* What references lead to: the last definition of a chain of them, and its type; s itself where it
 * is no reference. */
const struct shape_def *shape_def_of(const struct shape *ref);
const struct shape *shape_target(const struct shape *s);
