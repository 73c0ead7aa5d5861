/* `holt agent doctor`: what an agent lacks to run, and the command that mends it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/when.h"
#include "cli/agent/agent.h"
#include "cli/common/home.h"
#include "cli/common/program.h"
#include "cli/common/safe.h"
#include "cli/common/finding.h"
#include "guard/policy/policy.h"
#include "modules/agent_key.h"
#include "modules/agent_program.h"
#include "modules/agent_state.h"
#include "op/network.h"

enum { FINDINGS_MAX = 64, DOCTOR_ARENA = 1 << 20, DOCTOR_TEXT = 1 << 20, EXIT_LACKS = 1 };

struct doctor_options {
	struct verb_options common;
	const char *config;
	uint32_t output;
};

static const struct option_row rows[] = {
	CONFIG_ROW(struct doctor_options, config),
	OUTPUT_ROW(struct doctor_options),
	HELP_ROW(struct doctor_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

struct doctor {
	const char *name; /* of the entry, or of the preset */
	const struct config_file *file;
	const struct config_agent *entry; /* NULL: the preset alone */
	const struct agent_preset *preset;
	char images[PATH_MAX], state[PATH_MAX];
	struct arena *arena;
	bool ready;
	struct {
		struct finding *p;
		size_t n;
	} checks;
	struct finding room[FINDINGS_MAX];
	struct err *e;
};

static const struct field doctor_fields[] = {
	FIELD(struct doctor, ready, .flags = FIELD_REQUIRED, .doc = "Whether it can run."),
	FIELD_OBJECTS(struct doctor, checks, finding_table, .flags = FIELD_REQUIRED,
		      .doc = "What was looked at."),
};
static const struct field_table doctor_table = FIELD_TABLE(struct doctor, doctor_fields);

static struct str doctor_text(struct doctor *d, const char *fmt, va_list ap)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	return str_of(arena_dup(d->arena, str_of(text), d->e));
}

/* A check; what mends it follows by doctor_mend(). Those that are not required are advice. */
static struct finding *doctor_add(struct doctor *d, const char *feature, bool ok, bool required,
				  const char *fmt, ...) PRINTF_LIKE(5, 6);
static struct finding *doctor_add(struct doctor *d, const char *feature, bool ok, bool required,
				  const char *fmt, ...)
{
	struct finding *f =
		&d->room[d->checks.n < FINDINGS_MAX - 1 ? d->checks.n++ : FINDINGS_MAX - 1];
	va_list ap;

	va_start(ap, fmt);
	*f = (struct finding){ .feature = str_of(feature),
			       .ok = ok,
			       .required = required,
			       .detail = doctor_text(d, fmt, ap) };
	va_end(ap);
	d->checks.p = d->room;
	d->ready &= ok || !required;
	return f;
}

static void doctor_mend(struct doctor *d, struct finding *f, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
static void doctor_mend(struct doctor *d, struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	f->remedy = doctor_text(d, fmt, ap);
	va_end(ap);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void doctor_node(struct doctor *d, const struct agent_program *found)
{
	char line[PROGRAM_VERSION_MAX], path[PATH_MAX];
	const char *slash = strrchr(found->argv.p[0].p, '/'),
		   *name = slash ? slash + 1 : found->argv.p[0].p;
	unsigned long major;
	struct err none;

	if (strcmp(name, "node") != 0 || !d->preset->node)
		return;
	/* What was fetched runs with that of the host's /usr. */
	snprintf(path, sizeof(path), "%s", slash ? found->argv.p[0].p : "/usr/bin/node");
	if (program_version(path, line, &none) < 0 || *line != 'v') {
		doctor_mend(d, doctor_add(d, "node", false, true, "%.200s does not run", path),
			    "Install Node.js %u or newer: https://nodejs.org/en/download",
			    d->preset->node);
		return;
	}
	major = strtoul(line + 1, NULL, 10);
	if (major >= d->preset->node)
		doctor_add(d, "node", true, true, "%.40s, %.200s", line, path);
	else
		doctor_mend(d,
			    doctor_add(d, "node", false, true, "%.40s, and it needs %u: %.200s",
				       line, d->preset->node, path),
			    "Install Node.js %u or newer: https://nodejs.org/en/download",
			    d->preset->node);
}

/* Another that is needed for conversations alone is advice to those who have none. */
static int doctor_program(struct doctor *d, const char *feature, const struct field_strs *argv)
{
	struct agent_program found;
	struct finding *f;
	int rc = agent_program_find(d->preset, argv, d->images, d->arena, &found, d->e);

	if (rc < 0)
		return -1;
	if (rc > 0) {
		if (found.digest[0])
			doctor_add(d, feature, true, true, "%.*s %.*s, fetched",
				   STR_CUT(found.package, 200), STR_CUT(found.version, 64));
		else
			doctor_add(d, feature, true, true, "%.*s", STR_CUT(found.path, 400));
		doctor_node(d, &found);
		return 0;
	}
	f = doctor_add(d, feature, false, true, "%.*s is neither installed nor fetched",
		       STR_CUT(argv->p[0], 80));
	if (agent_program_package(d->preset, argv).n)
		doctor_mend(d, f, "holt agent add %.*s", STR_ARG(d->preset->name));
	else
		doctor_mend(d, f, "Install it: %.*s",
			    STR_CUT(d->preset->about.n ? d->preset->about : argv->p[0], 300));
	return 0;
}

static int doctor_programs(struct doctor *d)
{
	const struct agent_preset *p = d->preset;
	bool own = d->entry && d->entry->program.command.p;

	if (p->run.n && doctor_program(d, "program", &p->run) < 0)
		return -1;
	if (own)
		doctor_add(d, "acp", true, true, "%.*s, as its entry says",
			   STR_CUT(d->entry->program.command, 400));
	else if (p->acp.n && !(p->run.n && str_eq(p->run.p[0], p->acp.p[0])))
		return doctor_program(d, "acp", &p->acp);
	return 0;
}

/* ---- its key --------------------------------------------------------------------------------- */

static bool doctor_entry_has(const struct doctor *d, struct str name)
{
	for (size_t i = 0; d->entry && i < d->entry->program.env.n; i++) {
		if (str_eq(d->entry->program.env.p[i].key, name))
			return true;
	}
	return false;
}

/* Inside, in a file that has the tokens themselves: what placeholders stood for is gone. */
static bool doctor_logged_in(const struct doctor *d, struct str *ret_where)
{
	autobuf struct buf text = BUF_INIT(DOCTOR_TEXT);
	struct err none = ERR_INIT;

	for (size_t i = 0; i < d->preset->credentials.n; i++) {
		text.n = 0;
		if (agent_state_read(d->state, d->preset->credentials.p[i], &text, &none) == 0 &&
		    text.n && !agent_login_is_marked(buf_str(&text))) {
			*ret_where = d->preset->credentials.p[i];
			return true;
		}
	}
	return false;
}

static bool doctor_has_secret(const struct doctor *d, struct str name)
{
	for (size_t i = 0; i < d->file->secrets.n; i++) {
		if (str_eq(d->file->secrets.p[i].name, name))
			return true;
	}
	return false;
}

static void doctor_mend_key(struct doctor *d, struct finding *f)
{
	const struct agent_preset *p = d->preset;
	const struct agent_preset_secret *s = p->secrets.n ? &p->secrets.p[0] : NULL;

	if (p->has_tokens)
		doctor_mend(d, f, "holt agent login %.40s", d->name);
	else if (!s)
		doctor_mend(d, f, "Log in inside: holt agent run %.40s", d->name);
	else if (config_secret_bound(d->file, s->name))
		doctor_mend(d, f, "holt secret set %.*s", STR_ARG(s->name));
	else if (doctor_has_secret(d, s->name))
		doctor_mend(d, f,
			    "Add \"hosts\": [\"%.*s\"] to the secret %.*s of the operator's "
			    "file: a secret without hosts enters no agent by itself.",
			    STR_CUT(s->hosts.p[0], 200), STR_ARG(s->name));
	else
		doctor_mend(d, f, "holt agent add %.*s && holt secret set %.*s", STR_ARG(p->name),
			    STR_ARG(s->name));
}

static void doctor_key(struct doctor *d)
{
	const struct agent_preset *p = d->preset;
	const struct agent_preset_secret *key = agent_key_find(p, d->file, d->images);
	struct str where = STR_NONE;
	char when[WHEN_MAX];
	time_t since;

	for (size_t i = 0; i < p->secrets.n; i++) {
		if (doctor_entry_has(d, p->secrets.p[i].name))
			where = p->secrets.p[i].name;
	}
	if (where.n) {
		doctor_add(d, "key", true, true, "%.*s, as its entry says", STR_ARG(where));
	} else if (agent_login_find(p, d->file, d->images, str_of(d->name), &since)) {
		when_text(when, since * 1000);
		doctor_add(d, "key", true, true, "a log-in, whose tokens are of %s", when);
	} else if (key) {
		doctor_add(d, "key", true, true, "the secret %.*s", STR_ARG(key->name));
	} else if (doctor_logged_in(d, &where)) {
		doctor_add(d, "key", true, true, "a log-in, in %.*s", STR_ARG(where));
	} else if (p->secrets.n || p->credentials.n || p->login.n) {
		doctor_mend_key(
			d, doctor_add(d, "key", false, true, "it has neither a key nor a log-in"));
	}
}

/* ---- its network ----------------------------------------------------------------------------- */

/* Whether an entry of "principals" for the operator leaves it its hosts: `holt agent run` has only
 * what that grants. */
static int doctor_granted(struct doctor *d, const struct config_principal *by, struct str rule,
			  bool *ret)
{
	autogrant struct net_grant one = { .n = 0 }, most = { .n = 0 };
	int of;

	if (net_grant_init(&one, d->e) < 0 || net_grant_init(&most, d->e) < 0 ||
	    network_rules(d->file, rule, &one, d->e) < 0)
		return -1;
	for (size_t i = 0; i < by->network.n; i++) {
		if (network_rules(d->file, by->network.p[i], &most, d->e) < 0)
			return -1;
	}
	*ret = true;
	for (size_t i = 0; i < one.n; i++)
		*ret &= net_grant_is_within(&one, i, &most, &of);
	return 0;
}

static int doctor_network(struct doctor *d)
{
	const struct agent_preset *p = d->preset;
	const struct config_principal *by;
	bool all = true, granted;
	size_t at = 0;

	while ((by = policy_next(d->file, STR_LIT("local"), STR_NONE, &at))) {
		for (size_t i = 0; by->has_network && i < p->hosts.n; i++) {
			if (doctor_granted(d, by, p->hosts.p[i], &granted) < 0)
				return -1;
			all &= granted;
			if (!granted)
				doctor_mend(d,
					    doctor_add(d, "network", false, true,
						       "%.*s is not granted",
						       STR_CUT(p->hosts.p[i], 200)),
					    "Add \"%.*s\" to \"network\" of \"%.*s\" in "
					    "\"principals\" of the operator's file.",
					    STR_CUT(p->hosts.p[i], 200), STR_CUT(by->name, 80));
		}
	}
	if (all && p->hosts.n)
		doctor_add(d, "network", true, true, "%.*s%s", STR_CUT(p->hosts.p[0], 200),
			   p->hosts.n > 1 ? " and others" : "");
	return 0;
}

/* ---- its state ------------------------------------------------------------------------------- */

/* The nearest folder that is there has to be one that this user may write to. */
static void doctor_state(struct doctor *d)
{
	char path[PATH_MAX];
	struct stat st;
	char *slash;

	snprintf(path, sizeof(path), "%s", d->state);
	while (stat(path, &st) < 0 && (slash = strrchr(path, '/')) && slash != path)
		*slash = '\0';
	if (access(path, W_OK | X_OK) == 0 && S_ISDIR(st.st_mode) &&
	    (st.st_uid == geteuid() || geteuid() == 0))
		doctor_add(d, "state", true, true, "%.400s", d->state);
	else if (!S_ISDIR(st.st_mode))
		doctor_mend(d, doctor_add(d, "state", false, true, "%.400s is no folder", path),
			    "mv '%.400s' '%.400s.old'", path, path);
	else
		doctor_mend(d, doctor_add(d, "state", false, true, "%.400s can't be written", path),
			    st.st_uid == geteuid() ? "chmod u+rwx '%.400s'"
						   : "sudo chown -R \"$USER\" '%.400s'",
			    path);
}

/* Whatever an agent has made of them. */
static bool doctor_setting(struct doctor *d, const struct agent_preset_setting *s)
{
	char where[AGENT_SETTING_WHERE], path[PATH_MAX];
	struct err why = ERR_INIT;
	int rc = agent_state_check(s, d->state, where, &why);
	struct finding *f;

	if (rc > 0)
		return true;
	if (rc < 0)
		f = doctor_add(d, "settings", false, false, "%.400s", why.msg);
	else
		f = doctor_add(d, "settings", false, false,
			       "%.*s differs from the preset%s%.160s, so it may not ask before it "
			       "acts",
			       STR_CUT(s->name, 200), *where ? " at " : "", where);
	if (agent_preset_path(s->name, d->state, path, sizeof(path), &why) == 0)
		doctor_mend(d, f,
			    "Edit it, or let Holt write its own at the next start: mv '%.300s' "
			    "'%.300s.old'",
			    path, path);
	return false;
}

static void doctor_settings(struct doctor *d)
{
	const struct agent_preset *p = d->preset;
	bool all = true;

	for (size_t i = 0; i < p->settings.n; i++)
		all &= doctor_setting(d, &p->settings.p[i]);
	if (all && p->settings.n)
		doctor_add(d, "settings", true, false, "as the preset has them");
}

/* ---- whether it asks ------------------------------------------------------------------------- */

static bool doctor_is_autonomous(const struct agent_preset *p, struct str word)
{
	const struct field_strs *const lists[] = { &p->autonomous, &p->autonomous_modes };

	for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
		for (size_t i = 0; i < lists[k]->n; i++) {
			if (str_eq(lists[k]->p[i], word))
				return true;
		}
	}
	return false;
}

/* Of conversations: what the entry says, or else the preset. */
static struct str doctor_chosen(const struct doctor *d)
{
	const struct field_map *o = d->entry ? &d->entry->options : NULL;

	for (size_t i = 0; o && i < o->n; i++) {
		if (str_is(o->p[i].key, "mode"))
			return o->p[i].value;
	}
	return d->preset->mode;
}

static void doctor_mode(struct doctor *d)
{
	const struct config_server *s = d->entry ? &d->entry->program : NULL;
	const struct str mode = doctor_chosen(d);
	bool asks = true;

	for (size_t i = 0; s && i < s->args.n; i++) {
		if (!doctor_is_autonomous(d->preset, s->args.p[i]))
			continue;
		asks = false;
		doctor_mend(d,
			    doctor_add(d, "mode", false, false,
				       "the argument %.*s makes it approve by itself",
				       STR_CUT(s->args.p[i], 80)),
			    "Take it out of \"args\" of the agent %.40s in the operator's file.",
			    d->name);
	}
	if (asks && mode.n && doctor_is_autonomous(d->preset, mode))
		doctor_add(d, "mode", false, false,
			   "%.*s: in conversations it approves by itself, and its sandbox is all "
			   "that holds it",
			   STR_CUT(mode, 80));
	else if (asks && mode.n)
		doctor_add(d, "mode", true, false, "%.*s: it asks", STR_CUT(mode, 80));
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* NAME is an entry of the file with a preset, or a preset. */
static int doctor_open(struct doctor *d, const struct agent_file *f, struct err *e)
{
	d->file = config_file(f->config);
	d->entry = config_agent_find(d->file, str_of(d->name));
	if (d->entry && !d->entry->preset.p)
		return err_set(e, ERR_INVALID,
			       "the agent %.40s has no preset that says what it needs: holt config "
			       "check",
			       d->name);
	d->preset = agent_presets_find(f->presets, d->entry ? d->entry->preset : str_of(d->name),
				       e);
	d->arena = d->preset ? arena_new(DOCTOR_ARENA) : NULL;
	if (!d->arena)
		return d->preset ? err_set(e, ERR_LIMIT, "out of memory") : -1;
	return home_where("images", d->images, e) < 0
		     ? -1
		     : agent_state_folder(d->images, str_of(d->name), d->state, e);
}

static int doctor_look(struct doctor *d)
{
	if (doctor_programs(d) < 0)
		return -1;
	doctor_key(d);
	if (doctor_network(d) < 0)
		return -1;
	doctor_state(d);
	doctor_settings(d);
	doctor_mode(d);
	return d->e->code == ERR_LIMIT ? -1 : 0;
}

static int doctor_show(const struct doctor *d, bool json, struct err *e)
{
	autofree char *text = json ? field_encode_text(&doctor_table, d, DOCTOR_TEXT, e) : NULL;
	const struct marks m = marks_pick();

	if (json && !text)
		return -1;
	if (json)
		safe_json_puts(stdout, str_of(text));
	for (size_t i = 0; !json && i < d->checks.n; i++)
		finding_print(&d->checks.p[i], &m, !d->checks.p[i].ok);
	return d->ready ? 0 : EXIT_LACKS;
}

static int doctor_run(const struct verb_input *in, struct err *e)
{
	const struct doctor_options *o = in->options;
	struct err looking = ERR_INIT;
	struct doctor d = { .name = in->operands[0], .ready = true, .e = &looking };
	autoagentfile struct agent_file f = { NULL, NULL };
	int rc = -1;

	if (agent_file_open(&f, o->config, e) < 0)
		return -1;
	if (doctor_open(&d, &f, e) == 0) {
		if (doctor_look(&d) < 0)
			*e = looking;
		else
			rc = doctor_show(&d, o->output == OUTPUT_JSON, e);
	}
	arena_free(d.arena);
	return rc;
}

const struct verb agent_doctor_verb = {
	.name = "agent doctor",
	.usage = "[OPTION...] NAME",
	.doc = "Tell what an agent lacks to run, and what mends it.",
	.more = "Looks for its programs, Node.js, its key or log-in, the hosts that it needs, its\n"
		"folder for state, its settings and its mode. Nothing is changed, and nothing is\n"
		"sent. The exit status is 1 where something that it needs is missing.",
	.page = "holt-agent",
	.options = &options,
	.size = sizeof(struct doctor_options),
	.min_operands = 1,
	.run = doctor_run,
};
