#include <string.h>

#include "base/library.h"
#include "cli/common/program.h"
#include "cli/common/finding.h"
#include "cli/verbs/trial.h"

/*
 * Whether this installation is whole: each helper is there, runs and has this version; each library
 * loads; a sandbox is made, runs a program and is removed. One line each.
 */

enum { FINDINGS_MAX = 32, DETAIL_MAX = 256 };

static const char *const helpers[] = {
	"holt-warden", "holt-init", "holt-pack", "holt-egress", "holt-js", "inside/holt-call",
};
static const char python_module[] = "inside/holt.py";
static const char *const step_names[TRIAL_STEPS] = { "create", "exec", "destroy" };

struct self_check_options {
	struct verb_options common;
	const char *allow;
	bool json;
};

static const struct option_row rows[] = {
	OPTION(struct self_check_options, json, OPTION_FLAG, "json",
	       .doc = "Print one JSON object."),
	OPTION(struct self_check_options, allow, OPTION_TEXT, "allow-missing", .arg = "LIST",
	       .env = "HOLT_ALLOW_MISSING", .doc = "Isolation features that may be missing."),
	HELP_ROW(struct self_check_options),
};
static const struct option_table options = OPTION_TABLE(rows);

struct self_check {
	bool ok;
	struct str version;
	struct {
		struct finding *p;
		size_t n;
	} checks;
	struct finding findings[FINDINGS_MAX];
	char details[FINDINGS_MAX][DETAIL_MAX];
};

static const struct field fields[] = {
	FIELD(struct self_check, ok, .flags = FIELD_REQUIRED, .doc = "Whether all checks passed."),
	FIELD(struct self_check, version, .flags = FIELD_REQUIRED, .doc = "Version of Holt."),
	FIELD_OBJECTS(struct self_check, checks, finding_table, .flags = FIELD_REQUIRED,
		      .doc = "Results of the checks."),
};
static const struct field_table table = FIELD_TABLE(struct self_check, fields);

__attribute__((format(printf, 4, 5))) static void self_check_add(struct self_check *s,
								 const char *what, bool ok,
								 const char *format, ...)
{
	size_t i = s->checks.n;
	va_list args;

	if (i == FINDINGS_MAX)
		return;
	va_start(args, format);
	vsnprintf(s->details[i], DETAIL_MAX, format, args);
	va_end(args);
	s->findings[i] = (struct finding){
		.feature = str_of(what), .ok = ok, .required = true, .detail = str_of(s->details[i])
	};
	s->checks.n++;
	s->ok = s->ok && ok;
}

/* ---- helpers ------------------------------------------------------------------------------- */

static void check_helper(struct self_check *s, const char *folder, const char *helper)
{
	const char *slash = strrchr(helper, '/'), *name = slash ? slash + 1 : helper;
	char path[PATH_MAX], line[PROGRAM_VERSION_MAX] = "", want[PROGRAM_VERSION_MAX];
	struct err e = ERR_INIT;

	snprintf(path, sizeof(path), "%s/%s", folder, helper);
	snprintf(want, sizeof(want), "%s %s", name, HOLT_VERSION);
	if (program_version(path, line, &e) < 0)
		self_check_add(s, name, false, "%s", e.msg);
	else if (strcmp(line, want) == 0)
		self_check_add(s, name, true, "%s", HOLT_VERSION);
	else if (line[0])
		self_check_add(s, name, false, "is of another version: %s", line);
	else
		self_check_add(s, name, false, "does not run, or does not say its version");
}

static void check_helpers(struct self_check *s)
{
	char folder[PATH_MAX - PROGRAM_VERSION_MAX], path[PATH_MAX];
	struct err e = ERR_INIT;
	bool there;

	if (box_helpers(folder, sizeof(folder), &e) < 0) {
		self_check_add(s, helpers[0], false, "%s", e.msg);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(helpers); i++)
		check_helper(s, folder, helpers[i]);
	snprintf(path, sizeof(path), "%s/%s", folder, python_module);
	there = access(path, R_OK) == 0;
	self_check_add(s, "holt.py", there, "%s", there ? "is there" : strerror(errno));
}

/* ---- the rest ------------------------------------------------------------------------------ */

static int self_check_run(const struct verb_input *in, struct err *e)
{
	const struct self_check_options *o = in->options;
	struct self_check s = { .ok = true, .version = STR_LIT(HOLT_VERSION) };
	const char *name;
	struct trial t;

	s.checks.p = s.findings;
	self_check_add(&s, "holt", true, "%s", HOLT_VERSION);
	check_helpers(&s);
	for (size_t i = 0; (name = library_name(i)); i++) {
		struct err why = ERR_INIT;
		bool loads = library_load(name, &why) == 0;

		self_check_add(&s, name, loads, "%s", loads ? "is loaded" : why.msg);
	}
	trial_run(&t, in->cli, o->allow);
	for (unsigned i = 0; i < t.done; i++)
		self_check_add(&s, step_names[i], true, "%.1f ms", t.milliseconds[i]);
	if (!trial_ok(&t))
		self_check_add(&s, step_names[t.done], false, "%s", t.err.msg);
	if (o->json) {
		if (cli_print_object(&table, &s, e) < 0)
			return -1;
	} else {
		struct marks m = marks_pick();

		for (size_t i = 0; i < s.checks.n; i++)
			finding_print(&s.findings[i], &m, false);
	}
	return s.ok ? 0 : 1;
}

const struct verb self_check_verb = {
	.name = "self-check",
	.usage = "[--json]",
	.doc = "Check that this installation is complete and makes sandboxes.",
	.more = "The exit status is 0 where all is as it should be, else 1.\n"
		"`holt doctor` says what a host lacks on which no sandbox can be made.",
	.page = "holt-doctor",
	.options = &options,
	.size = sizeof(struct self_check_options),
	.run = self_check_run,
};
