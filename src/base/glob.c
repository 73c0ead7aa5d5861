#include "base/glob.h"

#include <stdint.h>
#include <string.h>

/* By these a shell begins another command, or puts in what one prints. */
static const char glob_shell[] = ";&|`$<>(){}\\";

static bool glob_is_free(char c)
{
	return (unsigned char)c >= ' ' && c != 0x7f && !strchr(glob_shell, c);
}

/* A star gives back as little as it can: only the last one is ever tried again. */
static bool glob_run(struct str g, struct str s, bool any)
{
	size_t gi = 0, si = 0, star = SIZE_MAX, from = 0;

	while (si < s.n) {
		if (gi < g.n && g.p[gi] == '*') {
			star = gi++;
			from = si;
		} else if (gi < g.n && g.p[gi] == s.p[si]) {
			gi++;
			si++;
		} else if (star != SIZE_MAX && (any || glob_is_free(s.p[from]))) {
			gi = star + 1;
			si = ++from;
		} else {
			return false;
		}
	}
	while (gi < g.n && g.p[gi] == '*')
		gi++;
	return gi == g.n;
}

bool glob_matches(struct str pattern, struct str text)
{
	return glob_run(pattern, text, true);
}

bool glob_allows(struct str pattern, struct str text)
{
	return glob_run(pattern, text, str_is(pattern, "*"));
}
