#include "config/config.h"

static const struct field limit_fields[] = {
	FIELD(struct config_limits, sandboxes, .max = 100000,
	      .has = FIELD_HAS(struct config_limits, has_sandboxes),
	      .doc = "Maximum number of sandboxes, including those that can be resumed."),
	FIELD(struct config_limits, forks, .max = 100000,
	      .has = FIELD_HAS(struct config_limits, has_forks),
	      .doc = "Maximum number of existing forks of one sandbox."),
	FIELD(struct config_limits, wall_seconds, .min = 1, .max = 31536000,
	      .has = FIELD_HAS(struct config_limits, has_wall_seconds),
	      .doc = "Maximum lifetime of a sandbox in seconds. A fork ends with its source at the "
		     "latest."),
	FIELD(struct config_limits, cpu_seconds, .min = 1, .max = 1000000000,
	      .has = FIELD_HAS(struct config_limits, has_cpu_seconds),
	      .doc = "Maximum processor time of a sandbox in seconds. A fork starts with the usage "
		     "of its source."),
	FIELD(struct config_limits, bytes_out, .min = 1, .max = 1ll << 50,
	      .has = FIELD_HAS(struct config_limits, has_bytes_out),
	      .doc = "Maximum number of bytes that leave a sandbox. A fork starts with the usage "
		     "of its source."),
};
const struct field_table config_limits_table = FIELD_TABLE(struct config_limits, limit_fields);
