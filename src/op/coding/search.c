/*
 * Searches by ripgrep inside the sandbox, as a job like any other, and coding.glob. Its output is
 * read as it comes. What is kept is bounded, and so is the time; once enough was found the program
 * is killed.
 */
#include "op/coding/search.h"

#include <stdlib.h>

#include "base/clock.h"
#include "call/guard.h"
#include "coding/path.h"
#include "coding/text.h"
#include "hub/sandbox/job.h"
#include "op/coding/coding.h"

enum {
	SEARCH_PAUSE_MS = 2,
	GLOB_LIMIT = 100,
	GLOB_LIMIT_MAX = 1000,
	SEARCH_CAME_MAX = 4 << 20, /* more than comes until reading is held */
	GLOB_NO_PATH = 66, /* exit status of its script */
};

void search_free(struct search *s)
{
	for (size_t i = 0; i < s->n; i++)
		free((char *)s->hits[i].path.p);
	free(s->hits);
	buf_fini(&s->record);
	buf_fini(&s->complaint);
	buf_fini(&s->came);
	buf_fini(&s->taken);
	if (s->drop)
		s->drop(s);
}

void search_fail(struct search *s, const struct err *e)
{
	if (s->failed) {
		s->failed(s, e);
		return;
	}
	search_free(s);
	coding_fail(&s->w, e);
}

/* ---- the program --------------------------------------------------------------------------- */

void search_stop(struct search *s)
{
	s->enough = true;
	if (!s->taking && s->exec)
		exec_kill(s->exec);
}

bool search_own(struct search_hit *hit)
{
	char *copy = malloc(hit->path.n + hit->text.n + 1);

	if (!copy)
		return false;
	memcpy(copy, hit->path.p, hit->path.n);
	if (hit->text.n)
		memcpy(copy + hit->path.n, hit->text.p, hit->text.n);
	hit->path.p = copy;
	hit->text.p = copy + hit->path.n;
	return true;
}

static int search_record(struct search *s, struct str part, bool ends, struct err *e)
{
	if (!s->overlong && s->record.n + part.n > s->record.max) {
		s->overlong = true;
		s->lost++;
	}
	if (!s->overlong && buf_add(&s->record, part.p, part.n, e) < 0)
		return -1;
	if (!ends)
		return 0;
	if (!s->overlong || s->cuts)
		s->take(s, buf_str(&s->record));
	s->record.n = 0;
	s->overlong = s->named = false;
	return 0;
}

static void search_on_pause(void *data)
{
	struct search *s = data;

	if (s->exec && !s->held)
		exec_hold(s->exec, EXEC_STDOUT, false);
}

void search_hold(struct search *s, bool hold)
{
	if (s->exec && hold != s->held)
		exec_hold(s->exec, EXEC_STDOUT, hold);
	s->held = hold;
}

/* ripgrep writes what it found in each file by itself. Reading waits until more has come, or the
 * program has ended: then the rest of its output comes at once. */
static void search_pause(struct search *s)
{
	if (!s->exec || s->reads)
		return;
	exec_hold(s->exec, EXEC_STDOUT, true);
	call_on_quiet(s->w.call, SEARCH_PAUSE_MS, search_on_pause, s);
}

void search_complain(struct search *s, struct str text)
{
	size_t room = s->complaint.max - s->complaint.n;
	struct err e;

	if (buf_add(&s->complaint, text.p, text.n < room ? text.n : room, &e) < 0)
		s->complaint.n = 0;
}

static void search_split(struct search *s, const char *p, size_t n)
{
	struct err e;

	while (n > 0 && !s->enough) {
		bool path = s->form == SEARCH_PATHS && !s->named;
		const char *end = memchr(p, path || s->form == SEARCH_NULS ? '\0' : '\n', n);
		size_t size = end ? (size_t)(end - p) : n;

		/* The NUL behind a path stays between it and the line. */
		if (search_record(s, (struct str){ p, size + (end && path) }, end && !path, &e) < 0)
			search_stop(s);
		s->named |= path && end;
		size += end != NULL;
		p += size;
		n -= size;
	}
}

static void search_end(struct search *s);

static void search_take_run(struct aside_work *w)
{
	struct search *s = (struct search *)(void *)((char *)w - offsetof(struct search, aside));

	search_split(s, s->taken.p, s->taken.n);
}

static void search_take_apart(struct search *s);

static void search_took(struct aside_work *w)
{
	struct search *s = (struct search *)(void *)((char *)w - offsetof(struct search, aside));

	s->taking = false;
	if (s->enough && s->exec)
		exec_kill(s->exec);
	if (s->came.n > 0)
		search_take_apart(s);
	else if (s->exited)
		search_end(s);
	else if (s->exec)
		exec_hold(s->exec, EXEC_STDOUT, false);
}

/* Takes what has come; nothing more is read meanwhile. */
static void search_take_apart(struct search *s)
{
	const struct buf was = s->taken;
	struct err e;

	if (s->taking)
		return;
	s->taking = true;
	s->taken = s->came;
	s->came = was;
	s->came.n = 0;
	if (s->exec)
		exec_hold(s->exec, EXEC_STDOUT, true);
	s->aside.run = search_take_run;
	s->aside.then = search_took;
	if (aside_work_start(&s->aside, call_loop(s->w.call), call_guard(s->w.call)->redactor,
			     SIZE_MAX, &e) < 0) {
		s->enough = true;
		search_took(&s->aside);
	}
}

static void search_on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	struct search *s = arg;
	struct err e;

	if (stream == EXEC_STDERR) {
		search_complain(s, (struct str){ p, n });
	} else if (!s->apart) {
		search_split(s, p, n);
		search_pause(s);
	} else if (!s->enough) {
		if (buf_add(&s->came, p, n, &e) < 0)
			search_stop(s);
		search_take_apart(s);
	}
}

static bool search_lacks_program(const struct err *err, int exit_code)
{
	return err ? err->code == ERR_COMMAND_NOT_FOUND : exit_code == 127;
}

/* The program has ended, and all that it printed was taken. */
static void search_end(struct search *s)
{
	struct err e = s->ended;

	if (s->taking || s->came.n > 0) {
		s->exited = true;
		return;
	}
	s->exited = false;
	if (e.code)
		search_fail(s, &e);
	else
		s->end(s, s->exit_code);
}

static void search_on_exit(void *arg, const struct exec_result *result, const struct err *err)
{
	struct search *s = arg;
	struct err e = ERR_INIT;

	s->exec = NULL;
	if (call_cancelled(s->w.call))
		err_set(&e, ERR_CANCELLED, "the search was cancelled");
	else if (!s->enough && search_lacks_program(err, result ? result->exit_code : 0))
		err_set(&e, ERR_PROGRAM,
			"the sandbox has no ripgrep (rg): add the package ripgrep to its image, or "
			"to the host that lends it /usr; or search by grep in Bash");
	else if (err && !s->enough)
		e = *err;
	s->ended = e;
	s->timed_out = result && result->end == EXEC_TIMED_OUT;
	s->exit_code = result ? result->exit_code : 0;
	search_end(s);
}

static void search_on_cancel(void *data)
{
	search_stop(data);
}

int search_ready(struct search *s, struct err *e)
{
	s->record = BUF_INIT(SEARCH_RECORD_MAX);
	s->complaint = BUF_INIT(SEARCH_COMPLAINT_MAX);
	s->until_ns = clock_ns() + SEARCH_SECONDS * 1000000000ull;
	s->hits = calloc(s->max + 1, sizeof(*s->hits));
	if (!s->hits)
		return err_set(e, ERR_LIMIT, "out of memory");
	return call_reserve(s->w.call, SEARCH_BYTES_MAX, e);
}

void search_start(struct search *s, struct str shown, const struct str *argv, size_t n)
{
	static const struct exec_events events = { .on_output = search_on_output,
						   .on_exit = search_on_exit };
	uint64_t now = clock_ns();
	const struct job_spec spec = {
		.command = shown,
		.exec = { .argv = argv,
			  .n_argv = n,
			  .cwd = STR_LIT(CODING_ROOT),
			  .stdin_open = s->reads,
			  .timeout_ms = now < s->until_ns ? (s->until_ns - now) / 1000000 + 1 : 1 },
		.events = &events,
		.arg = s,
	};
	struct err e = ERR_INIT;
	struct job *j = job_start(s->w.hs, &spec, &e);

	if (!j) {
		search_fail(s, &e);
		return;
	}
	s->exec = job_exec(j);
	s->came.max = s->taken.max = SEARCH_CAME_MAX;
	call_on_cancel(s->w.call, search_on_cancel, s);
}

/* ---- what all share ------------------------------------------------------------------------ */

/* A path that stands on the command line of a program, behind "--". */
static int search_root(struct search *s, struct str path, struct err *e)
{
	struct arena *a = call_arena(s->w.call);
	const struct str root = STR_LIT(CODING_ROOT);
	autobuf struct buf whole = BUF_INIT(0);
	char *copy;

	if (path_read(root, path.n ? path : STR_LIT("."), CODING_PATH_MAX, &whole, e) < 0)
		return -1;
	copy = arena_dup(a, buf_str(&whole), e);
	s->root = (struct str){ copy, whole.n };
	if (!copy)
		return -1;
	s->said = s->root;
	if (str_is(s->root, CODING_ROOT))
		s->said = STR_LIT("./");
	else if (str_starts(s->root, CODING_ROOT "/"))
		s->said = (struct str){ copy + root.n + 1, s->root.n - root.n - 1 };
	return 0;
}

bool search_begin(struct search *s, struct call *c, struct str path, size_t max)
{
	struct err e = ERR_INIT;

	call_about(c)->path = path;
	s->w.call = c;
	s->max = max;
	if (search_root(s, path, &e) == 0)
		return true;
	call_fail(c, &e);
	return false;
}

struct str search_tidy(struct str path)
{
	return str_starts(path, "./") ? (struct str){ path.p + 2, path.n - 2 } : path;
}

/* A notice of a binary file stands before the next path. */
struct str search_path(struct str path)
{
	static const char notice[] = "\\0\" byte around offset ";
	const char *at, *end = path.p + path.n;

	while ((at = memmem(path.p, path.n, notice, sizeof(notice) - 1))) {
		for (at += sizeof(notice) - 1; at < end && *at >= '0' && *at <= '9'; at++)
			;
		if (end - at < 2 || at[0] != ')' || at[1] != '\n')
			break;
		path = (struct str){ at + 2, (size_t)(end - at - 2) };
	}
	return search_tidy(path);
}

int search_say(struct str path, struct buf *to, struct err *e)
{
	autobuf struct buf whole = BUF_INIT(0);

	return path_read(STR_LIT(CODING_ROOT), path, SEARCH_RECORD_MAX, &whole, e) < 0 ||
			       path_say(STR_LIT(CODING_ROOT), buf_str(&whole), to, e) < 0
		     ? -1
		     : 0;
}

#define F struct coding_found
static const struct field found_fields[] = {
	FIELD(F, text, .flags = FIELD_REQUIRED | FIELD_NUL_OK, .doc = "One line for each result."),
	FIELD(F, shown, .flags = FIELD_REQUIRED, .doc = "Number of results in text."),
	FIELD(F, more, .flags = FIELD_REQUIRED, .doc = "There are more results."),
	FIELD(F, total, .has = FIELD_HAS(F, has_total), .doc = "Number of all results."),
	FIELD(F, timed_out, .flags = FIELD_REQUIRED,
	      .doc = "The time was up before the search was complete."),
	FIELD(F, complaint, .doc = "What could not be searched."),
};
#undef F
const struct field_table coding_found_table = FIELD_TABLE(struct coding_found, found_fields);

void search_answer(struct search *s, struct buf *text, struct coding_found *r)
{
	struct call *c = s->w.call;
	struct err e = ERR_INIT;
	char *copy = arena_dup(call_arena(c), buf_str(text), &e);
	char *complaint = copy ? arena_dup(call_arena(c), buf_str(&s->complaint), &e) : NULL;

	if (!complaint) {
		search_fail(s, &e);
		return;
	}
	r->text = (struct str){ copy, text->n };
	r->timed_out = s->timed_out;
	if (s->complaint.n && !s->enough)
		r->complaint = (struct str){ complaint, s->complaint.n };
	search_free(s);
	coding_answer(&s->w, r);
}

/* ---- coding.glob --------------------------------------------------------------------------- */

struct glob_request {
	struct str workspace, pattern, path;
	uint32_t limit;
};
#define Q struct glob_request
static const struct field glob_fields[] = {
	FIELD(Q, pattern, .flags = FIELD_REQUIRED, .min = 1, .max = GLOB_PATTERN_MAX,
	      .doc = "Glob pattern, such as **/*.c or src/*.{h,c}; without a / it matches "
		     "names in any folder."),
	FIELD(Q, path, .flags = FIELD_PATH, .min = 1, .max = CODING_PATH_ARG_MAX,
	      .doc = "Folder to search. Default: the workspace."),
	FIELD(Q, limit, .min = 1, .max = GLOB_LIMIT_MAX, .def = DEFAULT_INT(GLOB_LIMIT),
	      .doc = "Maximum number of files to show."),
	CODING_WORKSPACE_ROW(Q),
};
#undef Q
static const struct field_table glob_table = FIELD_TABLE(struct glob_request, glob_fields);

/* The newest first; of one time by name. */
static bool glob_before(const struct search_hit *a, const struct search_hit *b)
{
	if (a->modified_ns != b->modified_ns)
		return a->modified_ns > b->modified_ns;
	return str_cmp(a->path, b->path) < 0;
}

/* Below the root of the search; a file that is the root is its own name. */
static struct str glob_relative(const struct search *s, struct str path)
{
	size_t n = s->said.n;

	if (str_is(s->said, "./") || path.n <= n || memcmp(path.p, s->said.p, n) != 0)
		return path;
	n += path.p[n] == '/';
	return (struct str){ path.p + n, path.n - n };
}

/* "SECONDS.NANOSECONDS PATH", or "- PATH" where stat can't tell. */
static bool glob_parse(struct str record, struct search_hit *ret)
{
	const char *space = memchr(record.p, ' ', record.n), *p = record.p;
	bool negative = p[0] == '-';

	if (!space)
		return false;
	for (p += negative; p < space && ret->modified_ns < INT64_MAX / 20; p++) {
		if (*p >= '0' && *p <= '9')
			ret->modified_ns = ret->modified_ns * 10 + (*p - '0');
	}
	if (negative)
		ret->modified_ns = -ret->modified_ns;
	ret->path =
		search_tidy((struct str){ space + 1, (size_t)(record.p + record.n - space - 1) });
	return true;
}

/* Keeps the newest of them, in order. Names are matched as they are shown, so that no secret in one
 * is found by guessing. */
static void glob_take(struct search *s, struct str record)
{
	struct search_hit hit = { .modified_ns = 0 };
	size_t low = 0, high = s->n;

	if (!glob_parse(record, &hit) ||
	    !glob_finds(&s->glob, call_redact(s->w.call, glob_relative(s, hit.path))))
		return;
	s->found++;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (glob_before(&hit, &s->hits[middle]))
			high = middle;
		else
			low = middle + 1;
	}
	if (low == s->max)
		return;
	if (!search_own(&hit)) {
		search_stop(s);
		return;
	}
	if (s->n == s->max)
		free((char *)s->hits[--s->n].path.p);
	memmove(s->hits + low + 1, s->hits + low, (s->n - low) * sizeof(hit));
	s->hits[low] = hit;
	s->n++;
}

static void glob_end(struct search *s, int exit_code)
{
	autobuf struct buf text = BUF_INIT(GLOB_LIMIT_MAX * (CODING_PATH_ARG_MAX + 1));
	struct coding_found r = { .shown = s->n,
				  .total = s->found,
				  .has_total = !s->enough && !s->timed_out,
				  .more = s->found > s->n };
	struct err e = ERR_INIT;

	if (exit_code == GLOB_NO_PATH) {
		err_set(&e, ERR_PATH_NOT_FOUND, "there is no %.*s", STR_CUT(s->said, 150));
		search_fail(s, &e);
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		if (search_say(s->hits[i].path, &text, &e) < 0 || buf_add(&text, "\n", 1, &e) < 0) {
			search_fail(s, &e);
			return;
		}
	}
	search_answer(s, &text, &r);
}

static void glob_entered(struct coding_work *w)
{
	/* Without GNU stat the order is that of names. */
	static const char script[] =
		"command -v rg >/dev/null || exit 127; [ -e \"$1\" ] || exit 66; "
		"rg --no-config --files --null --hidden --no-require-git --glob '!.git' -- \"$1\""
		" | "
		"if stat --printf= / 2>/dev/null; "
		"then xargs -0 -r stat --printf '%.9Y %n\\0' -- 2>/dev/null; "
		"else xargs -0 -r printf '- %s\\0'; fi";
	struct search *s = (struct search *)w;
	struct err e = ERR_INIT;
	const struct str argv[] = { STR_LIT("/bin/sh"), STR_LIT("-c"), str_of(script),
				    STR_LIT("sh"), s->said };

	s->take = glob_take;
	s->end = glob_end;
	if (search_ready(s, &e) < 0)
		search_fail(s, &e);
	else
		search_start(s, STR_LIT("rg --files"), argv, ARRAY_LEN(argv));
}

static void coding_glob_run(struct call *c, const void *request)
{
	const struct glob_request *q = request;
	struct err e = ERR_INIT;
	struct search *s = arena_alloc(call_arena(c), sizeof(*s), &e);

	if (!s || glob_init(&s->glob, q->pattern, &e) < 0)
		call_fail(c, &e);
	else if (search_begin(s, c, q->path, q->limit))
		coding_enter(&s->w, c, q->workspace, glob_entered);
}

const struct op coding_glob_op = {
	.action = "coding.glob",
	.doc = "Finds files of the workspace by their names, the newest first.",
	.effect = OP_READ,
	.request = &glob_table,
	.expand = coding_expand,
	.path = coding_spell_path,
	.result = &coding_found_table,
	.run = coding_glob_run,
};
