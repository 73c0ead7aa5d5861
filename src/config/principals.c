#include "config/config.h"

#define NAMES .max = CONFIG_LIST_MAX, .item_min = 1, .item_max = CONFIG_TEXT_MAX

static const struct field principal_fields[] = {
	FIELD_OBJECT(struct config_principal, policy, config_policy_table,
		     .doc = "Rules that hold beside the hub's: the stricter decides."),
	FIELD(struct config_principal, images, NAMES,
	      .has = FIELD_HAS(struct config_principal, has_images),
	      .doc = "What it may make sandboxes from, within the hub's."),
	FIELD(struct config_principal, network, NAMES,
	      .has = FIELD_HAS(struct config_principal, has_network),
	      .doc = "Network rules and presets that it may grant, within the hub's."),
	FIELD(struct config_principal, secrets, NAMES,
	      .has = FIELD_HAS(struct config_principal, has_secrets),
	      .doc = "Secrets that it may grant, as patterns."),
	FIELD(struct config_principal, profiles, NAMES,
	      .has = FIELD_HAS(struct config_principal, has_profiles),
	      .doc = "Profiles that it may ask for, as patterns."),
	FIELD_OBJECT(struct config_principal, limits, config_limits_table,
		     .doc = "What it may use, within the hub's."),
};
const struct field_table config_principal_table = FIELD_TABLE(struct config_principal,
							      principal_fields);
