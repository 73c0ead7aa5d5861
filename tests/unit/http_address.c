/* http/client/address.h: which addresses a URL from outside may lead to. */
#include <arpa/inet.h>

#include "http/client/address.h"
#include "test.h"

static const struct {
	const char *text;
	bool is_public, is_loopback;
} rows[] = {
	/* public, at the edges of what is not */
	{ "1.1.1.1", .is_public = true },
	{ "8.8.8.8", .is_public = true },
	{ "1.0.0.0", .is_public = true },
	{ "9.255.255.255", .is_public = true },
	{ "11.0.0.0", .is_public = true },
	{ "100.63.255.255", .is_public = true },
	{ "100.128.0.0", .is_public = true },
	{ "126.255.255.255", .is_public = true },
	{ "128.0.0.0", .is_public = true },
	{ "168.63.129.15", .is_public = true },
	{ "168.63.129.17", .is_public = true },
	{ "169.253.255.255", .is_public = true },
	{ "169.255.0.0", .is_public = true },
	{ "172.15.255.255", .is_public = true },
	{ "172.32.0.0", .is_public = true },
	{ "192.0.1.0", .is_public = true },
	{ "192.0.3.0", .is_public = true },
	{ "192.167.255.255", .is_public = true },
	{ "192.169.0.0", .is_public = true },
	{ "198.17.255.255", .is_public = true },
	{ "198.20.0.0", .is_public = true },
	{ "223.255.255.255", .is_public = true },
	{ "2001:200::1", .is_public = true },
	{ "2001:4860:4860::8888", .is_public = true },
	{ "2606:4700:4700::1111", .is_public = true },
	{ "2a00:1450:4001:81b::200e", .is_public = true },
	{ "2001:dc0::1", .is_public = true },
	{ "3ffd::1", .is_public = true },

	{ "127.0.0.1", .is_loopback = true },
	{ "127.255.255.254", .is_loopback = true },
	{ "::1", .is_loopback = true },

	{ "0.0.0.0" },
	{ "0.1.2.3" },
	{ "10.0.0.1" },
	{ "10.255.255.255" },
	{ "100.64.0.0" },
	{ "100.127.255.255" },
	{ "100.100.100.200" }, /* metadata */
	{ "168.63.129.16" },
	{ "169.254.169.254" }, /* metadata */
	{ "169.254.170.2" },
	{ "172.16.0.0" },
	{ "172.31.255.255" },
	{ "192.0.0.1" },
	{ "192.0.0.192" },
	{ "192.0.2.1" },
	{ "192.52.193.1" },
	{ "192.88.99.1" },
	{ "192.168.0.1" },
	{ "198.18.0.1" },
	{ "198.19.255.255" },
	{ "198.51.100.1" },
	{ "203.0.113.1" },
	{ "224.0.0.1" },
	{ "239.255.255.250" },
	{ "240.0.0.1" },
	{ "255.255.255.255" },

	{ "::" },
	{ "::2" },
	{ "::7f00:1" }, /* compatible with 127.0.0.1 */
	{ "::808:808" },
	{ "::ffff:127.0.0.1" }, /* mapped */
	{ "::ffff:8.8.8.8" },
	{ "::ffff:0:8.8.8.8" }, /* translated */
	{ "64:ff9b::808:808" }, /* NAT64 */
	{ "64:ff9b::a9fe:a9fe" },
	{ "64:ff9b:1::1" },
	{ "100::1" },
	{ "100:0:0:1::1" },
	{ "1fff:ffff::1" },
	{ "2001::1" }, /* Teredo */
	{ "2001:0:4136:e378:8000:63bf:3fff:fdd2" },
	{ "2001:2::1" },
	{ "2001:10::1" },
	{ "2001:20::1" },
	{ "2001:1ff:ffff::1" },
	{ "2001:db8::1" },
	{ "2002:7f00:1::" }, /* 6to4 of 127.0.0.1 */
	{ "2002:808:808::1" },
	{ "2a00:1450:4001:81b:0:5efe:a00:1" }, /* ISATAP of 10.0.0.1 */
	{ "2a00:1450:4001:81b:200:5efe:808:808" },
	{ "3ffe::1" },
	{ "3fff::1" },
	{ "3fff:fff::1" },
	{ "4000::1" },
	{ "5f00::1" },
	{ "fc00::1" },
	{ "fd00:ec2::254" }, /* metadata */
	{ "fe80::1" },
	{ "fe80::a9fe:a9fe" },
	{ "fec0::1" },
	{ "ff02::1" },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
};

static void table(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sockaddr_storage s = { .ss_family = AF_INET };
		const struct sockaddr *a = (const struct sockaddr *)&s;
		bool six = strchr(rows[i].text, ':');
		void *at = six ? (void *)&((struct sockaddr_in6 *)&s)->sin6_addr
			       : (void *)&((struct sockaddr_in *)&s)->sin_addr;

		s.ss_family = six ? AF_INET6 : AF_INET;
		ROW_CHECK(inet_pton(s.ss_family, rows[i].text, at) == 1, rows[i].text);
		ROW_CHECK(http_address_public(a) == rows[i].is_public, rows[i].text);
		ROW_CHECK(http_address_loopback(a) == rows[i].is_loopback, rows[i].text);
	}
}

static void other_families_are_not_public(void **state)
{
	struct sockaddr a = { .sa_family = AF_UNIX };

	assert_false(http_address_public(&a));
	assert_false(http_address_loopback(&a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(other_families_are_not_public),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
