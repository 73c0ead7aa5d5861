/* Redaction of any bytes: pieces of any sizes give what the whole gives, and a value is never left.
 * The first bytes of the input are the sizes of pieces. */
#include "base/buf.h"
#include "fuzz.h"
#include "guard/redact/redact.h"

enum { SIZES = 8, TEXT_BYTES = 8192, ALL_BYTES = 1 << 20 };

static struct redactor *made(void)
{
	static struct redactor *r;
	struct err e;

	if (r)
		return r;
	r = redactor_new(NULL, &e);
	MUST(r && redact_value_add(r, STR_LIT("v"), STR_LIT("Fuzz-Value"), &e) == 0);
	return r;
}

static void pieces(struct redactor *r, const uint8_t *sizes, struct str text, struct buf *to)
{
	struct err e;
	AUTO(redact_stream_free) struct redact_stream *s = redact_stream_new(r, false, &e);
	size_t i = 0;

	for (size_t at = 0, n; at < text.n; at += n, i++) {
		n = 1u + sizes[i % SIZES];
		n = n < text.n - at ? n : text.n - at;
		MUST(redact_stream_add(s, (struct str){ text.p + at, n }, REDACT_MORE, to, &e) ==
		     0);
	}
	MUST(redact_stream_add(s, STR_NONE, REDACT_END, to, &e) == 0);
	MUST(redact_stream_held(s) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	autobuf struct buf whole = BUF_INIT(ALL_BYTES), parts = BUF_INIT(ALL_BYTES);
	struct redactor *r = made();
	struct redact_part part;
	struct err e;
	int rc;

	if (n < SIZES || n > TEXT_BYTES)
		return 0;
	part = (struct redact_part){ .text = { (const char *)data + SIZES, n - SIZES } };
	rc = redact_text(r, &part, &whole, &e);
	MUST(rc >= 0);
	pieces(r, data, part.text, &parts);
	if (rc == 0)
		MUST(str_eq(part.text, buf_str(&parts)));
	else
		MUST(str_eq(buf_str(&whole), buf_str(&parts)));
	MUST(!parts.n || !memmem(parts.p, parts.n, "Fuzz-Value", 10));
	whole.n = 0;
	part.keep_length = true;
	rc = redact_text(r, &part, &whole, &e);
	MUST(rc >= 0 && (rc == 0 || whole.n == part.text.n));
	return 0;
}
