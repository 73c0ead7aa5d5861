/* Server-sent events: whatever the pieces are that a stream comes in, the same events come out.
 * The first byte is the size of the pieces, the second the bound. */
#include <string.h>

#include "fuzz.h"
#include "http/client/sse.h"

/* Writes down what is read; a stream that ends by an error is written down as far as it went. */
static void read_all(struct str text, size_t step, size_t max, struct buf *out)
{
	struct sse_reader r;
	struct sse_event ev;
	struct err e;
	int rc = 0;

	sse_init(&r, max, NULL);
	for (size_t at = 0; at < text.n && rc == 0; at += step) {
		struct str in = { text.p + at, text.n - at < step ? text.n - at : step };

		while ((rc = sse_next(&r, &in, &ev, &e)) > 0) {
			MUST(ev.data.n <= max && ev.type.n <= SSE_TYPE_MAX &&
			     ev.id.n <= SSE_ID_MAX);
			MUST(!memchr(ev.id.p, '\n', ev.id.n) && !memchr(ev.id.p, '\r', ev.id.n));
			MUST(buf_addf(out, &e, "%.*s:%.*s=", STR_ARG(ev.type), STR_ARG(ev.id)) ==
			     0);
			MUST(buf_add(out, ev.data.p, ev.data.n, &e) == 0);
		}
		MUST(rc < 0 || in.n == 0);
	}
	MUST(rc == 0 || e.code == ERR_TOO_LARGE);
	sse_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t step = n > 0 ? data[0] + 1u : 1, max = n > 1 ? 64u + data[1] * 16u : 64;
	struct str text = { (const char *)data + 2, n > 2 ? n - 2 : 0 };
	autobuf struct buf pieces = BUF_INIT(1 << 24), bytes = BUF_INIT(1 << 24);

	read_all(text, step, max, &pieces);
	read_all(text, 1, max, &bytes);
	/* a long line is a failure where it had to be kept */
	MUST(pieces.n >= bytes.n && memcmp(buf_str(&pieces).p, buf_str(&bytes).p, bytes.n) == 0);
	return 0;
}
