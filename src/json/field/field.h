#pragma once
/*
 * The field table: one row a member of a C struct. The same rows decode a JSON object strictly
 * into the struct, print its JSON Schema (valid under draft 2020-12 and draft-07), and encode the
 * struct back into JSON, so that what is documented, accepted and sent can't drift apart.
 *
 * 	static const struct field exec_fields[] = {
 * 		FIELD(struct exec_params, command, .flags = FIELD_REQUIRED, .min = 1,
 * 		      .doc = "Shell line."),
 * 		FIELD(struct exec_params, timeout_ms, .min = 1, .max = 600000,
 * 		      .def = DEFAULT_INT(30000), .doc = "Kill after this long."),
 * 		FIELD_ENUM(struct exec_params, mode, mode_names, .doc = "…"),
 * 	};
 * 	static const struct field_table exec_table = FIELD_TABLE(struct exec_params, exec_fields);
 *
 * The C type picks the JSON type:
 *
 * 	bool					boolean
 * 	int32_t int64_t uint32_t uint64_t	integer; min, max: value
 * 	double					number; min, max: value
 * 	struct str				string; min, max: characters (Unicode scalar values)
 * 	struct field_strs			array of strings; min, max: elements
 * 	struct field_map			object of strings (env); min, max: members
 * 	an enum, by FIELD_ENUM			string, one of a list of names indexed by the enum
 * 	a struct, by FIELD_OBJECT		object with a table of its own
 * 	{ T *p; size_t n; }, by FIELD_OBJECTS	array of objects; min, max: elements
 * 	{ T *p; size_t n; }, by FIELD_DICT	object of objects; min, max: members
 * 	struct field_json			object of any members; max: bytes of its text
 *
 * Bounds: max 0 means none beyond the type's own. A signed number with both 0 has no bounds; with
 * either given, both hold ({.max = 9} is 0 to 9).
 *
 * Absent and null: a member that is not sent takes .def, else stays zero (a string STR_NONE). Where
 * zero and absent must differ, .has = FIELD_HAS(struct x, has_timeout) names a bool member that
 * tells; encoding leaves the member out (null if FIELD_NULLABLE and FIELD_REQUIRED) while it is
 * false. An optional string that is STR_NONE is left out likewise; a required one is written "".
 */
#include <assert.h>

#include "base/arena.h"
#include "json/document/json.h"
#include "json/document/write.h"

struct field_strs {
	const struct str *p;
	size_t n;
};

struct field_pair {
	struct str key, value;
};

struct field_map {
	const struct field_pair *p;
	size_t n;
};

/* An object that others define, as its text: of one line, and empty where it is absent. */
struct field_json {
	struct str text;
};

/* The members with which a list for FIELD_OBJECTS() begins. */
struct field_list {
	const void *p;
	size_t n;
};

enum { FIELD_ROWS_MAX = 64 };

enum field_kind {
	FIELD_IS_BOOL,
	FIELD_IS_INT32,
	FIELD_IS_INT64,
	FIELD_IS_UINT32,
	FIELD_IS_UINT64,
	FIELD_IS_REAL,
	FIELD_IS_STR,
	FIELD_IS_STRS,
	FIELD_IS_MAP,
	FIELD_IS_ENUM,
	FIELD_IS_OBJECT,
	FIELD_IS_OBJECTS,
	FIELD_IS_DICT,
	FIELD_IS_JSON,
};

enum field_flag {
	FIELD_OPTIONAL = 0,
	FIELD_REQUIRED = 1 << 0,
	FIELD_NULLABLE = 1 << 1, /* null is accepted and means absent; the schema says so */
	FIELD_NUL_OK = 1 << 2, /* strings may contain U+0000; else it is refused */
	FIELD_BYTES = 1 << 3, /* a string of any bytes, written as base64 */
	/* A string, or each value of a map, that is read but never written: FIELD_SECRET_MARK
	 * stands for it, so that no canonical form, digest or record has it. The schema says
	 * writeOnly. */
	FIELD_SECRET = 1 << 4,
	FIELD_PLAIN = 1 << 5, /* a secret that is told to its owner: redaction leaves it as it is */
	/* An object for which false may stand: that sets the first member of its struct, `bool
	 * off`, which has no row. true is {}. */
	FIELD_SWITCH = 1 << 6,
	/* A string, or each of an array, is a path. Calls give it one spelling before anything
	 * decides by it (op_spell_paths()). */
	FIELD_PATH = 1 << 7,
};

#define FIELD_SECRET_MARK "[secret]"

struct field_default {
	enum { FIELD_NO_DEFAULT, FIELD_DEFAULT_INT, FIELD_DEFAULT_REAL, FIELD_DEFAULT_STR } is;
	int64_t i;
	double d;
	const char *s;
};

#define DEFAULT_BOOL(b)                                                                            \
	{                                                                                          \
		.is = FIELD_DEFAULT_INT, .i = (b)                                                  \
	}
#define DEFAULT_INT(v)                                                                             \
	{                                                                                          \
		.is = FIELD_DEFAULT_INT, .i = (v)                                                  \
	}
#define DEFAULT_ENUM(v)                                                                            \
	{                                                                                          \
		.is = FIELD_DEFAULT_INT, .i = (v)                                                  \
	}
#define DEFAULT_REAL(v)                                                                            \
	{                                                                                          \
		.is = FIELD_DEFAULT_REAL, .d = (v)                                                 \
	}
#define DEFAULT_STR(z)                                                                             \
	{                                                                                          \
		.is = FIELD_DEFAULT_STR, .s = (z)                                                  \
	}

struct field {
	const char *name; /* on the wire */
	const char *doc; /* one sentence for the callers: people and models */
	int64_t min, max;
	/* characters of each string in an array, of each value in a map, or of each name in a
	 * dictionary */
	int64_t item_min, item_max;
	struct field_default def;
	unsigned flags;
	/* filled by the macros: */
	enum field_kind kind;
	size_t in; /* size of the struct that the row is for */
	size_t at; /* offset of the member */
	size_t count_at; /* offset of the element count: FIELD_OBJECTS, FIELD_DICT */
	size_t has; /* 1 + offset of the bool; 0 for none */
	const char *const *names; /* FIELD_ENUM */
	size_t names_n;
	const struct field_table *table; /* FIELD_OBJECT, FIELD_OBJECTS, FIELD_DICT */
	size_t elem; /* size of an element or nested struct */
};

struct field_table {
	const struct field *rows;
	size_t n;
	size_t size; /* of the struct */
	const char *doc; /* description of the object; may be NULL */
	bool open; /* ignore members without a row: for documents that others define */
	bool bare; /* in a dictionary: each member is the value of its only row */
};

#define FIELD_KIND(x)                                                                              \
	_Generic((x), bool                                                                         \
		 : FIELD_IS_BOOL, int32_t                                                          \
		 : FIELD_IS_INT32, int64_t                                                         \
		 : FIELD_IS_INT64, uint32_t                                                        \
		 : FIELD_IS_UINT32, uint64_t                                                       \
		 : FIELD_IS_UINT64, double                                                         \
		 : FIELD_IS_REAL, struct str                                                       \
		 : FIELD_IS_STR, struct field_strs                                                 \
		 : FIELD_IS_STRS, struct field_map                                                 \
		 : FIELD_IS_MAP, struct field_json                                                 \
		 : FIELD_IS_JSON)

#define FIELD_MEMBER(S, m) (((S *)0)->m)

/* 0 if the condition holds; does not compile otherwise. */
#define FIELD_MUST(cond, why)                                                                      \
	(0 * sizeof(struct {                                                                       \
		 static_assert(cond, why);                                                         \
		 int unused;                                                                       \
	 }))

#define FIELD_NAMED(S, m, name_, ...)                                                              \
	{                                                                                          \
		.name = (name_), .kind = FIELD_KIND(FIELD_MEMBER(S, m)), .in = sizeof(S),          \
		.at = offsetof(S, m), __VA_ARGS__                                                  \
	}

#define FIELD(S, m, ...) FIELD_NAMED(S, m, #m, __VA_ARGS__)

/* names: an array of strings, one for each value of the enum from 0. */
#define FIELD_ENUM(S, m, names_, ...)                                                              \
	{                                                                                          \
		.name = #m, .kind = FIELD_IS_ENUM, .in = sizeof(S),                                \
		.at = offsetof(S, m) +                                                             \
		      FIELD_MUST(sizeof(FIELD_MEMBER(S, m)) == sizeof(int), "an enum"),            \
		.names = (names_), .names_n = ARRAY_LEN(names_), __VA_ARGS__                       \
	}

/* The same with another name on the wire. */
#define FIELD_NAMED_ENUM(S, m, name_, names_, ...)                                                 \
	{                                                                                          \
		.name = (name_), .kind = FIELD_IS_ENUM, .in = sizeof(S),                           \
		.at = offsetof(S, m) +                                                             \
		      FIELD_MUST(sizeof(FIELD_MEMBER(S, m)) == sizeof(int), "an enum"),            \
		.names = (names_), .names_n = ARRAY_LEN(names_), __VA_ARGS__                       \
	}

/* table: a struct field_table of the member's struct type. */
#define FIELD_OBJECT(S, m, table_, ...) FIELD_NAMED_OBJECT(S, m, #m, table_, __VA_ARGS__)

/* The same with another name on the wire. */
#define FIELD_NAMED_OBJECT(S, m, name_, table_, ...)                                               \
	{                                                                                          \
		.name = (name_), .kind = FIELD_IS_OBJECT, .in = sizeof(S), .at = offsetof(S, m),   \
		.table = &(table_), .elem = sizeof(FIELD_MEMBER(S, m)), __VA_ARGS__                \
	}

/* The member is a struct with p (to the table's struct type) and size_t n. */
#define FIELD_OBJECTS(S, m, table_, ...) FIELD_NAMED_OBJECTS(S, m, #m, table_, __VA_ARGS__)

/* The same with another name on the wire. */
#define FIELD_NAMED_OBJECTS(S, m, name_, table_, ...)                                              \
	{                                                                                          \
		.name = (name_), .kind = FIELD_IS_OBJECTS, .in = sizeof(S),                        \
		.at = offsetof(S, m.p),                                                            \
		.count_at = offsetof(S, m.n) +                                                     \
			    FIELD_MUST(sizeof(FIELD_MEMBER(S, m).n) == sizeof(size_t),             \
				       "size_t n"),                                                \
		.table = &(table_), .elem = sizeof(*FIELD_MEMBER(S, m).p), __VA_ARGS__             \
	}

/* The same as an object: each member's name goes into the element's first member, struct str name,
 * which has no row. */
#define FIELD_DICT(S, m, table_, ...) FIELD_NAMED_DICT(S, m, #m, table_, __VA_ARGS__)

/* The same with another name on the wire. */
#define FIELD_NAMED_DICT(S, m, name_, table_, ...)                                                 \
	{                                                                                          \
		.name = (name_), .kind = FIELD_IS_DICT, .in = sizeof(S),                           \
		.at = offsetof(S, m.p) +                                                           \
		      FIELD_MUST(offsetof(__typeof__(*FIELD_MEMBER(S, m).p), name) == 0,           \
				 "the name comes first"),                                          \
		.count_at = offsetof(S, m.n) +                                                     \
			    FIELD_MUST(sizeof(FIELD_MEMBER(S, m).n) == sizeof(size_t),             \
				       "size_t n"),                                                \
		.table = &(table_), .elem = sizeof(*FIELD_MEMBER(S, m).p), __VA_ARGS__             \
	}

#define FIELD_HAS(S, m)                                                                            \
	(1 + offsetof(S, m) +                                                                      \
	 FIELD_MUST(_Generic(FIELD_MEMBER(S, m), bool : 1, default : 0), ".has names a bool"))

#define FIELD_TABLE(S, rows_, ...)                                                                 \
	{                                                                                          \
		.rows = (rows_), .n = ARRAY_LEN(rows_), .size = sizeof(S), __VA_ARGS__             \
	}

/* Decodes an object into *ret (the table's struct, zeroed first). v NULL stands for {}. Strings are
 * borrowed from v's document; arrays and maps are in a. -1 with ERR_INVALID: v is not an object, or
 * a member is unknown (unless the table is open; the message has the nearest known name), missing,
 * of a wrong type or out of bounds (the message names it as in "files[2].path" and says what it
 * takes); ERR_TOO_LARGE or ERR_LIMIT from the arena. On failure *ret is unspecified. */
int field_decode(const struct field_table *t, const struct json_val *v, struct arena *a, void *ret,
		 struct err *e) MUST_USE;

/* The same of a part of an object: what is required may be missing. */
int field_decode_part(const struct field_table *t, const struct json_val *v, struct arena *a,
		      void *ret, struct err *e) MUST_USE;

struct json_pointer; /* json/document/pointer.h */
/* The same, and a refusal's place is *where; its message then names the last member alone. */
int field_decode_where(const struct field_table *t, const struct json_val *v, struct arena *a,
		       void *ret, struct json_pointer *where, struct err *e) MUST_USE;

/* The same for some members of a struct: a table with only their rows fills them in. The struct was
 * prepared with field_defaults() and the whole table. */
void field_defaults(const struct field_table *t, void *ret);
int field_decode_members(const struct field_table *t, const struct json_val *v, struct arena *a,
			 void *ret, struct err *e) MUST_USE;

/* Copies a struct and all that it points to into a; text() replaces every string. NULL if the arena
 * fails. */
typedef struct str (*field_text_fn)(void *data, const struct field *row, struct str s);
void *field_copy(const struct field_table *t, const void *from, struct arena *a, field_text_fn text,
		 void *data, struct err *e) MUST_USE;
/* Writes a value; text() replaces every string and every name of a member, with row NULL. */
void field_copy_val(const struct json_val *v, field_text_fn text, void *data,
		    struct json_writer *w);

/* Lets change() replace each string, also of an array, whose row has one of the flags, in place.
 * Absent ones are left out. Arrays that change are copied into a. */
typedef int (*field_change_fn)(void *data, const struct field *row, struct str *s, struct err *e);
int field_change(const struct field_table *t, void *base, unsigned flags, struct arena *a,
		 field_change_fn change, void *data, struct err *e) MUST_USE;

/* Shows every text of a struct at or below a JSON pointer: strings as they are, other values as
 * JSON has them, and of dictionaries and maps the values. A place of a list, * or a number, stands
 * for all of its places. Nothing, where the pointer leads nowhere. False: there is a struct
 * field_json whose text can't be read, so not all was shown. */
typedef void (*field_see_fn)(void *data, struct str text);
bool field_visit(const struct field_table *t, const void *from, const char *pointer,
		 field_see_fn see, void *data);

/* The row that a JSON pointer leads to, also below its lists and dictionaries, where there may be
 * nothing; NULL: no object of the table has that. "" leads to no row. */
const struct field *field_of_pointer(const struct field_table *t, const char *pointer);
/* Whether a step of a pointer leads into a list: to all of its places. */
bool field_is_place(struct str step);
/* Each row with its pointer, in which * stands for a place of a list and NAME for a name. */
typedef void (*field_pointer_fn)(void *data, const struct field *row, const char *pointer);
void field_pointers(const struct field_table *t, field_pointer_fn each, void *data);

/* Writes the struct as one object; the members of maps are sorted by name. The writer keeps the
 * first failure. */
void field_encode(const struct field_table *t, const void *from, struct json_writer *w);

/* The same as an owned, NUL-terminated text of at most max bytes. */
char *field_encode_text(const struct field_table *t, const void *from, size_t max,
			struct err *e) MUST_USE;

/* The JSON Schema of the object: type, properties, required, additionalProperties (true for open
 * tables). The text form is owned and NUL-terminated. */
void field_schema(const struct field_table *t, struct json_writer *w);
/* The schema of one row's value. */
void field_schema_row(const struct field *f, struct json_writer *w);
char *field_schema_text(const struct field_table *t, struct err *e) MUST_USE;

/* ERR_BUG if a table contradicts itself: a duplicate name, a row of another struct, reversed
 * bounds, a default out of bounds, a required field with a default, a row without doc. Tests call
 * it for every table. */
int field_check(const struct field_table *t, struct err *e) MUST_USE;
