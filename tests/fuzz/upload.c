/* Uploads of E2B's clients: the body is a form with the boundary "b", or gzip. */
#include "door/e2b/upload.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct upload_parts p = { .body = { (const char *)data, n }, .boundary = STR_LIT("b") };
	autobuf struct buf unpacked = BUF_INIT(1 << 16);
	struct upload_part part;
	struct arena a;
	struct err e;

	arena_init(&a, 1 << 20);
	while (upload_next(&p, &part, &a, &e) > 0) {
		const char *end = (const char *)data + n;

		MUST(part.bytes.p >= (const char *)data && part.bytes.p + part.bytes.n <= end);
	}
	arena_fini(&a);
	if (upload_gunzip((struct str){ (const char *)data, n }, &unpacked, &e) == 0)
		MUST(unpacked.n <= unpacked.max);
	upload_boundary((struct str){ (const char *)data, n });
	return 0;
}
