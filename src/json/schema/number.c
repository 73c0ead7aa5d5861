/* Comparison of numbers of any size, and multipleOf. */
#include <math.h>
#include <stdio.h>

#include "json/schema/internal.h"

/* The long double of x86-64 and AArch64 has a mantissa of at least 64 bits, so it holds every
 * 64-bit integer exactly. */
static long double number(const struct json_val *v)
{
	uint64_t u;
	int64_t i;

	if (json_uint64(v, &u))
		return (long double)u;
	if (json_int64(v, &i))
		return (long double)i;
	return json_real(v);
}

int schema_order(const struct json_val *a, const struct json_val *b)
{
	long double x = number(a), y = number(b);

	return (x > y) - (x < y);
}

/* m * 10^e */
struct decimal {
	uint64_t m;
	int e;
};

static struct decimal shortened(struct decimal d)
{
	while (d.m != 0 && d.m % 10 == 0) {
		d.m /= 10;
		d.e++;
	}
	return d;
}

/* The absolute value as the shortest decimal that reads back as the same number, which is what its
 * author wrote. */
static struct decimal decimal(const struct json_val *v)
{
	struct decimal d = { 0, 0 };
	char text[40];
	int64_t i;

	if (json_uint64(v, &d.m))
		return shortened(d);
	if (json_int64(v, &i)) {
		d.m = -(uint64_t)i;
		return shortened(d);
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits - 1, fabs(json_real(v)));
		if (strtod(text, NULL) == fabs(json_real(v)))
			break;
	}
	for (const char *p = text; *p; p++) {
		if (*p == 'e') {
			d.e += atoi(p + 1);
			break;
		}
		if (*p == '.')
			continue;
		d.m = d.m * 10 + (uint64_t)(*p - '0');
		d.e -= p > text;
	}
	return shortened(d);
}

bool schema_multiple(const struct json_val *v, const struct json_val *divisor)
{
	struct decimal x = decimal(v), d = decimal(divisor);
	unsigned __int128 rest, ten = 10, scale = 1;
	int n = x.e - d.e;

	if (x.m == 0)
		return true;
	if (n < 0) /* then d has more powers of ten than x */
		return false;
	/* computes x.m * 10^n mod d.m by squaring */
	rest = x.m % d.m;
	for (ten %= d.m, scale %= d.m; n > 0; n >>= 1) {
		if (n & 1)
			scale = scale * ten % d.m;
		ten = ten * ten % d.m;
	}
	return rest * scale % d.m == 0;
}
