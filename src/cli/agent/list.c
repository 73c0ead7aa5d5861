/* `holt agent ls`, `rm`, `update`: agents of the operator's file, and what was fetched of them. */
#include <stdio.h>
#include <unistd.h>

#include "base/when.h"
#include "cli/agent/fetch.h"
#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/images/store.h"
#include "cli/import/own.h"
#include "modules/agent_key.h"

enum { LIST_TEXT_MAX = 4 << 20, FOUND_ARENA = 256 << 10, CELL_MAX = 512 };

struct list_options {
	struct verb_options common;
	const char *config;
	uint32_t output;
	bool yes;
};

/* ---- ls -------------------------------------------------------------------------------------- */

static const struct option_row ls_rows[] = {
	CONFIG_ROW(struct list_options, config),
	OUTPUT_ROW(struct list_options),
	HELP_ROW(struct list_options),
};
static const struct option_table ls_options = OPTION_TABLE(ls_rows, .mixed = true);

/* Where a program of a preset is, for people; "": nowhere. */
static int ls_place(const struct agent_preset *p, const struct field_strs *argv, char ret[CELL_MAX],
		    struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(FOUND_ARENA);
	struct agent_program found;
	char images[PATH_MAX];
	int rc;

	ret[0] = '\0';
	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	rc = home_where("images", images, e) < 0
		   ? -1
		   : agent_program_find(p, argv, images, a, &found, e);
	if (rc > 0 && found.digest[0])
		snprintf(ret, CELL_MAX, "%.*s %.*s", STR_CUT(found.package, 240),
			 STR_CUT(found.version, 64));
	else if (rc > 0)
		snprintf(ret, CELL_MAX, "%.*s", STR_CUT(found.path, CELL_MAX - 1));
	return rc < 0 ? -1 : 0;
}

struct ls_row {
	struct str name, preset;
	char run[CELL_MAX], acp[CELL_MAX];
	char login[WHEN_MAX]; /* when its tokens were stored; "": it has none */
	bool can_login;
};

static int ls_login(const struct agent_file *f, const struct agent_preset *p, struct ls_row *ret,
		    struct err *e)
{
	char images[PATH_MAX];
	time_t since;

	if (home_where("images", images, e) < 0)
		return -1;
	ret->can_login = p->has_tokens;
	if (agent_login_find(p, config_file(f->config), images, ret->name, &since))
		when_text(ret->login, since * 1000);
	return 0;
}

static int ls_look(const struct agent_file *f, const struct config_agent *c, struct ls_row *ret,
		   struct err *e)
{
	const struct agent_preset *p;
	struct err none;

	*ret = (struct ls_row){ .name = c->name, .preset = c->preset };
	snprintf(ret->acp, sizeof(ret->acp), "%.*s", STR_CUT(c->program.command, CELL_MAX - 1));
	p = c->preset.p ? agent_presets_find(f->presets, c->preset, &none) : NULL;
	if (!p)
		return 0;
	if (ls_place(p, &p->run, ret->run, e) < 0 || ls_login(f, p, ret, e) < 0)
		return -1;
	return c->program.command.p ? 0 : ls_place(p, &p->acp, ret->acp, e);
}

static void ls_member(struct json_writer *w, const char *key, struct str value)
{
	json_write_key(w, key);
	if (value.n)
		json_write_str(w, value);
	else
		json_write_null(w);
}

static int ls_run(const struct verb_input *in, struct err *e)
{
	const struct list_options *o = in->options;
	AUTO(table_free) struct table *t = TABLE(e, "NAME", "PRESET", "LOG-IN", "TERMINAL", "ACP");
	autobuf struct buf text = BUF_INIT(LIST_TEXT_MAX);
	struct json_writer w = json_writer(&text);
	autoagentfile struct agent_file f = { NULL, NULL };
	const struct config_agents *agents;
	struct ls_row row;

	if (!t || agent_file_open(&f, o->config, e) < 0)
		return -1;
	agents = &config_file(f.config)->agents;
	json_write_array(&w);
	for (size_t i = 0; i < agents->n; i++) {
		if (ls_look(&f, &agents->p[i], &row, e) < 0)
			return -1;
		table_str(t, row.name);
		table_str(t, row.preset);
		table_str(t, *row.login	     ? str_of(row.login)
			     : row.can_login ? STR_LIT("none")
					     : STR_NONE);
		table_str(t, str_of(row.run));
		table_str(t, str_of(row.acp));
		json_write_object(&w);
		ls_member(&w, "name", row.name);
		ls_member(&w, "preset", row.preset);
		ls_member(&w, "login", str_of(row.login));
		ls_member(&w, "run", str_of(row.run));
		ls_member(&w, "acp", str_of(row.acp));
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		safe_json_puts(stdout, buf_str(&text));
	else
		table_print(t);
	return 0;
}

const struct verb agent_ls_verb = {
	.name = "agent ls",
	.usage = "[OPTION...]",
	.doc = "List your agents, their log-ins and programs.",
	.page = "holt-agent",
	.options = &ls_options,
	.size = sizeof(struct list_options),
	.run = ls_run,
};

/* ---- rm -------------------------------------------------------------------------------------- */

static const struct option_row rm_rows[] = {
	CONFIG_ROW(struct list_options, config),
	HELP_ROW(struct list_options),
};
static const struct option_table rm_options = OPTION_TABLE(rm_rows, .mixed = true);

/* Whether another entry's preset has the package, too. */
static bool rm_is_shared(const struct agent_file *f, struct str but, struct str package)
{
	const struct config_agents *agents = &config_file(f->config)->agents;
	struct err none;

	for (size_t i = 0; i < agents->n; i++) {
		const struct config_agent *c = &agents->p[i];
		const struct agent_preset *p = c->preset.p && !str_eq(c->name, but)
						     ? agent_presets_find(f->presets, c->preset,
									  &none)
						     : NULL;

		for (size_t k = 0; p && k < p->npm.n; k++) {
			if (str_eq(p->npm.p[k].value, package))
				return true;
		}
	}
	return false;
}

static int rm_image(const char *prefix, struct str package, struct str program, bool tell,
		    struct err *e)
{
	AUTO(images_close) struct images *store = image_cli_open(e);
	char name[IMAGE_NAME_MAX + 1];

	if (!store || agent_image_name(prefix, package, program, name, e) < 0)
		return -1;
	if (images_remove(store, str_of(name), e) < 0)
		return e->code == ERR_TEMPLATE_NOT_FOUND ? 0 : -1;
	if (tell)
		printf("%.*s: its package %.*s is removed\n", STR_ARG(program), STR_ARG(package));
	return 0;
}

/* Its packages, but those of another agent. */
static int rm_packages(const struct agent_file *f, const struct agent_preset *p, struct str name,
		       struct err *e)
{
	for (size_t i = 0; i < p->npm.n; i++) {
		if (!rm_is_shared(f, name, p->npm.p[i].value) &&
		    rm_image(AGENT_IMAGES, p->npm.p[i].value, p->npm.p[i].key, true, e) < 0)
			return -1;
	}
	return 0;
}

static int rm_edit(const void *data, struct str text, struct buf *to, struct err *e)
{
	return config_remove(text, "agents", str_of(data), to, e);
}

static int rm_run(const struct verb_input *in, struct err *e)
{
	const struct list_options *o = in->options;
	const struct str name = str_of(in->operands[0]);
	autoagentfile struct agent_file f = { NULL, NULL };
	const struct agent_preset *p = NULL;
	const struct config_agent *c;
	struct err none;

	if (agent_file_open(&f, o->config, e) < 0)
		return -1;
	c = config_agent_find(config_file(f.config), name);
	if (!c)
		return err_set(e, ERR_INVALID,
			       "the operator's file has no agent %.64s: holt agent ls",
			       in->operands[0]);
	if (c->preset.p)
		p = agent_presets_find(f.presets, c->preset, &none);
	if (own_edit(f.config, rm_edit, in->operands[0], e) < 0)
		return -1;
	safe_line(stdout, str_of(config_path(f.config)));
	printf(": %s removed; its conversations, log-in and settings stay\n", in->operands[0]);
	return p ? rm_packages(&f, p, name, e) : 0;
}

const struct verb agent_rm_verb = {
	.name = "agent rm",
	.alias = "agent remove",
	.usage = "[OPTION...] NAME",
	.doc = "Remove an agent from your file, and what was fetched of it.",
	.more = "All else in the file stays. Programs that are installed here stay, and so does\n"
		"what the agent keeps: its log-in, its settings and its sessions.",
	.page = "holt-agent",
	.options = &rm_options,
	.size = sizeof(struct list_options),
	.min_operands = 1,
	.run = rm_run,
};

/* ---- update ---------------------------------------------------------------------------------- */

static const struct option_row update_rows[] = {
	OPTION(struct list_options, yes, OPTION_FLAG, "yes", .letter = 'y',
	       .doc = "Take what is new without asking."),
	CONFIG_ROW(struct list_options, config),
	HELP_ROW(struct list_options),
};
static const struct option_table update_options = OPTION_TABLE(update_rows, .mixed = true);

static bool update_has(const struct field_strs *list, struct str s)
{
	for (size_t i = 0; i < list->n; i++) {
		if (str_eq(list->p[i], s))
			return true;
	}
	return false;
}

/* What the one has and the other has not, each with its sign. */
static void update_tell_list(const char *what, char sign, const struct field_strs *list,
			     const struct field_strs *but)
{
	enum { SHOWN = 20 };
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		if (update_has(but, list->p[i]) || n++ >= SHOWN)
			continue;
		printf("  %c %s ", sign, what);
		safe_short(stdout, list->p[i], 160);
		putchar('\n');
	}
	if (n > SHOWN)
		printf("  %c %zu more\n", sign, n - SHOWN);
}

static void update_tell_text(const char *what, struct str was, struct str now)
{
	if (str_eq(was, now))
		return;
	printf("  %s ", what);
	safe_short(stdout, was, 120);
	fputs(" -> ", stdout);
	safe_short(stdout, now, 120);
	putchar('\n');
}

static void update_tell(const struct package_record *was, const struct package_record *now)
{
	char before[16], after[16];

	image_cli_size(was->bytes, before);
	image_cli_size(now->bytes, after);
	safe_puts(stdout, now->name);
	update_tell_text("version", was->version, now->version);
	update_tell_text("author", was->author, now->author);
	update_tell_text("license", was->license, now->license);
	update_tell_text("repository", was->repository, now->repository);
	update_tell_text("size", str_of(before), str_of(after));
	update_tell_list("maintainer", '-', &was->maintainers, &now->maintainers);
	update_tell_list("maintainer", '+', &now->maintainers, &was->maintainers);
	update_tell_list("script", '-', &was->scripts, &now->scripts);
	update_tell_list("script", '+', &now->scripts, &was->scripts);
	update_tell_list("package", '-', &was->dependencies, &now->dependencies);
	update_tell_list("package", '+', &now->dependencies, &was->dependencies);
}

static bool update_ask(void)
{
	char line[16] = "";

	fprintf(stderr, "Take this version? [y/N] ");
	return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

/* The name goes to the new image, and the old one goes unless something runs in it. */
static int update_take(const struct package *was, const struct package *now, struct str package,
		       struct str program, struct err *e)
{
	AUTO(images_close) struct images *store = image_cli_open(e);
	char name[IMAGE_NAME_MAX + 1];
	struct err none;

	if (!store || agent_image_name(AGENT_IMAGES, package, program, name, e) < 0 ||
	    images_tag(store, str_of(name), str_of(now->image), e) < 0)
		return -1;
	return images_remove(store, str_of(was->image), &none) < 0 && none.code != ERR_CONFLICT
		     ? (*e = none, -1)
		     : 0;
}

static int update_fetched(const struct list_options *o, const struct package *was,
			  const struct package *now, struct str package, struct str program,
			  struct err *e)
{
	if (str_eq(was->record.lock, now->record.lock)) {
		safe_line(stdout, now->record.name);
		putchar(' ');
		safe_short(stdout, now->record.version, 64);
		puts(": nothing is new");
		return 0;
	}
	update_tell(&was->record, &now->record);
	fflush(stdout);
	if (!o->yes && !update_ask()) {
		puts("it stays as it is");
		return 0;
	}
	return update_take(was, now, package, program, e);
}

static int update_one(const struct list_options *o, const struct agent_file *f,
		      const struct field_pair *of, struct err *e)
{
	struct package *was = agent_fetched(AGENT_IMAGES, of->value, of->key, e), *now = NULL;
	const struct agent_fetch fetch = { .config = f->config,
					   .package = of->value,
					   .program = of->key,
					   .scripts = was && agent_fetch_ran_scripts(was),
					   .prefix = AGENT_IMAGES_NEW };
	struct err none = ERR_INIT;
	int rc;

	if (!was)
		return e->code ? -1 : 1;
	rc = agent_fetch(&fetch, e);
	if (rc == 0)
		now = agent_fetched(AGENT_IMAGES_NEW, of->value, of->key, e);
	if (now)
		rc = update_fetched(o, was, now, of->value, of->key, e);
	else
		rc = -1;
	package_unref(was);
	package_unref(now);
	if (rm_image(AGENT_IMAGES_NEW, of->value, of->key, false, &none) < 0 && rc == 0) {
		*e = none;
		rc = -1;
	}
	return rc;
}

static int update_run(const struct verb_input *in, struct err *e)
{
	const struct list_options *o = in->options;
	autoagentfile struct agent_file f = { NULL, NULL };
	const struct agent_preset *p;
	const struct config_agent *c;
	size_t fetched = 0;

	if (!o->yes && !isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID,
			       "there is no terminal to ask at: give --yes to take what is new");
	if (agent_file_open(&f, o->config, e) < 0)
		return -1;
	c = config_agent_find(config_file(f.config), str_of(in->operands[0]));
	p = agent_presets_find(f.presets, c && c->preset.p ? c->preset : str_of(in->operands[0]),
			       e);
	if (!p)
		return -1;
	for (size_t i = 0; i < p->npm.n; i++) {
		int rc = update_one(o, &f, &p->npm.p[i], e);

		if (rc < 0)
			return -1;
		fetched += rc == 0;
	}
	if (!fetched)
		return err_set(e, ERR_INVALID,
			       "nothing of %.64s was fetched: what is installed here is updated by "
			       "what installed it",
			       in->operands[0]);
	return 0;
}

const struct verb agent_update_verb = {
	.name = "agent update",
	.usage = "[OPTION...] NAME",
	.doc = "Fetch an agent's packages again, show what is new, and ask.",
	.more = "What runs goes on with the old version until it ends.",
	.page = "holt-agent",
	.options = &update_options,
	.size = sizeof(struct list_options),
	.min_operands = 1,
	.run = update_run,
};
