#pragma once
/*
 * The compiled form, shared by the files behind json/schema/schema.h. A node is one subschema, with
 * a member for each keyword; the member of an absent keyword is NULL or an empty list.
 *
 *	schema.c	limits, compiling in three passes, freeing
 *	read.c		pass 1: the keyword table, from JSON to nodes
 *	ref.c		passes 2 and 3: references to nodes, and their loops
 *	uri.c		URI references
 *	check.c		a value against a node: applicators, and what was evaluated
 *	assert.c	a value against a node: assertions
 *	number.c	multipleOf
 *	equal.c		equality, hashes, uniqueItems
 *	format.c	formats
 */
#include "base/arena.h"
#include "json/document/pointer.h"
#include "json/schema/regex.h"
#include "json/schema/schema.h"
#include "json/schema/format.h"

struct schema_node;

/* One of several subschemas under a keyword. */
struct schema_child {
	struct str key; /* the member's name; for patternProperties the expression */
	struct schema_node *node;
	struct regex *regex; /* patternProperties only */
};

struct schema_list {
	struct schema_child *p;
	size_t n;
};

/* A schema with a URI of its own: the document, and each schema with an $id. */
struct schema_resource {
	struct schema_resource *next;
	struct str uri; /* absolute, or as far as it is known; without fragment */
	struct schema_node *root;
	enum schema_dialect dialect;
};

struct schema_anchor {
	struct schema_anchor *next;
	struct schema_resource *resource;
	struct str name;
	struct schema_node *node;
	bool dynamic;
};

/* A bound on a count, as minLength. */
struct schema_count {
	bool is;
	uint64_t n;
};

/* Bits of schema_node.types, by enum json_type. SCHEMA_WHOLE is "integer", which includes 2.0. */
#define SCHEMA_TYPE(t) (1u << (t))
#define SCHEMA_WHOLE (1u << 31)

struct schema_node {
	struct schema_node *next; /* all nodes, in the order of their creation */
	const struct json_val *v;
	struct schema_resource *resource;
	/* the state of the search for loops */
	enum { SCHEMA_NEW, SCHEMA_OPEN, SCHEMA_DONE } search;
	bool never; /* the schema `false` */

	/* Its place below `up`: /keyword, /keyword/key or /keyword/index. A node that a reference
	 * found below an unknown keyword has no keyword; its `up` is the node in which the search
	 * began. */
	const struct schema_node *up;
	const char *keyword;
	struct str key;
	size_t index; /* SCHEMA_NO_INDEX: none */

	/* assertions */
	unsigned types; /* 0: any */
	const struct json_val *enum_, *const_;
	const struct json_val *multiple_of, *maximum, *exclusive_maximum, *minimum,
		*exclusive_minimum;
	struct schema_count max_length, min_length, max_items, min_items, max_properties,
		min_properties, max_contains, min_contains;
	bool unique_items;
	struct regex *pattern;
	const struct schema_format *format;
	const struct json_val *required, *dependent_required, *dependencies;

	/* applied to the same value */
	struct schema_list all_of, any_of, one_of, dependent_schemas;
	struct schema_node *not_, *if_, *then_, *else_;
	const struct json_val *ref_text, *dynamic_ref_text;
	struct schema_node *ref, *dynamic_ref;
	struct str dynamic_name; /* the anchor of a $dynamicRef that is dynamic; else STR_NONE */

	/* applied to parts of the value */
	struct schema_list properties, patterns; /* properties: sorted */
	struct schema_node *additional, *names;
	struct schema_list prefix;
	struct schema_node *items, *contains;
	struct schema_node *unevaluated_items, *unevaluated_properties;

	/* not applied, only referred to */
	struct schema_list definitions;
	struct schema_node *aside;
};

#define SCHEMA_NO_INDEX ((size_t)-1)

struct schema {
	struct arena *arena;
	struct json_doc *doc; /* owned, from schema_parse(); else NULL */
	struct schema_options options; /* with defaults filled in */
	struct schema_node *root, **nodes_end, *nodes;
	struct schema_resource *resources;
	struct schema_anchor *anchors;
	size_t nodes_n, regex_bytes;
};

/* --- read.c --- */

/* Reads v and everything below it. `at` gives its place: up, keyword, key and index are copied.
 * resource NULL: v is the document. */
struct schema_node *schema_read(struct schema *s, const struct json_val *v,
				const struct schema_node *at, struct schema_resource *resource,
				struct err *e) MUST_USE;
/* Puts the place in front of the message and returns -1. keyword may be NULL. */
int schema_refuse(const struct schema_node *n, const char *keyword, struct err *e);
void schema_place(const struct schema_node *n, struct json_pointer *p);
/* Orders by length, then by bytes. */
int schema_compare(struct str a, struct str b);

/* --- ref.c --- */
int schema_resolve(struct schema *s, struct err *e) MUST_USE;
int schema_loops(struct schema *s, struct err *e) MUST_USE;
/* The anchor of that name in a resource, or NULL. */
struct schema_anchor *schema_anchor(const struct schema *s, const struct schema_resource *in,
				    struct str name);

/* --- uri.c --- */

/* Resolves ref against base (RFC 3986 §5.2), in the arena. *ret_uri has no fragment; that is
 * *ret_fragment, borrowed from ref (STR_NONE if absent). */
int schema_uri(struct arena *a, struct str base, struct str ref, struct str *ret_uri,
	       struct str *ret_fragment, struct err *e) MUST_USE;

/* --- number.c, equal.c --- */

/* -1, 0 or 1: a is smaller than, equal to or larger than b; exact for integers. */
int schema_order(const struct json_val *a, const struct json_val *b);
/* Exact in decimal: 0.3 is a multiple of 0.1. d must be positive. */
bool schema_multiple(const struct json_val *v, const struct json_val *d);

/* Both reduce *steps. If it is not enough they return false, and *steps is 0. */
bool schema_equal(const struct json_val *a, const struct json_val *b, uint64_t *steps);
/* 1 if two elements are equal, else 0; -1 with *e without memory. */
int schema_repeats(const struct json_val *array, size_t ret_at[2], uint64_t *steps,
		   struct err *e) MUST_USE;

/* --- check.c, assert.c --- */

/* The state of one check. */
struct schema_run {
	const struct schema *s;
	uint64_t steps; /* left */
	unsigned depth;
	unsigned trial; /* number of enclosing subschemas whose failure is not a fault */
	bool broken; /* *e is set: the check has no result */
	struct schema_faults *faults;
	struct err *e;
};

/* One value and the node that it is checked against. */
struct schema_frame {
	const struct schema_node *n;
	const struct json_val *v;
	const struct json_place *place;
	enum json_type type;
};

/* Takes n steps. False if fewer are left, or the check is already broken. */
bool schema_spend(struct schema_run *r, uint64_t n);
/* Records a fault, if one is wanted here. Always returns false. */
bool schema_fault(struct schema_run *r, const struct schema_frame *f, const char *keyword,
		  const char *says, ...) PRINTF_LIKE(4, 5);
/* Whether to continue after a failure, because more faults are wanted. */
bool schema_goes_on(const struct schema_run *r);
bool schema_matches(struct schema_run *r, const struct regex *re, struct str text);
bool schema_assert(struct schema_run *r, const struct schema_frame *f);
