/*
 * JSON, both ways: what is parsed comes back the same when it is written and parsed again, and when
 * the bytes of a part of it are; what a table decodes, it encodes into what it decodes to the same.
 *
 */
#include <string.h>

#include "fuzz.h"
#include "json/field/field.h"
#include "json/document/raw.h"

enum { WRITE_MAX = 1 << 22 };

struct inner {
	struct str path;
	uint32_t mode;
};

enum mode { MODE_FAST, MODE_SAFE };
static const char *const mode_names[] = { "fast", "safe" };

struct params {
	struct str name, note;
	bool dry, has_offset;
	int32_t small;
	int64_t timeout, offset;
	uint32_t port;
	uint64_t bytes;
	double ratio;
	enum mode mode;
	struct field_strs argv;
	struct field_map env;
	struct inner one;
	struct {
		struct inner *p;
		size_t n;
	} files;
};

static const struct field inner_fields[] = {
	FIELD(struct inner, path, .max = 8, .doc = ""),
	FIELD(struct inner, mode, .max = 511, .def = DEFAULT_INT(420), .doc = ""),
};
static const struct field_table inner_table = FIELD_TABLE(struct inner, inner_fields);

static const struct field fields[] = {
	FIELD(struct params, name, .flags = FIELD_REQUIRED, .max = 5, .doc = ""),
	FIELD(struct params, note, .flags = FIELD_NUL_OK, .doc = ""),
	FIELD(struct params, dry, .doc = ""),
	FIELD(struct params, small, .doc = ""),
	FIELD(struct params, timeout, .min = 1, .max = 600, .def = DEFAULT_INT(30), .doc = ""),
	FIELD(struct params, offset, .flags = FIELD_NULLABLE,
	      .has = FIELD_HAS(struct params, has_offset), .doc = ""),
	FIELD(struct params, port, .doc = ""),
	FIELD(struct params, bytes, .doc = ""),
	FIELD(struct params, ratio, .min = -1, .max = 1, .doc = ""),
	FIELD_ENUM(struct params, mode, mode_names, .doc = ""),
	FIELD(struct params, argv, .max = 3, .item_max = 4, .doc = ""),
	FIELD(struct params, env, .max = 2, .item_max = 6, .doc = ""),
	FIELD_OBJECT(struct params, one, inner_table, .doc = ""),
	FIELD_OBJECTS(struct params, files, inner_table, .max = 2, .doc = ""),
};
static const struct field_table table = FIELD_TABLE(struct params, fields);

static struct buf written(const struct json_val *v)
{
	struct buf b = BUF_INIT(WRITE_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_val(&w, v);
	MUST(json_write_done(&w, &e) == 0);
	return b;
}

static void check_round(const struct json_val *v)
{
	autobuf struct buf first = written(v);
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(buf_str(&first), NULL, &e);

	MUST(d);
	autobuf struct buf second = written(json_root(d));
	MUST(str_eq(buf_str(&first), buf_str(&second)));
	MUST(!memchr(first.p, '\n', first.n));
}

static void check_decode(const struct json_val *v)
{
	AUTO(arena_free) struct arena *a = arena_new(1 << 20);
	struct params p;
	struct err e;

	if (field_decode(&table, v, a, &p, &e) < 0) {
		MUST(e.code == ERR_INVALID || e.code == ERR_TOO_LARGE);
		MUST(e.msg[0]);
		return;
	}
	autofree char *first = field_encode_text(&table, &p, WRITE_MAX, &e);
	MUST(first);
	AUTO(json_free) struct json_doc *d = json_parse(str_of(first), NULL, &e);
	MUST(d);
	MUST(field_decode(&table, json_root(d), a, &p, &e) == 0);
	autofree char *second = field_encode_text(&table, &p, WRITE_MAX, &e);
	MUST(second && strcmp(first, second) == 0);
}

/* The bytes of each part are a text that reads the same. */
static void check_raw(const struct json_val *v, struct str text)
{
	struct json_iter it = json_iter(v);
	struct json_raw raw = json_raw(text);
	struct str at;
	struct err e;

	while (json_next(&it)) {
		MUST(json_raw_next(&raw, &at));
		MUST(at.p >= text.p && at.p + at.n <= text.p + text.n);
		autobuf struct buf first = written(it.val);
		AUTO(json_free) struct json_doc *d = json_parse(at, NULL, &e);
		MUST(d);
		autobuf struct buf second = written(json_root(d));
		MUST(str_eq(buf_str(&first), buf_str(&second)));
		if (it.index < 8)
			check_raw(it.val, at);
	}
	MUST(!json_raw_next(&raw, &at));
}

/* As a program's output, the input becomes a string that reads back as UTF-8. */
static void check_bytes(struct str bytes)
{
	autobuf struct buf b = BUF_INIT(WRITE_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_str(&w, bytes);
	MUST(json_write_done(&w, &e) == 0);
	AUTO(json_free) struct json_doc *d = json_parse(buf_str(&b), NULL, &e);
	MUST(d && json_type(json_root(d)) == JSON_STR);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct json_options strict = { .depth = 8, .values = 64 };
	struct str text = { (const char *)data, n };
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(text, NULL, &e);
	AUTO(json_free) struct json_doc *bounded = json_parse(text, &strict, &e);

	MUST(d || !bounded);
	check_bytes(text);
	if (!d)
		return 0;
	check_round(json_root(d));
	check_raw(json_root(d), text);
	check_decode(json_root(d));
	return 0;
}
