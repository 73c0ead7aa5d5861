/* Equality as JSON Schema defines it: 1 equals 1.0, and the order of members does not matter. */
#include <stdlib.h>

#include "json/schema/internal.h"

enum { LOOKUP = 16 }; /* members that one step covers when one of them is looked up */

static bool spend(uint64_t *steps, uint64_t n)
{
	bool enough = *steps >= n;

	*steps = enough ? *steps - n : 0;
	return enough;
}

static bool same_elements(const struct json_val *a, const struct json_val *b, uint64_t *steps)
{
	struct json_iter x = json_iter(a), y = json_iter(b);

	while (json_next(&x) && json_next(&y)) {
		if (!schema_equal(x.val, y.val, steps))
			return false;
	}
	return true;
}

static bool same_members(const struct json_val *a, const struct json_val *b, uint64_t *steps)
{
	struct json_iter it = json_iter(a);

	while (json_next(&it)) {
		if (!spend(steps, json_len(b) / LOOKUP) ||
		    !schema_equal(it.val, json_get_str(b, it.key), steps))
			return false;
	}
	return true;
}

bool schema_equal(const struct json_val *a, const struct json_val *b, uint64_t *steps)
{
	enum json_type x = json_type(a), y = json_type(b);

	if (!spend(steps, 1))
		return false;
	if ((x == JSON_INT || x == JSON_REAL) && (y == JSON_INT || y == JSON_REAL))
		return schema_order(a, b) == 0;
	if (x != y || json_len(a) != json_len(b))
		return false;
	switch (x) {
	case JSON_BOOL:
		return json_bool(a) == json_bool(b);
	case JSON_STR:
		return spend(steps, json_str(a).n / 1024) && str_eq(json_str(a), json_str(b));
	case JSON_ARRAY:
		return same_elements(a, b, steps);
	case JSON_OBJECT:
		return same_members(a, b, steps);
	default:
		return x == JSON_NULL;
	}
}

static uint64_t equal_mix(uint64_t h, uint64_t with)
{
	h = (h ^ with) * 0x9e3779b97f4a7c15u;
	return h ^ (h >> 29);
}

static uint64_t hash_bytes(struct str s)
{
	uint64_t h = s.n;

	for (size_t i = 0; i < s.n; i++)
		h = equal_mix(h, (unsigned char)s.p[i]);
	return h;
}

/* Equal values have equal hashes. */
static uint64_t hash(const struct json_val *v, uint64_t *steps)
{
	enum json_type type = json_type(v) == JSON_INT ? JSON_REAL : json_type(v);
	struct json_iter it = json_iter(v);
	union {
		double d;
		uint64_t bits;
	} number = { .d = 0 };
	uint64_t h = equal_mix(0, type), sum = 0;

	if (!spend(steps, 1 + json_str(v).n / 64))
		return 0;
	if (type == JSON_BOOL)
		return equal_mix(h, json_bool(v));
	if (type == JSON_STR)
		return equal_mix(h, hash_bytes(json_str(v)));
	if (type == JSON_REAL) {
		number.d = json_real(v) + 0.0; /* -0 becomes 0 */
		return equal_mix(h, number.bits);
	}
	while (json_next(&it)) {
		if (type == JSON_OBJECT)
			sum += equal_mix(hash_bytes(it.key), hash(it.val, steps));
		else
			h = equal_mix(h, hash(it.val, steps));
	}
	return equal_mix(h, sum);
}

struct entry {
	uint64_t hash;
	size_t index;
	const struct json_val *v;
};

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

int schema_repeats(const struct json_val *array, size_t ret_at[2], uint64_t *steps, struct err *e)
{
	size_t n = json_len(array);
	autofree struct entry *p = calloc(n ? n : 1, sizeof(*p));
	struct json_iter it = json_iter(array);

	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory");
	while (json_next(&it))
		p[it.index] = (struct entry){ hash(it.val, steps), it.index, it.val };
	if (*steps == 0)
		return 0;
	qsort(p, n, sizeof(*p), compare);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i + 1; j < n && p[j].hash == p[i].hash; j++) {
			if (schema_equal(p[i].v, p[j].v, steps)) {
				ret_at[0] = p[i].index;
				ret_at[1] = p[j].index;
				return 1;
			}
			if (*steps == 0)
				return 0;
		}
	}
	return 0;
}
