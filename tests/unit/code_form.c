/* Forms that ask for secrets: modules/code/form.h. */
#include "base/buf.h"
#include "modules/code/form.h"
#include "test.h"

static const struct {
	const char *message, *properties, *found;
} forms[] = {
	{ "Sign in", "\"password\":{\"type\":\"string\"}", "password" },
	{ "Sign in", "\"userPassword\":{\"type\":\"string\"}", "password" },
	{ "Sign in", "\"API_KEY\":{\"type\":\"string\"}", "api key" },
	{ "Sign in", "\"apiKey\":{\"type\":\"string\"}", "api key" },
	{ "Sign in", "\"x\":{\"type\":\"string\",\"title\":\"Access tokens\"}", "token" },
	{ "Sign in", "\"x\":{\"type\":\"string\",\"description\":\"a (secret) word\"}", "secret" },
	{ "Your PASSPHRASE?", "\"x\":{\"type\":\"string\"}", "passphrase" },
	{ "Pay", "\"a\":{\"type\":\"boolean\"},\"cvv\":{\"type\":\"string\"}", "cvv" },
	{ "Who?", "\"name\":{\"type\":\"string\"}", NULL },
	{ "Who?", "\"secretary\":{\"type\":\"string\"}", NULL },
	{ "Tokenize?", "\"passwordless\":{\"type\":\"string\"}", NULL },
	/* nothing can be typed */
	{ "Delete the password?", "\"sure\":{\"type\":\"boolean\"}", NULL },
	{ "Which token?", "\"token\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}", NULL },
	{ "How many?", "\"tokens\":{\"type\":\"integer\"}", NULL },
	{ "Sure?", "", NULL },
};

static void test_forms(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		autobuf struct buf b = BUF_INIT(4096);
		AUTO(json_free) struct json_doc *doc = NULL;
		const char *found;
		struct err e = ERR_INIT;

		assert_true(buf_addf(&b, &e,
				     "{\"message\":\"%s\",\"requestedSchema\":{\"type\":\"object\","
				     "\"properties\":{%s}}}",
				     forms[i].message, forms[i].properties) >= 0);
		doc = json_parse(buf_str(&b), NULL, &e);
		assert_non_null(doc);
		found = form_wants_secret(json_root(doc));
		if (!forms[i].found)
			assert_null(found);
		else
			assert_string_equal(found ?: "", forms[i].found);
	}
}

static void test_long_and_odd(void **state)
{
	autobuf struct buf b = BUF_INIT(64 << 10);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err e = ERR_INIT;

	assert_int_equal(buf_addf(&b, &e, "{\"message\":\""), 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(buf_addf(&b, &e, "aB "), 0);
	assert_int_equal(buf_addf(&b, &e,
				  "\",\"requestedSchema\":{\"properties\":{\"x\":"
				  "{\"type\":\"string\"}}}}"),
			 0);
	doc = json_parse(buf_str(&b), NULL, &e);
	assert_non_null(doc);
	assert_null(form_wants_secret(json_root(doc)));
	assert_null(form_wants_secret(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_long_and_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
