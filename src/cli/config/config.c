/* `holt config`: the operator's file, checked and shown without a hub. */
#include "cli/config/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "config/advice.h"
#include "config/agent_preset.h"
#include "config/config.h"
#include "config/variables.h"
#include "guard/gate/gate.h"
#include "guard/redact/redact.h"
#include "op/module/module.h"

enum { TEXT_MAX = 4 << 20, EXIT_DOUBTS = 1 };

struct config_options {
	struct verb_options common;
	const char *config;
};

static const struct option_row rows[] = {
	CONFIG_ROW(struct config_options, config),
	HELP_ROW(struct config_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

struct config *config_of_verb(const char *said, struct err *e)
{
	char path[PATH_MAX];
	bool must;

	return home_config(said, path, &must, e) < 0 ? NULL : config_open(path, must, e);
}

/* ---- check --------------------------------------------------------------------------------- */

static int doubts_text(void *data, enum config_text what, struct str text, struct err *e)
{
	const struct config_values values = { .value = config_value_here };
	autobuf struct buf to = BUF_INIT(TEXT_MAX);

	return config_expand(text, &values, &to, e);
}

static void doubts_print(const char *line)
{
	fprintf(stderr, "holt: %s\n", line);
}

/* A variable without a value keeps its program from starting, and nothing else. */
static bool doubts_program(const struct config *c, const struct config_server *s)
{
	struct err e;

	if (s->disabled || config_server_texts(c, s, doubts_text, NULL, &e) == 0)
		return false;
	doubts_print(e.msg);
	return true;
}

struct doubts_place {
	const struct config *config;
	const struct config_server *server;
};

static void doubts_advice(void *data, const char *text)
{
	const struct doubts_place *p = data;
	char place[CONFIG_PLACE_MAX];

	fprintf(stderr,
		"holt: %s: /mcpServers/%.*s: ", config_place(p->config, p->server->line, place),
		STR_ARG(p->server->name));
	safe_puts(stderr, str_of(text));
}

/* A preset that is not there keeps its agent from starting. */
static bool doubts_preset(const struct config *c, const struct config_agent *a)
{
	AUTO(agent_presets_free) struct agent_presets *presets = NULL;
	char line[CONFIG_PLACE_MAX + sizeof(((struct err *)0)->msg)], place[CONFIG_PLACE_MAX];
	struct err e;

	if (!a->preset.p || a->program.disabled)
		return false;
	presets = agent_presets_read(config_path(c), &e);
	if (presets && agent_presets_find(presets, a->preset, &e))
		return false;
	snprintf(line, sizeof(line), "%s: /agents/%.*s: %s",
		 config_place(c, a->program.line, place), STR_ARG(a->name), e.msg);
	doubts_print(line);
	return true;
}

static unsigned doubts_programs(const struct config *c)
{
	const struct config_file *f = config_file(c);
	unsigned n = 0;

	for (size_t i = 0; i < f->mcp_servers.n; i++) {
		struct doubts_place at = { c, &f->mcp_servers.p[i] };

		n += doubts_program(c, at.server);
		n += config_advise(at.server, doubts_advice, &at);
	}
	for (size_t i = 0; i < f->agents.n; i++)
		n += doubts_program(c, &f->agents.p[i].program) + doubts_preset(c, &f->agents.p[i]);
	return n;
}

static int config_run_check(const struct verb_input *in, struct err *e)
{
	const struct config_options *o = in->options;
	AUTO(config_unref) struct config *c = config_of_verb(o->config, e);

	if (!c)
		return -1;
	if (gate_check_config(c, e) < 0)
		return -1;
	if (config_doubts(c, true, doubts_print) + doubts_programs(c))
		return EXIT_DOUBTS;
	safe_line(stdout, str_of(config_path(c)));
	puts(config_exists(c) ? ": right" : ": not there, so everything is allowed");
	return 0;
}

/* ---- show and schema ----------------------------------------------------------------------- */

static int config_print(struct json_writer *w, struct err *e)
{
	if (json_write_done(w, e) < 0)
		return cli_fail(e);
	printf("%.*s\n", STR_ARG(buf_str(w->buf)));
	return 0;
}

struct showing {
	struct redactor *redactor;
	struct arena *arena;
};

/* Skip files that can't be looked at. */
static struct str show_redact(void *data, const struct redact_part *part)
{
	struct showing *s = data;
	autobuf struct buf b = BUF_INIT(TEXT_MAX);
	struct err e;
	int found = redact_text(s->redactor, part, &b, &e);
	char *copy = found > 0 ? arena_dup(s->arena, buf_str(&b), &e) : NULL;

	return found == 0 ? part->text : copy ? (struct str){ copy, b.n } : STR_LIT("[REDACTED]");
}

/* Arguments and addresses may have secrets in them; values of variables and headers are not shown
 * at all. */
static int show_server(struct showing *s, struct config_server *of, struct err *e)
{
	const struct module_args args = { show_redact, s };

	of->url = show_redact(s, &(struct redact_part){ .text = of->url });
	return module_args_show(&args, &of->args, s->arena, &of->args, e);
}

static int show_servers(struct showing *s, struct config_file *f, struct err *e)
{
	struct config_servers *of = &f->mcp_servers;
	struct config_agents *agents = &f->agents;
	struct config_server *p = arena_array(s->arena, of->n, sizeof(*p), e);
	struct config_agent *a = arena_array(s->arena, agents->n, sizeof(*a), e);

	if (!p || !a)
		return -1;
	for (size_t i = 0; i < of->n; i++) {
		p[i] = of->p[i];
		if (show_server(s, &p[i], e) < 0)
			return -1;
	}
	for (size_t i = 0; i < agents->n; i++) {
		a[i] = agents->p[i];
		if (show_server(s, &a[i].program, e) < 0)
			return -1;
	}
	of->p = p;
	agents->p = a;
	return 0;
}

static int config_run_show(const struct verb_input *in, struct err *e)
{
	const struct config_options *o = in->options;
	autobuf struct buf text = BUF_INIT(TEXT_MAX);
	struct json_writer w = json_writer(&text);
	AUTO(config_unref) struct config *c = config_of_verb(o->config, e);

	AUTO(arena_free) struct arena *arena = arena_new(TEXT_MAX);
	AUTO(redactor_free) struct redactor *redactor = redactor_new(NULL, e);
	struct showing s = { redactor, arena };
	struct config_file shown;

	if (!c || !redactor)
		return -1;
	if (!arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	shown = *config_file(c);
	if (show_servers(&s, &shown, e) < 0)
		return -1;
	field_encode(&config_table, &shown, &w);
	return config_print(&w, e);
}

static int config_run_schema(const struct verb_input *in, struct err *e)
{
	autobuf struct buf text = BUF_INIT(TEXT_MAX);
	struct json_writer w = json_writer(&text);

	config_schema(&w);
	return config_print(&w, e);
}

#define WORD(name_, doc_, run_)                                                                    \
	{                                                                                          \
		.name = "config " name_, .usage = "[OPTION...]", .doc = doc_,                      \
		.page = "holt-config", .options = &options, .size = sizeof(struct config_options), \
		.run = run_                                                                        \
	}

static const struct verb check_verb = WORD("check", "Report errors in the operator's file.",
					   config_run_check);
static const struct verb show_verb =
	WORD("show", "Print the configuration in effect, with defaults, as JSON.", config_run_show);
static const struct verb schema_verb = WORD("schema", "Print the JSON Schema of the file.",
					    config_run_schema);
static const struct verb *const words[] = { &check_verb, &show_verb, &schema_verb, NULL };

const struct verb config_verb = {
	.name = "config",
	.usage = "[OPTION...]",
	.doc = "Check the operator's file, Holt's configuration.",
	.more = "By itself it checks. The exit status of that is 1 where a rule names what is not\n"
		"there, an MCP server a variable that is not set, or where one can't work.",
	.page = "holt-config",
	.options = &options,
	.size = sizeof(struct config_options),
	.words = words,
	.run = config_run_check,
};
