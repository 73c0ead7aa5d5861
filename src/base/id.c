#include "base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void id_make(char id[ID_MAX], const char *prefix)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char raw[16];
	ssize_t got;
	char *to;

	do {
		got = getrandom(raw, sizeof(raw), 0);
	} while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof(raw))
		abort();
	to = id + snprintf(id, ID_MAX, "%.12s-", prefix);
	for (size_t i = 0; i < sizeof(raw); i++) {
		*to++ = digits[raw[i] >> 4];
		*to++ = digits[raw[i] & 15];
	}
	*to = '\0';
}
