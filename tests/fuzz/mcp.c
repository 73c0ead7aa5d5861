/*
 * A whole session: lines are messages, and lines that begin with ! are what else happens (e a call
 * ends, p it makes progress, t time passes, c all are cancelled, g the client is slow). Everything
 * that is sent must be a JSON-RPC message on one line.
 */
#include <string.h>

#include "../unit/mcp_fixture.h"
#include "fuzz.h"

static struct mcp_call *oldest(struct fixture *f, unsigned *ret_i)
{
	for (unsigned i = 0; i < f->held_n; i++) {
		if (f->held[i]) {
			*ret_i = i;
			return f->held[i];
		}
	}
	return NULL;
}

static void act(struct fixture *f, char what)
{
	unsigned i = 0;
	struct mcp_call *c = oldest(f, &i);

	if (what == 'e' && c)
		fixture_end(f, i);
	else if (what == 'p' && c)
		mcp_call_progress(c, (double)f->now_ms, 0, "p\xff");
	else if (what == 't')
		f->now_ms += 60;
	else if (what == 'c')
		mcp_session_fail_all(f->session);
	else if (what == 'g')
		f->congested = !f->congested;
}

static void check_message(const struct json_val *v)
{
	MUST(str_is(json_str(json_get(v, "jsonrpc")), "2.0"));
	if (json_get(v, "method"))
		MUST(json_get(v, "params") && !json_get(v, "id"));
	else
		MUST(!json_get(v, "result") != !json_get(v, "error") &&
		     (json_get(v, "id") || json_get(v, "error")));
}

static void check_sent(struct fixture *f)
{
	for (unsigned i = 0; i < f->sent_n; i++) {
		struct err e;
		AUTO(json_free) struct json_doc *d = json_parse(str_of(f->sent[i]), NULL, &e);
		struct json_iter it;

		MUST(d && !strchr(f->sent[i], '\n'));
		if (json_type(json_root(d)) != JSON_ARRAY) {
			check_message(json_root(d));
			continue;
		}
		MUST(json_len(json_root(d)) > 0);
		it = json_iter(json_root(d));
		while (json_next(&it))
			check_message(it.val);
	}
	fixture_clear(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct mcp_server_options o = { .page = 2, .inflight_max = 4, .held_max = 4096 };
	struct str rest = { (const char *)data, n };
	struct fixture f;

	MUST(fixture_init(&f, &o));
	f.end_on_cancel = n > 0 && data[0] % 2;
	while (rest.n > 0) {
		const char *end = memchr(rest.p, '\n', rest.n);
		size_t len = end ? (size_t)(end - rest.p) : rest.n;

		if (len == 2 && rest.p[0] == '!')
			act(&f, rest.p[1]);
		else
			mcp_session_message(f.session, (struct str){ rest.p, len });
		check_sent(&f);
		len += end != NULL;
		rest.p += len;
		rest.n -= len;
	}
	fixture_fini(&f);
	return 0;
}
