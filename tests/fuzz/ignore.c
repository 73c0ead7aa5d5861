/* Patterns of what is left out: the first line of the input is a path, the rest the list. What
 * is decided does not depend on how the path is spelled, nor on lines that say nothing, and the
 * last line that means a path decides. */
#include <string.h>

#include "base/buf.h"
#include "box/archive/ignore.h"
#include "fuzz.h"

enum { PATH_BYTES = 512, TEXT_BYTES = 1000 };

static int decide(struct str text, const char *more, struct str path)
{
	autobuf struct buf all = BUF_INIT(IGNORE_BYTES_MAX);
	struct err e = ERR_INIT;
	struct ignore *g;
	int out;

	MUST(buf_add(&all, text.p, text.n, &e) == 0 && buf_addf(&all, &e, "\n%s\n", more) == 0);
	g = ignore_new(buf_str(&all), &e);
	if (!g) {
		MUST(e.code == ERR_INVALID && e.msg[0]);
		return -1;
	}
	out = ignore_has(g, path);
	ignore_free(g);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *end = n > 0 ? memchr(data, '\n', n) : NULL;
	size_t size = end ? (size_t)(end - (const char *)data) : 0;
	char path[PATH_BYTES + 2], again[PATH_BYTES + 2];
	struct str text, clean;
	int out;

	if (!end || size > PATH_BYTES || n > TEXT_BYTES || memchr(data, '\0', size))
		return 0;
	memcpy(path, data, size);
	path[size] = '\0';
	clean = (struct str){ path, ignore_clean(path) };
	MUST(clean.n == strlen(path) && clean.n > 0 && !strstr(path, "//"));
	memcpy(again, path, clean.n + 1);
	MUST(ignore_clean(again) == clean.n && strcmp(again, path) == 0);

	text = (struct str){ end + 1, n - size - 1 };
	out = decide(text, "# said nothing", clean);
	if (out < 0)
		return 0;
	MUST(decide(text, " \t\r", clean) == out);
	if (path[0] == '/')
		return 0;
	MUST(decide(text, "**", clean) == 1 && decide(text, "!**", clean) == 0);
	return 0;
}
