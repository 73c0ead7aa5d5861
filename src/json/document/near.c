#include "json/document/near.h"

#include <limits.h>

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Optimal string alignment with the last three rows of the matrix. */
unsigned near_distance(struct str a, struct str b)
{
	unsigned rows[3][NEAR_MAX + 1];

	if (a.n > NEAR_MAX || b.n > NEAR_MAX)
		return UINT_MAX;
	for (unsigned j = 0; j <= b.n; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= a.n; i++) {
		unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		now[0] = i;
		for (unsigned j = 1; j <= b.n; j++) {
			bool same = a.p[i - 1] == b.p[j - 1];

			now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + !same);
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] &&
			    a.p[i - 2] == b.p[j - 1] && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
	}
	return rows[a.n % 3][b.n];
}

unsigned near_enough(struct str word)
{
	return word.n < 2 ? 0 : word.n < 5 ? 1 : word.n < 8 ? 2 : 3;
}
