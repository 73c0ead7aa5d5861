#include "config/internal.h"

enum { PREFIX_MAX = 32, DIR_MAX = 4095, TRASH_DAYS = 30 };

#define W struct config_workspace
static const struct field workspace_fields[] = {
	FIELD(W, dir, .flags = FIELD_REQUIRED, .min = 1, .max = DIR_MAX,
	      .doc = "Absolute path of the folder."),
	FIELD(W, agent, .max = CONFIG_NAME_MAX,
	      .doc = "Default agent of conversations in this workspace."),
	FIELD(W, toolchains, .has = FIELD_HAS(W, has_toolchains),
	      .doc = "Whether who works in this folder, by whatever key, has the toolchains of the "
		     "home of the hub's user, read-only. Default: the operator alone."),
};
#undef W
const struct field_table config_workspace_table = FIELD_TABLE(struct config_workspace,
							      workspace_fields);

#define C struct config_conversations
static const struct field conversations_fields[] = {
	FIELD(C, tool_prefix, .max = PREFIX_MAX,
	      .doc = "Prefix of the tool names in the sets conversation and ui, such as "
		     "\"mitto_\". Read when the hub starts."),
	FIELD(C, trash_days, .min = 1, .max = 3650, .def = DEFAULT_INT(TRASH_DAYS),
	      .doc = "Days until a deleted conversation is removed for good. Read when the hub "
		     "starts."),
	FIELD(C, archive_days, .max = 3650, .def = DEFAULT_INT(0),
	      .doc = "Archive conversations that were idle for this many days; 0: never. Read when "
		     "the hub starts."),
};
#undef C
const struct field_table config_conversations_table = FIELD_TABLE(struct config_conversations,
								  conversations_fields);

int config_check_conversations(struct config_reader *r, struct json_pointer root,
			       const struct config_file *f)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-";
	struct json_pointer at = config_at(root, STR_LIT("workspaces"));
	struct str prefix = f->conversations.tool_prefix;

	for (size_t i = 0; i < f->workspaces.n; i++) {
		const struct config_workspace *w = &f->workspaces.p[i];
		struct json_pointer here = config_at(at, w->name);

		if (*w->dir.p != '/')
			return config_refuse(r, &here, "dir: an absolute path");
	}
	at = config_at(config_at(root, STR_LIT("conversations")), STR_LIT("tool_prefix"));
	for (size_t i = 0; i < prefix.n; i++) {
		if (!prefix.p[i] || !strchr(letters, prefix.p[i]))
			return config_refuse(r, &at, "letters, digits, _ and -");
	}
	return 0;
}
