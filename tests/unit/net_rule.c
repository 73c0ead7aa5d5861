/* net/wire: what is a name, an address, a grant, and what each of them allows. */
#include "net/wire/grant.h"
#include "net/wire/rule.h"
#include "net/wire/wire.h"
#include "test.h"

static void test_names(void **state)
{
	static const struct {
		const char *text, *host; /* host NULL: it is none */
	} rows[] = {
		{ "pypi.org", "pypi.org" },
		{ "PyPI.Org", "pypi.org" },
		{ "pypi.org.", "pypi.org" },
		{ "a", "a" },
		{ "a-b.c_d.example", "a-b.c_d.example" },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example" },
		{ "1.2.3.4.example", "1.2.3.4.example" },
		{ "0x7f.example", "0x7f.example" },
		{ "a.0xg", "a.0xg" },
		{ "", NULL },
		{ ".", NULL },
		{ "a..b", NULL },
		{ ".a", NULL },
		{ "a..", NULL },
		{ "-a.b", NULL },
		{ "a-.b", NULL },
		{ "a b", NULL },
		{ "a\tb", NULL },
		{ "a/b", NULL },
		{ "a:b", NULL },
		{ "a@b", NULL },
		{ "*.a", NULL },
		{ "b\xc3\xbc"
		  "cher.example",
		  NULL },
		{ "example\xe3\x80\x82"
		  "com",
		  NULL },
		{ "1.2.3.4", NULL },
		{ "1.2.3.4.5", NULL },
		{ "127.1", NULL },
		{ "2130706433", NULL },
		{ "0x7f000001", NULL },
		{ "0x7f.1", NULL },
		{ "0177.0.0.1", NULL },
		{ "a.b.1", NULL },
		{ "a.0x7f", NULL },
		{ "a.0x", "a.0x" },
		{ "::1", NULL },
		{ "[::1]", NULL },
		{ "999.999.999.999", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char host[NET_HOST_MAX] = "untouched";
		struct err e = ERR_INIT;
		int rc = net_host_parse(str_of(rows[i].text), host, &e);

		ROW_CHECK((rc == 0) == (rows[i].host != NULL), rows[i].text);
		ROW_CHECK(strcmp(host, rc == 0 ? rows[i].host : "untouched") == 0, rows[i].text);
		ROW_CHECK(rc == 0 || e.code == ERR_INVALID, rows[i].text);
		ROW_CHECK(net_host_read(str_of(rows[i].text), host) == (rc == 0), rows[i].text);
	}
}

static void test_long_names(void **state)
{
	char text[300], host[NET_HOST_MAX];

	memset(text, 'a', sizeof(text));
	assert_true(net_host_read((struct str){ text, 63 }, host));
	assert_false(net_host_read((struct str){ text, 64 }, host));
	for (size_t i = 50; i < sizeof(text); i += 51)
		text[i] = '.';
	assert_true(net_host_read((struct str){ text, 253 }, host));
	assert_false(net_host_read((struct str){ text, 254 }, host));
	assert_false(net_host_read((struct str){ "a\0b", 3 }, host));
}

static void test_addresses(void **state)
{
	static const struct {
		const char *text, *addr; /* addr NULL: it is none */
	} rows[] = {
		{ "127.0.0.1", "127.0.0.1" },
		{ "127.1", "127.0.0.1" },
		{ "127.0.1", "127.0.0.1" },
		{ "2130706433", "127.0.0.1" },
		{ "0x7f000001", "127.0.0.1" },
		{ "0X7F.0.0.0x1", "127.0.0.1" },
		{ "0177.0.0.01", "127.0.0.1" },
		{ "017700000001", "127.0.0.1" },
		{ "127.0.0.1.", "127.0.0.1" },
		{ "0", "0.0.0.0" },
		{ "0x", "0.0.0.0" },
		{ "169.254.43518", "169.254.169.254" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "4294967295", "255.255.255.255" },
		{ "::1", "::1" },
		{ "[::1]", "::1" },
		{ "::FFFF:10.0.0.1", "::ffff:10.0.0.1" },
		{ "[0:0:0:0:0:0:0:1]", "::1" },
		{ "4294967296", NULL },
		{ "256.0.0.1", NULL },
		{ "1.2.3.4.5", NULL },
		{ "1.2.3.256", NULL },
		{ "08.0.0.1", NULL },
		{ "1..2", NULL },
		{ "", NULL },
		{ ".", NULL },
		{ "..", NULL },
		{ "1.2.3.4..", NULL },
		{ "0xg", NULL },
		{ "::1%lo", NULL },
		{ "[::1", NULL },
		{ "::g", NULL },
		{ "a.example", NULL },
		{ " 127.0.0.1", NULL },
		{ "+1", NULL },
		{ "99999999999999999999999", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_addr a = { .family = 0 };
		char text[NET_ADDR_TEXT] = "";
		bool ok = net_addr_parse(str_of(rows[i].text), &a);

		ROW_CHECK(ok == (rows[i].addr != NULL), rows[i].text);
		if (!ok)
			continue;
		net_addr_print(&a, text);
		ROW_CHECK(strcmp(text, rows[i].addr) == 0, rows[i].text);
	}
}

static void test_classes(void **state)
{
	static const struct {
		const char *addr;
		enum net_class c;
	} rows[] = {
		{ "8.8.8.8", NET_PUBLIC },
		{ "93.184.216.34", NET_PUBLIC },
		{ "172.15.255.255", NET_PUBLIC },
		{ "172.32.0.0", NET_PUBLIC },
		{ "100.63.255.255", NET_PUBLIC },
		{ "223.255.255.255", NET_PUBLIC },
		{ "2606:2800:220:1::34", NET_PUBLIC },
		{ "2a00::1", NET_PUBLIC },
		{ "0.0.0.0", NET_UNSPECIFIED },
		{ "0.1.2.3", NET_UNSPECIFIED },
		{ "::", NET_UNSPECIFIED },
		{ "127.0.0.1", NET_LOOPBACK },
		{ "127.255.255.254", NET_LOOPBACK },
		{ "::1", NET_LOOPBACK },
		{ "10.0.0.1", NET_PRIVATE },
		{ "172.16.0.1", NET_PRIVATE },
		{ "172.31.255.255", NET_PRIVATE },
		{ "192.168.0.1", NET_PRIVATE },
		{ "100.64.0.1", NET_SHARED },
		{ "169.254.1.1", NET_LINK_LOCAL },
		{ "fe80::1", NET_LINK_LOCAL },
		{ "febf::1", NET_LINK_LOCAL },
		{ "169.254.169.254", NET_METADATA },
		{ "169.254.170.2", NET_METADATA },
		{ "100.100.100.200", NET_METADATA },
		{ "168.63.129.16", NET_METADATA },
		{ "fd00:ec2::254", NET_METADATA },
		{ "224.0.0.1", NET_MULTICAST },
		{ "239.255.255.255", NET_MULTICAST },
		{ "ff02::1", NET_MULTICAST },
		{ "255.255.255.255", NET_BROADCAST },
		{ "240.0.0.1", NET_RESERVED },
		{ "192.0.0.1", NET_RESERVED },
		{ "192.0.2.1", NET_DOCUMENTATION },
		{ "203.0.113.1", NET_DOCUMENTATION },
		{ "2001:db8::1", NET_DOCUMENTATION },
		{ "198.18.0.1", NET_BENCHMARK },
		{ "198.19.255.255", NET_BENCHMARK },
		{ "192.88.99.1", NET_6TO4 },
		{ "2002:a00:1::", NET_6TO4 },
		{ "2001::1", NET_TEREDO },
		{ "fc00::1", NET_UNIQUE_LOCAL },
		{ "fd00::1", NET_UNIQUE_LOCAL },
		{ "fec0::1", NET_SITE_LOCAL },
		{ "::ffff:8.8.8.8", NET_MAPPED },
		{ "::8.8.8.8", NET_COMPATIBLE },
		{ "64:ff9b::808:808", NET_TRANSLATED },
		{ "64:ff9b:1::1", NET_TRANSLATED },
		{ "::ffff:0:8.8.8.8", NET_TRANSLATED },
		{ "100::1", NET_RESERVED },
		{ "4000::1", NET_RESERVED },
		{ "e000::1", NET_RESERVED },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_addr a;
		struct net_cidr all = { .bits = 0 };
		bool never;

		ROW_CHECK(net_addr_parse(str_of(rows[i].addr), &a), rows[i].addr);
		ROW_CHECK(net_addr_class(&a) == rows[i].c, rows[i].addr);
		/* the widest range grants public addresses alone, an exact one nearly all */
		all.addr.family = a.family;
		ROW_CHECK(net_cidr_grants(&all, &a) == (rows[i].c == NET_PUBLIC), rows[i].addr);
		all = (struct net_cidr){ .addr = a, .bits = a.family == 4 ? 32 : 128 };
		never = rows[i].c == NET_UNSPECIFIED || rows[i].c == NET_MULTICAST ||
			rows[i].c == NET_BROADCAST || strcmp(rows[i].addr, "240.0.0.1") == 0 ||
			strcmp(rows[i].addr, "4000::1") == 0 ||
			strcmp(rows[i].addr, "e000::1") == 0;
		ROW_CHECK(net_cidr_grants(&all, &a) == !never, rows[i].addr);
	}
}

static void test_ranges(void **state)
{
	static const struct {
		const char *cidr, *addr;
		bool has, grants;
	} rows[] = {
		{ "10.0.0.0/8", "10.1.2.3", true, true },
		{ "10.0.0.0/7", "10.1.2.3", true, false },
		{ "10.1.0.0/16", "10.1.2.3", true, true },
		{ "10.1.0.0/16", "10.2.2.3", false, false },
		{ "169.254.0.0/16", "169.254.1.1", true, true },
		{ "169.254.0.0/16", "169.254.169.254", true, false },
		{ "169.254.169.254", "169.254.169.254", true, true },
		{ "0.0.0.0/0", "8.8.8.8", true, true },
		{ "::/0", "8.8.8.8", false, false },
		{ "fd00::/8", "fd00::1", true, true },
		{ "fd00::/8", "fd00:ec2::254", true, false },
		{ "8.8.8.0/25", "8.8.8.127", true, true },
		{ "8.8.8.0/25", "8.8.8.128", false, false },
		{ "0.0.0.0/32", "0.0.0.0", true, false },
	};
	static const char *const bad[] = { "",
					   "10.0.0.1/8",
					   "10.0.0.0/33",
					   "10.0.0.0/",
					   "10.0.0.0/08",
					   "10.0.0.0/-1",
					   "10.0/16",
					   "0x0a.0.0.0/8",
					   "010.0.0.0/8",
					   "::1/129",
					   "::1/0",
					   "a.example/8",
					   "10.0.0.0/8/8",
					   "10.0.0.0/1e1" };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_cidr c;
		struct net_addr a;

		ROW_CHECK(net_cidr_parse(str_of(rows[i].cidr), &c), rows[i].cidr);
		ROW_CHECK(net_addr_parse(str_of(rows[i].addr), &a), rows[i].addr);
		ROW_CHECK(net_cidr_has(&c, &a) == rows[i].has, rows[i].cidr);
		ROW_CHECK(net_cidr_grants(&c, &a) == rows[i].grants, rows[i].cidr);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct net_cidr c;

		ROW_CHECK(!net_cidr_parse(str_of(bad[i]), &c), bad[i]);
	}
}

static void test_rules(void **state)
{
	static const struct {
		const char *text;
		bool by_operator;
		int code; /* enum err_code */
		uint32_t kind;
		const char *printed;
	} rows[] = {
		{ "PyPI.org:443", false, 0, NET_RULE_NAME, "pypi.org:443" },
		{ "pypi.org", false, 0, NET_RULE_NAME, "pypi.org" },
		{ "*.PyPI.org:80", false, 0, NET_RULE_SUFFIX, "*.pypi.org:80" },
		{ "10.0.0.0/8:5432", true, 0, 0, NULL },
		{ "10.0.0.0/8", true, 0, NET_RULE_CIDR, "10.0.0.0/8" },
		{ "10.0.0.1:80", true, 0, NET_RULE_CIDR, "10.0.0.1:80" },
		{ "[fd00::1]:80", true, 0, NET_RULE_CIDR, "[fd00::1]:80" },
		{ "[fd00::]/8:80", true, 0, NET_RULE_CIDR, "[fd00::]/8:80" },
		{ "fd00::/8", true, 0, NET_RULE_CIDR, "[fd00::]/8" },
		{ "10.0.0.1:80", false, ERR_DENIED },
		{ "[fd00::1]:80", false, ERR_DENIED },
		{ "0x0a.0.0.1", true, ERR_INVALID },
		{ "0x0a.0.0.1", false, ERR_INVALID },
		{ "*.org:443", false, ERR_INVALID },
		{ "*", false, ERR_INVALID },
		{ "*:443", false, ERR_INVALID },
		{ "a.*.org", false, ERR_INVALID },
		{ "*a.org", false, ERR_INVALID },
		{ "pypi.org:0", false, ERR_INVALID },
		{ "pypi.org:65536", false, ERR_INVALID },
		{ "pypi.org:080", false, ERR_INVALID },
		{ "pypi.org:", false, ERR_INVALID },
		{ "pypi.org:https", false, ERR_INVALID },
		{ "", false, ERR_INVALID },
		{ ":443", false, ERR_INVALID },
		{ "localhost:80", false, ERR_INVALID },
		{ "x.localhost:80", true, ERR_INVALID },
		{ "host.holt:80", false, ERR_DENIED },
		{ "host.holt:80", true, ERR_DENIED },
		{ "*.holt:80", true, ERR_INVALID },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_rule r = { .kind = 0 }, again;
		char text[NET_RULE_TEXT];
		struct err e = ERR_INIT;
		int rc = net_rule_parse(str_of(rows[i].text), rows[i].by_operator, &r, &e);

		if (!rows[i].code && !rows[i].kind)
			continue;
		ROW_CHECK((rc == 0) == (rows[i].code == 0), rows[i].text);
		if (rc < 0)
			continue;
		ROW_CHECK(r.kind == rows[i].kind, rows[i].text);
		net_rule_print(&r, text);
		ROW_CHECK(strcmp(text, rows[i].printed) == 0, rows[i].text);
		ROW_CHECK(net_rule_parse(str_of(text), true, &again, &e) == 0, text);
		ROW_CHECK(net_rule_same(&r, &again), text);
	}
}

static void test_services(void **state)
{
	static const struct {
		const char *name, *target;
		bool ok;
	} rows[] = {
		{ "host.holt:5432", "127.0.0.1:5432", true },
		{ "db.holt:1", "[::1]:5432", true },
		{ "db.holt:1", "5432", true },
		{ "db.holt:1", "unix:/run/db.sock", true },
		{ "db.holt:1", "unix:run/db.sock", false },
		{ "db.holt", "5432", false },
		{ "holt:1", "5432", false },
		{ "db.example:1", "5432", false },
		{ "db.holt:1", "db.example:5432", false },
		{ "db.holt:1", "127.0.0.0/8:5432", false },
		{ "db.holt:1", "127.0.0.1", false },
		{ "db.holt:1", "", false },
	};
	struct net_rule r;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int rc = net_rule_parse_service(str_of(rows[i].name), str_of(rows[i].target), &r,
						&e);

		ROW_CHECK((rc == 0) == rows[i].ok, rows[i].target);
		ROW_CHECK(rc < 0 || r.kind == NET_RULE_SERVICE, rows[i].target);
	}
}

static struct net_rule rule(const char *text)
{
	struct net_rule r;
	struct err e;

	assert_int_equal(net_rule_parse(str_of(text), true, &r, &e), 0);
	return r;
}

static void test_find(void **state)
{
	const struct net_rule rules[] = { rule("*.example.org:443"), rule("*.deep.example.org:443"),
					  rule("a.example.org:443"), rule("a.example.org:80"),
					  rule("10.0.0.0/8:443"),    rule("0.0.0.0/0") };
	static const struct {
		const char *host;
		uint16_t port;
		int found;
	} rows[] = {
		{ "a.example.org", 443, 2 },	{ "a.example.org", 80, 3 },
		{ "a.example.org", 81, -1 },	{ "b.example.org", 443, 0 },
		{ "x.y.example.org", 443, 0 },	{ "x.deep.example.org", 443, 1 },
		{ "deep.example.org", 443, 0 }, { "example.org", 443, -1 },
		{ "xexample.org", 443, -1 },	{ "a.example.org.evil", 443, -1 },
		{ ".example.org", 443, -1 },	{ "b.example.org", 80, -1 },
	};
	struct net_addr a;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ROW_CHECK(net_rules_find(rules, ARRAY_LEN(rules), rows[i].host, rows[i].port) ==
				  rows[i].found,
			  rows[i].host);
	assert_true(net_addr_parse(STR_LIT("10.1.1.1"), &a));
	assert_int_equal(net_rules_find_addr(rules, ARRAY_LEN(rules), &a, 443), 4);
	assert_int_equal(net_rules_find_addr(rules, ARRAY_LEN(rules), &a, 80), -1);
	assert_true(net_addr_parse(STR_LIT("8.8.8.8"), &a));
	assert_int_equal(net_rules_find_addr(rules, ARRAY_LEN(rules), &a, 80), 5);
}

static void test_http_rules(void **state)
{
	static const struct net_http_rule http[] = {
		{ .rule = 0, .then = NET_HTTP_DENY, .pattern = "/secret*" },
		{ .rule = 0, .then = NET_HTTP_ALLOW, .method = "GET", .pattern = "/*" },
		{ .rule = 0, .then = NET_HTTP_ASK, .method = "POST", .pattern = "/a" },
		{ .rule = 2, .then = NET_HTTP_ALLOW, .method = "GET", .pattern = "/repos/a/*" },
		{ .rule = 3, .then = NET_HTTP_ALLOW, .pattern = "*" },
		{ .rule = 4, .then = NET_HTTP_DENY, .method = "POST", .pattern = "*" },
		{ .rule = 4, .then = NET_HTTP_ALLOW, .pattern = "*" },
	};
	static const struct {
		int rule;
		const char *method, *path;
		int found;
		bool any, odd;
	} rows[] = {
		{ 0, "GET", "/", 1, true },
		{ 0, "GET", "/secret", 0, true },
		{ 0, "POST", "/secrets/x", 0, true },
		{ 0, "POST", "/a", 2, true },
		{ 0, "POST", "/a/", -1, true },
		{ 0, "get", "/", -1, true },
		/* as it is, and in upper case: the stricter decides */
		{ 4, "POST", "/x", 5, true },
		{ 4, "post", "/x", 5, true },
		{ 4, "Post", "/x", 5, true },
		{ 4, "posts", "/x", 6, true },
		{ 4, "put", "/x", 6, true },
		{ 0, "OPTIONS", "*", -1, true },
		{ 1, "GET", "/", -1, false },
		{ 3, "OPTIONS", "*", 4, true },
		/* escapes are what they stand for */
		{ 0, "GET", "/%73ecret", 0, true },
		{ 0, "GET", "/%53ecret", 1, true },
		{ 0, "GET", "/sec%72et%20x", 0, true },
		{ 2, "GET", "/repos/%61/b%2Ec", 3, true },
		/* both readings have to be allowed */
		{ 0, "GET", "/%2fsecret", -1, true, true },
		{ 0, "GET", "/x%2fsecret", 1, true },
		{ 2, "GET", "/repos/a%2fb", -1, true },
		{ 2, "GET", "/repos/a/b%2Fc", 3, true },
		{ 2, "GET", "/repos/a/..%2f..%2fx", -1, true, true },
		{ 2, "GET", "/repos/a/b;v=1", 3, true },
		{ 2, "GET", "/repos/a;/b", -1, true },
		{ 2, "GET", "/repos/a/..;/b", -1, true, true },
		{ 2, "GET", "/repos/a/;/b", -1, true, true },
		{ 0, "GET", "/a;x%2fq/b", -1, true, true },
		{ 0, "GET", "/a;%2F/secret", -1, true, true },
		{ 0, "GET", "/a;x/b%2Fc;y", 1, true },
		/* what servers read in several ways */
		{ 0, "GET", "", -1, true, true },
		{ 0, "GET", "a", -1, true, true },
		{ 0, "GET", "//", -1, true, true },
		{ 0, "GET", "/a//b", -1, true, true },
		{ 0, "GET", "/.", -1, true, true },
		{ 0, "GET", "/..", -1, true, true },
		{ 0, "GET", "/a/../b", -1, true, true },
		{ 0, "GET", "/a/./b", -1, true, true },
		{ 0, "GET", "/a/..", -1, true, true },
		{ 0, "GET", "/%2e%2e/", -1, true, true },
		{ 0, "GET", "/%2E", -1, true, true },
		{ 0, "GET", "/%5c", -1, true, true },
		{ 0, "GET", "/a/%c0%ae%c0%ae/b", -1, true, true },
		{ 0, "GET", "/a/%e0%80%ae/b", -1, true, true },
		{ 0, "GET", "/a/%f0%80%80%ae/b", -1, true, true },
		{ 0, "GET", "/a\\b", -1, true, true },
		{ 0, "GET", "/%3B", -1, true, true },
		{ 0, "GET", "/%25", -1, true, true },
		{ 0, "GET", "/%2573ecret", -1, true, true },
		{ 0, "GET", "/%", -1, true, true },
		{ 0, "GET", "/%4", -1, true, true },
		{ 0, "GET", "/%0a", -1, true, true },
		{ 0, "GET", "/%00", -1, true, true },
		/* and what only looks so */
		{ 0, "GET", "/..a/b..", 1, true },
		{ 0, "GET", "/a/...", 1, true },
		{ 0, "GET", "/.well-known/x", 1, true },
		{ 0, "GET", "/a/b%2Etxt", 1, true },
	};
	char path[NET_PATH_READ_MAX + 2];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_http_decision d = net_http_decide(http, ARRAY_LEN(http), rows[i].rule,
							     str_of(rows[i].method),
							     str_of(rows[i].path));

		ROW_CHECK(d.found == rows[i].found && d.any == rows[i].any && d.odd == rows[i].odd,
			  rows[i].path);
		ROW_CHECK(d.then == (!d.any	   ? NET_HTTP_ALLOW
				     : d.found < 0 ? NET_HTTP_DENY
						   : (enum net_http_then)http[d.found].then),
			  rows[i].path);
	}
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	assert_int_equal(net_http_decide(http, ARRAY_LEN(http), 0, STR_LIT("GET"),
					 (struct str){ path, NET_PATH_READ_MAX })
				 .found,
			 1);
	assert_true(net_http_decide(http, ARRAY_LEN(http), 0, STR_LIT("GET"),
				    (struct str){ path, NET_PATH_READ_MAX + 1 })
			    .odd);
}

static void test_http_texts(void **state)
{
	static const struct {
		const char *text, *printed; /* of the last one; NULL: it is refused */
		size_t n;
	} rows[] = {
		{ "GET /", "allow GET /", 1 },
		{ "allow GET /a*", "allow GET /a*", 1 },
		{ "deny * *", "deny * *", 1 },
		{ "GET /a, ask POST /b,c", "ask POST /b,c", 2 },
		{ "allow allow /a", "allow allow /a", 1 },
		{ "", NULL, 0 },
		{ "GET", NULL, 0 },
		{ "deny GET", NULL, 0 },
		{ "G=T /", NULL, 0 },
		{ "ABCDEFGHIJKLMNOP /", NULL, 0 },
		{ "GET a", NULL, 0 },
		{ "GET /a b", NULL, 0 },
		{ "GET /a*b", NULL, 0 },
		{ "GET /a?b", NULL, 0 },
		{ "GET /%41", NULL, 0 },
		{ "GET /a;b", NULL, 0 },
		{ "GET /a//b", NULL, 0 },
		{ "GET /a/../b", NULL, 0 },
		{ "GET /, ", NULL, 0 },
		{ "GET /,GET /", NULL, 0 },
	};
	struct net_http_rule r[NET_HTTP_EACH], again;
	char text[NET_HTTP_TEXT];
	struct err e;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int rc = net_http_parse(str_of(rows[i].text), r, NET_HTTP_EACH, &n, &e);

		ROW_CHECK((rc == 0) == (rows[i].printed != NULL), rows[i].text);
		if (rc < 0)
			continue;
		net_http_print(&r[n - 1], text);
		ROW_CHECK(n == rows[i].n && strcmp(text, rows[i].printed) == 0, rows[i].text);
		net_http_print_word(&r[n - 1], text);
		ROW_CHECK(net_http_parse_word(str_of(text), &again, &e) == 0 &&
				  net_http_same(&again, &r[n - 1]),
			  text);
	}
	assert_int_equal(net_http_parse(STR_LIT("GET /, GET /"), r, 1, &n, &e), -1);
}

static void grant_of(struct net_grant *g, const char *const *texts, size_t n)
{
	struct net_http_rule http[NET_HTTP_EACH];
	struct net_rule r;
	struct str host;
	struct err e;

	assert_int_equal(net_grant_init(g, &e), 0);
	for (size_t i = 0; i < n; i++) {
		size_t n_http;

		assert_int_equal(
			net_http_split(str_of(texts[i]), &host, http, NET_HTTP_EACH, &n_http, &e),
			0);
		assert_int_equal(net_rule_parse(host, true, &r, &e), 0);
		assert_int_equal(net_grant_add(g, &r, http, n_http, &e), 0);
	}
}

/* What may be granted is never widened by what it is asked for as. */
static void test_grants(void **state)
{
	static const char *const most[] = { "*.example.org:443", "api.example.org:443 GET /v1/*",
					    "web.example:80" };
	static const struct {
		const char *ask[2];
		bool within;
		int of;
	} rows[] = {
		{ { "web.example:80" }, true, -1 },
		{ { "web.example:80 GET /" }, true, -1 },
		{ { "web.example:443" }, false, -1 },
		{ { "a.example.org:443" }, true, -1 },
		{ { "api.example.org:443" }, false, 1 },
		{ { "api.example.org:443 GET /v1/*" }, true, -1 },
		{ { "api.example.org:443 GET /v1/*, POST /" }, false, 1 },
		{ { "*.example.org:443" }, false, 1 },
		{ { "*.example.org:443", "api.example.org:443 GET /v1/*" }, true, -1 },
		{ { "*.example.org:443", "api.example.org:443" }, false, 1 },
	};
	autogrant struct net_grant all = { .n = 0 };
	autobuf struct buf text = BUF_INIT(4096);
	struct net_http_rule http;
	struct net_rule r;
	struct err e;

	grant_of(&all, most, ARRAY_LEN(most));
	assert_int_equal(net_grant_print(&all, &text, &e), 0);
	assert_true(str_is(buf_str(&text), "*.example.org:443 api.example.org:443 "
					   "=allow,GET,/v1/* web.example:80"));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autogrant struct net_grant g = { .n = 0 };
		int of;

		grant_of(&g, rows[i].ask, rows[i].ask[1] ? 2 : 1);
		ROW_CHECK(net_grant_is_within(&g, 0, &all, &of) == rows[i].within &&
				  of == rows[i].of,
			  rows[i].ask[0]);
	}
	/* the same again is the same, with other rules it is a mistake */
	assert_int_equal(net_rule_parse(STR_LIT("api.example.org:443"), true, &r, &e), 0);
	assert_int_equal(net_http_make(NET_HTTP_ALLOW, STR_LIT("GET"), STR_LIT("/v1/*"), &http, &e),
			 0);
	assert_int_equal(net_grant_add(&all, &r, &http, 1, &e), 0);
	assert_int_equal(all.n, 3);
	assert_int_equal(net_grant_add(&all, &r, NULL, 0, &e), -1);
}

static void test_texts(void **state)
{
	for (uint32_t i = 0; i < NW_REASONS_N; i++)
		assert_true(nw_reason_name(i)[0] && nw_reason_text(i));
	assert_string_equal(nw_reason_name(NW_REASONS_N), "unknown");
	for (int c = 0; c < NET_CLASSES; c++)
		assert_true(net_class_text((enum net_class)c)[0]);
	/* one message each, beside its fixed part */
	assert_true(sizeof(struct nw_grant) + NW_RULES_MAX * sizeof(struct net_rule) +
			    NW_HTTP_MAX * sizeof(struct net_http_rule) <
		    NW_MAX);
	assert_true(sizeof(struct nw_sockets) + NW_SOCKETS_MAX * sizeof(struct nw_socket) < NW_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	   cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_addresses),  cmocka_unit_test(test_classes),
		cmocka_unit_test(test_ranges),	   cmocka_unit_test(test_rules),
		cmocka_unit_test(test_services),   cmocka_unit_test(test_find),
		cmocka_unit_test(test_http_rules), cmocka_unit_test(test_http_texts),
		cmocka_unit_test(test_grants),	   cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
