#include "config/config.h"

static const struct field limit_fields[] = {
	FIELD(struct config_limits, sandboxes, .max = 100000,
	      .has = FIELD_HAS(struct config_limits, has_sandboxes), .doc = "Sandboxes at once."),
	FIELD(struct config_limits, forks, .max = 100000,
	      .has = FIELD_HAS(struct config_limits, has_forks),
	      .doc = "Forks of one sandbox at once."),
	FIELD(struct config_limits, wall_seconds, .min = 1, .max = 31536000,
	      .has = FIELD_HAS(struct config_limits, has_wall_seconds),
	      .doc = "How long a sandbox may live; a fork no longer than its source."),
	FIELD(struct config_limits, cpu_seconds, .min = 1, .max = 1000000000,
	      .has = FIELD_HAS(struct config_limits, has_cpu_seconds),
	      .doc = "Processor time of a sandbox, with that of its source until it was forked."),
	FIELD(struct config_limits, bytes_out, .min = 1, .max = 1ll << 50,
	      .has = FIELD_HAS(struct config_limits, has_bytes_out),
	      .doc = "Bytes that leave a sandbox, with those of its source until it was forked."),
};
const struct field_table config_limits_table = FIELD_TABLE(struct config_limits, limit_fields);
