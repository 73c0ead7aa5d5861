/*
 * coding.search: symbols of the workspace by their names. An index of each place (store/symbols.h)
 * has what Universal Ctags finds in its files, or their words where the sandbox has none. Each
 * search lists the files first, and has those read that have changed: by programs in the sandbox,
 * a batch after the other, within the time of one search. What is not read by then is told, and the
 * next search goes on with it. The index has no secret that is not shown, so that a search tells of
 * none.
 *
 * All that is done with the index is done beside the loop, by one thread at a time: a search has
 * its turn.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "call/guard.h"
#include "coding/tags.h"
#include "coding/text.h"
#include "op/coding/coding.h"
#include "op/coding/search.h"
#include "store/symbols.h"

enum {
	BATCH_FILES = 200,
	BATCH_BYTES = 64 << 10, /* of their names: they stand on a command line */
	FILE_BYTES_MAX = 1 << 20, /* larger ones are not read */
	LIMIT = 20,
	LIMIT_MAX = 100,
	QUERY_MAX = 512,
	NO_CTAGS = 69, /* exit status of the script */
	TAG_BYTES = 2 * SEARCH_RECORD_MAX,
	LINES_MAX = 1000, /* of a file, as the program has them */
	WORD_LEAST = 3, /* letters and digits of a word */
	WORD_MOST = 64,
	TEXT_ROOM = 64, /* of a symbol's text, for the mark at its end */
};

/* The index of a sandbox, and of the calls that use it, one at a time. */
struct lookup_index {
	struct coding_note note; /* first: the two are cast */
	unsigned refs;
	struct symbols *symbols; /* NULL: to be made */
	bool words; /* the sandbox has no ctags */
};

struct lookup {
	struct search s; /* first: the two are cast */
	struct lookup_index *index;
	struct str batch[BATCH_FILES];
	size_t n_batch, batch_bytes;
	bool began; /* a batch was read */
	struct buf room; /* of a tag */
	struct buf text; /* with holes, and marks */
	/* For words: the lines of a file, which are searched for secrets together. */
	struct buf lines;
	uint64_t n_lines;
	struct str path; /* one of a batch */
	struct arena *arena; /* of the batches */
	struct err failed; /* the index is useless */
	int (*work)(struct lookup *k, struct err *e); /* beside the loop */
	bool over; /* nothing more is read: */
	struct buf shown; /* the answer */
	struct coding_symbols result;
};

struct lookup_request {
	struct str workspace, query;
	uint32_t limit;
};
#define Q struct lookup_request
static const struct field lookup_fields[] = {
	FIELD(Q, query, .flags = FIELD_REQUIRED, .min = 1, .max = QUERY_MAX,
	      .doc = "A name, its beginning, or words, such as parse config."),
	FIELD(Q, limit, .min = 1, .max = LIMIT_MAX, .def = DEFAULT_INT(LIMIT),
	      .doc = "Maximum number of symbols to show."),
	CODING_WORKSPACE_ROW(Q),
};
#undef Q
static const struct field_table lookup_table = FIELD_TABLE(struct lookup_request, lookup_fields);

#define F struct coding_symbols
static const struct field symbols_fields[] = {
	FIELD(F, text, .flags = FIELD_REQUIRED, .doc = "One line for each symbol."),
	FIELD(F, shown, .flags = FIELD_REQUIRED, .doc = "Number of symbols in text."),
	FIELD(F, total, .flags = FIELD_REQUIRED, .doc = "Number of all symbols found."),
	FIELD(F, words, .flags = FIELD_REQUIRED,
	      .doc = "The sandbox has no Universal Ctags, so plain words were searched."),
	FIELD(F, files, .flags = FIELD_REQUIRED, .doc = "Number of files known to the search."),
	FIELD(F, unread, .flags = FIELD_REQUIRED,
	      .doc = "Number of files that were not searched: not read in time, or too many."),
};
#undef F
static const struct field_table symbols_table = FIELD_TABLE(struct coding_symbols, symbols_fields);

/* ---- the index ----------------------------------------------------------------------------- */

static void index_unref(struct lookup_index *x)
{
	if (!x || --x->refs > 0)
		return;
	symbols_free(x->symbols);
	free(x);
}

static void index_on_place_end(struct coding_note *note)
{
	index_unref((struct lookup_index *)note);
}

/* That of the place, or a new one. NULL with *e. */
static struct lookup_index *index_of(struct coding_work *w, struct err *e)
{
	struct coding_note **note = coding_place_note(w);
	struct lookup_index *x = note ? (struct lookup_index *)*note : NULL;

	if (x) {
		x->refs++;
		return x;
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	x->note.free = index_on_place_end;
	x->refs = 1;
	if (note) {
		*note = &x->note;
		x->refs++;
	}
	return x;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void lookup_drop(struct search *s)
{
	struct lookup *k = (struct lookup *)s;

	buf_fini(&k->room);
	buf_fini(&k->text);
	buf_fini(&k->lines);
	buf_fini(&k->shown);
	arena_free(take_ptr(k->arena));
	index_unref(take_ptr(k->index));
}

/* The index can't be used any more: another is made by the next search. */
static void lookup_spoiled(struct lookup *k, const struct err *e)
{
	const struct err why = *e; /* which may be k's */

	symbols_free(take_ptr(k->index->symbols));
	search_fail(&k->s, &why);
}

static void lookup_answer(struct lookup *k)
{
	struct err e = ERR_INIT;
	char *copy = arena_dup(call_arena(k->s.w.call), buf_str(&k->shown), &e);

	if (!copy) {
		search_fail(&k->s, &e);
		return;
	}
	k->result.text = (struct str){ copy, k->shown.n };
	search_free(&k->s);
	coding_answer(&k->s.w, &k->result);
}

/* ---- beside the loop: what is found -------------------------------------------------------- */

static int lookup_show(void *data, const struct symbol *y, struct err *e)
{
	struct lookup *k = data;

	k->result.shown++;
	if (search_say(y->path, &k->shown, e) < 0 ||
	    buf_addf(&k->shown, e, ":%" PRIu64 "  %.*s ", y->line, STR_ARG(y->kind)) < 0 ||
	    text_clean(y->name, &k->shown, e) < 0 ||
	    (y->text.n &&
	     (buf_add(&k->shown, "  ", 2, e) < 0 || text_clean(y->text, &k->shown, e) < 0)))
		return -1;
	return buf_add(&k->shown, "\n", 1, e);
}

static int lookup_find(struct lookup *k, struct err *e)
{
	const struct lookup_request *q = call_request(k->s.w.call);
	struct symbols *s = k->index->symbols;
	struct symbols_count n = { .files = 0 };

	k->over = true;
	k->shown = BUF_INIT(4 * SEARCH_BYTES_MAX);
	k->result.words = k->index->words;
	if (symbols_find(s, q->query, q->limit, lookup_show, k, &k->result.total, e) < 0 ||
	    symbols_count(s, &n, e) < 0)
		return -1;
	k->result.files = n.files + n.left_out;
	k->result.unread = n.unread + n.left_out;
	return 0;
}

/* ---- beside the loop: what files have ------------------------------------------------------ */

static void lookup_add(struct lookup *k, const struct symbol *y)
{
	if (!k->failed.code && symbols_add(k->index->symbols, y, k->index->words, &k->failed) < 0)
		search_stop(&k->s);
}

static bool lookup_hides(const struct lookup *k, struct str s)
{
	struct err e;

	return marks_any(k->s.aside.redactor, s, &e) != 0;
}

/* The symbol without secrets. False: nothing is left of it. */
static bool tag_hide(struct lookup *k, struct symbol *y)
{
	const struct redact_part part = { .text = y->text };
	struct holes holes = { .n = 0 };
	size_t n;

	if (lookup_hides(k, y->path) || lookup_hides(k, y->name))
		return false;
	if (lookup_hides(k, y->about))
		y->about = STR_NONE;
	k->text.n = 0;
	if (holes_make(&holes, k->s.aside.redactor, &part, &k->text, &k->failed) < 0)
		return false;
	if (holes.n == 0)
		return true;
	n = k->text.n;
	if (!memmem(k->text.p, n, y->name.p, y->name.n) ||
	    !buf_reserve(&k->text, SYMBOLS_TEXT_MAX, &k->failed) ||
	    holes_show(&holes, (struct str){ k->text.p, n }, SYMBOLS_TEXT_MAX - TEXT_ROOM, &k->text,
		       &k->failed) < 0)
		return false;
	y->text = (struct str){ k->text.p + n, k->text.n - n };
	return true;
}

static bool is_word(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

/* The words of the lines of a file, of which the last was read. */
static void words_end(struct lookup *k)
{
	const struct redact_part part = { .text = buf_str(&k->lines) };
	struct holes holes = { .n = 0 };
	struct symbol y = { .path = k->path, .kind = STR_LIT("word"), .line = 1 };

	k->text.n = 0;
	if (k->lines.n > 0 && !lookup_hides(k, k->path) &&
	    holes_make(&holes, k->s.aside.redactor, &part, &k->text, &k->failed) < 0)
		search_stop(&k->s);
	for (size_t i = 0, n; i < k->text.n && !k->failed.code; i += n) {
		const char *p = k->text.p + i;

		y.line += *p == '\n';
		for (n = 0; n < WORD_MOST && i + n < k->text.n && is_word(p[n], n == 0); n++)
			;
		y.name = (struct str){ p, n };
		if (n >= WORD_LEAST)
			lookup_add(k, &y);
		n += n == 0;
	}
	k->lines.n = 0;
	k->n_lines = 0;
}

/* "PATH NUL LINE:TEXT". A line may be missing: it was too long. */
static void words_take(struct lookup *k, struct str record)
{
	const char *nul = memchr(record.p, '\0', record.n), *end = record.p + record.n;
	const char *colon = nul ? memchr(nul, ':', (size_t)(end - nul)) : NULL;
	uint64_t line = colon ? strtoull(nul + 1, NULL, 10) : 0;
	struct str path;

	if (!colon)
		return;
	path = search_path((struct str){ record.p, (size_t)(nul - record.p) });
	if (!str_eq(path, k->path)) {
		words_end(k);
		k->path = STR_NONE;
		for (size_t i = 0; i < k->n_batch; i++)
			k->path = str_eq(path, k->batch[i]) ? k->batch[i] : k->path;
	}
	for (; k->n_lines + 1 < line && k->n_lines < LINES_MAX; k->n_lines++) {
		if (buf_add(&k->lines, "\n", 1, &k->failed) < 0)
			return;
	}
	if (buf_add(&k->lines, colon + 1, (size_t)(end - colon - 1), &k->failed) < 0 ||
	    buf_add(&k->lines, "\n", 1, &k->failed) < 0)
		return;
	k->n_lines++;
}

/* A record of either program. */
static void lookup_take(struct search *s, struct str record)
{
	struct lookup *k = (struct lookup *)s;
	struct symbol y;
	struct tag tag;

	if (k->failed.code)
		return;
	if (k->index->words) {
		words_take(k, record);
	} else if (tag_read(record, &k->room, &tag)) {
		y = (struct symbol){ .path = search_tidy(tag.path),
				     .name = tag.name,
				     .kind = tag.kind,
				     .about = tag.scope.n ? tag.scope : tag.signature,
				     .text = tag.text,
				     .line = tag.line };
		if (tag_hide(k, &y))
			lookup_add(k, &y);
	}
	if (k->failed.code)
		search_stop(s);
}

static int batch_add(void *data, struct str path, struct err *e)
{
	struct lookup *k = data;
	char *copy;

	k->batch_bytes += path.n + 3;
	if (k->batch_bytes > BATCH_BYTES && k->n_batch > 0)
		return 0;
	copy = arena_dup(k->arena, path, e);
	if (!copy)
		return -1;
	k->batch[k->n_batch++] = (struct str){ copy, path.n };
	return 0;
}

/* The next batch; none: all was read, and what is wanted is found. */
static int lookup_next(struct lookup *k, struct err *e)
{
	struct symbols_count n = { .full = false };

	k->n_batch = k->batch_bytes = 0;
	if (symbols_unread(k->index->symbols, BATCH_FILES, batch_add, k, e) < 0 ||
	    symbols_count(k->index->symbols, &n, e) < 0)
		return -1;
	/* In a full index, files that have changed come first. */
	if (k->n_batch == 0 || (n.full && k->began))
		return lookup_find(k, e);
	for (size_t i = 0; i < k->n_batch; i++) {
		if (symbols_read_begin(k->index->symbols, k->batch[i], e) < 0)
			return -1;
	}
	return 0;
}

static int lookup_batch_work(struct lookup *k, struct err *e)
{
	if (k->index->words)
		words_end(k);
	k->path = STR_NONE;
	if (k->failed.code) {
		*e = k->failed;
		return -1;
	}
	if (k->s.exit_code == NO_CTAGS) {
		k->index->words = true;
		return lookup_next(k, e);
	}
	if (k->s.timed_out)
		return lookup_find(k, e);
	for (size_t i = 0; i < k->n_batch; i++) {
		if (symbols_read_end(k->index->symbols, k->batch[i], e) < 0)
			return -1;
	}
	return lookup_next(k, e);
}

static int lookup_list_work(struct lookup *k, struct err *e)
{
	return symbols_list_end(k->index->symbols, e) < 0 ? -1 : lookup_next(k, e);
}

/* ---- on the loop: programs ----------------------------------------------------------------- */

static struct lookup *lookup_of(struct aside_work *w)
{
	return (struct lookup *)(void *)((char *)w - offsetof(struct lookup, s.aside));
}

static void lookup_run(struct aside_work *w)
{
	struct lookup *k = lookup_of(w);

	if (k->work(k, &k->failed) == 0)
		k->failed = ERR_INIT;
}

static void lookup_batch_start(struct lookup *k);

static void lookup_then(struct aside_work *w)
{
	struct lookup *k = lookup_of(w);

	k->s.record.n = 0;
	if (k->failed.code)
		lookup_spoiled(k, &k->failed);
	else if (k->over)
		lookup_answer(k);
	else
		lookup_batch_start(k);
}

static void lookup_aside(struct lookup *k, int (*work)(struct lookup *k, struct err *e))
{
	struct err e;

	k->work = work;
	k->s.aside.run = lookup_run;
	k->s.aside.then = lookup_then;
	if (aside_work_start(&k->s.aside, call_loop(k->s.w.call), call_guard(k->s.w.call)->redactor,
			     SIZE_MAX, &e) < 0)
		lookup_spoiled(k, &e);
}

static void lookup_batch_end(struct search *s, int exit_code)
{
	lookup_aside((struct lookup *)s, lookup_batch_work);
}

/* A program, and behind its arguments the files. */
static void lookup_batch_start(struct lookup *k)
{
	/* No options of the workspace are read, and no link is followed. */
	static const char ctags[] =
		"ctags --version 2>/dev/null | grep -q Universal || exit 69; "
		"exec ctags --options=NONE --quiet --sort=no --output-format=u-ctags "
		"--excmd=pattern --pattern-length-limit=4096 --fields=KnSs --links=no "
		"--languages=-JSON -f - \"$@\" 2>/dev/null";
	static const char words[] =
		"exec rg --no-config --no-messages --color=never --null --with-filename "
		"--no-heading --line-number --max-count=1000 --regexp '' -- \"$@\"";
	struct arena *a = call_arena(k->s.w.call);
	struct str argv[4 + BATCH_FILES] = { STR_LIT("/bin/sh"), STR_LIT("-c"),
					     str_of(k->index->words ? words : ctags),
					     STR_LIT("sh") };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < k->n_batch; i++) {
		char *said = arena_printf(a, &e, "./%.*s", STR_ARG(k->batch[i]));

		if (!said) {
			lookup_spoiled(k, &e);
			return;
		}
		argv[4 + i] = (struct str){ said, k->batch[i].n + 2 };
	}
	k->began = true;
	k->s.form = k->index->words ? SEARCH_PATHS : SEARCH_LINES;
	k->s.take = lookup_take;
	k->s.end = lookup_batch_end;
	search_start(&k->s, k->index->words ? STR_LIT("rg") : STR_LIT("ctags"), argv,
		     4 + k->n_batch);
}

/* ---- the list of files --------------------------------------------------------------------- */

/* "SECONDS.NANOSECONDS SIZE PATH", or "- - PATH" where stat can't tell. */
static void list_take(struct search *s, struct str record)
{
	struct lookup *k = (struct lookup *)s;
	const char *end = record.p + record.n, *p = record.p;
	const char *space = memchr(p, ' ', record.n);
	const char *second = space ? memchr(space + 1, ' ', (size_t)(end - space - 1)) : NULL;
	int64_t stamp = 0;
	struct str path;
	uint64_t size;

	if (!second || k->failed.code)
		return;
	for (; p < space && stamp < INT64_MAX / 20; p++) {
		if (*p >= '0' && *p <= '9')
			stamp = stamp * 10 + (*p - '0');
	}
	size = strtoull(space + 1, NULL, 10);
	path = (struct str){ second + 1, (size_t)(end - second - 1) };
	if (str_starts(path, "./"))
		path = (struct str){ path.p + 2, path.n - 2 };
	if (size <= FILE_BYTES_MAX && path.n > 0 && path.n <= CODING_PATH_MAX &&
	    symbols_list_file(k->index->symbols, path, stamp, size, &k->failed) < 0)
		search_stop(s);
}

static void list_end(struct search *s, int exit_code)
{
	struct lookup *k = (struct lookup *)s;
	struct err e = k->failed;

	if (!e.code && s->timed_out)
		err_set(&e, ERR_TIMEOUT, "the files could not be listed in %d seconds",
			SEARCH_SECONDS);
	if (e.code)
		lookup_spoiled(k, &e);
	else
		lookup_aside(k, lookup_list_work);
}

static void lookup_list(struct coding_work *w)
{
	/* The time of the last change of a file or of its name, which no program sets. */
	static const char script[] =
		"command -v rg >/dev/null || exit 127; "
		"rg --no-config --files --null --hidden --no-require-git --glob '!.git' -- ./ | "
		"if stat --printf= / 2>/dev/null; "
		"then xargs -0 -r stat --printf '%.9Z %s %n\\0' -- 2>/dev/null; "
		"else xargs -0 -r printf -- '- - %s\\0'; fi";
	const struct str argv[] = { STR_LIT("/bin/sh"), STR_LIT("-c"), str_of(script) };
	struct lookup *k = (struct lookup *)w;
	struct err e = ERR_INIT;

	k->room = BUF_INIT(TAG_BYTES);
	k->text = BUF_INIT(8 * FILE_BYTES_MAX);
	k->lines = BUF_INIT(2 * FILE_BYTES_MAX);
	k->s.drop = lookup_drop;
	k->s.apart = true;
	k->arena = arena_new(call_arena(w->call)->max);
	if (!k->arena) {
		err_set(&e, ERR_LIMIT, "out of memory");
		search_fail(&k->s, &e);
		return;
	}
	if (search_ready(&k->s, &e) == 0)
		k->index = index_of(w, &e);
	if (!k->index) {
		search_fail(&k->s, &e);
		return;
	}
	if (!k->index->symbols)
		k->index->symbols = symbols_new(&e);
	if (!k->index->symbols || symbols_list_begin(k->index->symbols, &e) < 0) {
		lookup_spoiled(k, &e);
		return;
	}
	k->s.form = SEARCH_NULS;
	k->s.take = list_take;
	k->s.end = list_end;
	search_start(&k->s, STR_LIT("rg --files"), argv, ARRAY_LEN(argv));
}

/* ---- the operation ------------------------------------------------------------------------- */

/* One search of a place after the other. The name of the turn is no path. */
static void lookup_entered(struct coding_work *w)
{
	struct err e = ERR_INIT;
	char *turn = arena_printf(call_arena(w->call), &e, "search of %s", w->wait.id);

	if (turn)
		coding_wait_turn(w, str_of(turn), lookup_list);
	else
		coding_fail(w, &e);
}

static void coding_search_run(struct call *c, const void *request)
{
	const struct lookup_request *q = request;
	struct err e = ERR_INIT;
	struct lookup *k = arena_alloc(call_arena(c), sizeof(*k), &e);

	if (!k)
		call_fail(c, &e);
	else
		coding_enter(&k->s.w, c, q->workspace, lookup_entered);
}

const struct op coding_search_op = {
	.action = "coding.search",
	.doc = "Finds functions, types and other symbols of the workspace by name or words.",
	.effect = OP_READ,
	.request = &lookup_table,
	.result = &symbols_table,
	.run = coding_search_run,
};
