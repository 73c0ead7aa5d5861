#include "config/config.h"

static const struct field storage_fields[] = {
	FIELD(struct config_storage, objects_mb, .min = 1, .max = 1ll << 30,
	      .doc = "MiB that workspaces and the snapshots of coding sessions may keep, "
		     "altogether. No bound, if not said."),
};
const struct field_table config_storage_table = FIELD_TABLE(struct config_storage, storage_fields);
