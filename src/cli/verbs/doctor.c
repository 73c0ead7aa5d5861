#include <string.h>

#include "box/probe/probe.h"
#include "cli/verbs/doctor_way.h"
#include "cli/verbs/trial.h"

/*
 * Probes each feature that isolation needs, then makes a sandbox, runs a program in it and ends it.
 * Only that trial decides the exit status.
 */

struct doctor_options {
	struct verb_options common;
	const char *allow;
	bool json;
};

static const struct option_row rows[] = {
	OPTION(struct doctor_options, json, OPTION_FLAG, "json", .doc = "Print one JSON object."),
	OPTION(struct doctor_options, allow, OPTION_TEXT, "allow-missing", .arg = "LIST",
	       .env = "HOLT_ALLOW_MISSING", .doc = "Isolation features that may be missing."),
	HELP_ROW(struct doctor_options),
};
static const struct option_table options = OPTION_TABLE(rows);

struct diagnosis {
	bool ready;
	struct str version, tier, limits;
	bool rootless;
	double milliseconds;
	struct str cause;
	struct {
		struct finding *p;
		size_t n;
	} features;
};

static const struct field diagnosis_fields[] = {
	FIELD(struct diagnosis, ready, .flags = FIELD_REQUIRED,
	      .doc = "Whether sandboxes can be made here."),
	FIELD(struct diagnosis, version, .flags = FIELD_REQUIRED, .doc = "Version of Holt."),
	FIELD(struct diagnosis, tier, .doc = "Kind of isolation."),
	FIELD(struct diagnosis, limits, .doc = "What enforces the limits of memory and processes."),
	FIELD(struct diagnosis, rootless, .flags = FIELD_REQUIRED,
	      .doc = "Whether sandboxes are made without privileges."),
	FIELD(struct diagnosis, milliseconds, .flags = FIELD_REQUIRED,
	      .doc = "Duration in ms of a trial: make a sandbox, run a program, remove it."),
	FIELD(struct diagnosis, cause, .doc = "Reason why no sandbox can be made."),
	FIELD_OBJECTS(struct diagnosis, features, finding_table, .flags = FIELD_REQUIRED,
		      .doc = "Features that were tested."),
};
static const struct field_table diagnosis_table = FIELD_TABLE(struct diagnosis, diagnosis_fields);

static void print_table(const struct diagnosis *d)
{
	struct marks m = marks_pick();

	for (size_t i = 0; i < d->features.n; i++) {
		const struct finding *f = &d->features.p[i];
		/* Neighbours often lack the same thing. */
		bool last = i + 1 == d->features.n || !str_eq(f->remedy, f[1].remedy);

		finding_print(f, &m, last);
	}
	if (d->ready)
		printf("\n%s Sandboxes can be made here: tier %.*s, %s, limits by %.*s.\n"
		       "  One was made, ran a program and ended in %.1f ms.\n",
		       m.yes, STR_ARG(d->tier), d->rootless ? "without privileges" : "as root",
		       STR_ARG(d->limits), d->milliseconds);
	else
		printf("\n%s No sandbox can be made here: %.*s\n", m.no, STR_ARG(d->cause));
}

static int doctor_run(const struct verb_input *in, struct err *e)
{
	const struct doctor_options *o = in->options;
	struct probe_result results[PROBE_MAX];
	struct finding findings[PROBE_MAX + DOCTOR_WAYS];
	struct doctor_way ways;
	size_t n = probe_run(results, PROBE_MAX);
	const struct probe_result *blocker = probe_blocker(results, n, o->allow);
	struct trial t = { .err = ERR_INIT };
	struct diagnosis d;
	bool ok;

	if (blocker)
		err_set(&t.err, ERR_UNSUPPORTED, "%s: %s", blocker->feature, blocker->detail);
	else
		trial_run(&t, in->cli, o->allow);
	ok = trial_ok(&t);
	doctor_way(&ways);
	memcpy(findings + n, ways.p, ways.n * sizeof(*findings));
	d = (struct diagnosis){
		.ready = ok,
		.version = STR_LIT(HOLT_VERSION),
		.tier = str_of(ok ? t.stats.tier : NULL),
		.limits = str_of(ok ? t.stats.limits : NULL),
		.rootless = t.stats.rootless,
		.cause = str_of(ok ? NULL : t.err.msg),
		.features = { findings, n + ways.n },
	};
	for (unsigned i = 0; i < t.done; i++)
		d.milliseconds += t.milliseconds[i];
	for (size_t i = 0; i < n; i++)
		findings[i] = (struct finding){
			.feature = str_of(results[i].feature),
			.ok = results[i].status == PROBE_OK,
			.required = results[i].required,
			.detail = str_of(results[i].detail),
			.remedy = results[i].remedy[0] ? str_of(results[i].remedy) : STR_NONE,
		};
	if (!o->json)
		print_table(&d);
	else if (cli_print_object(&diagnosis_table, &d, e) < 0)
		return -1;
	return d.ready ? 0 : 1;
}

const struct verb doctor_verb = {
	.name = "doctor",
	.usage = "[--json]",
	.doc = "Check how this host can isolate sandboxes, and what helps.",
	.more = "The exit status is 0 where sandboxes can be made, else 1.\n"
		"`holt self-check` looks at the installation instead.",
	.page = "holt-doctor",
	.options = &options,
	.size = sizeof(struct doctor_options),
	.run = doctor_run,
};
