#include "config/config.h"

static const struct field storage_fields[] = {
	FIELD(struct config_storage, objects_mb, .min = 1, .max = 1ll << 30,
	      .doc = "Maximum size in MiB of all workspaces and snapshots of coding sessions "
		     "together. Default: no limit."),
};
const struct field_table config_storage_table = FIELD_TABLE(struct config_storage, storage_fields);
