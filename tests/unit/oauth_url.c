/* mcp/oauth/url.h, mcp/oauth/challenge.h */
#include "mcp/oauth/challenge.h"
#include "test.h"

static const struct {
	const char *text;
	bool ok;
	const char *host;
	unsigned port;
	const char *path, *query;
} urls[] = {
	{ "https://mcp.example.com", true, "mcp.example.com", 443, "", "" },
	{ "HTTPS://Mcp.Example.Com/", true, "Mcp.Example.Com", 443, "/", "" },
	{ "https://a:8443/b/c?d=e", true, "a", 8443, "/b/c", "?d=e" },
	{ "http://127.0.0.1:1/x", true, "127.0.0.1", 1, "/x", "" },
	{ "https://[::1]:9/", true, "[::1]", 9, "/", "" },
	{ "https://[2001:db8::1]", true, "[2001:db8::1]", 443, "", "" },
	{ "https://a?b", true, "a", 443, "", "?b" },
	{ "https://a/%2e%2e/@b:c", true, "a", 443, "/%2e%2e/@b:c", "" },
	{ .text = "" },
	{ .text = "ftp://a/" },
	{ .text = "javascript:alert(1)" },
	{ .text = "file:///etc/passwd" },
	{ .text = "//a/b" },
	{ .text = "https:/a" },
	{ .text = "https://" },
	{ .text = "https:///path" },
	{ .text = "https://user@host/" },
	{ .text = "https://user:pw@host/" },
	{ .text = "https://good.example@evil.example/" },
	{ .text = "https://good.example\\@evil.example/" },
	{ .text = "https://a/#fragment" },
	{ .text = "https://a b/" },
	{ .text = "https://a/\n" },
	{ .text = "https://a\t/" },
	{ .text = "https://\xc3\xa4/" },
	{ .text = "https://a%2eb/" },
	{ .text = "https://a:0/" },
	{ .text = "https://a:65536/" },
	{ .text = "https://a:/" },
	{ .text = "https://a:80:80/" },
	{ .text = "https://-oProxyCommand=x/" },
	{ .text = "https://[::1/" },
	{ .text = "https://[::1]x/" },
	{ .text = "https://[fe80::1%25eth0]/" },
	{ .text = "https://a/`id`" },
	{ .text = "https://a/\"; rm -rf /" },
	{ .text = "https://$(id)/" },
};

static void test_urls(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct oauth_url u;
		struct err e = ERR_INIT;
		bool ok = oauth_url_read(str_of(urls[i].text), "it", &u, &e) == 0;

		ROW_CHECK(ok == urls[i].ok, urls[i].text);
		if (!ok) {
			ROW_CHECK(e.code == ERR_INVALID, urls[i].text);
			continue;
		}
		ROW_CHECK(str_is(u.host, urls[i].host) && u.port == urls[i].port, urls[i].text);
		ROW_CHECK(str_is(u.path, urls[i].path) && str_is(u.query, urls[i].query),
			  urls[i].text);
	}
}

static struct oauth_url url_of(const char *text)
{
	struct oauth_url u;
	struct err e;

	assert_int_equal(oauth_url_read(str_of(text), "it", &u, &e), 0);
	return u;
}

static const struct {
	const char *text;
	bool loopback;
} hosts[] = {
	{ "http://localhost:1/", true },
	{ "http://LocalHost/", true },
	{ "http://127.0.0.1/", true },
	{ "http://127.255.0.9/", true },
	{ "http://[::1]/", true },
	{ "http://127.0.0.1.evil.example/", false },
	{ "http://localhost.evil.example/", false },
	{ "http://127.1/", false },
	{ "http://0127.0.0.1/", false },
	{ "http://127.0.0.256/", false },
	{ "http://2130706433/", false },
	{ "http://0x7f.0.0.1/", false },
	{ "http://[::ffff:127.0.0.1]/", false },
	{ "http://[0:0:0:0:0:0:0:1]/", false },
	{ "http://10.0.0.1/", false },
	{ "http://169.254.169.254/", false },
};

static void test_loopback(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct oauth_url u = url_of(hosts[i].text);
		struct err e = ERR_INIT;

		ROW_CHECK(oauth_url_is_loopback(&u) == hosts[i].loopback, hosts[i].text);
		ROW_CHECK((oauth_url_check(&u, "it", OAUTH_LOOPBACK, &e) == 0) == hosts[i].loopback,
			  hosts[i].text);
		ROW_CHECK(oauth_url_check(&u, "it", OAUTH_PUBLIC, &e) < 0, hosts[i].text);
		ROW_CHECK(e.code == (hosts[i].loopback ? ERR_NOT_PUBLIC : ERR_UNTRUSTED),
			  hosts[i].text);
	}
}

static const struct {
	const char *text;
	bool is_public;
} places_to_go[] = {
	{ "https://as.example/", true },
	{ "https://as.example./", true },
	{ "https://9.9.9.9/", true },
	{ "https://[2620:fe::fe]/", true },
	{ "https://10.example/", true },
	{ "https://0xcafe.example/", true },
	{ "https://10.0.0.1/", false },
	{ "https://10.0.0.1./", false },
	{ "https://192.168.1.1:8443/", false },
	{ "https://169.254.169.254/latest", false },
	{ "https://100.64.0.1/", false },
	{ "https://0.0.0.0/", false },
	{ "https://[fd00::1]/", false },
	{ "https://[fe80::1]/", false },
	{ "https://[::ffff:10.0.0.1]/", false },
	{ "https://[64:ff9b::a00:1]/", false },
	{ "https://[::]/", false },
	{ "https://[1]/", false },
	/* what browsers read as an address */
	{ "https://167772161/", false },
	{ "https://10.1/", false },
	{ "https://9.9/", false },
	{ "https://0x0a000001/", false },
	{ "https://0X/", false },
	{ "https://012.0.0.1/", false },
	{ "https://as.example.0x7f/", false },
	{ "https://127.1/", false },
	{ "https://x.localhost/", false },
	{ "https://LOCALHOST./", false },
};

static void test_reach(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(places_to_go); i++) {
		const char *text = places_to_go[i].text;
		struct oauth_url u = url_of(text);
		struct err e = ERR_INIT;

		for (enum oauth_reach far = OAUTH_PUBLIC; far <= OAUTH_LOOPBACK; far++) {
			ROW_CHECK((oauth_url_check(&u, "it", far, &e) == 0) ==
					  places_to_go[i].is_public,
				  text);
			ROW_CHECK(places_to_go[i].is_public || e.code == ERR_NOT_PUBLIC, text);
		}
		ROW_CHECK(oauth_url_check(&u, "it", OAUTH_ANYWHERE, &e) == 0, text);
	}
}

static const struct {
	const char *resource, *server;
	bool names;
} pairs[] = {
	{ "https://a/mcp", "https://a/mcp", true },
	{ "https://a", "https://a/", true },
	{ "https://a", "https://a/mcp", false },
	{ "https://a/", "https://a/mcp", false },
	{ "https://A:443/mcp/", "https://a/mcp", true },
	{ "https://a/mcp", "https://a/mcp/x", false },
	{ "https://a/mcp", "https://a/mcp?q=1", true },
	{ "https://a/mcp?q=1", "https://a/mcp?q=1", true },
	{ "https://a/mcp?q=2", "https://a/mcp?q=1", false },
	{ "https://a/mc", "https://a/mcp", false },
	{ "https://a/MCP", "https://a/mcp", false },
	{ "https://a/mcp/x", "https://a/mcp", false },
	{ "http://a/mcp", "https://a/mcp", false },
	{ "https://a:8443/mcp", "https://a/mcp", false },
	{ "https://evil.example/mcp", "https://a/mcp", false },
};

static void test_names(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct oauth_url r = url_of(pairs[i].resource), s = url_of(pairs[i].server);

		ROW_CHECK(oauth_url_names(&r, &s) == pairs[i].names, pairs[i].resource);
	}
}

static const struct {
	const char *url;
	enum oauth_place place;
	const char *is;
} places[] = {
	{ "https://a/x", OAUTH_INSERTED, "https://a/.well-known/w/x" },
	{ "https://a/x/", OAUTH_INSERTED, "https://a/.well-known/w/x" },
	{ "https://a/x?q", OAUTH_INSERTED, "https://a/.well-known/w/x?q" },
	{ "https://a", OAUTH_INSERTED, "https://a/.well-known/w" },
	{ "https://a/", OAUTH_INSERTED, "https://a/.well-known/w" },
	{ "https://a:1/x", OAUTH_ROOT, "https://a:1/.well-known/w" },
	{ "https://a/x", OAUTH_APPENDED, "https://a/x/.well-known/w" },
	{ "https://a/x/", OAUTH_APPENDED, "https://a/x/.well-known/w" },
};

static void test_well_known(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct oauth_url u = url_of(places[i].url);
		autobuf struct buf to = BUF_INIT(1000);
		struct err e;

		assert_int_equal(oauth_url_well_known(&u, places[i].place, "w", &to, &e), 0);
		assert_string_equal(to.p, places[i].is);
	}
}

static void test_form(void **state)
{
	autobuf struct buf to = BUF_INIT(1000);
	struct err e;

	assert_int_equal(oauth_form_add(&to, "a", STR_LIT("b c&d=e+\xc3\xa4~-._"), &e), 0);
	assert_int_equal(oauth_form_add(&to, "f", STR_LIT(""), &e), 0);
	assert_string_equal(to.p, "a=b%20c%26d%3De%2B%C3%A4%7E-._&f=");
}

static const struct {
	const char *url;
	bool ok;
	const char *code, *state, *iss, *error;
} redirects[] = {
	{ "http://127.0.0.1:1/callback?code=a&state=b", true, "a", "b", "", "" },
	{ "x?iss=https%3A%2F%2Fa%2F&state=b&code=c%2Bd+e#f", true, "c+d e", "b", "https://a/", "" },
	{ "http://h/?error=access_denied&error_description=<b>&state=s", true, "", "s", "",
	  "access_denied" },
	{ "http://h/", true, "", "", "", "" },
	{ "", true, "", "", "", "" },
	{ "http://h/?code=", true, "", "", "", "" },
	{ .url = "http://h/?code=a&code=b" },
	{ .url = "http://h/?state=a&state=b" },
	{ .url = "http://h/?state=&state=b" },
	{ .url = "http://h/?code&code=b" },
	{ .url = "http://h/?iss=a&iss=b" },
	{ .url = "http://h/?code=%" },
	{ .url = "http://h/?code=%4" },
	{ .url = "http://h/?code=%zz" },
	{ .url = "http://h/?code=%00" },
	{ .url = "http://h/?code=a%0d%0aX:y" },
	{ .url = "http://h/?error=<script>" },
};

static void test_redirects(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(redirects); i++) {
		struct oauth_redirect r;
		struct err e = ERR_INIT;
		bool ok = oauth_redirect_read(str_of(redirects[i].url), &r, &e) == 0;

		ROW_CHECK(ok == redirects[i].ok, redirects[i].url);
		if (!ok)
			continue;
		assert_string_equal(r.code, redirects[i].code);
		assert_string_equal(r.state, redirects[i].state);
		assert_string_equal(r.iss, redirects[i].iss);
		assert_string_equal(r.error, redirects[i].error);
	}
}

static void test_long_redirect(void **state)
{
	char url[OAUTH_CODE_MAX + 100] = "http://h/?code=";
	struct oauth_redirect r;
	struct err e;

	memset(url + strlen(url), 'a', OAUTH_CODE_MAX);
	assert_int_equal(oauth_redirect_read(str_of(url), &r, &e), 0);
	url[strlen(url)] = 'a';
	assert_int_equal(oauth_redirect_read(str_of(url), &r, &e), -1);
}

static void test_scopes(void **state)
{
	autobuf struct buf to = BUF_INIT(100);
	struct err e;

	assert_int_equal(oauth_scope_add(&to, STR_LIT("a  b a"), &e), 0);
	assert_int_equal(oauth_scope_add(&to, STR_LIT("b c"), &e), 0);
	assert_int_equal(oauth_scope_add(&to, STR_LIT(""), &e), 0);
	assert_string_equal(to.p, "a b c");
	assert_true(oauth_scope_covers(STR_LIT("a b c"), STR_LIT("c a")));
	assert_true(oauth_scope_covers(STR_LIT("a"), STR_LIT("")));
	assert_false(oauth_scope_covers(STR_LIT("ab"), STR_LIT("a")));
	assert_true(oauth_scope_ok(STR_LIT("files:read https://a/b")));
	assert_false(oauth_scope_ok(STR_LIT("a\"b")));
	assert_false(oauth_scope_ok(STR_LIT("a\nb")));
	assert_false(oauth_scope_ok(STR_LIT("\xc3\xa4")));
}

static const struct {
	const char *header;
	bool bearer, dpop;
	const char *metadata, *scope, *error;
	const char *with_dpop; /* the error of a request with DPoP, where it is another */
} challenges[] = {
	{ "Bearer", true, false, "", "", "" },
	{ "bEaReR realm=\"x\"", true, false, "", "", "" },
	{ "Bearer resource_metadata=\"https://a/b\", scope=\"r w\"", true, false, "https://a/b",
	  "r w", "" },
	{ "Bearer error=insufficient_scope,scope=\"w\" , realm = \"a\\\"b\"", true, false, "", "w",
	  "insufficient_scope" },
	{ "Basic realm=\"x, Bearer scope=\\\"no\\\"\", Bearer scope=yes", true, false, "", "yes",
	  "" },
	{ "Negotiate abc==, Bearer scope=\"a\"", true, false, "", "a", "" },
	{ "Negotiate, Bearer", true, false, "", "", "" },
	{ "DPoP algs=\"ES256\", resource_metadata=\"https://a\", Bearer scope=b", true, true,
	  "https://a", "b", "" },
	{ "DPoP error=\"use_dpop_nonce\"", false, true, "", "", "use_dpop_nonce" },
	{ "Bearer scope=\"a\", DPoP scope=\"b\"", true, true, "", "a", "" },
	{ "Bearer error=invalid_token, DPoP error=use_dpop_nonce", true, true, "", "",
	  "invalid_token", "use_dpop_nonce" },
	{ "DPoP error=use_dpop_nonce, Basic x, Bearer scope=a, error=invalid_token", true, true, "",
	  "a", "invalid_token", "use_dpop_nonce" },
	{ "DPoP algs=\"ES256\", Bearer error=invalid_token", true, true, "", "", "invalid_token" },
	{ ", ,Bearer ,scope=a", true, false, "", "a", "" },
	/* of broken ones nothing is taken */
	{ "", false, false, "", "", "" },
	{ "Basic realm=\"x\"", false, false, "", "", "" },
	{ "Bearer scope=\"a", false, false, "", "", "" },
	{ "Bearer scope=\"a\", scope=\"b\"", false, false, "", "", "" },
	{ "Bearer scope=\"a\" error=\"b\"", false, false, "", "", "" },
	{ "Bearer scope=\"a\\", false, false, "", "", "" },
	{ "\"Bearer\"", false, false, "", "", "" },
	{ "Bearer: scope=a", false, false, "", "", "" },
	/* values that are no scope and no word */
	{ "Bearer scope=\"a\\\"b\"", true, false, "", "", "" },
	{ "Bearer error=\"<b>\"", true, false, "", "", "" },
	/* what was good before stays */
	{ "Bearer scope=\"a\", DPoP scope=\"", true, false, "", "a", "" },
};

static void test_challenges(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(challenges); i++) {
		struct oauth_challenge c;

		oauth_challenge_read(str_of(challenges[i].header), true, &c);
		ROW_CHECK(strcmp(c.error, challenges[i].with_dpop ?: challenges[i].error) == 0,
			  challenges[i].header);
		oauth_challenge_read(str_of(challenges[i].header), false, &c);
		ROW_CHECK(c.bearer == challenges[i].bearer && c.dpop == challenges[i].dpop,
			  challenges[i].header);
		ROW_CHECK(strcmp(c.resource_metadata, challenges[i].metadata) == 0,
			  challenges[i].header);
		ROW_CHECK(strcmp(c.scope, challenges[i].scope) == 0, challenges[i].header);
		ROW_CHECK(strcmp(c.error, challenges[i].error) == 0, challenges[i].header);
	}
}

static void test_long_challenge(void **state)
{
	static char header[OAUTH_CHALLENGE_MAX + 100];
	struct oauth_challenge c;
	size_t n = (size_t)sprintf(header, "Bearer resource_metadata=\"https://a/");

	memset(header + n, 'x', OAUTH_URL_MAX);
	strcpy(header + n + OAUTH_URL_MAX, "\", scope=a");
	oauth_challenge_read(str_of(header), false, &c);
	assert_string_equal(c.resource_metadata, "");
	assert_string_equal(c.scope, "a");
	memset(header, 'x', sizeof(header) - 1);
	memcpy(header, "Bearer scope=", 13);
	oauth_challenge_read(str_of(header), false, &c);
	assert_false(c.bearer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),	       cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_reach),	       cmocka_unit_test(test_names),
		cmocka_unit_test(test_well_known),     cmocka_unit_test(test_form),
		cmocka_unit_test(test_redirects),      cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_long_redirect),  cmocka_unit_test(test_challenges),
		cmocka_unit_test(test_long_challenge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
