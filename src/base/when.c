#include "base/when.h"

#include <stdio.h>
#include <time.h>

void when_text(char to[WHEN_MAX], int64_t unix_ms)
{
	time_t s = (time_t)(unix_ms / 1000);
	struct tm tm;
	size_t n;

	gmtime_r(&s, &tm);
	n = strftime(to, WHEN_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(to + n, WHEN_MAX - n, ".%03dZ", (int)(unix_ms % 1000));
}

int when_dup(struct arena *a, int64_t unix_ms, struct str *ret, struct err *e)
{
	char *text = unix_ms ? arena_alloc(a, WHEN_MAX, e) : NULL;

	if (unix_ms && !text)
		return -1;
	if (text)
		when_text(text, unix_ms);
	*ret = str_of(text);
	return 0;
}
