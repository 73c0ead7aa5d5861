#include "config/internal.h"
#include "config/variables.h"

static const struct field modules_fields[] = {
	FIELD(struct config_modules, enabled, .has = FIELD_HAS(struct config_modules, has_enabled),
	      .doc = "Whether MCP servers are used. false also removes the commands and tools for "
		     "them."),
	FIELD(struct config_modules, servers, .min = 1, .max = CONFIG_LIST_MAX,
	      .def = DEFAULT_INT(20), .doc = "Maximum number of MCP servers in this file."),
	FIELD(struct config_modules, connected, .min = 1, .max = CONFIG_LIST_MAX,
	      .def = DEFAULT_INT(5), .doc = "Maximum number of MCP servers connected at once."),
	FIELD_NAMED(struct config_modules, package_mb, "packageMegabytes", .min = 16, .max = 65536,
		    .def = DEFAULT_INT(2048),
		    .doc = "Maximum size of a package with all that it depends on, in MiB, while "
			   "it is fetched."),
};
const struct field_table config_modules_table = FIELD_TABLE(struct config_modules, modules_fields);

static const char *const input_types[CONFIG_INPUT_TYPES] = {
	[CONFIG_INPUT_TEXT] = "promptString",
	[CONFIG_INPUT_CHOICE] = "pickString",
};

static const struct field input_fields[] = {
	FIELD_ENUM(struct config_input, type, input_types, .flags = FIELD_REQUIRED,
		   .doc = "promptString for free text, pickString for one of options."),
	FIELD(struct config_input, id, .flags = FIELD_REQUIRED, .min = 1, .max = CONFIG_NAME_MAX,
	      .doc = "Name of the input, the ID in ${input:ID}."),
	FIELD(struct config_input, description, .max = CONFIG_TEXT_MAX,
	      .doc = "Text that is shown to the user."),
	FIELD_NAMED(struct config_input, def, "default", .max = CONFIG_VALUE_MAX,
		    .doc = "Value if no user can be asked."),
	FIELD(struct config_input, options, .max = CONFIG_LIST_MAX, .item_max = CONFIG_TEXT_MAX,
	      .doc = "Choices of a pickString."),
	FIELD(struct config_input, password, .doc = "Do not show the value while it is typed."),
};
const struct field_table config_input_table = FIELD_TABLE(struct config_input, input_fields);

int config_check_inputs(struct config_reader *r, struct json_pointer at,
			const struct config_inputs *in)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct config_input *q = &in->p[i];
		struct json_pointer here = at;

		json_pointer_index(&here, i);
		for (size_t k = 0; k < i; k++) {
			if (str_eq(in->p[k].id, q->id))
				return config_refuse(r, &here, "there are two inputs of this id");
		}
		if ((q->type == CONFIG_INPUT_CHOICE) != (q->options.n > 0))
			return config_refuse(r, &here,
					     "options are for pickString, which needs "
					     "them");
	}
	return 0;
}
