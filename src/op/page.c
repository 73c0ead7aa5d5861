#include "op/page.h"

#include <inttypes.h>
#include <stdio.h>

void cursor_text(char to[CURSOR_MAX], uint64_t seq)
{
	snprintf(to, CURSOR_MAX, "%016" PRIx64, seq);
}

int cursor_read(struct str text, uint64_t *ret, struct err *e)
{
	char again[CURSOR_MAX];

	*ret = 0;
	for (size_t i = 0; i < text.n && i < CURSOR_MAX - 1; i++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, text.p[i]);

		*ret = *ret << 4 | (at ? (uint64_t)(at - digits) & 15 : 0);
	}
	cursor_text(again, *ret);
	if (!str_is(text, again))
		return err_set(e, ERR_INVALID, "query: cursor is not a next_cursor of this server");
	return 0;
}
