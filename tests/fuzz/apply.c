/* Journals of `holt ws apply`: what is read is written again as the same bytes, and nothing else is
 * read. */
#include <string.h>

#include "cli/ws/apply.h"
#include "fuzz.h"

enum { JOURNAL_BYTES = 64 << 10 };

static bool read_journal(const uint8_t *data, size_t n, bool heads, struct apply_plan *ret)
{
	FILE *from = fmemopen((void *)(uintptr_t)data, n, "r");
	struct err e = ERR_INIT;
	bool fine;

	MUST(from);
	fine = apply_plan_read(from, heads, ret, &e);
	fclose(from);
	return fine;
}

static void written_is(const struct apply_plan *p, const uint8_t *data, size_t n)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	MUST(to);
	apply_plan_write(to, p);
	MUST(fclose(to) == 0 && size == n && memcmp(text, data, n) == 0);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct apply_plan all = { .n = 0 }, heads = { .n = 0 };

	if (n == 0 || n > JOURNAL_BYTES)
		return 0;
	if (read_journal(data, n, false, &all)) {
		written_is(&all, data, n);
		MUST(read_journal(data, n, true, &heads) && heads.n == 0);
		MUST(strcmp(heads.id, all.id) == 0 && heads.undo == all.undo);
	}
	apply_plan_fini(&all);
	apply_plan_fini(&heads);
	return 0;
}
