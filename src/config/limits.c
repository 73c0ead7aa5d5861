#include "config/internal.h"

static const struct field limit_fields[] = {
	FIELD(struct config_limits, sandboxes, .max = 100000,
	      .has = FIELD_HAS(struct config_limits, has_sandboxes), .doc = "Sandboxes at once."),
	FIELD(struct config_limits, forks, .max = 100000,
	      .has = FIELD_HAS(struct config_limits, has_forks),
	      .doc = "Forks of one sandbox at once."),
	FIELD(struct config_limits, cpu_seconds, .max = 1000000000,
	      .has = FIELD_HAS(struct config_limits, has_cpu_seconds),
	      .doc = "Processor seconds of one sandbox, with its forks."),
	FIELD(struct config_limits, bytes_out, .min = 1, .max = 24,
	      .doc = "What one sandbox, with its forks, may send to the network: \"10GiB\"."),
	FIELD(struct config_limits, wall_seconds, .max = 1000000000,
	      .has = FIELD_HAS(struct config_limits, has_wall_seconds),
	      .doc = "How long a sandbox may live."),
};
const struct field_table config_limits_table = FIELD_TABLE(struct config_limits, limit_fields);

/* "10GiB", "512 MiB", "1000000". */
static bool config_read_size(struct str text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	uint64_t n = 0;
	size_t i = 0;

	for (; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++) {
		if (n > (UINT64_MAX >> 44))
			return false;
		n = n * 10 + (uint64_t)(text.p[i] - '0');
	}
	if (i == 0)
		return false;
	text = str_trim((struct str){ text.p + i, text.n - i });
	if (text.n == 0 || str_is(text, "B")) {
		*ret = n;
		return true;
	}
	for (unsigned u = 0; units[u]; u++) {
		if (text.p[0] != units[u] ||
		    (text.n > 1 && !str_is(text, (char[]){ units[u], 'i', 'B', '\0' })))
			continue;
		*ret = n << (10 * (u + 1));
		return true;
	}
	return false;
}

int config_check_limits(struct config_reader *r, struct json_pointer at, struct config_limits *l)
{
	if (!l->bytes_out.p || config_read_size(l->bytes_out, &l->bytes))
		return 0;
	at = config_at(at, STR_LIT("bytes_out"));
	return config_refuse(r, &at, "bytes_out takes a size, such as \"10GiB\"");
}
