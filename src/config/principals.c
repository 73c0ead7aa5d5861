#include "config/config.h"

#define NAMES .max = CONFIG_LIST_MAX, .item_min = 1, .item_max = CONFIG_TEXT_MAX

static const struct field principal_fields[] = {
	FIELD_OBJECT(struct config_principal, policy, config_policy_table,
		     .doc = "Additional rules for this principal. The stricter decision applies."),
	FIELD(struct config_principal, images, NAMES,
	      .has = FIELD_HAS(struct config_principal, has_images),
	      .doc = "Templates that it may make sandboxes from, within those of the hub."),
	FIELD(struct config_principal, network, NAMES,
	      .has = FIELD_HAS(struct config_principal, has_network),
	      .doc = "Network rules and presets that it may grant, within those of the hub."),
	FIELD(struct config_principal, secrets, NAMES,
	      .has = FIELD_HAS(struct config_principal, has_secrets),
	      .doc = "Secrets that it may grant, as patterns."),
	FIELD(struct config_principal, profiles, NAMES,
	      .has = FIELD_HAS(struct config_principal, has_profiles),
	      .doc = "Profiles that it may ask for, as patterns."),
	FIELD(struct config_principal, agents, NAMES,
	      .has = FIELD_HAS(struct config_principal, has_agents),
	      .doc = "Agents whose conversations it may have, as patterns. API keys have none by "
		     "default, and one without a sandbox only by its whole name."),
	FIELD(struct config_principal, workspaces, NAMES,
	      .has = FIELD_HAS(struct config_principal, has_workspaces),
	      .doc = "Workspaces that its conversations may have, as patterns. API keys have none "
		     "by default."),
	FIELD_OBJECT(struct config_principal, limits, config_limits_table,
		     .doc = "Limits of this principal, within those of the hub."),
};
const struct field_table config_principal_table = FIELD_TABLE(struct config_principal,
							      principal_fields);
