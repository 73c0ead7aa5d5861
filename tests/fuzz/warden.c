/* What a hub says to the warden: whatever passes the check can be read to its end, within the
 * message. */
#include <string.h>

#include "box/warden/message.h"
#include "fuzz.h"

static void read_create(const struct wm_create *m, size_t n)
{
	const char *at = (const char *)(m + 1), *end = (const char *)m + n;

	MUST(strlen(m->image) < sizeof(m->image) && m->n_mounts <= WIRE_MOUNTS_MAX);
	for (uint32_t i = 0; i < m->n_mounts; i++) {
		const char *host, *guest;
		struct wm_mount mount;

		at = message_mount(at, end, &mount, &host, &guest);
		MUST(at && host + strlen(host) < at && guest + strlen(guest) < at);
	}
	MUST(at == end);
}

static void read_usage(const struct wm_usage *m)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < m->n; i++)
		sum += m->keys[i];
	MUST(m->n <= WIRE_USAGE_MAX && (m->n > 0 || sum == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct wm_head *h = (const void *)data; /* as aligned as what malloc() gives */
	struct err e = ERR_INIT;

	if (message_is_hello(h, n, "fuzzed")) {
		MUST(strlen(((const struct wm_hello *)h)->allow) <
		     sizeof(((struct wm_hello *)0)->allow));
		MUST(message_check(h, n, &e) < 0);
	}
	if (message_check(h, n, &e) < 0) {
		MUST(e.code == ERR_BUG);
		return 0;
	}
	if (h->type == WM_CREATE)
		read_create((const void *)h, n);
	else if (h->type == WM_USAGE)
		read_usage((const void *)h);
	return 0;
}
