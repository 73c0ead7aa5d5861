/* `holt top`: shows what the sandboxes of the hub use; on a terminal repeatedly, else once. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/link/link.h"
#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/common/verb.h"

struct top_options {
	struct verb_options common;
	uint32_t output;
	uint64_t every_ms;
	bool once;
};

static const struct option_row rows[] = {
	OPTION(struct top_options, every_ms, OPTION_SECONDS, "every", .letter = 'n', .arg = "TIME",
	       .min = 100, .max = 3600000,
	       .doc = "Time between updates on a terminal; 2 s by default."),
	OPTION(struct top_options, once, OPTION_FLAG, "once", .letter = '1',
	       .doc = "Print once, even on a terminal."),
	OUTPUT_ROW(struct top_options),
	HELP_ROW(struct top_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);
static const struct top_options defaults = { .every_ms = 2000 };

/* ---- pages of the hub ---------------------------------------------------------------------- */

enum { PAGES_MAX = 4096 };

/* All pages, as they came. */
struct pages {
	struct json_doc *docs[PAGES_MAX];
	size_t n;
	uint64_t at_ns;
};

static void pages_free(struct pages *p)
{
	for (size_t i = 0; p && i < p->n; i++)
		json_free(p->docs[i]);
	free(p);
}
AUTO_DEFINE(pages_free, struct pages)

/* One sandbox, or with NULL all. */
static struct pages *top_ask(struct hub_link *l, const char *name, struct err *e)
{
	AUTO(pages_free) struct pages *p = calloc(1, sizeof(*p));
	char path[256] = "/v1/usage";
	struct str next = STR_NONE;

	if (!p) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	if (name && hub_link_path(path, sizeof(path), name, "/usage", e) < 0)
		return NULL;
	do {
		if (next.n)
			snprintf(path, sizeof(path), "/v1/usage?cursor=%.*s", STR_CUT(next, 64));
		if (hub_link_ask(l, "GET", path, STR_NONE, &p->docs[p->n], e) < 0)
			return NULL;
		next = json_str(json_get(json_root(p->docs[p->n++]), "next_cursor"));
	} while (next.n && p->n < PAGES_MAX);
	p->at_ns = clock_ns();
	return take_ptr(p);
}

/* Calls f for each sandbox of the pages; a page about one sandbox is that sandbox. */
static void each(const struct pages *p, void (*f)(void *arg, const struct json_val *v), void *arg)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct json_val *all = json_get(json_root(p->docs[i]), "sandboxes");
		struct json_iter it = json_iter(all);

		if (!all)
			f(arg, json_root(p->docs[i]));
		while (all && json_next(&it))
			f(arg, it.val);
	}
}

/* ---- the table ----------------------------------------------------------------------------- */

static bool has_number(const struct json_val *v, const char *name, double *ret)
{
	const struct json_val *n = json_get(v, name);

	*ret = json_real(n);
	return n != NULL;
}

/* CPU times of the previous table, in order of creation, as in all pages. */
struct seen {
	struct {
		char id[65];
		double cpu_ms;
	} * p;
	size_t n, room;
	uint64_t at_ns;
};

static void see(void *arg, const struct json_val *v)
{
	struct seen *s = arg;
	struct str id = json_str(json_get(v, "sandbox"));

	if (s->n == s->room || !has_number(v, "cpu_ms", &s->p[s->n].cpu_ms))
		return;
	snprintf(s->p[s->n++].id, sizeof(s->p->id), "%.*s", STR_CUT(id, 64));
}

static void top_count(void *arg, const struct json_val *v)
{
	++*(size_t *)arg;
}

/* Without memory nothing was seen. */
static void seen_fill(struct seen *s, const struct pages *p)
{
	size_t n = 0;

	each(p, top_count, &n);
	free(s->p);
	*s = (struct seen){ .p = calloc(n + 1, sizeof(*s->p)), .room = n, .at_ns = p->at_ns };
	if (!s->p)
		s->room = 0;
	each(p, see, s);
}

struct rows {
	struct table *t;
	const struct seen *before; /* NULL: nothing */
	size_t at; /* the first in it that may still be asked for */
	double ns; /* since then */
};

/* Percent of one processor, since the previous table. */
static void top_percent(struct rows *r, const struct json_val *v)
{
	struct str id = json_str(json_get(v, "sandbox"));
	size_t i = r->at, n = r->before ? r->before->n : 0;
	double now;

	while (i < n && !str_is(id, r->before->p[i].id))
		i++;
	if (i == n || !has_number(v, "cpu_ms", &now)) {
		table_str(r->t, STR_NONE);
		return;
	}
	r->at = i + 1;
	now -= r->before->p[i].cpu_ms;
	table_cell(r->t, "%.1f", now < 0 ? 0 : now * 1e8 / r->ns);
}

static void top_row(void *arg, const struct json_val *v)
{
	struct rows *r = arg;

	table_str(r->t, json_str(json_get(v, "sandbox")));
	table_str(r->t, json_str(json_get(v, "state")));
	top_percent(r, v);
	table_number(r->t, json_get(v, "cpu_ms"), 1000, 2);
	table_number(r->t, json_get(v, "memory_bytes"), 1 << 20, 1);
	table_number(r->t, json_get(v, "memory_limit_bytes"), 1 << 20, 1);
	table_number(r->t, json_get(v, "disk_bytes"), 1 << 20, 1);
	table_number(r->t, json_get(v, "disk_limit_bytes"), 1 << 20, 1);
	table_number(r->t, json_get(v, "processes"), 1, 0);
	table_number(r->t, json_get(v, "processes_limit"), 1, 0);
	table_number(r->t, json_get(v, "execs_running"), 1, 0);
}

static int top_table(const struct pages *p, const struct seen *before, struct err *e)
{
	AUTO(table_free)
	struct table *t = TABLE(e, "NAME", "STATE", ">CPU %", ">CPU s", ">MEM MiB", ">OF",
				">DISK MiB", ">OF", ">PROCS", ">OF", ">EXECS");
	struct rows r = { .t = t, .before = before };

	if (!t)
		return -1;
	if (before)
		r.ns = (double)(p->at_ns - before->at_ns) + 1;
	each(p, top_row, &r);
	table_print(t);
	return 0;
}

static void print_one(void *arg, const struct json_val *v)
{
	struct json_writer *w = arg;

	json_write_val(w, v);
}

static int print_json(const struct pages *p, struct err *e)
{
	autobuf struct buf text = BUF_INIT(HUB_ANSWER_MAX);
	struct json_writer w = json_writer(&text);

	json_write_array(&w);
	each(p, print_one, &w);
	json_write_array_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	safe_json_puts(stdout, buf_str(&text));
	return 0;
}

/* ---- the verb ------------------------------------------------------------------------------ */

/* Repeats until it is interrupted, or nobody reads its output. */
static int again_and_again(struct hub_link *l, const char *name, uint64_t every_ms, struct err *e)
{
	const struct timespec every = { (time_t)(every_ms / 1000),
					(long)(every_ms % 1000) * 1000000 };
	struct seen seen = { .p = NULL };
	int result = -1;

	for (;;) {
		AUTO(pages_free) struct pages *p = top_ask(l, name, e);

		if (!p)
			break;
		fputs("\033[H\033[J", stdout);
		if (top_table(p, seen.p ? &seen : NULL, e) < 0)
			break;
		result = fflush(stdout) == 0 ? -1 : 0;
		if (result == 0)
			break;
		seen_fill(&seen, p);
		nanosleep(&every, NULL);
	}
	free(seen.p);
	return result;
}

static int top_run(const struct verb_input *in, struct err *e)
{
	const struct top_options *o = in->options;
	const char *name = in->operands[0];
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(pages_free) struct pages *p = NULL;

	if (!l)
		return -1;
	if (o->output != OUTPUT_JSON && !o->once && isatty(STDOUT_FILENO))
		return again_and_again(l, name, o->every_ms, e);
	p = top_ask(l, name, e);
	if (!p)
		return -1;
	if (o->output == OUTPUT_JSON)
		return print_json(p, e);
	return top_table(p, NULL, e);
}

const struct verb top_verb = {
	.name = "top",
	.usage = "[OPTION...] [NAME]",
	.doc = "Show what the sandboxes of the hub use.",
	.page = "holt-sandbox",
	.options = &options,
	.defaults = &defaults,
	.size = sizeof(struct top_options),
	.max_operands = 1,
	.run = top_run,
	.fail = hub_link_fail,
};
