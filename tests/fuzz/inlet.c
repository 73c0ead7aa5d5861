/* What a program of a sandbox says to the hub: a request or none, and never before all of it is
 * there; and what an answer for shells is made of. */
#include <string.h>

#include "fuzz.h"
#include "modules/code/inlet_request.h"

enum { MEMORY = 16 << 20 };

static void check(const struct inlet_request *q)
{
	MUST(q->what < INLET_DOES);
	MUST(q->what == INLET_LIST || q->module.n);
	MUST(q->what != INLET_CALL || q->tool.n);
	MUST(q->arguments.n >= 2 && q->arguments.p[0] == '{');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	AUTO(arena_free) struct arena *a = arena_new(MEMORY);
	struct str text = { (const char *)data, n };
	autobuf struct buf in = BUF_INIT(MEMORY), out = BUF_INIT(MEMORY);
	const char head[INLET_HEAD] = { (char)n, (char)(n >> 8), (char)(n >> 16), 0 };
	struct inlet_request q;
	struct err e = ERR_INIT;
	int got;

	MUST(a);
	got = inlet_read(text, a, &q, &e);
	MUST(got >= 0 || e.code);
	if (got > 0)
		check(&q);
	if (n >= 1 << 16)
		return 0;
	MUST(buf_add(&in, head, sizeof(head), &e) == 0 && buf_add(&in, data, n, &e) == 0);
	for (size_t i = 0; i < in.n; i++)
		MUST(inlet_read((struct str){ in.p, i }, a, &q, &e) == 0);
	got = inlet_read(buf_str(&in), a, &q, &e);
	MUST(got != 0);
	if (got > 0)
		check(&q);
	if (inlet_say_text(&out, text, &e) == 0)
		MUST(out.n > INLET_HEAD &&
		     (out.p[INLET_HEAD] == INLET_RESULT || out.p[INLET_HEAD] == INLET_ERROR));
	return 0;
}
