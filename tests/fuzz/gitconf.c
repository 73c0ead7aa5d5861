/* What a folder's git says to the warden: the first byte tells configuration from an index. Text
 * that says nothing changes nothing, and what is told stays within its bounds. */
#include <ctype.h>
#include <string.h>

#include "base/gitconf.h"
#include "fuzz.h"

enum { TEXT_BYTES = 4096 };

struct seen {
	unsigned n;
	size_t sum; /* of the lengths of all texts */
	size_t most; /* bytes of the input */
};

static int on_variable(void *data, const char *key, char *value)
{
	struct seen *s = data;
	const char *dot = strchr(key, '.');

	MUST(dot && strlen(key) < GITCONF_KEY_MAX && strlen(value) <= s->most);
	for (const char *at = strrchr(key, '.') + 1; *at; at++)
		MUST(!isupper((unsigned char)*at));
	value[strlen(value)] = '\0'; /* may be written to */
	s->n++;
	s->sum += strlen(key) + strlen(value);
	return 0;
}

static int on_link(void *data, const char *path, enum gitindex_kind kind)
{
	struct seen *s = data;

	MUST((*path || kind != GITINDEX_LINK) && strlen(path) <= s->most);
	s->n++;
	return 0;
}

static void read_conf(const char *text, size_t n)
{
	char more[TEXT_BYTES + 64];
	struct seen once = { .most = n }, twice = { .most = n + sizeof(more) };
	int rc = gitconf_read((struct str){ text, n }, on_variable, &once);

	if (rc < 0)
		return;
	memcpy(more, text, n);
	memcpy(more + n, "\n# said nothing\n[a]\n", 19);
	MUST(gitconf_read((struct str){ more, n + 19 }, on_variable, &twice) == 0);
	MUST(once.n == twice.n && once.sum == twice.sum);
}

static void read_index(const char *text, size_t n, size_t hash)
{
	struct seen seen = { .most = n };
	struct str shared;

	if (gitindex_read((struct str){ text, n }, hash, on_link, &seen, &shared) == 0)
		MUST(shared.n == 0 ||
		     (shared.n == hash && shared.p > text && shared.p + shared.n <= text + n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text;

	if (n < 1 || n > TEXT_BYTES)
		return 0;
	text = malloc(n); /* of exactly its size, for the sanitizer */
	MUST(text);
	memcpy(text, data + 1, n - 1);
	if (data[0] == 'i')
		read_index(text, n - 1, 20);
	else if (data[0] == 'l')
		read_index(text, n - 1, 32);
	else
		read_conf(text, n - 1);
	free(text);
	return 0;
}
