#include "cli/exec/notice.h"

#include <stdio.h>

#define SAVE                                                                                       \
	"\x1b"                                                                                     \
	"7"
#define RESTORE                                                                                    \
	"\x1b"                                                                                     \
	"8"

void notice_set(struct notice *n, const char *text, size_t size)
{
	size_t to = 0;

	for (size_t i = 0; i < size && to < NOTICE_MAX; i++)
		n->text[to++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	n->text[to] = '\0';
}

/* A cursor in the last row goes up with what is there; any other stays. */
size_t notice_open(const struct notice *n, char to[NOTICE_TEXT_MAX])
{
	return (size_t)snprintf(to, NOTICE_TEXT_MAX,
				"\x1b"
				"D\x1b[1A");
}

size_t notice_draw(const struct notice *n, bool region, char to[NOTICE_TEXT_MAX])
{
	char scrolls[32] = "";

	if (region)
		snprintf(scrolls, sizeof(scrolls), "\x1b[1;%ur", n->rows - 1);
	return (size_t)snprintf(to, NOTICE_TEXT_MAX,
				SAVE "%s\x1b[%u;1H\x1b[0;7m%.*s\x1b[0m\x1b[K" RESTORE, scrolls,
				n->rows, (int)n->columns - 1, n->text);
}

size_t notice_close(const struct notice *n, char to[NOTICE_TEXT_MAX])
{
	return (size_t)snprintf(to, NOTICE_TEXT_MAX, SAVE "\x1b[r\x1b[%u;1H\x1b[0m\x1b[K" RESTORE,
				n->rows);
}
