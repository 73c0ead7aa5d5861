/* mcp/oauth/metadata.h: good documents, hostile ones, and every allocation that fails once. */
#include "mcp/oauth/metadata.h"
#include "alloc_fail.h"
#include "test.h"

enum { ARENA_MAX = 1 << 18 };

#define ISSUER "\"issuer\":\"https://as\""
#define TOKEN "\"token_endpoint\":\"https://as/token\""

static struct oauth_url server_url(void)
{
	struct oauth_url u;
	struct err e;

	assert_int_equal(oauth_url_read(STR_LIT("https://rs/mcp"), "it", &u, &e), 0);
	return u;
}

static const struct {
	const char *text;
	int code; /* 0: it is read */
	int by_origin; /* the same for a document of the whole origin, where it is refused */
} resources[] = {
	{ "{\"resource\":\"https://rs/mcp\",\"authorization_servers\":[\"https://as\"]}", 0 },
	{ "{\"resource\":\"https://rs/mcp/\"}", 0 },
	{ "{\"resource\":\"https://rs\"}", ERR_UNTRUSTED, 0 },
	{ "{\"resource\":\"https://rs/\"}", ERR_UNTRUSTED, 0 },
	{ "{\"resource\":\"https://rs/?x\"}", ERR_UNTRUSTED, ERR_UNTRUSTED },
	{ "{\"resource\":\"https://rs/m\"}", ERR_UNTRUSTED, ERR_UNTRUSTED },
	{ "{\"resource\":\"https://rs/mcp\",\"authorization_servers\":[\"https://10.0.0.1\"]}",
	  ERR_NOT_PUBLIC, ERR_NOT_PUBLIC },
	{ "{\"resource\":\"https://rs/mcp\",\"authorization_servers\":[],\"x\":{\"y\":[1]}}", 0 },
	{ "{\"resource\":\"https://rs/mcp\",\"scopes_supported\":null}", 0 },
	{ "{\"resource\":\"https://evil/mcp\"}", ERR_UNTRUSTED, ERR_UNTRUSTED },
	{ "{\"resource\":\"https://rs/mcp/deeper\"}", ERR_UNTRUSTED, ERR_UNTRUSTED },
	{ "{\"resource\":\"https://rs.evil/mcp\"}", ERR_UNTRUSTED, ERR_UNTRUSTED },
	{ "{\"resource\":\"https://rs@evil/mcp\"}", ERR_INVALID },
	{ "{\"resource\":[\"https://rs/mcp\"]}", ERR_INVALID },
	{ "{\"authorization_servers\":[\"https://as\"]}", ERR_INVALID },
	{ "{\"resource\":\"https://rs/mcp\",\"authorization_servers\":\"https://as\"}",
	  ERR_INVALID },
	{ "{\"resource\":\"https://rs/mcp\",\"authorization_servers\":[1]}", ERR_INVALID },
	{ "{\"resource\":\"https://rs/mcp\",\"authorization_servers\":[\"http://as\"]}",
	  ERR_UNTRUSTED, ERR_UNTRUSTED },
	{ "{\"resource\":\"https://rs/mcp\",\"authorization_servers\":[\"http://127.0.0.1:1\"]}",
	  ERR_NOT_PUBLIC, ERR_NOT_PUBLIC },
	{ "{\"resource\":\"https://rs/mcp\",\"authorization_servers\":[\"https://as?x\"]}",
	  ERR_INVALID },
	{ "{\"resource\":\"https://rs/mcp\",\"authorization_servers\":[\"javascript:x\"]}",
	  ERR_INVALID },
	{ "{\"resource\":\"https://rs/mcp\",\"scopes_supported\":[\"a b\"]}", ERR_INVALID },
	{ "{\"resource\":\"https://rs/mcp\",\"scopes_supported\":[\"a\\\"\"]}", ERR_INVALID },
	{ "{\"resource\":\"https://rs/mcp\",\"dpop_bound_access_tokens_required\":\"yes\"}",
	  ERR_INVALID },
	{ "{\"resource\":\"https://rs/mcp\",\"resource\":\"https://evil\"}", ERR_INVALID },
	{ "[]", ERR_INVALID },
	{ "null", ERR_INVALID },
	{ "<html>", ERR_INVALID },
	{ "", ERR_INVALID },
};

static bool is_refused(int code)
{
	return code == ERR_UNTRUSTED || code == ERR_NOT_PUBLIC;
}

static void test_resources(void **state)
{
	struct oauth_url server = server_url();

	for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
		AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
		struct oauth_resource r;
		struct err e = ERR_INIT;
		struct oauth_protected of = { .server = &server };
		int rc = oauth_resource_read(str_of(resources[i].text), &of, a, &r, &e);

		ROW_CHECK((rc < 0 ? (int)e.code : 0) == resources[i].code, resources[i].text);
		of.by_origin = true;
		rc = oauth_resource_read(str_of(resources[i].text), &of, a, &r, &e);
		ROW_CHECK((rc < 0 ? (int)e.code : 0) == (is_refused(resources[i].code)
								 ? resources[i].by_origin
								 : resources[i].code),
			  resources[i].text);
	}
}

static void test_resource_whole(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
	struct oauth_url server = server_url();
	struct oauth_protected of = { .server = &server };
	struct oauth_resource r;
	struct err e;

	assert_int_equal(
		oauth_resource_read(
			STR_LIT("{\"resource\":\"https://rs/mcp\",\"authorization_servers\":"
				"[\"https://one\",\"https://two/t\"],\"scopes_supported\":[\"a\","
				"\"b\","
				"\"a\"],\"dpop_signing_alg_values_supported\":[\"ES256\"]}"),
			&of, a, &r, &e),
		0);
	assert_int_equal(r.issuers_n, 2);
	assert_string_equal(r.issuers[1], "https://two/t");
	assert_string_equal(r.scope, "a b");
	assert_true(r.dpop && !r.dpop_required && r.dpop_algs == 1u << SIGN_ES256);
	assert_int_equal(
		oauth_resource_read(STR_LIT("{\"resource\":\"https://rs/mcp\"}"), &of, a, &r, &e),
		0);
	assert_true(!r.dpop && r.dpop_algs & 1u << SIGN_EDDSA);
	assert_int_equal(
		oauth_resource_read(STR_LIT("{\"resource\":\"https://rs/mcp\","
					    "\"dpop_signing_alg_values_supported\":[\"HS256\"]}"),
				    &of, a, &r, &e),
		0);
	assert_true(!r.dpop && r.dpop_algs == 0);
}

static const struct {
	const char *text;
	int code;
} issuers[] = {
	{ "{" ISSUER "," TOKEN "}", 0 },
	{ "{" ISSUER "," TOKEN ",\"authorization_endpoint\":\"https://as/a?tenant=1\"}", 0 },
	{ "{" ISSUER "," TOKEN ",\"token_endpoint_auth_methods_supported\":[]}", 0 },
	{ "{" TOKEN "}", ERR_INVALID },
	{ "{" ISSUER "}", ERR_INVALID },
	{ "{\"issuer\":\"https://as/\"," TOKEN "}", ERR_UNTRUSTED },
	{ "{\"issuer\":\"https://AS\"," TOKEN "}", ERR_UNTRUSTED },
	{ "{\"issuer\":\"https://as:443\"," TOKEN "}", ERR_UNTRUSTED },
	{ "{\"issuer\":\"https://attacker\"," TOKEN "}", ERR_UNTRUSTED },
	{ "{\"issuer\":7," TOKEN "}", ERR_INVALID },
	{ "{" ISSUER ",\"token_endpoint\":\"http://as/token\"}", ERR_UNTRUSTED },
	{ "{" ISSUER ",\"token_endpoint\":\"http://localhost/token\"}", ERR_NOT_PUBLIC },
	{ "{" ISSUER ",\"token_endpoint\":\"https://localhost/token\"}", ERR_NOT_PUBLIC },
	{ "{" ISSUER ",\"token_endpoint\":\"file:///etc/passwd\"}", ERR_INVALID },
	{ "{" ISSUER "," TOKEN ",\"authorization_endpoint\":\"javascript:alert(1)\"}",
	  ERR_INVALID },
	{ "{" ISSUER "," TOKEN ",\"authorization_endpoint\":\"https://as/\\u0000\"}", ERR_INVALID },
	{ "{" ISSUER "," TOKEN ",\"authorization_endpoint\":\"https://as/$(id)`x`\"}",
	  ERR_INVALID },
	{ "{" ISSUER "," TOKEN ",\"code_challenge_methods_supported\":\"S256\"}", ERR_INVALID },
	{ "{" ISSUER "," TOKEN ",\"authorization_response_iss_parameter_supported\":1}",
	  ERR_INVALID },
	{ "{" ISSUER "," TOKEN ",\"token_endpoint_auth_methods_supported\":[\"tls_client_auth\"]}",
	  ERR_DENIED },
};

static int read_issuer(const char *text, bool or_slash, struct arena *a, struct oauth_issuer *s,
		       struct err *e)
{
	return oauth_issuer_read(str_of(text), "https://as", or_slash, OAUTH_PUBLIC, a, s, e);
}

static void test_issuers(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(issuers); i++) {
		AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
		struct oauth_issuer s;
		struct err e = ERR_INIT;
		int rc = read_issuer(issuers[i].text, false, a, &s, &e);

		ROW_CHECK((rc < 0 ? (int)e.code : 0) == issuers[i].code, issuers[i].text);
	}
}

static void test_issuer_whole(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
	struct oauth_issuer s;
	struct err e;

	assert_int_equal(read_issuer("{\"issuer\":\"https://as/\"," TOKEN
				     ",\"code_challenge_methods_supported\":[\"plain\",\"S256\"],"
				     "\"scopes_supported\":[\"offline_access\"],"
				     "\"authorization_response_iss_parameter_supported\":true,"
				     "\"client_id_metadata_document_supported\":true,"
				     "\"token_endpoint_auth_methods_supported\":[\"none\","
				     "\"private_key_jwt\",\"x\"],"
				     "\"dpop_signing_alg_values_supported\":[\"ES256\",\"none\"]}",
				     true, a, &s, &e),
			 0);
	assert_true(s.s256 && s.offline && s.sends_iss && s.reads_client_id_url);
	assert_int_equal(s.methods, OAUTH_NONE | OAUTH_PRIVATE_KEY_JWT);
	assert_int_equal(s.dpop_algs, 1u << SIGN_ES256);
	assert_string_equal(s.issuer, "https://as/");
	assert_int_equal(read_issuer("{" ISSUER "," TOKEN
				     ",\"code_challenge_methods_supported\":[\"plain\"]}",
				     false, a, &s, &e),
			 0);
	assert_false(s.s256);
}

#define ACCESS "\"access_token\":\"t\""
#define BEARER "\"token_type\":\"bearer\""

static const struct {
	const char *text;
	bool ok;
	int64_t expires;
} tokens[] = {
	{ "{" ACCESS "," BEARER "}", true, 0 },
	{ "{" ACCESS "," BEARER ",\"expires_in\":3600}", true, 3600 },
	{ "{" ACCESS "," BEARER ",\"expires_in\":\"3600\"}", true, 3600 },
	{ "{" ACCESS "," BEARER ",\"expires_in\":3600.0}", true, 3600 },
	{ "{" ACCESS "," BEARER ",\"expires_in\":0}", true, 0 },
	{ "{" ACCESS "," BEARER ",\"expires_in\":-1}", true, 0 },
	{ "{" ACCESS "," BEARER ",\"expires_in\":1e300}", true, 0 },
	{ "{" ACCESS "," BEARER ",\"expires_in\":18446744073709551615}", true, 0 },
	{ "{" ACCESS "," BEARER ",\"expires_in\":\"99999999999999999999999999\"}", true, 0 },
	{ "{" ACCESS "," BEARER ",\"expires_in\":\"soon\"}", true, 0 },
	{ "{" ACCESS "," BEARER ",\"refresh_token\":null,\"scope\":\"a b\"}", true, 0 },
	{ "{" ACCESS ",\"token_type\":\"DPoP\"}", true, 0 },
	{ "{" ACCESS "}", false, 0 },
	{ "{" BEARER "}", false, 0 },
	{ "{" ACCESS ",\"token_type\":\"mac\"}", false, 0 },
	{ "{" ACCESS ",\"token_type\":[\"bearer\"]}", false, 0 },
	{ "{\"access_token\":\"\"," BEARER "}", false, 0 },
	{ "{\"access_token\":7," BEARER "}", false, 0 },
	{ "{\"access_token\":\"a b\"," BEARER "}", false, 0 },
	{ "{\"access_token\":\"a\\r\\nX-Y: z\"," BEARER "}", false, 0 },
	{ "{\"access_token\":\"\\u0000\"," BEARER "}", false, 0 },
	{ "{" ACCESS "," BEARER ",\"refresh_token\":\"a b\"}", false, 0 },
	{ "{" ACCESS "," BEARER ",\"scope\":\"a\\\"\"}", true, 0 },
	{ "{" ACCESS "," BEARER ",\"scope\":[\"a\"],\"id_token\":{}}", true, 0 },
	{ "{\"error\":\"invalid_grant\"}", false, 0 },
	{ "access_token=t&token_type=bearer", false, 0 },
};

static void test_tokens(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
		struct oauth_token_answer t = { .access = NULL };
		struct err e = ERR_INIT;
		bool ok = oauth_token_read(str_of(tokens[i].text), a, &t, &e) == 0;

		ROW_CHECK(ok == tokens[i].ok, tokens[i].text);
		ROW_CHECK(!ok || t.expires_in == tokens[i].expires, tokens[i].text);
		ROW_CHECK(ok || e.code == ERR_INVALID, tokens[i].text);
		oauth_token_answer_fini(&t);
	}
}

/* No error tells what a secret was. */
static void test_errors_tell_nothing(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
	struct oauth_token_answer t;
	struct err e;

	assert_int_equal(oauth_token_read(STR_LIT("{\"access_token\":\"SECRET\",\"refresh_token\":"
						  "\"SEC RET\",\"token_type\":\"bearer\"}"),
					  a, &t, &e),
			 -1);
	assert_null(strstr(e.msg, "SEC"));
	assert_int_equal(oauth_token_read(STR_LIT("{\"access_token\":\"SECRET\",}"), a, &t, &e),
			 -1);
	assert_null(strstr(e.msg, "SEC"));
}

static const struct {
	const char *text;
	const char *word;
} refusals[] = {
	{ "{\"error\":\"invalid_grant\"}", "invalid_grant" },
	{ "{\"error\":\"<b>\"}", "" },
	{ "{\"error\":{\"code\":1}}", "" },
	{ "{}", "" },
	{ "nothing", "" },
	{ "", "" },
};

static void test_refusals(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		char word[OAUTH_WORD_MAX + 1];

		oauth_refusal_read(str_of(refusals[i].text), word);
		ROW_CHECK(strcmp(word, refusals[i].word) == 0, refusals[i].text);
	}
}

static const struct {
	const char *text;
	bool ok;
} registrations[] = {
	{ "{\"client_id\":\"c\"}", true },
	{ "{\"client_id\":\"c\",\"client_secret\":\"s\",\"client_secret_expires_at\":0}", true },
	{ "{\"client_id\":\"c\",\"token_endpoint_auth_method\":\"client_secret_post\"}", true },
	{ "{\"client_id\":\"\"}", false },
	{ "{\"client_id\":1}", false },
	{ "{}", false },
	{ "{\"client_id\":\"c\",\"client_secret\":\"a\\nb\"}", false },
	{ "{\"client_id\":\"c\",\"token_endpoint_auth_method\":\"magic\"}", false },
};

static void test_registrations(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(registrations); i++) {
		AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
		struct oauth_registered r = { .secret = NULL };
		struct err e;

		ROW_CHECK((oauth_registered_read(str_of(registrations[i].text), a, &r, &e) == 0) ==
				  registrations[i].ok,
			  registrations[i].text);
		secret_free(r.secret);
	}
}

#define DEVICE "\"device_code\":\"d\",\"user_code\":\"U\",\"verification_uri\":\"https://as/d\""

static const struct {
	const char *text;
	bool ok;
	unsigned expires, interval;
} devices[] = {
	{ "{" DEVICE ",\"expires_in\":60,\"interval\":1}", true, 60, 1 },
	{ "{" DEVICE "}", true, 600, 5 },
	{ "{" DEVICE ",\"expires_in\":1e99,\"interval\":0}", true, 600, 5 },
	{ "{" DEVICE ",\"interval\":100000}", true, 600, 5 },
	{ "{" DEVICE ",\"verification_uri_complete\":\"javascript:x\"}", false, 0, 0 },
	{ "{" DEVICE ",\"verification_uri_complete\":\"https://10.0.0.1/d\"}", false, 0, 0 },
	{ "{\"device_code\":\"d\",\"user_code\":\"U\"}", false, 0, 0 },
	{ "{\"device_code\":\"d\",\"user_code\":\"\\u001b[2J\","
	  "\"verification_uri\":\"https://as/d\"}",
	  false, 0, 0 },
	{ "{\"user_code\":\"U\",\"verification_uri\":\"https://as/d\"}", false, 0, 0 },
	{ "{\"device_code\":\"d\",\"user_code\":\"U\",\"verification_uri\":\"http://as/d\"}", false,
	  0, 0 },
};

static void test_devices(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
		AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
		struct oauth_device d = { .code = NULL };
		struct err e;
		bool ok = oauth_device_read(str_of(devices[i].text), OAUTH_PUBLIC, a, &d, &e) == 0;

		ROW_CHECK(ok == devices[i].ok, devices[i].text);
		ROW_CHECK(!ok || (d.expires_s == devices[i].expires &&
				  d.interval_s == devices[i].interval),
			  devices[i].text);
		secret_free(d.code);
	}
}

static void test_too_large(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
	autofree char *text = malloc(OAUTH_DOCUMENT_MAX + 2);
	struct oauth_issuer s;
	struct err e;

	memset(text, ' ', OAUTH_DOCUMENT_MAX + 1);
	text[OAUTH_DOCUMENT_MAX + 1] = '\0';
	assert_int_equal(read_issuer(text, false, a, &s, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	memset(text, '[', 100);
	assert_int_equal(oauth_issuer_read((struct str){ text, 100 }, "https://as", false,
					   OAUTH_PUBLIC, a, &s, &e),
			 -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
}

/* Whatever allocation fails, it is an error and nothing leaks. */
static void test_without_memory(void **state)
{
	static const char issuer[] = "{" ISSUER "," TOKEN ",\"scopes_supported\":[\"a\"]}";
	static const char resource[] = "{\"resource\":\"https://rs\",\"authorization_servers\":"
				       "[\"https://as\"],\"scopes_supported\":[\"a\",\"b\"]}";
	struct oauth_url server = server_url();
	struct oauth_protected of = { .server = &server, .by_origin = true };

	for (unsigned n = 0; alloc_fail_next(&n);) {
		AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
		struct oauth_issuer s;
		struct oauth_resource r;
		struct err e;

		if (!a)
			continue;
		if (read_issuer(issuer, false, a, &s, &e) < 0)
			assert_int_equal(e.code, ERR_LIMIT);
		if (oauth_resource_read(str_of(resource), &of, a, &r, &e) < 0)
			assert_int_equal(e.code, ERR_LIMIT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resources),      cmocka_unit_test(test_resource_whole),
		cmocka_unit_test(test_issuers),	       cmocka_unit_test(test_issuer_whole),
		cmocka_unit_test(test_tokens),	       cmocka_unit_test(test_errors_tell_nothing),
		cmocka_unit_test(test_refusals),       cmocka_unit_test(test_registrations),
		cmocka_unit_test(test_devices),	       cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
