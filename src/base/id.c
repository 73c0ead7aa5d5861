#include "base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void id_make(char id[ID_MAX], const char *prefix)
{
	unsigned char raw[16];
	ssize_t got;
	int n;

	do {
		got = getrandom(raw, sizeof(raw), 0);
	} while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof(raw))
		abort();
	n = snprintf(id, ID_MAX, "%.12s-", prefix);
	for (size_t i = 0; i < sizeof(raw); i++)
		n += snprintf(id + n, (size_t)(ID_MAX - n), "%02x", raw[i]);
}
