/* JSON Schema: the first line is a schema, the second a value. Whatever they are, a check ends, and
 * the same check again ends the same way. */
#include <string.h>

#include "fuzz.h"
#include "json/schema/schema.h"

enum { FAULTS = 4 };

static void check(const struct schema *s, const struct json_val *v)
{
	struct schema_fault space[FAULTS];
	struct schema_faults faults = { .p = space, .max = FAULTS };
	struct err e = ERR_INIT, again = ERR_INIT;
	int is = schema_check(s, v, &faults, &e);

	MUST((is == 0) == (e.code == ERR_NONE));
	if (e.code == ERR_INVALID)
		MUST(faults.n > 0 && faults.n <= FAULTS && space[0].says[0]);
	if (e.code == ERR_TOO_LARGE)
		return; /* with another number of faults it may take fewer steps */
	MUST(schema_check(s, v, NULL, &again) == is);
	MUST(strcmp(e.msg, again.msg) == 0 || is == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data, *end = n ? memchr(text, '\n', n) : NULL;
	struct schema_options o = { .steps = 20000, .formats = true, .dialect = n % 2 };
	struct err e = ERR_INIT;
	size_t at = end ? (size_t)(end - text) : n;
	AUTO(schema_free) struct schema *s = schema_parse((struct str){ text, at }, &o, &e);

	MUST(s || e.msg[0]);
	if (!s || at == n)
		return 0;
	AUTO(json_free)
	struct json_doc *d = json_parse((struct str){ text + at + 1, n - at - 1 }, NULL, &e);
	if (d)
		check(s, json_root(d));
	return 0;
}
