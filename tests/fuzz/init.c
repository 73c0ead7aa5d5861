/* What PID 1 of a sandbox reads: messages whose strings stay within them, and the kernel's lines
 * about processes. The first byte says which of the two it is. */
#include <limits.h>
#include <string.h>

#include "box/init/message.h"
#include "fuzz.h"

static char *strings[STRINGS_MAX];

static bool inside(const char *p, const struct im_head *h, size_t n)
{
	return p >= (const char *)h && p + strlen(p) <= (const char *)h + n;
}

static void read_exec(struct im_exec *m, size_t n)
{
	char **at = strings + STRINGS_BEFORE, *cwd;

	if (message_exec(m, n, strings, &cwd) < 0)
		return;
	MUST(inside(cwd, &m->h, n));
	for (uint32_t i = 0; i < m->argc; i++)
		MUST(inside(*at++, &m->h, n));
	MUST(!*at++);
	for (uint32_t i = 0; i < m->envc; i++)
		MUST(inside(*at++, &m->h, n));
	MUST(!*at++ && at <= strings + STRINGS_MAX);
}

static void read_file(const struct im_file *m, size_t n)
{
	const char *path, *second, *end;

	if (message_file(m, n, &path, &second, &end) < 0)
		return;
	MUST(path[0] == '/' && strlen(path) < PATH_MAX && inside(path, &m->h, n));
	MUST(end == (const char *)m + n && second > path && second <= end);
	for (; second < end; second += strlen(second) + 1)
		MUST(inside(second, &m->h, n));
}

static void read_message(const uint8_t *data, size_t n)
{
	struct im_head *h = malloc(n + 1);

	MUST(h);
	memcpy(h, data, n);
	((char *)h)[n] = '\0';
	if (message_check(h, n)) {
		if (h->type == IM_EXEC)
			read_exec((void *)h, n);
		else if (h->type == IM_FILE)
			read_file((const void *)h, n);
	}
	free(h);
}

static void read_line(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1);
	struct stat_line line;

	MUST(text);
	memcpy(text, data, n);
	text[n] = '\0';
	if (stat_line_read(text, &line)) {
		MUST(line.name > text && line.name[-1] == '(' && line.name[line.name_n] == ')');
		MUST(line.name_n < strlen(text) && line.state);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n == 0)
		return 0;
	if (data[0] % 2)
		read_line(data + 1, n - 1);
	else if (n - 1 <= WIRE_MAX)
		read_message(data + 1, n - 1);
	return 0;
}
