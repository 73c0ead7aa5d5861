/* `holt agent presets`: which agents are known, and what each needs. */
#include <stdio.h>

#include "cli/agent/agent.h"
#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/common/table.h"

enum { PRESETS_TEXT_MAX = 4 << 20, CELL_MAX = 512 };

struct presets_options {
	struct verb_options common;
	const char *config;
	uint32_t output;
	bool schema;
};

static const struct option_row rows[] = {
	OPTION(struct presets_options, schema, OPTION_FLAG, "schema",
	       .doc = "Print the JSON Schema of a preset, for presets of your own."),
	CONFIG_ROW(struct presets_options, config),
	OUTPUT_ROW(struct presets_options),
	HELP_ROW(struct presets_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

/* "a b c", as far as it goes. */
static void presets_words(struct table *t, const struct field_strs *list)
{
	char text[CELL_MAX] = "";
	size_t n = 0;

	for (size_t i = 0; i < list->n && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s", i ? " " : "",
				      STR_ARG(list->p[i]));
	table_str(t, str_of(text));
}

static void presets_row(struct table *t, const struct agent_presets *all,
			const struct agent_preset *p)
{
	char text[CELL_MAX] = "";
	size_t n = 0;

	table_str(t, p->name);
	table_cell(t, "%s", agent_preset_is_own(all, p) ? "yours" : "Holt's");
	table_str(t, p->title);
	for (size_t i = 0; i < p->secrets.n && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s", i ? " or " : "",
				      STR_ARG(p->secrets.p[i].name));
	if (p->login.n && n < sizeof(text))
		snprintf(text + n, sizeof(text) - n, "%sa log-in", n ? " or " : "");
	table_str(t, str_of(text));
	presets_words(t, &p->hosts);
}

static int presets_json(const struct agent_presets *all, struct json_writer *w, struct err *e)
{
	json_write_array(w);
	for (size_t i = 0; i < agent_presets_n(all); i++) {
		const struct agent_preset *p = agent_presets_at(all, i);

		json_write_object(w);
		json_write_key(w, "name");
		json_write_str(w, p->name);
		json_write_key(w, "own");
		json_write_bool(w, agent_preset_is_own(all, p));
		json_write_key(w, "preset");
		field_encode(&agent_preset_table, p, w);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	return json_write_done(w, e);
}

static int presets_run(const struct verb_input *in, struct err *e)
{
	const struct presets_options *o = in->options;
	autobuf struct buf text = BUF_INIT(PRESETS_TEXT_MAX);
	AUTO(table_free) struct table *t = TABLE(e, "NAME", "FROM", "AGENT", "LOGS IN BY", "HOSTS");
	struct json_writer w = json_writer(&text);
	autoagentfile struct agent_file f = { NULL, NULL };

	if (o->schema)
		field_schema(&agent_preset_table, &w);
	else if (agent_file_open(&f, o->config, e) < 0)
		return -1;
	if (!o->schema && o->output == OUTPUT_JSON && presets_json(f.presets, &w, e) < 0)
		return -1;
	if (text.n) {
		if (json_write_done(&w, e) < 0)
			return -1;
		safe_json_puts(stdout, buf_str(&text));
		return 0;
	}
	for (size_t i = 0; t && i < agent_presets_n(f.presets); i++)
		presets_row(t, f.presets, agent_presets_at(f.presets, i));
	if (t)
		table_print(t);
	return t ? 0 : -1;
}

const struct verb agent_presets_verb = {
	.name = "agent presets",
	.usage = "[OPTION...]",
	.doc = "List the agents that are known, and what each needs.",
	.more = "Presets of your own are files agents/NAME.json beside the operator's file; one\n"
		"with the name of Holt's stands in its place.",
	.page = "holt-agent",
	.options = &options,
	.size = sizeof(struct presets_options),
	.run = presets_run,
};
