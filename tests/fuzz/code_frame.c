/* What a holt-js says: in whatever pieces it comes, the same frames come out, and what they hold is
 * within bounds. The first byte is the size of the pieces. */
#include <string.h>

#include "fuzz.h"
#include "modules/code/frame.h"

enum { MEMORY = 64 << 20 };

/* Arguments can be read again within the limits that all others have. */
static bool is_readable(struct str text)
{
	struct err e;
	AUTO(json_free) struct json_doc *doc = json_parse(text, NULL, &e);

	return doc;
}

static void check(const struct code_frame *f)
{
	MUST(f->kind < CODE_KINDS && f->level < CODE_LEVELS && f->limit < CODE_LIMITS);
	MUST(f->kind != CODE_IMPORT || f->name.n <= CODE_NAME_MAX);
	MUST(f->kind != CODE_CALL || (f->json.p[0] == '{' && is_readable(f->json)));
}

static bool same(const struct code_frame *a, const struct code_frame *b)
{
	return a->kind == b->kind && str_eq(a->name, b->name) && str_eq(a->text, b->text) &&
	       str_eq(a->json, b->json) && str_eq(a->message, b->message) && a->id == b->id &&
	       a->module == b->module && a->function == b->function && a->again == b->again;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	AUTO(arena_free) struct arena *a = arena_new(MEMORY);
	struct str text = { (const char *)data + 1, n > 0 ? n - 1 : 0 };
	size_t step = n > 0 ? data[0] + 1u : 1;
	struct code_reader whole, pieces;
	struct code_frame f, g;
	struct err e = ERR_INIT, why = ERR_INIT;
	int got = 0;

	MUST(a);
	code_reader_init(&whole);
	code_reader_init(&pieces);
	MUST(code_reader_add(&whole, text, &e) == 0);
	for (size_t at = 0; at < text.n && got >= 0; at += step) {
		struct str piece = { text.p + at, text.n - at < step ? text.n - at : step };

		MUST(code_reader_add(&pieces, piece, &e) == 0);
		while ((got = code_reader_next(&pieces, a, &f, &e)) > 0) {
			check(&f);
			MUST(code_reader_next(&whole, a, &g, &why) == 1 && same(&f, &g));
		}
	}
	MUST(code_reader_next(&whole, a, &g, &why) == got || got > 0);
	MUST(got >= 0 || e.code == ERR_GUEST || e.code == ERR_LIMIT || e.code == ERR_TOO_LARGE);
	code_reader_fini(&whole);
	code_reader_fini(&pieces);
	return 0;
}
