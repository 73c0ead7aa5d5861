#include "cli/inbox/inbox.h"

#include <stdio.h>

#include "cli/common/safe.h"

enum { LINE = 1000 };

int inbox_show(const struct json_val *v, const char *const *members, struct str text)
{
	for (; *members; members++) {
		safe_line(stdout, json_str(json_get(v, *members)));
		fputs("  ", stdout);
	}
	safe_short(stdout, text, LINE);
	putchar('\n');
	return 0;
}
