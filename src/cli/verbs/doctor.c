#include "cli/common/verb.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "box/host/box.h"
#include "box/probe/probe.h"
#include "cli/road/road.h"
#include "json/field/field.h"

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
	       .env = "HOLT_ALLOW_MISSING", .doc = "Features that may be missing."),
	HELP_ROW(struct doctor_options),
};
static const struct option_table options = OPTION_TABLE(rows);

/* ---- the whole ----------------------------------------------------------------------------- */

struct trial {
	uv_loop_t loop;
	struct box *box;
	uint64_t begun_ns;
	bool done, ok; /* done: what follows stands */
	struct err err;
	double milliseconds;
	struct box_stats stats;
};

static void on_closed(void *arg)
{
}

static void end_trial(struct trial *t, const struct err *err)
{
	if (t->done)
		return;
	t->done = true;
	t->ok = err == NULL;
	if (err)
		t->err = *err;
	t->milliseconds = (double)(clock_ns() - t->begun_ns) / 1e6;
	box_stats(t->box, &t->stats);
	box_close(t->box, on_closed, t);
}

static void on_destroyed(void *arg, struct sandbox *sb, const struct err *err)
{
	end_trial(arg, err);
}

static void on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
}

struct trial_exec {
	struct trial *trial;
	struct sandbox *sandbox;
};

static void on_exit_(void *arg, const struct exec_result *result, const struct err *err)
{
	autofree struct trial_exec *x = arg;
	struct err e = ERR_INIT;

	if (!err && result->exit_code != 0) {
		err_set(&e, ERR_GUEST, "its test program ended with status %d", result->exit_code);
		err = &e;
	}
	if (err)
		end_trial(x->trial, err);
	else
		sandbox_destroy_start(x->sandbox, on_destroyed, x->trial);
	sandbox_unref(x->sandbox);
}

static const struct exec_events events = { .on_output = on_output, .on_exit = on_exit_ };

static void on_created(void *arg, struct sandbox *sb, const struct err *err)
{
	static const struct str argv[] = { { "true", 4 } };
	struct exec_spec spec = { .argv = argv, .n_argv = 1, .timeout_ms = 10000 };
	autofree struct trial_exec *x = calloc(1, sizeof(*x));
	struct err e = ERR_INIT;

	if (err || !x) {
		err_set(&e, ERR_LIMIT, "out of memory");
		end_trial(arg, err ? err : &e);
		return;
	}
	*x = (struct trial_exec){ .trial = arg, .sandbox = sandbox_ref(sb) };
	if (exec_start(sb, &spec, &events, x, &e)) {
		take_ptr(x);
		return;
	}
	sandbox_unref(x->sandbox);
	end_trial(arg, &e);
}

static void try_whole(struct trial *t, const char *allow)
{
	struct sandbox_spec spec = { .ttl_ms = 20000 };

	*t = (struct trial){ .err = ERR_INIT, .begun_ns = clock_ns() };
	if (uv_loop_init(&t->loop) < 0) {
		err_set(&t->err, ERR_LIMIT, "no event loop");
		return;
	}
	t->box = box_new(&t->loop, &(struct box_config){ .allow = allow }, &t->err);
	if (t->box)
		sandbox_create_start(t->box, &spec, on_created, t);
	uv_run(&t->loop, UV_RUN_DEFAULT);
	uv_loop_close(&t->loop);
}

/* ---- what is printed ----------------------------------------------------------------------- */

struct finding {
	struct str feature;
	bool ok, required;
	struct str detail, remedy;
};

static const struct field finding_fields[] = {
	FIELD(struct finding, feature, .flags = FIELD_REQUIRED,
	      .doc = "Name, as --allow-missing takes it."),
	FIELD(struct finding, ok, .flags = FIELD_REQUIRED, .doc = "It works here."),
	FIELD(struct finding, required, .flags = FIELD_REQUIRED,
	      .doc = "Without it no sandbox is made."),
	FIELD(struct finding, detail, .flags = FIELD_REQUIRED, .doc = "What was found."),
	FIELD(struct finding, remedy, .doc = "What helps."),
};
static const struct field_table finding_table = FIELD_TABLE(struct finding, finding_fields);

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
	      .doc = "Sandboxes can be made here."),
	FIELD(struct diagnosis, version, .flags = FIELD_REQUIRED, .doc = "Of Holt."),
	FIELD(struct diagnosis, tier, .doc = "Kind of isolation."),
	FIELD(struct diagnosis, limits, .doc = "What holds memory and processes."),
	FIELD(struct diagnosis, rootless, .flags = FIELD_REQUIRED,
	      .doc = "Made without privileges."),
	FIELD(struct diagnosis, milliseconds, .flags = FIELD_REQUIRED,
	      .doc = "Duration of the trial: make a sandbox, run a program, remove it."),
	FIELD(struct diagnosis, cause, .doc = "Why none can be made."),
	FIELD_OBJECTS(struct diagnosis, features, finding_table, .flags = FIELD_REQUIRED,
		      .doc = "What was tried."),
};
static const struct field_table diagnosis_table = FIELD_TABLE(struct diagnosis, diagnosis_fields);

static int print_json(const struct diagnosis *d)
{
	struct err e = ERR_INIT;
	autofree char *text = field_encode_text(&diagnosis_table, d, (size_t)1 << 20, &e);

	if (!text)
		return cli_fail(&e);
	puts(text);
	return d->ready ? 0 : 1;
}

/* What the terminal can show. */
struct marks {
	const char *yes, *no, *optional;
};

static struct marks pick_marks(void)
{
	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
		return (struct marks){ "✓", "✗", "–" };
	return (struct marks){ "ok", "NO", "--" };
}

/* Prints text indented, in lines of a terminal's width. */
static void print_wrapped(struct str text)
{
	size_t column = 0;

	while (text.n > 0) {
		const char *space = memchr(text.p, ' ', text.n);
		size_t n = space ? (size_t)(space - text.p) : text.n;

		if (column > 0 && column + 1 + n > 74) {
			putchar('\n');
			column = 0;
		}
		printf("%s%.*s", column > 0 ? " " : "     ", (int)n, text.p);
		column += n + 1;
		n += space ? 1 : 0;
		text = (struct str){ text.p + n, text.n - n };
	}
	putchar('\n');
}

static void print_finding(const struct finding *f, const char *mark, bool with_remedy)
{
	printf("%s %-*s%.*s\n", mark, f->detail.n ? 16 : 0, f->feature.p, STR_ARG(f->detail));
	if (with_remedy && f->remedy.n)
		print_wrapped(f->remedy);
}

static void print_table(const struct diagnosis *d)
{
	struct marks m = pick_marks();

	for (size_t i = 0; i < d->features.n; i++) {
		const struct finding *f = &d->features.p[i];
		/* Neighbours often lack the same thing. */
		bool last = i + 1 == d->features.n || !str_eq(f->remedy, f[1].remedy);

		print_finding(f, f->ok ? m.yes : f->required ? m.no : m.optional, last);
	}
	if (d->ready)
		printf("\n%s Sandboxes can be made here: tier %.*s, %s, limits by %.*s.\n"
		       "  One was made, ran a program and ended in %.1f ms.\n",
		       m.yes, STR_ARG(d->tier), d->rootless ? "without privileges" : "as root",
		       STR_ARG(d->limits), d->milliseconds);
	else
		printf("\n%s No sandbox can be made here: %.*s\n", m.no, STR_ARG(d->cause));
}

/* ---- the call ------------------------------------------------------------------------------ */

struct doctor_request {
	struct str allow;
};
static const struct field request_fields[] = {
	FIELD(struct doctor_request, allow, .doc = "Features that may be missing."),
};
static const struct field_table request_table = FIELD_TABLE(struct doctor_request, request_fields);

static const struct op doctor_op = {
	.action = "host.doctor",
	.doc = "Makes a sandbox, runs a program in it, and ends it.",
	.effect = OP_EXECUTE,
	.request = &request_table,
	.run = local_run,
};

static void try_on_road(struct trial *t, const struct verb_input *in)
{
	const struct doctor_options *o = in->options;
	const struct doctor_request request = { o->allow ? str_of(o->allow) : STR_NONE };
	struct road *call = road_begin(in->cli, NULL, &doctor_op, &request, &t->err);

	if (!call)
		return;
	try_whole(t, o->allow);
	road_end(call, t->ok ? NULL : &t->err);
}

static int doctor_run(const struct verb_input *in)
{
	const struct doctor_options *o = in->options;
	struct probe_result results[PROBE_MAX];
	struct finding findings[PROBE_MAX];
	size_t n = probe_run(results, PROBE_MAX);
	const struct probe_result *blocker = probe_blocker(results, n, o->allow);
	struct trial t = { .err = ERR_INIT };
	struct diagnosis d;

	if (blocker)
		err_set(&t.err, ERR_UNSUPPORTED, "%s: %s", blocker->feature, blocker->detail);
	else
		try_on_road(&t, in);
	d = (struct diagnosis){
		.ready = t.ok,
		.version = STR_LIT(HOLT_VERSION),
		.tier = str_of(t.ok ? t.stats.tier : NULL),
		.limits = str_of(t.ok ? t.stats.limits : NULL),
		.rootless = t.stats.rootless,
		.milliseconds = t.milliseconds,
		.cause = str_of(t.ok ? NULL : t.err.msg),
		.features = { findings, n },
	};
	for (size_t i = 0; i < n; i++)
		findings[i] = (struct finding){
			.feature = str_of(results[i].feature),
			.ok = results[i].status == PROBE_OK,
			.required = results[i].required,
			.detail = str_of(results[i].detail),
			.remedy = results[i].remedy[0] ? str_of(results[i].remedy) : STR_NONE,
		};
	if (o->json)
		return print_json(&d);
	print_table(&d);
	return d.ready ? 0 : 1;
}

const struct verb doctor_verb = {
	.name = "doctor",
	.usage = "[--json]",
	.doc = "Check how this host can isolate sandboxes, and what helps.",
	.more = "The exit status is 0 where sandboxes can be made, else 1.",
	.page = "holt-doctor",
	.options = &options,
	.size = sizeof(struct doctor_options),
	.usage_exit = 2,
	.run = doctor_run,
};
