/* The file of a workspace that says which attributes conversations may have: what is read of it
 * lies within it, or in the arena. */
#include "fuzz.h"

#include "op/conversation/rc.h"

static void touch(struct str s)
{
	volatile char seen = 0;

	for (size_t i = 0; i < s.n; i++)
		seen = (char)(seen ^ s.p[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rc_field fields[RC_FIELDS_MAX];
	AUTO(arena_free) struct arena *a = arena_new(1 << 20);
	struct err e = ERR_INIT;
	int n;

	if (size > RC_BYTES_MAX)
		return 0;
	n = rc_read((struct str){ (const char *)data, size }, fields, a, &e);
	MUST(n <= RC_FIELDS_MAX && (n >= 0 || e.msg[0]));
	for (int i = 0; i < n; i++) {
		touch(fields[i].name);
		touch(fields[i].description);
	}
	return 0;
}
