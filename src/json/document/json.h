#pragma once
/*
 * JSON documents (RFC 8259), read strictly and within limits. Refused are: more bytes, values or
 * nesting than the options allow (counted before anything is allocated), duplicate object keys,
 * invalid UTF-8, lone surrogates, comments, trailing commas, NaN and Infinity, numbers outside the
 * range of a double, a byte order mark, and anything but white space after the document.
 *
 * Integers from -2^63 to 2^64-1 are exact; all other numbers are doubles.
 *
 * A document owns its values. A `const struct json_val *` and every string from it are borrowed
 * until json_free(). NULL stands for an absent value: every function below accepts it.
 */
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct json_doc;
struct json_val;

enum {
	JSON_BYTES_MAX = 16 << 20,
	JSON_VALUES_MAX = 1 << 18,
	JSON_DEPTH_MAX = 64, /* [] is 1 deep, [[]] is 2 deep */
	JSON_POINTER_MAX = 160, /* bytes of a JSON pointer in an error; longer ones are cut */
};

struct json_options {
	size_t bytes; /* 0: JSON_BYTES_MAX */
	size_t values; /* 0: JSON_VALUES_MAX; a key counts as one */
	unsigned depth; /* 0: JSON_DEPTH_MAX; at most 1024 */
	bool keys_unchecked; /* leave duplicate keys to a later json_check_keys() */
	bool secret; /* the document's memory is overwritten before it is freed */
	/* Memory for the document, used until it is full; owned by the caller, aligned for any
	 * type, and borrowed until json_free(). NULL: the document allocates its own, as it always
	 * does with `secret`. */
	void *room;
	size_t room_n; /* bytes */
};

/* text is copied. o may be NULL. NULL with *e: ERR_INVALID: the text is not JSON or repeats a key
 * (the message has the position or the key's JSON pointer); ERR_TOO_LARGE: a limit was exceeded;
 * ERR_LIMIT: no memory. */
struct json_doc *json_parse(struct str text, const struct json_options *o, struct err *e) MUST_USE;
/* A copy of a JSON text in which the escape of half a surrogate pair is that of U+FFFD: JavaScript
 * and Python write such, and no strict reader takes them. Of the same length, for free(). NULL: the
 * text has none, or no memory. */
char *json_mend_halves(struct str text);
void json_free(struct json_doc *d); /* NULL-safe */
AUTO_DEFINE(json_free, struct json_doc)

const struct json_val *json_root(const struct json_doc *d);

/* Bytes of memory that the document uses, approximately. */
size_t json_footprint(const struct json_doc *d);

/* ERR_INVALID with the JSON pointer of a key that occurs twice in an object in v, or in v itself.
 * O(n log n) in the number of keys. */
int json_check_keys(const struct json_val *v, struct err *e) MUST_USE;

enum json_type {
	JSON_ABSENT, /* NULL */
	JSON_NULL,
	JSON_BOOL,
	JSON_INT, /* fits int64_t or uint64_t */
	JSON_REAL,
	JSON_STR,
	JSON_ARRAY,
	JSON_OBJECT,
};

enum json_type json_type(const struct json_val *v);

/* "a string", "an object", "null", … for messages; static. */
const char *json_type_name(enum json_type type);

bool json_bool(const struct json_val *v); /* false unless it is true */
struct str json_str(const struct json_val *v); /* STR_NONE unless a string; may contain NUL */
double json_real(const struct json_val *v); /* any number; 0 for other types */

/* False, with *ret unchanged, unless v is an integer that fits. 2.0 is one, as in JSON Schema. */
bool json_int64(const struct json_val *v, int64_t *ret);
bool json_uint64(const struct json_val *v, uint64_t *ret);

/* Elements of an array, members of an object; 0 for other types. */
size_t json_len(const struct json_val *v);

/* A member of an object; NULL if it is absent or v is not an object. O(members). */
const struct json_val *json_get_str(const struct json_val *v, struct str key);
static inline const struct json_val *json_get(const struct json_val *v, const char *key)
{
	return json_get_str(v, str_of(key));
}

/* Looks up several members in one pass: ret[i] is what json_get_str() returns for keys[i]. The keys
 * must differ. */
void json_get_all(const struct json_val *v, const struct str *keys, size_t n,
		  const struct json_val **ret);

/*
 * Members or elements in the order of the text:
 *
 *	struct json_iter it = json_iter(v);
 *	while (json_next(&it))
 *		use(it.key, it.val);
 *
 * For what is neither array nor object there are none.
 */
struct json_iter {
	struct str key; /* STR_NONE in an array */
	const struct json_val *name; /* the key as a value of its own; NULL in an array */
	const struct json_val *val;
	size_t index; /* of val */
	/* private: */
	const struct json_val *at;
	size_t left;
	bool object;
};

struct json_iter json_iter(const struct json_val *v);
bool json_next(struct json_iter *it);
