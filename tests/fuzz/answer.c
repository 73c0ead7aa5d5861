/*
 * What a hostile server says: its head is taken or not, and what is taken has names, values and a
 * length that its reader promises; its chunks give the same bytes wherever they are cut.
 *
 */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "http/client/answer.h"

static void check_head(struct str text)
{
	static struct http_answer a;
	struct err e;

	if (http_answer_parse(text, &a, &e) < 0)
		return;
	MUST(a.status >= 100 && a.status < 600 && a.n_fields <= HTTP_ANSWER_FIELDS);
	MUST(!a.chunked || !a.has_length);
	for (size_t i = 0; i < a.n_fields; i++) {
		struct str name = a.fields[i].name, value = a.fields[i].value;

		MUST(name.n > 0 && !memchr(name.p, ' ', name.n) && !memchr(name.p, '\r', name.n));
		MUST(value.n == 0 ||
		     (!memchr(value.p, '\r', value.n) && !memchr(value.p, '\n', value.n) &&
		      !memchr(value.p, 0, value.n)));
	}
}

/* 0 at their end, -1 where they are wrong, 1 where more has to come. */
static int take_chunks(struct str text, size_t step, struct buf *out)
{
	struct http_chunks c = { 0 };
	struct str piece;
	struct err e;
	int rc = 1;

	for (size_t at = 0; at < text.n && rc > 0; at += step) {
		struct str in = { text.p + at, text.n - at < step ? text.n - at : step };

		while (rc > 0 && in.n > 0) {
			rc = http_chunks_next(&c, &in, &piece, &e);
			MUST(rc < 0 || buf_add(out, piece.p, piece.n, &e) == 0);
		}
	}
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t step = n > 0 ? data[0] + 1u : 1;
	struct str text = { (const char *)data + 1, n > 1 ? n - 1 : 0 };
	autobuf struct buf pieces = BUF_INIT(1 << 24), bytes = BUF_INIT(1 << 24);

	check_head(text);
	MUST(take_chunks(text, step, &pieces) == take_chunks(text, 1, &bytes));
	MUST(str_eq(buf_str(&pieces), buf_str(&bytes)));
	return 0;
}
