/* Short forms of what servers say of tools: modules/code/brief.h. */
#include "base/buf.h"
#include "json/schema/schema.h"
#include "modules/code/brief.h"
#include "test.h"

enum { ROOM = 64 << 10 };

static const struct {
	const char *text;
	size_t chars;
	const char *brief;
} texts[] = {
	{ "", 10, "" },
	{ "Reads a file.", 13, "Reads a file." },
	{ "Reads\n\n  a   file.", 13, "Reads a file." },
	{ "Reads a file. Fails if it is large.", 20, "Reads a file. …" },
	{ "Reads a file! Fails if it is large.", 20, "Reads a file! …" },
	{ "Makes e.g. a chart of the data that you have.", 20, "Makes e.g. a chart …" },
	{ "Does it (etc. and more) for the whole thing here", 24, "Does it (etc. and more) …" },
	{ "Ok. Then it does a long thing that has no end", 40,
	  "Ok. Then it does a long thing that has …" },
	{ "One. Two. Three. Four. Five.", 16, "One. Two. Three. …" },
	{ "Supercalifragilistic", 5, "Super …" },
	{ "読む。そして書く。長い話が続く", 10, "読む。そして書く。 …" },
	{ "ééééééééééééé", 4, "éééé …" },
};

static void test_texts(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		autobuf struct buf b = BUF_INIT(ROOM);
		struct err e;

		ROW_CHECK(brief_text(&b, str_of(texts[i].text), texts[i].chars, &e) == 0,
			  texts[i].text);
		if (!str_is(buf_str(&b), texts[i].brief))
			print_message("%.*s\n", STR_ARG(buf_str(&b)));
		ROW_CHECK(str_is(buf_str(&b), texts[i].brief), texts[i].text);
	}
}

static const struct {
	const char *whole, *brief;
} schemas[] = {
	{ "true", "true" },
	{ "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\"}",
	  "{\"type\":\"object\"}" },
	{ "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"type\":\"object\"}",
	  "{\"type\":\"object\"}" },
	/* what another draft reads otherwise */
	{ "{\"$schema\":\"http://json-schema.org/draft-07/schema#\","
	  "\"items\":[{\"type\":\"null\"}]}",
	  "{\"$schema\":\"http://json-schema.org/draft-07/schema#\","
	  "\"items\":[{\"type\":\"null\"}]}" },
	{ "{\"title\":\"X\",\"properties\":{\"file_name\":{\"title\":\"File Name\","
	  "\"type\":\"string\"},"
	  "\"q\":{\"title\":\"What to look for\"}}}",
	  "{\"properties\":{\"file_name\":{\"type\":\"string\"},"
	  "\"q\":{\"title\":\"What to look for\"}}}" },
	/* names of members are no keywords */
	{ "{\"properties\":{\"title\":{\"type\":\"string\"},\"$schema\":{},"
	  "\"default\":{},\"examples\":{},\"required\":{}},\"required\":[\"title\"]}",
	  "{\"properties\":{\"title\":{\"type\":\"string\"},\"$schema\":{},"
	  "\"default\":{},\"examples\":{},\"required\":{}},\"required\":[\"title\"]}" },
	{ "{\"enum\":[{\"title\":1,\"default\":null}],\"default\":{\"title\":2}}",
	  "{\"enum\":[{\"title\":1,\"default\":null}],\"default\":{\"title\":2}}" },
	{ "{\"oneOf\":[{\"const\":1,\"title\":\"One\"}]}",
	  "{\"oneOf\":[{\"const\":1,\"title\":\"One\"}]}" },
	{ "{\"default\":null,\"anyOf\":[{\"default\":\"\"},{\"default\":[]},{\"default\":0},"
	  "{\"default\":false}]}",
	  "{\"anyOf\":[{},{},{\"default\":0},{\"default\":false}]}" },
	{ "{\"description\":\"A.\",\"anyOf\":[{\"description\":\"A.\",\"type\":\"null\"},"
	  "{\"description\":\"B.\"}]}",
	  "{\"description\":\"A.\",\"anyOf\":[{\"type\":\"null\"},{\"description\":\"B.\"}]}" },
	{ "{\"required\":[],\"examples\":[1],\"$comment\":\"x\",\"x-mcp-header\":\"H\","
	  "\"additionalProperties\":false}",
	  "{\"x-mcp-header\":\"H\",\"additionalProperties\":false}" },
	/* definitions */
	{ "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"items\":{\"$ref\":\"#/$defs/b\"}},"
	  "\"b\":{\"title\":\"B\"},\"c\":{\"$ref\":\"#/$defs/b\"}}}",
	  "{\"$ref\":\"#/$defs/a\","
	  "\"$defs\":{\"a\":{\"items\":{\"$ref\":\"#/$defs/b\"}},\"b\":{}}}" },
	{ "{\"type\":\"object\",\"definitions\":{\"a\":{\"type\":\"null\"}}}",
	  "{\"type\":\"object\"}" },
	{ "{\"$ref\":\"#/$defs/a~1b\",\"$defs\":{\"a/b\":{},\"c\":{}}}",
	  "{\"$ref\":\"#/$defs/a~1b\",\"$defs\":{\"a/b\":{},\"c\":{}}}" },
	{ "{\"$ref\":\"#x\",\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"c\":{}}}",
	  "{\"$ref\":\"#x\",\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"c\":{}}}" },
	{ "{\"properties\":{\"$defs\":{\"title\":\"Other\"}},\"$defs\":{\"c\":{}}}",
	  "{\"properties\":{\"$defs\":{\"title\":\"Other\"}}}" },
};

static const char *const values[] = { "null",
				      "1",
				      "0.5",
				      "\"x\"",
				      "[]",
				      "[null]",
				      "[1]",
				      "{}",
				      "{\"title\":\"x\"}",
				      "{\"title\":1}",
				      "{\"q\":1,\"x\":2}",
				      "{\"file_name\":1}",
				      "[[1]]",
				      "{\"a\":{\"b\":[1]}}" };

/* A value is valid for the one where it is for the other. */
static void same_values(const char *whole, struct str brief)
{
	struct err e;
	AUTO(schema_free) struct schema *a = schema_parse(str_of(whole), NULL, &e);
	AUTO(schema_free) struct schema *b = schema_parse(brief, NULL, &e);

	ROW_CHECK(!a == !b, whole);
	for (size_t i = 0; a && b && i < ARRAY_LEN(values); i++) {
		AUTO(json_free) struct json_doc *v = json_parse(str_of(values[i]), NULL, &e);

		ROW_CHECK(schema_check(a, json_root(v), NULL, &e) ==
				  schema_check(b, json_root(v), NULL, &e),
			  whole);
	}
}

static void test_schemas(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
		const char *row = schemas[i].whole;
		autobuf struct buf b = BUF_INIT(ROOM);
		struct err e;
		AUTO(json_free) struct json_doc *d = json_parse(str_of(row), NULL, &e);

		ROW_CHECK(d && brief_schema(&b, json_root(d), &e) == 0, row);
		if (!str_is(buf_str(&b), schemas[i].brief))
			print_message("%.*s\n", STR_ARG(buf_str(&b)));
		ROW_CHECK(str_is(buf_str(&b), schemas[i].brief), row);
		same_values(row, buf_str(&b));
	}
}

static const struct {
	const char *schema, *object; /* NULL: it takes no object */
} objects[] = {
	{ "{\"type\":\"object\",\"x\":1}", "{\"type\":\"object\",\"x\":1}" },
	{ "{}", "{\"type\":\"object\"}" },
	{ "null", "{\"type\":\"object\"}" },
	{ "true", "{\"type\":\"object\"}" },
	{ "{\"properties\":{\"a\":{}}}", "{\"type\":\"object\",\"properties\":{\"a\":{}}}" },
	{ "{\"type\":[\"object\",\"null\"],\"x\":1}", "{\"type\":\"object\",\"x\":1}" },
	{ "{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"object\"}]}",
	  "{\"type\":\"object\",\"anyOf\":[{\"type\":\"null\"},{\"type\":\"object\"}]}" },
	{ "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{}}}",
	  "{\"type\":\"object\",\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{}}}" },
	{ "false", NULL },
	{ "7", NULL },
	{ "[]", NULL },
	{ "{\"type\":\"string\"}", NULL },
	{ "{\"type\":[\"string\",\"null\"]}", NULL },
	{ "{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}", NULL },
	{ "{\"allOf\":[{\"type\":\"object\"},{\"type\":\"string\"}]}", NULL },
	{ "{\"enum\":[1,\"a\"]}", NULL },
	{ "{\"const\":1}", NULL },
};

static void test_objects(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		const char *row = objects[i].schema;
		autobuf struct buf b = BUF_INIT(ROOM);
		struct err e;
		AUTO(json_free) struct json_doc *d = json_parse(str_of(row), NULL, &e);
		int rc = brief_object(&b, json_root(d), &e);

		ROW_CHECK((rc == 0) == (objects[i].object != NULL), row);
		ROW_CHECK(rc < 0 || str_is(buf_str(&b), objects[i].object), row);
	}
}

static void test_names(void **state)
{
	assert_true(brief_is_same(STR_LIT("create_issue"), STR_LIT("Create Issue")));
	assert_true(brief_is_same(STR_LIT("createIssue"), STR_LIT("Create issue!")));
	assert_false(brief_is_same(STR_LIT("create_issue"), STR_LIT("Create issues")));
	assert_false(brief_is_same(STR_LIT("a"), STR_LIT("é")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_schemas),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
