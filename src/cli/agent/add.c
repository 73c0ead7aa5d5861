/* `holt agent add`: an agent for the operator's file, with its programs. */
#include <stdio.h>

#include "cli/agent/fetch.h"
#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/import/own.h"

enum { ENTRY_MAX = 256 << 10, FOUND_ARENA = 256 << 10 };

struct add_options {
	struct verb_options common;
	const char *name, *config;
	bool fetch, scripts;
};

static const struct option_row rows[] = {
	OPTION(struct add_options, name, OPTION_TEXT, "name", .letter = 'n', .arg = "NAME",
	       .doc = "Name of the entry; by default that of the preset."),
	OPTION(struct add_options, fetch, OPTION_FLAG, "fetch",
	       .doc = "Fetch its programs even if they are installed here."),
	OPTION(struct add_options, scripts, OPTION_FLAG, "install-scripts",
	       .doc = "Run install scripts of packages, in the sandbox that fetches them."),
	CONFIG_ROW(struct add_options, config),
	HELP_ROW(struct add_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true, .program_at = 1);

/* ---- its programs ---------------------------------------------------------------------------- */

static void add_tell_missing(const struct agent_preset *p, const struct field_strs *argv)
{
	fprintf(stderr,
		"holt: the program %.*s is not here, and no package of it is known: "
		"install it",
		STR_CUT(argv->p[0], 80));
	if (p->about.n)
		fprintf(stderr, ", see %.*s", STR_CUT(p->about, 200));
	fputc('\n', stderr);
}

/* 1: it is there now; 0: it has to be installed by hand. */
static int add_program(const struct add_options *o, const struct agent_file *f,
		       const struct agent_preset *p, const struct field_strs *argv, struct err *e)
{
	const struct agent_fetch fetch = { .config = f->config,
					   .package = agent_program_package(p, argv),
					   .program = argv->p[0],
					   .scripts = o->scripts || p->install_scripts,
					   .prefix = AGENT_IMAGES };
	AUTO(arena_free) struct arena *a = arena_new(FOUND_ARENA);
	struct agent_program found;
	char images[PATH_MAX];
	struct package *got;
	int rc;

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	rc = home_where("images", images, e) < 0
		   ? -1
		   : agent_program_find(p, argv, images, a, &found, e);
	if (rc < 0)
		return -1;
	if (rc > 0 && (found.digest[0] || !o->fetch || !fetch.package.n)) {
		printf("%.*s: ", STR_ARG(argv->p[0]));
		safe_line(stdout, found.digest[0] ? found.package : found.path);
		if (found.digest[0]) {
			putchar(' ');
			safe_short(stdout, found.version, 64);
			fputs(", fetched before", stdout);
		}
		putchar('\n');
		return 1;
	}
	if (!fetch.package.n) {
		add_tell_missing(p, argv);
		return 0;
	}
	got = agent_fetch(&fetch, e) < 0
		    ? NULL
		    : agent_fetched(AGENT_IMAGES, fetch.package, fetch.program, e);
	if (!got)
		return -1;
	agent_fetch_tell(got);
	package_unref(got);
	return 1;
}

/* 1: all are there. */
static int add_programs(const struct add_options *o, const struct agent_file *f,
			const struct agent_preset *p, struct err *e)
{
	const struct field_strs *const all[] = { &p->run, &p->acp };
	int have = 1;

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		int rc;

		if (!all[i]->n || (i && p->run.n && str_eq(p->run.p[0], p->acp.p[0])))
			continue;
		rc = add_program(o, f, p, all[i], e);
		if (rc < 0)
			return -1;
		have &= rc;
	}
	return have;
}

/* ---- the entry ------------------------------------------------------------------------------- */

struct add_entry {
	const char *name;
	const struct agent_preset *preset; /* NULL: the command's words */
	char **words;
	const struct config_file *file;
	bool there; /* the entry itself */
};

static void add_write_entry(const struct add_entry *entry, struct json_writer *w)
{
	json_write_key(w, entry->name);
	json_write_object(w);
	if (entry->preset) {
		json_write_key(w, "preset");
		json_write_str(w, entry->preset->name);
	} else {
		json_write_key(w, "command");
		json_write_text(w, entry->words[0]);
		json_write_key(w, "args");
		json_write_array(w);
		for (size_t i = 1; entry->words[i]; i++)
			json_write_text(w, entry->words[i]);
		json_write_array_end(w);
	}
	json_write_object_end(w);
}

static bool add_has_secret(const struct config_file *f, struct str name)
{
	for (size_t i = 0; i < f->secrets.n; i++) {
		if (str_eq(f->secrets.p[i].name, name))
			return true;
	}
	return false;
}

/* Its keys, so that `holt secret set` is all that is left to do: of the store, and only for their
 * hosts. */
static void add_write_secrets(const struct add_entry *entry, struct json_writer *w)
{
	const struct agent_preset *p = entry->preset;

	for (size_t i = 0; p && i < p->secrets.n; i++) {
		const struct field_strs *hosts = &p->secrets.p[i].hosts;

		if (add_has_secret(entry->file, p->secrets.p[i].name))
			continue;
		json_write_key_str(w, p->secrets.p[i].name);
		json_write_object(w);
		json_write_key(w, "store");
		json_write_bool(w, true);
		json_write_key(w, "hosts");
		json_write_array(w);
		for (size_t k = 0; k < hosts->n; k++)
			json_write_str(w, hosts->p[k]);
		json_write_array_end(w);
		json_write_object_end(w);
	}
}

/* Members of a section; nothing, where there are none. */
static int add_section(const struct add_entry *entry, const char *section,
		       void (*write)(const struct add_entry *entry, struct json_writer *w),
		       struct str text, struct buf *to, struct err *e)
{
	autobuf struct buf json = BUF_INIT(ENTRY_MAX);
	struct json_writer w = json_writer(&json);

	json_write_object(&w);
	write(entry, &w);
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0 ? -1
					  : agent_file_add(buf_str(&json), section, text, to, e);
}

static int add_write(const void *data, struct str text, struct buf *to, struct err *e)
{
	autobuf struct buf with = BUF_INIT(CONFIG_BYTES_MAX);
	const struct add_entry *entry = data;

	if (add_section(entry, "secrets", add_write_secrets, text, &with, e) < 0)
		return -1;
	return entry->there ? buf_add(to, with.p, with.n, e)
			    : add_section(entry, "agents", add_write_entry, buf_str(&with), to, e);
}

/* An entry that is there says the same, or has to stay. 1: it is there. */
static int add_check(const struct agent_file *f, const struct add_entry *entry, struct err *e)
{
	const struct config_agent *have = config_agent_find(config_file(f->config),
							    str_of(entry->name));

	if (!have)
		return 0;
	if (entry->preset && str_eq(have->preset, entry->preset->name))
		return 1;
	return err_set(e, ERR_CONFLICT,
		       "the operator's file has another agent %.40s: choose a name for this one "
		       "(--name), or take that out (holt agent rm %.40s)",
		       entry->name, entry->name);
}

static int add_run(const struct verb_input *in, struct err *e)
{
	const struct add_options *o = in->options;
	const char *said = in->operands[0];
	struct add_entry entry = { .name = o->name ? o->name : said, .words = in->rest };
	autoagentfile struct agent_file f = { NULL, NULL };
	int there, ready = 1;

	if (in->rest && !in->rest[0])
		return err_set(e, ERR_INVALID,
			       "what is to be started: holt agent add %.40s -- COMMAND "
			       "ARGUMENT...",
			       said);
	if (agent_file_open(&f, o->config, e) < 0)
		return -1;
	entry.file = config_file(f.config);
	if (!in->rest && !(entry.preset = agent_presets_find(f.presets, str_of(said), e)))
		return -1;
	there = add_check(&f, &entry, e);
	entry.there = there > 0;
	if (there < 0 || (entry.preset && (ready = add_programs(o, &f, entry.preset, e)) < 0) ||
	    own_edit(f.config, add_write, &entry, e) < 0)
		return -1;
	safe_line(stdout, str_of(config_path(f.config)));
	printf(": %s %s\n", entry.name, there ? "was there" : "added");
	if (entry.preset)
		printf("next: holt agent doctor %s\n", entry.name);
	return ready ? 0 : 1;
}

const struct verb agent_add_verb = {
	.name = "agent add",
	.usage = "[OPTION...] PRESET | NAME -- COMMAND...",
	.doc = "Add an agent to the operator's file, and fetch its programs.",
	.more = "Programs that are installed here are used as they are. Others are fetched from\n"
		"npm in a sandbox that reaches its registry alone, and stay as they are until\n"
		"holt agent update. COMMAND is any program that speaks ACP. All else in the file\n"
		"stays. The exit status is 1 where a program has to be installed by hand.",
	.page = "holt-agent",
	.options = &options,
	.size = sizeof(struct add_options),
	.min_operands = 1,
	.run = add_run,
};
