/*
 * Framing and messages: the first byte is the longest line, the second the size of the pieces. The
 * lines that come out are those that a plain split gives; each is parsed and classified.
 */
#include <string.h>

#include "fuzz.h"
#include "rpc/line.h"
#include "rpc/rpc.h"

/* What the next line must be, taken off the front of rest. */
static enum line_event split(struct str *rest, size_t max, struct str *ret)
{
	const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
	size_t n = end ? (size_t)(end - rest->p) : rest->n;

	if (rest->n == 0)
		return LINE_MORE;
	*ret = (struct str){ rest->p, n };
	n += end != NULL;
	rest->p += n;
	rest->n -= n;
	if (ret->n > 0 && ret->p[ret->n - 1] == '\r' && ret->n - 1 <= max)
		ret->n--;
	return ret->n > max ? LINE_TOO_LONG : LINE_TEXT;
}

static void check_message(struct str text)
{
	struct json_doc *d = NULL;
	struct rpc_fault f;
	struct rpc_id id;
	struct rpc_msg m;
	bool silent;

	if (rpc_parse(text, NULL, &d, &f, &id) < 0) {
		MUST(f.code != 0 && f.message[0]);
		return;
	}
	if (rpc_read(json_root(d), &m, &f, &silent) == 0) {
		MUST(m.kind != RPC_REQUEST || m.id.n > 0);
		MUST(m.kind == RPC_RESPONSE || m.method.p);
	} else {
		MUST(f.code == RPC_INVALID_REQUEST);
	}
	json_free(d);
}

/* An id that is found in a text is one that could be echoed. */
static void check_sniff(const struct rpc_sniff *s)
{
	struct rpc_id id, again;
	struct json_doc *d;
	struct err e;

	rpc_sniff_id(s, &id);
	if (id.n == 0)
		return;
	d = json_parse(rpc_id_str(&id), NULL, &e);
	MUST(d && rpc_id_read(json_root(d), &again));
	MUST(str_eq(rpc_id_str(&id), rpc_id_str(&again)));
	json_free(d);
}

static void check_event(struct line_reader *l, enum line_event event, struct str line,
			struct str *rest, size_t max)
{
	struct str expected = STR_NONE;

	MUST(split(rest, max, &expected) == event);
	if (event == LINE_TEXT) {
		MUST(str_eq(line, expected));
		check_message(line);
	} else {
		check_sniff(&l->sniff);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t max = n > 0 ? data[0] : 0, step = n > 1 ? data[1] + 1u : 1;
	struct str text = { (const char *)data + 2, n > 2 ? n - 2 : 0 }, rest = text,
		   line = STR_NONE;
	enum line_event event;
	struct line_reader l;

	line_init(&l, max);
	for (size_t at = 0; at < text.n; at += step) {
		struct str in = { text.p + at, text.n - at < step ? text.n - at : step };

		while ((event = line_next(&l, &in, &line)) != LINE_MORE)
			check_event(&l, event, line, &rest, max);
	}
	event = line_last(&l, &line);
	if (event != LINE_MORE)
		check_event(&l, event, line, &rest, max);
	MUST(rest.n == 0);
	line_fini(&l);
	return 0;
}
