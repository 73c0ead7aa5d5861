/*
 * Reading. If a text may exceed a limit, a scan over its bytes first counts values and depth, so
 * that a hostile text costs no memory. Then yyjson parses it, and then objects are checked for
 * repeated keys (json/document/keys.c). `struct json_doc` and `struct json_val` are yyjson's types
 * under our own names.
 */
#include "json/document/json.h"

#include <assert.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <yyjson.h>

#include "base/large.h"
#include "json/document/raw.h"

enum { DEPTH_HARD = 1024 }; /* functions that walk a document recurse this deep */

static const double exact_max = 9007199254740992.0; /* 2^53 */

static yyjson_val *raw(const struct json_val *v)
{
	return (yyjson_val *)(uintptr_t)v;
}

static const struct json_val *val(yyjson_val *v)
{
	return (const struct json_val *)v;
}

static yyjson_doc *raw_doc(const struct json_doc *d)
{
	return (yyjson_doc *)(uintptr_t)d;
}

/* The number of bytes that could open an object or array, including those in strings. It is counted
 * in blocks short enough that the count fits a byte, so that the compiler vectorises the loop. */
static size_t openers(struct str s)
{
	enum { BLOCK = 240 };
	size_t all = 0;

	while (s.n > 0) {
		size_t n = s.n < BLOCK ? s.n : BLOCK;
		unsigned char here = 0;

		for (size_t i = 0; i < n; i++)
			here = (unsigned char)(here +
					       ((s.p[i] | 0x20) == '{')); /* 0x20: '[' to '{' */
		all += here;
		s.p += n;
		s.n -= n;
	}
	return all;
}

/* Counts the values and depth of a text. The count is exact for valid JSON, and arbitrary for
 * invalid text, which the parser refuses. */
static int scan(struct str s, size_t values_max, unsigned depth_max, struct err *e)
{
	size_t values = 1;
	unsigned depth = 0;
	char before = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		switch (c) {
		case ' ':
		case '\t':
		case '\r':
		case '\n':
			continue;
		case '"':
			i = json_string_end(s, i + 1) - 1;
			break;
		case '[':
		case '{':
			values++;
			if (++depth > depth_max)
				return err_set(e, ERR_TOO_LARGE, "nested deeper than %u levels",
					       depth_max);
			break;
		case ']':
		case '}':
			if (before == '[' || before == '{')
				values--;
			depth -= depth > 0;
			break;
		case ',':
		case ':':
			values++;
			break;
		}
		before = c;
		/* +1: an opening bracket counts as a value, but may turn out to be empty */
		if (values > values_max + 1)
			break;
	}
	if (values > values_max)
		return err_set(e, ERR_TOO_LARGE, "more than %zu values", values_max);
	return 0;
}

static void *alc_malloc(void *ctx, size_t n)
{
	return large_hint(malloc(n), n);
}

static void *alc_realloc(void *ctx, void *p, size_t was, size_t n)
{
	return large_hint(realloc(p, n), n);
}

static void alc_free(void *ctx, void *p)
{
	free(p);
}

static const yyjson_alc alc = { alc_malloc, alc_realloc, alc_free, NULL };

/* The same for secrets. Each allocation stores its own size. */
static void alc_wipe(void *ctx, void *p)
{
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

static void *alc_move(void *ctx, void *p, size_t was, size_t n)
{
	void *to = large_hint(malloc(n), n);

	if (!to)
		return NULL;
	memcpy(to, p, was < n ? was : n);
	alc_wipe(ctx, p);
	return to;
}

static const yyjson_alc alc_secret = { alc_malloc, alc_move, alc_wipe, NULL };

/* Allocates from the caller's memory, and from the heap once that is full. The allocator's own
 * state is at its beginning. */
struct room {
	char *at, *end;
};

enum { ROOM_ALIGN = 16 };
static_assert(sizeof(struct room) <= ROOM_ALIGN,
	      "a room's first byte is behind what it says of itself");

static bool is_in(const struct room *r, const void *p)
{
	return (const char *)p >= (const char *)r && (const char *)p < r->end;
}

static void *room_malloc(void *ctx, size_t n)
{
	struct room *r = ctx;
	char *p = r->at;

	if (n + ROOM_ALIGN > (size_t)(r->end - p))
		return large_hint(malloc(n), n);
	r->at += (n + ROOM_ALIGN - 1) / ROOM_ALIGN * ROOM_ALIGN;
	return p;
}

static void *room_realloc(void *ctx, void *p, size_t was, size_t n)
{
	void *to;

	if (!is_in(ctx, p))
		return large_hint(realloc(p, n), n);
	if (n <= was)
		return p;
	to = room_malloc(ctx, n);
	return to ? memcpy(to, p, was) : NULL;
}

static void room_free(void *ctx, void *p)
{
	if (!is_in(ctx, p))
		free(p);
}

/* Chooses the allocator of a document. */
static yyjson_alc how(const struct json_options *o)
{
	struct room *r = o->room;

	if (o->secret)
		return alc_secret;
	if (!r || o->room_n < 4 * ROOM_ALIGN)
		return alc;
	r->end = (char *)r + o->room_n;
	r->at = (char *)r + ROOM_ALIGN;
	return (yyjson_alc){ room_malloc, room_realloc, room_free, r };
}

static yyjson_doc *parse(struct str text, const yyjson_alc *memory, struct err *e)
{
	yyjson_read_err why;
	yyjson_doc *doc;

	/* yyjson only needs char * for its in-place mode, which is not used here */
	doc = yyjson_read_opts((char *)(uintptr_t)text.p, text.n, YYJSON_READ_NOFLAG, memory, &why);
	if (doc)
		return doc;
	if (why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
		err_set(e, ERR_LIMIT, "out of memory");
	else if (text.n == 0)
		err_set(e, ERR_INVALID, "not JSON: empty");
	else
		err_set(e, ERR_INVALID, "not JSON at byte %zu: %s", why.pos, why.msg);
	return NULL;
}

struct json_doc *json_parse(struct str text, const struct json_options *o, struct err *e)
{
	static const struct json_options none;
	size_t bytes, values;
	unsigned depth;
	yyjson_alc memory;
	yyjson_doc *doc;

	o = o ? o : &none;
	bytes = o->bytes ? o->bytes : JSON_BYTES_MAX;
	values = o->values ? o->values : JSON_VALUES_MAX;
	depth = o->depth ? o->depth : JSON_DEPTH_MAX;
	if (depth > DEPTH_HARD)
		depth = DEPTH_HARD;
	if (text.n > bytes)
		return err_set(e, ERR_TOO_LARGE, "more than %zu bytes", bytes), NULL;
	/* most texts are so short, with so few brackets, that they can't exceed a limit */
	if ((text.n >= values || openers(text) > depth) && scan(text, values, depth, e) < 0)
		return NULL;
	memory = how(o);
	doc = parse(text, &memory, e);
	if (!doc)
		return NULL;
	if (!o->keys_unchecked && json_check_keys(val(yyjson_doc_get_root(doc)), e) < 0) {
		yyjson_doc_free(doc);
		return NULL;
	}
	return (struct json_doc *)doc;
}

/* The number behind "\\u" at the front of s; -1: there is none. */
static int escaped_unit(const char *p, const char *end)
{
	unsigned unit = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		char c = p[i];
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0')
			       : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
			       : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
						      : 16;

		if (digit == 16)
			return -1;
		unit = unit << 4 | digit;
	}
	return (int)unit;
}

char *json_mend_halves(struct str text)
{
	autofree char *copy = mem_dup(text.p, text.n);
	char *end = copy ? copy + text.n : NULL;
	bool mended = false;

	for (char *p = copy; p && p < end; p++) {
		int unit = escaped_unit(p, end), next;

		if (*p != '\\')
			continue;
		next = unit >= 0xd800 && unit < 0xdc00 ? escaped_unit(p + 6, end) : -1;
		if (unit < 0xd800 || unit > 0xdfff) {
			p++; /* what is escaped */
		} else if (next >= 0xdc00 && next <= 0xdfff) {
			p += 11;
		} else {
			memcpy(p, "\\ufffd", 6);
			mended = true;
		}
	}
	return mended ? take_ptr(copy) : NULL;
}

void json_free(struct json_doc *d)
{
	yyjson_doc_free(raw_doc(d));
}

const struct json_val *json_root(const struct json_doc *d)
{
	return val(yyjson_doc_get_root(raw_doc(d)));
}

size_t json_footprint(const struct json_doc *d)
{
	yyjson_doc *doc = raw_doc(d);

	return yyjson_doc_get_read_size(doc) + yyjson_doc_get_val_count(doc) * sizeof(yyjson_val);
}

enum json_type json_type(const struct json_val *v)
{
	switch (yyjson_get_type(raw(v))) {
	case YYJSON_TYPE_NULL:
		return JSON_NULL;
	case YYJSON_TYPE_BOOL:
		return JSON_BOOL;
	case YYJSON_TYPE_NUM:
		return yyjson_is_real(raw(v)) ? JSON_REAL : JSON_INT;
	case YYJSON_TYPE_STR:
		return JSON_STR;
	case YYJSON_TYPE_ARR:
		return JSON_ARRAY;
	case YYJSON_TYPE_OBJ:
		return JSON_OBJECT;
	default:
		return JSON_ABSENT;
	}
}

const char *json_type_name(enum json_type type)
{
	static const char *const names[] = {
		[JSON_ABSENT] = "nothing", [JSON_NULL] = "null",	[JSON_BOOL] = "a boolean",
		[JSON_INT] = "an integer", [JSON_REAL] = "a number",	[JSON_STR] = "a string",
		[JSON_ARRAY] = "an array", [JSON_OBJECT] = "an object",
	};

	return names[type];
}

bool json_bool(const struct json_val *v)
{
	return yyjson_is_true(raw(v));
}

struct str json_str(const struct json_val *v)
{
	return (struct str){ yyjson_get_str(raw(v)),
			     yyjson_is_str(raw(v)) ? yyjson_get_len(raw(v)) : 0 };
}

double json_real(const struct json_val *v)
{
	return yyjson_get_num(raw(v));
}

/* Whether a double is a whole number and exact, such as 2.0. */
static bool whole(yyjson_val *v, double *ret)
{
	double d = yyjson_get_real(v);

	if (!yyjson_is_real(v) || d != trunc(d) || d < -exact_max || d > exact_max)
		return false;
	*ret = d;
	return true;
}

bool json_int64(const struct json_val *v, int64_t *ret)
{
	yyjson_val *r = raw(v);
	double d;

	if (yyjson_is_sint(r) || (yyjson_is_uint(r) && yyjson_get_uint(r) <= INT64_MAX)) {
		*ret = yyjson_get_sint(r);
		return true;
	}
	if (!whole(r, &d))
		return false;
	*ret = (int64_t)d;
	return true;
}

bool json_uint64(const struct json_val *v, uint64_t *ret)
{
	int64_t i;

	if (yyjson_is_uint(raw(v))) {
		*ret = yyjson_get_uint(raw(v));
		return true;
	}
	if (!json_int64(v, &i) || i < 0)
		return false;
	*ret = (uint64_t)i;
	return true;
}

size_t json_len(const struct json_val *v)
{
	return yyjson_is_ctn(raw(v)) ? yyjson_get_len(raw(v)) : 0;
}

const struct json_val *json_get_str(const struct json_val *v, struct str key)
{
	return val(yyjson_obj_getn(raw(v), key.p, key.n));
}

void json_get_all(const struct json_val *v, const struct str *keys, size_t n,
		  const struct json_val **ret)
{
	yyjson_val *key = raw(v);
	size_t left = yyjson_is_obj(key) ? unsafe_yyjson_get_len(key) : 0;

	for (size_t i = 0; i < n; i++)
		ret[i] = NULL;
	for (key = left ? unsafe_yyjson_get_first(key) : NULL; left > 0; left--) {
		for (size_t i = 0; i < n; i++) {
			if (ret[i] || !unsafe_yyjson_equals_strn(key, keys[i].p, keys[i].n))
				continue;
			ret[i] = val(key + 1);
			break;
		}
		key = unsafe_yyjson_get_next(key + 1);
	}
}

struct json_iter json_iter(const struct json_val *v)
{
	struct json_iter it = { .left = json_len(v), .object = yyjson_is_obj(raw(v)) };

	it.index = (size_t)-1; /* the first json_next() makes it 0 */
	if (it.left > 0)
		it.at = val(unsafe_yyjson_get_first(raw(v)));
	return it;
}

bool json_next(struct json_iter *it)
{
	yyjson_val *at = raw(it->at);

	if (it->left == 0)
		return false;
	it->left--;
	it->index++;
	if (it->object) {
		it->name = val(at);
		it->key = json_str(it->name);
		at = yyjson_obj_iter_get_val(at);
	}
	it->val = val(at);
	if (it->left > 0)
		it->at = val(unsafe_yyjson_get_next(at));
	return true;
}
