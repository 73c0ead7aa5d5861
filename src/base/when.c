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
