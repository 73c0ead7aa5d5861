/* json/field/field.h: one table decodes, documents and encodes. */
#include <limits.h>

#include "alloc_fail.h"
#include "json/field/field.h"
#include "json/document/near.h"
#include "test.h"

enum mode { MODE_FAST, MODE_SAFE };
static const char *const mode_names[] = { "fast", "safe" };

struct file {
	struct str path;
	uint32_t mode;
};

struct limits {
	int64_t memory;
	double cpus;
};

struct params {
	struct str name, note;
	bool dry, has_offset, has_exit;
	int32_t small;
	int64_t timeout, offset;
	uint32_t port;
	uint64_t bytes;
	int32_t exit_code;
	double ratio;
	enum mode mode;
	struct field_strs argv;
	struct field_map env;
	struct limits limits;
	struct {
		struct file *p;
		size_t n;
	} files;
};

static const struct field file_fields[] = {
	FIELD(struct file, path, .flags = FIELD_REQUIRED, .min = 1, .max = 8, .doc = "Where."),
	FIELD(struct file, mode, .max = 511, .def = DEFAULT_INT(420), .doc = "Bits."),
};
static const struct field_table file_table = FIELD_TABLE(struct file, file_fields,
							 .doc = "A file.");

static const struct field limit_fields[] = {
	FIELD(struct limits, memory, .min = 1, .def = DEFAULT_INT(512), .doc = "MiB."),
	FIELD(struct limits, cpus, .max = 64, .def = DEFAULT_REAL(0.5), .doc = "CPUs."),
};
static const struct field_table limit_table = FIELD_TABLE(struct limits, limit_fields);

static const struct field param_fields[] = {
	FIELD(struct params, name, .flags = FIELD_REQUIRED, .max = 5, .doc = "A name."),
	FIELD(struct params, note, .flags = FIELD_NUL_OK, .def = DEFAULT_STR("none"),
	      .doc = "A note."),
	FIELD_NAMED(struct params, dry, "dry-run", .def = DEFAULT_BOOL(true), .doc = "Only look."),
	FIELD(struct params, small, .doc = "Any of 32 bits."),
	FIELD(struct params, timeout, .min = 1, .max = 600, .def = DEFAULT_INT(30),
	      .doc = "Seconds."),
	FIELD(struct params, offset, .flags = FIELD_NULLABLE,
	      .has = FIELD_HAS(struct params, has_offset), .doc = "From where."),
	FIELD(struct params, port, .doc = "A port."),
	FIELD(struct params, bytes, .min = 2, .doc = "Bytes."),
	FIELD(struct params, exit_code, .flags = FIELD_REQUIRED | FIELD_NULLABLE,
	      .has = FIELD_HAS(struct params, has_exit), .doc = "Null after a signal."),
	FIELD(struct params, ratio, .min = -1, .max = 1, .doc = "A ratio."),
	FIELD_ENUM(struct params, mode, mode_names, .def = DEFAULT_ENUM(MODE_SAFE), .doc = "How."),
	FIELD(struct params, argv, .min = 1, .max = 3, .item_min = 1, .item_max = 4,
	      .doc = "Words."),
	FIELD(struct params, env, .max = 2, .item_max = 6, .doc = "Variables."),
	FIELD_OBJECT(struct params, limits, limit_table, .doc = "Limits."),
	FIELD_OBJECTS(struct params, files, file_table, .max = 2, .doc = "Files."),
};
static const struct field_table param_table = FIELD_TABLE(struct params, param_fields,
							  .doc = "All kinds.");

static int decode(const char *text, struct json_doc **ret_doc, struct arena *a, struct params *ret,
		  struct err *e)
{
	struct json_doc *d = json_parse(str_of(text), NULL, e);

	assert_non_null(d);
	*ret_doc = d;
	return field_decode(&param_table, json_root(d), a, ret, e);
}

static void decodes_all_kinds(void **state)
{
	static const char text[] =
		"{\"name\":\"äöü€x\",\"note\":\"a\\u0000b\",\"dry-run\":false,"
		"\"small\":-2147483648,"
		"\"timeout\":600,\"offset\":0,\"port\":4294967295,\"bytes\":18446744073709551615,"
		"\"exit_code\":3,\"ratio\":-1,\"mode\":\"fast\",\"argv\":[\"ls\",\"-l\"],"
		"\"env\":{\"A\":\"1\",\"\":\"\"},\"limits\":{\"cpus\":2},"
		"\"files\":[{\"path\":\"a\"},{\"path\":\"b\",\"mode\":7.0}]}";
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);
	AUTO(json_free) struct json_doc *d = NULL;
	struct err e = ERR_INIT;
	struct params p;

	if (decode(text, &d, a, &p, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(str_is(p.name, "äöü€x"));
	assert_true(str_eq(p.note, STR_LIT("a\0b")));
	assert_false(p.dry);
	assert_int_equal(p.small, INT32_MIN);
	assert_int_equal(p.timeout, 600);
	assert_true(p.has_offset && p.offset == 0);
	assert_int_equal(p.port, UINT32_MAX);
	assert_true(p.bytes == UINT64_MAX);
	assert_true(p.has_exit && p.exit_code == 3);
	assert_true(p.ratio <= -1 && p.ratio >= -1);
	assert_int_equal(p.mode, MODE_FAST);
	assert_int_equal(p.argv.n, 2);
	assert_true(str_is(p.argv.p[1], "-l"));
	assert_int_equal(p.env.n, 2);
	assert_true(str_is(p.env.p[0].key, "A") && str_is(p.env.p[0].value, "1"));
	assert_int_equal(p.limits.memory, 512);
	assert_true(p.limits.cpus > 1.9);
	assert_int_equal(p.files.n, 2);
	assert_int_equal(p.files.p[0].mode, 420);
	assert_int_equal(p.files.p[1].mode, 7);
}

static void passes_over_what_an_open_table_does_not_name(void **state)
{
	static const struct field_table open = FIELD_TABLE(struct file, file_fields, .open = true);
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);
	struct err e = ERR_INIT;
	AUTO(json_free)
	struct json_doc *d = json_parse(STR_LIT("{\"x\":{\"y\":[1]},\"path\":\"p\"}"), NULL, &e);
	AUTO(json_free) struct json_doc *wrong = json_parse(STR_LIT("{\"path\":1}"), NULL, &e);
	autofree char *schema = field_schema_text(&open, &e);
	struct file f;

	assert_int_equal(field_decode(&open, json_root(d), a, &f, &e), 0);
	assert_true(str_is(f.path, "p") && f.mode == 420);
	assert_int_equal(field_decode(&open, json_root(wrong), a, &f, &e), -1);
	assert_non_null(strstr(schema, "\"additionalProperties\":true"));
}

static void gives_defaults(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);
	AUTO(json_free) struct json_doc *d = NULL;
	struct err e = ERR_INIT;
	struct params p;

	memset(&p, 0xff, sizeof(p));
	assert_int_equal(
		decode("{\"name\":\"\",\"offset\":null,\"exit_code\":null}", &d, a, &p, &e), 0);
	assert_true(p.name.p && p.name.n == 0);
	assert_true(str_is(p.note, "none"));
	assert_true(p.dry);
	assert_int_equal(p.timeout, 30);
	assert_int_equal(p.small, 0);
	assert_false(p.has_offset || p.has_exit);
	assert_int_equal(p.mode, MODE_SAFE);
	assert_true(p.argv.n == 0 && p.env.n == 0 && p.files.n == 0);
	assert_int_equal(p.limits.memory, 512);
	assert_true(p.limits.cpus > 0.4);
}

/* Each text has "name" and "exit_code" put in front of it. */
static const struct {
	const char *member, *says;
} refused[] = {
	{ "\"nmae\":1", "unknown field \"nmae\"; did you mean \"name\"?" },
	{ "\"time_out\":1", "did you mean \"timeout\"?" },
	{ "\"TIMEOUT\":1", "unknown field \"TIMEOUT\"; known are name, note, dry-run, small" },
	{ "\"limits\":{\"cpu\":1}", "limits: unknown field \"cpu\"; did you mean \"cpus\"?" },
	{ "\"limits\":{\"xyzzy\":1}", "limits: unknown field \"xyzzy\"; known are memory, cpus" },
	{ "\"note\":1", "note takes a string, not an integer" },
	{ "\"note\":null", "note takes a string, not null" },
	{ "\"dry-run\":\"yes\"", "dry-run takes true or false, not a string" },
	{ "\"dry-run\":1", "dry-run takes true or false, not an integer" },
	{ "\"small\":2147483648",
	  "small takes an integer from -2147483648 to 2147483647, not 2147483648" },
	{ "\"small\":\"9\"", "not a string" },
	{ "\"timeout\":0", "timeout takes an integer from 1 to 600, not 0" },
	{ "\"timeout\":601", "timeout takes an integer from 1 to 600, not 601" },
	{ "\"timeout\":1.5", "timeout takes an integer from 1 to 600, not a number" },
	{ "\"timeout\":1e99", "not a number" },
	{ "\"timeout\":18446744073709551615", "not a larger one" },
	{ "\"offset\":\"x\"", "offset takes an integer, not a string" },
	{ "\"port\":-1", "port takes an integer from 0 to 4294967295, not a negative one" },
	{ "\"port\":4294967296", "not 4294967296" },
	{ "\"bytes\":1", "bytes takes an integer of at least 2, not 1" },
	{ "\"ratio\":1.5", "ratio takes a number from -1 to 1, not 1.5" },
	{ "\"ratio\":true", "ratio takes a number from -1 to 1, not a boolean" },
	{ "\"mode\":\"slow\"", "mode takes one of \"fast\", \"safe\", not \"slow\"" },
	{ "\"mode\":0", "mode takes one of \"fast\", \"safe\", not an integer" },
	{ "\"argv\":[]", "argv takes an array of 1 to 3 strings, not 0" },
	{ "\"argv\":[\"a\",\"b\",\"c\",\"d\"]", "argv takes an array of 1 to 3 strings, not 4" },
	{ "\"argv\":\"ls\"", "argv takes an array of 1 to 3 strings, not a string" },
	{ "\"argv\":[\"a\",2]", "argv[1] takes a string of 1 to 4 characters, not an integer" },
	{ "\"argv\":[\"a\",\"\"]", "argv[1] takes a string of 1 to 4 characters, not 0" },
	{ "\"argv\":[\"a\\u0000\"]", "argv[0] takes a string of 1 to 4 characters without U+0000" },
	{ "\"env\":[]", "env takes an object of at most 2 strings, not an array" },
	{ "\"env\":{\"A\":1}", "env.A takes a string of at most 6 characters, not an integer" },
	{ "\"env\":{\"A\":\"\",\"B\":\"\",\"C\":\"\"}",
	  "env takes an object of at most 2 strings, not 3" },
	{ "\"env\":{\"A\\u0000\":\"\"}", "not a name with U+0000" },
	{ "\"limits\":[]", "limits takes an object, not an array" },
	{ "\"limits\":{\"memory\":0}", "limits.memory takes an integer of at least 1, not 0" },
	{ "\"files\":{}", "files takes an array of at most 2 objects, not an object" },
	{ "\"files\":[{},{},{}]", "files takes an array of at most 2 objects, not 3" },
	{ "\"files\":[1]", "files[0] takes an object, not an integer" },
	{ "\"files\":[{\"path\":\"a\"},{}]",
	  "files[1]: \"path\" is missing; it takes a string of 1 to 8" },
	{ "\"files\":[{\"path\":\"123456789\"}]",
	  "files[0].path takes a string of 1 to 8 characters, not 9" },
};

static void refuses_with_reasons(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		AUTO(json_free) struct json_doc *d = NULL;
		struct err e = ERR_INIT;
		struct params p;
		char text[256];

		snprintf(text, sizeof(text), "{\"name\":\"n\",\"exit_code\":0,%s}",
			 refused[i].member);
		ROW_CHECK(decode(text, &d, a, &p, &e) == -1, refused[i].member);
		ROW_CHECK(e.code == ERR_INVALID, refused[i].member);
		if (!strstr(e.msg, refused[i].says))
			print_error("%s\n", e.msg);
		ROW_CHECK(strstr(e.msg, refused[i].says), refused[i].member);
	}
}

static void points_at_what_is_at_fault(void **state)
{
	static const struct {
		const char *text, *pointer;
	} rows[] = {
		{ "{\"name\":\"n\"}", "/exit_code" },
		{ "{\"name\":1,\"exit_code\":0}", "/name" },
		{ "{\"a/b~c\":1}", "/a~1b~0c" },
		{ "{\"name\":\"n\",\"exit_code\":0,\"limits\":{\"memory\":0}}", "/limits/memory" },
		{ "{\"name\":\"n\",\"exit_code\":0,\"argv\":[\"a\",1]}", "/argv/1" },
		{ "{\"name\":\"n\",\"exit_code\":0,\"env\":{\"A/B\":1}}", "/env/A~1B" },
		{ "{\"name\":\"n\",\"exit_code\":0,\"files\":[{\"path\":\"a\"},{}]}",
		  "/files/1/path" },
		{ "{\"name\":\"n\",\"exit_code\":0,\"files\":[{},{},{}]}", "/files" },
		{ "[]", "" },
	};
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO(json_free) struct json_doc *d = NULL;
		struct err e;
		struct params p;

		ROW_CHECK(decode(rows[i].text, &d, a, &p, &e) == -1, rows[i].text);
		ROW_CHECK(strcmp(e.pointer, rows[i].pointer) == 0, rows[i].text);
	}
}

static void refuses_what_is_missing(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "{\"exit_code\":0}",
		  "\"name\" is missing; it takes a string of at most 5 characters" },
		{ "{\"name\":\"\"}", "\"exit_code\" is missing; it takes an integer from" },
		{ "[]", "the call takes an object, not an array" },
		{ "null", "the call takes an object, not null" },
	};
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO(json_free) struct json_doc *d = NULL;
		struct err e = ERR_INIT;
		struct params p;

		ROW_CHECK(decode(rows[i].text, &d, a, &p, &e) == -1, rows[i].text);
		ROW_CHECK(strstr(e.msg, rows[i].says), rows[i].text);
	}
}

static void takes_no_argument_for_an_empty_object(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(64);
	struct err e = ERR_INIT;
	struct limits l;

	assert_int_equal(field_decode(&limit_table, NULL, a, &l, &e), 0);
	assert_int_equal(l.memory, 512);
}

static void stays_within_the_arena(void **state)
{
	static const char text[] = "{\"name\":\"n\",\"exit_code\":0,\"argv\":[\"a\",\"b\"],"
				   "\"env\":{\"A\":\"\"},\"files\":[{\"path\":\"p\"}]}";
	bool done = false;

	for (size_t max = 0; !done; max += 16) {
		AUTO(arena_free) struct arena *a = arena_new(max);
		AUTO(json_free) struct json_doc *d = NULL;
		struct err e = ERR_INIT;
		struct params p;

		done = decode(text, &d, a, &p, &e) == 0;
		assert_true(done || e.code == ERR_TOO_LARGE);
	}
}

static void survives_want_of_memory(void **state)
{
	static const char text[] = "{\"name\":\"n\",\"exit_code\":0,\"argv\":[\"a\"]}";
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(str_of(text), NULL, &e);

	for (unsigned n = 0; alloc_fail_next(&n);) {
		AUTO(arena_free) struct arena *a = arena_new(1 << 16);
		struct params p;

		if (!a)
			continue;
		e = ERR_INIT;
		if (field_decode(&param_table, json_root(d), a, &p, &e) < 0)
			assert_int_equal(e.code, ERR_LIMIT);
		else
			assert_false(alloc_failed());
	}
	for (unsigned n = 0; alloc_fail_next(&n);) {
		autofree char *schema = field_schema_text(&param_table, &e);

		assert_true(alloc_failed() == !schema);
	}
}

static void prints_the_schema(void **state)
{
	struct err e;
	autofree char *schema = field_schema_text(&param_table, &e);
	AUTO(json_free) struct json_doc *d = json_parse(str_of(schema), NULL, &e);

	assert_non_null(d);
	assert_string_equal(
		schema,
		"{\"type\":\"object\",\"description\":\"All kinds.\",\"properties\":{"
		"\"name\":{\"type\":\"string\",\"description\":\"A name.\",\"maxLength\":5},"
		"\"note\":{\"type\":\"string\",\"description\":\"A note.\",\"default\":\"none\"},"
		"\"dry-run\":{\"type\":\"boolean\",\"description\":\"Only look.\","
		"\"default\":true},"
		"\"small\":{\"type\":\"integer\",\"description\":\"Any of 32 bits.\","
		"\"minimum\":-2147483648,\"maximum\":2147483647},"
		"\"timeout\":{\"type\":\"integer\",\"description\":\"Seconds.\",\"minimum\":1,"
		"\"maximum\":600,\"default\":30},"
		"\"offset\":{\"type\":[\"integer\",\"null\"],\"description\":\"From where.\"},"
		"\"port\":{\"type\":\"integer\",\"description\":\"A port.\",\"minimum\":0,"
		"\"maximum\":4294967295},"
		"\"bytes\":{\"type\":\"integer\",\"description\":\"Bytes.\",\"minimum\":2},"
		"\"exit_code\":{\"type\":[\"integer\",\"null\"],\"description\":\"Null after a "
		"signal.\","
		"\"minimum\":-2147483648,\"maximum\":2147483647},"
		"\"ratio\":{\"type\":\"number\",\"description\":\"A ratio.\",\"minimum\":-1,"
		"\"maximum\":1},"
		"\"mode\":{\"type\":\"string\",\"description\":\"How.\",\"enum\":[\"fast\","
		"\"safe\"],"
		"\"default\":\"safe\"},"
		"\"argv\":{\"type\":\"array\",\"description\":\"Words.\","
		"\"items\":{\"type\":\"string\","
		"\"minLength\":1,\"maxLength\":4},\"minItems\":1,\"maxItems\":3},"
		"\"env\":{\"type\":\"object\",\"description\":\"Variables.\","
		"\"additionalProperties\":{\"type\":\"string\",\"maxLength\":6},"
		"\"maxProperties\":2},"
		"\"limits\":{\"type\":\"object\",\"description\":\"Limits.\",\"properties\":{"
		"\"memory\":{\"type\":\"integer\",\"description\":\"MiB.\",\"minimum\":1,"
		"\"default\":512},"
		"\"cpus\":{\"type\":\"number\",\"description\":\"CPUs.\",\"minimum\":0,"
		"\"maximum\":64,"
		"\"default\":0.5}},\"additionalProperties\":false},"
		"\"files\":{\"type\":\"array\",\"description\":\"Files.\","
		"\"items\":{\"type\":\"object\","
		"\"description\":\"A file.\",\"properties\":{\"path\":{\"type\":\"string\","
		"\"description\":\"Where.\",\"minLength\":1,\"maxLength\":8},"
		"\"mode\":{\"type\":\"integer\",\"description\":\"Bits.\",\"minimum\":0,"
		"\"maximum\":511,"
		"\"default\":420}},\"required\":[\"path\"],\"additionalProperties\":false},"
		"\"maxItems\":2}},"
		"\"required\":[\"name\",\"exit_code\"],\"additionalProperties\":false}");
}

/* What encoding makes, decoding takes. */
static void encodes_what_it_decodes(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "{\"name\":\"n\",\"exit_code\":null}",
		  "{\"name\":\"n\",\"note\":\"none\",\"dry-run\":true,\"small\":0,\"timeout\":30,"
		  "\"port\":0,"
		  "\"bytes\":0,\"exit_code\":null,\"ratio\":0,\"mode\":\"safe\",\"argv\":[],"
		  "\"env\":{},"
		  "\"limits\":{\"memory\":512,\"cpus\":0.5},\"files\":[]}" },
		{ "{\"name\":\"n\",\"exit_code\":-1,\"offset\":0,\"bytes\":18446744073709551615,"
		  "\"argv\":[\"a\",\"b\"],\"env\":{\"X\":\"\\u00e9\"},"
		  "\"files\":[{\"path\":\"p\"}]}",
		  "{\"name\":\"n\",\"note\":\"none\",\"dry-run\":true,\"small\":0,\"timeout\":30,"
		  "\"offset\":0,\"port\":0,\"bytes\":18446744073709551615,\"exit_code\":-1,"
		  "\"ratio\":0,"
		  "\"mode\":\"safe\",\"argv\":[\"a\",\"b\"],\"env\":{\"X\":\"é\"},"
		  "\"limits\":{\"memory\":512,\"cpus\":0.5},\"files\":[{\"path\":\"p\","
		  "\"mode\":420}]}" },
	};
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO(json_free) struct json_doc *d = NULL;
		autofree char *text = NULL;
		struct err e = ERR_INIT;
		struct params p;

		assert_int_equal(decode(rows[i].in, &d, a, &p, &e), 0);
		text = field_encode_text(&param_table, &p, 4096, &e);
		assert_string_equal(text, rows[i].out);
	}
}

static void encodes_absence(void **state)
{
	struct params p = { .mode = MODE_FAST };
	struct err e;
	autofree char *text = field_encode_text(&param_table, &p, 4096, &e);

	assert_non_null(strstr(text, "{\"name\":\"\",\"dry-run\":false,"));
	assert_non_null(strstr(text, "\"exit_code\":null,"));
	p.mode = (enum mode)9;
	assert_null(field_encode_text(&param_table, &p, 4096, &e));
	assert_int_equal(e.code, ERR_BUG);
	p.mode = MODE_FAST;
	assert_null(field_encode_text(&param_table, &p, 100, &e));
	assert_int_equal(e.code, ERR_TOO_LARGE);
}

struct pair {
	int64_t a, b;
};

struct engine {
	bool off;
	struct str name;
	struct field_map keys;
};
struct car {
	struct engine engine;
};
static const struct field engine_fields[] = {
	FIELD(struct engine, name, .def = DEFAULT_STR("v"), .doc = "A name."),
	FIELD(struct engine, keys, .flags = FIELD_SECRET, .doc = "Keys."),
};
static const struct field_table engine_table = FIELD_TABLE(struct engine, engine_fields);
static const struct field car_fields[] = {
	FIELD_OBJECT(struct car, engine, engine_table, .flags = FIELD_SWITCH, .doc = "An engine."),
};
static const struct field_table car_table = FIELD_TABLE(struct car, car_fields);

/* false may stand for an object, and a map may be secret. */
static void switches_objects_off(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "{}", "{\"engine\":{\"name\":\"v\",\"keys\":{}}}" },
		{ "{\"engine\":true}", "{\"engine\":{\"name\":\"v\",\"keys\":{}}}" },
		{ "{\"engine\":false}", "{\"engine\":false}" },
		{ "{\"engine\":{\"name\":\"w\",\"keys\":{\"k\":\"x\"}}}",
		  "{\"engine\":{\"name\":\"w\",\"keys\":{\"k\":\"[secret]\"}}}" },
		{ "{\"engine\":1}", NULL },
		{ "{\"engine\":null}", NULL },
		{ "{\"engine\":{\"off\":true}}", NULL },
	};
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);
	struct err e = ERR_INIT;
	autofree char *schema = field_schema_text(&car_table, &e);

	assert_int_equal(field_check(&car_table, &e), 0);
	assert_non_null(strstr(schema, "\"engine\":{\"type\":[\"object\",\"boolean\"]"));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO(json_free) struct json_doc *d = json_parse(str_of(rows[i].in), NULL, &e);
		autofree char *text = NULL;
		struct car car;
		int rc = field_decode(&car_table, json_root(d), a, &car, &e);

		assert_int_equal(rc, rows[i].out ? 0 : -1);
		if (rc < 0)
			continue;
		text = field_encode_text(&car_table, &car, 4096, &e);
		assert_string_equal(text, rows[i].out);
	}
}

static void finds_bad_tables(void **state)
{
	static const struct field twice[] = { FIELD(struct pair, a, .doc = ""),
					      FIELD_NAMED(struct pair, b, "a", .doc = "") };
	static const struct field other[] = { FIELD(struct file, path, .doc = "") };
	static const struct field range[] = { FIELD(struct pair, a, .min = 2, .max = 1,
						    .doc = "") };
	static const struct field beyond[] = { FIELD(struct pair, a, .max = 9,
						     .def = DEFAULT_INT(10), .doc = "") };
	static const struct field kind[] = { FIELD(struct pair, a, .def = DEFAULT_STR("x"),
						   .doc = "") };
	static const struct field required[] = { FIELD(struct pair, a, .flags = FIELD_REQUIRED,
						       .def = DEFAULT_INT(1), .doc = "") };
	static const struct field undocumented[] = { FIELD(struct pair, a) };
	static const struct {
		struct field_table t;
		const char *says;
	} rows[] = {
		{ FIELD_TABLE(struct pair, twice), "twice" },
		{ FIELD_TABLE(struct pair, other), "another struct" },
		{ FIELD_TABLE(struct pair, range), "above max" },
		{ FIELD_TABLE(struct pair, beyond), "default" },
		{ FIELD_TABLE(struct pair, kind), "default" },
		{ FIELD_TABLE(struct pair, required), "required and has a default" },
		{ FIELD_TABLE(struct pair, undocumented), "no doc" },
	};
	struct err e;

	assert_int_equal(field_check(&param_table, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(field_check(&rows[i].t, &e), -1);
		ROW_CHECK(strstr(e.msg, rows[i].says), rows[i].says);
	}
}

static void measures_distance(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned n;
	} rows[] = {
		{ "", "", 0 },
		{ "a", "", 1 },
		{ "timeout", "timeout", 0 },
		{ "ab", "ba", 1 },
		{ "kitten", "sitting", 3 },
		{ "comand", "command", 1 },
		{ "abcd", "badc", 2 },
	};
	char longer[80];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ROW_CHECK(near_distance(str_of(rows[i].a), str_of(rows[i].b)) == rows[i].n,
			  rows[i].a);
		ROW_CHECK(near_distance(str_of(rows[i].b), str_of(rows[i].a)) == rows[i].n,
			  rows[i].a);
	}
	assert_int_equal(near_enough(STR_LIT("x")), 0);
	assert_int_equal(near_enough(STR_LIT("cwd")), 1);
	assert_int_equal(near_enough(STR_LIT("command_line")), 3);
	memset(longer, 'x', sizeof(longer));
	assert_true(near_distance((struct str){ longer, sizeof(longer) }, STR_LIT("x")) ==
		    UINT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_all_kinds),
		cmocka_unit_test(passes_over_what_an_open_table_does_not_name),
		cmocka_unit_test(gives_defaults),
		cmocka_unit_test(refuses_with_reasons),
		cmocka_unit_test(points_at_what_is_at_fault),
		cmocka_unit_test(refuses_what_is_missing),
		cmocka_unit_test(takes_no_argument_for_an_empty_object),
		cmocka_unit_test(stays_within_the_arena),
		cmocka_unit_test(survives_want_of_memory),
		cmocka_unit_test(prints_the_schema),
		cmocka_unit_test(encodes_what_it_decodes),
		cmocka_unit_test(encodes_absence),
		cmocka_unit_test(switches_objects_off),
		cmocka_unit_test(finds_bad_tables),
		cmocka_unit_test(measures_distance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
