#include "store/tools.h"

#include <stdlib.h>
#include <strings.h>

#include "base/buf.h"
#include "store/db.h"
#include "store/words.h"

enum {
	WORDS_MAX = 16, /* of a query */
	PARTS_MAX = 64, /* of a name and a title */
	GROUP_MAX = 8, /* words that mean the same */
	TERM_MAX = 4 * TOOLS_TEXT_MAX,
	INDEXED_MAX = 4 * TOOLS_TEXT_MAX, /* bytes, with the parts of names */
	POINTS = 1 << 20, /* of a score of 1 */
	LIKE = 70, /* percent of the score of a word, for one that means the same */
};

enum statement { WORDS_PUT, SHOWN_PUT, SCORES, CALLED, SHOWN, STATEMENTS };

/* A row of words has the number of what is shown of it. */
static const char *const migrations[] = {
	"CREATE VIRTUAL TABLE words USING fts5(name, module, arguments, description, content='',"
	"  tokenize='porter unicode61');"
	"CREATE TABLE shown(id INTEGER PRIMARY KEY, module TEXT, tool TEXT COLLATE NOCASE,"
	"  function TEXT COLLATE NOCASE, text TEXT);"
	"CREATE INDEX of_tool ON shown(tool); CREATE INDEX of_function ON shown(function)",
};

static const char *const statements[STATEMENTS] = {
	[WORDS_PUT] = "INSERT INTO words(rowid, name, module, arguments, description)"
		      " VALUES(?1, ?2, ?3, ?4, ?5)",
	[SHOWN_PUT] = "INSERT INTO shown VALUES(?1, ?2, ?3, ?4, ?5)",
	[SCORES] = "SELECT rowid, CAST(-bm25(words, 5.0, 3.0, 1.0, 2.0) * ?2 AS INT) FROM words"
		   " WHERE words MATCH ?1",
	[CALLED] = "SELECT id FROM shown WHERE tool = ?1 OR function = ?1",
	[SHOWN] = "SELECT module, tool, function, text FROM shown WHERE id = ?1",
};
static const struct db_schema schema = { migrations, ARRAY_LEN(migrations), statements,
					 STATEMENTS };

/* Words that say nothing of what is looked for. Sorted. */
static const char *const stop_words[] = {
	"a",	     "about", "all",   "an",	"and",	"any",	 "are",	  "as",	    "at",    "be",
	"by",	     "can",   "could", "do",	"does", "for",	 "from",  "has",    "have",  "how",
	"i",	     "in",    "into",  "is",	"it",	"its",	 "let",	  "me",	    "my",    "need",
	"new",	     "of",    "on",    "one",	"or",	"our",	 "out",	  "please", "so",    "some",
	"something", "that",  "the",   "their", "them", "there", "these", "they",   "this",  "to",
	"up",	     "us",    "want",  "was",	"we",	"what",	 "when",  "where",  "which", "who",
	"will",	     "with",  "would", "you",	"your",
};

/* Names of tools have one of several words for the same. A line is a group. */
static const char *const groups[] = {
	"add create insert make open post",
	"delete drop erase remove",
	"change edit modify patch set update",
	"all list show view",
	"fetch get read retrieve show view",
	"find look lookup query search",
	"evaluate execute launch run start",
	"cancel end kill stop terminate",
	"move rename",
	"clone copy duplicate",
	"directory folder",
	"image photo picture screenshot",
	"internet online web website",
	"add plus sum total",
	"check lint test validate verify",
	"reset restore revert undo",
	"member people person user",
	"compare diff difference",
	"post send",
	"docs documentation",
	"save stash store",
	"calculate integer math number",
};

struct tools {
	struct db *db;
	size_t n;
};

struct tools *tools_new(struct err *e)
{
	AUTO(tools_free) struct tools *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	t->db = db_open_scratch(&schema, e);
	return t->db ? take_ptr(t) : NULL;
}

void tools_free(struct tools *t)
{
	if (!t)
		return;
	db_close(t->db);
	free(t);
}

size_t tools_count(const struct tools *t)
{
	return t->n;
}

static struct str tools_cut(struct str s)
{
	return (struct str){ s.p, s.n < TOOLS_TEXT_MAX ? s.n : TOOLS_TEXT_MAX };
}

static int tools_text(struct buf *to, struct str s, struct err *e)
{
	return words_add(to, "", tools_cut(s), " ", e);
}

/* Names by their parts: createIssue is found by "issue". */
static int tools_name(struct buf *to, struct str s, struct err *e)
{
	return words_add_parts(to, tools_cut(s), PARTS_MAX, e);
}

int tools_add(struct tools *t, const struct tools_entry *x, struct err *e)
{
	autobuf struct buf name = BUF_INIT(INDEXED_MAX), module = BUF_INIT(INDEXED_MAX),
			   arguments = BUF_INIT(INDEXED_MAX), about = BUF_INIT(INDEXED_MAX);

	/* FTS5 writes once for all of a transaction, which lasts until the first search */
	if (!db_is_open(t->db) && db_begin(t->db, e) < 0)
		return -1;
	if (tools_name(&name, x->name, e) < 0 || tools_text(&name, x->title, e) < 0 ||
	    tools_name(&module, x->module, e) < 0 || tools_text(&arguments, x->arguments, e) < 0 ||
	    tools_text(&about, x->description, e) < 0)
		return -1;
	t->n++;
	return db_run(t->db, WORDS_PUT, e, DB_INT(t->n), DB_TEXT(buf_str(&name)),
		      DB_TEXT(buf_str(&module)), DB_TEXT(buf_str(&arguments)),
		      DB_TEXT(buf_str(&about))) < 0
		     ? -1
		     : db_run(t->db, SHOWN_PUT, e, DB_INT(t->n), DB_TEXT(x->module),
			      DB_TEXT(x->tool), DB_TEXT(x->function), DB_TEXT(x->shown));
}

/* ---- searching ----------------------------------------------------------------------------- */

static int stop_order(const void *word, const void *row)
{
	const struct str *w = word;
	const char *stop = *(const char *const *)row;
	int differs = strncasecmp(w->p, stop, w->n);

	return differs ? differs : -(stop[w->n] != '\0');
}

static bool is_stop_word(struct str word)
{
	return bsearch(&word, stop_words, ARRAY_LEN(stop_words), sizeof(*stop_words), stop_order);
}

/* The next word at *at: what FTS5 takes for one. */
static struct str query_word(struct str s, size_t *at)
{
	size_t from;

	while (*at < s.n && !words_has(s.p[*at]))
		++*at;
	for (from = *at; *at < s.n && words_has(s.p[*at]); ++*at)
		;
	return (struct str){ s.p + from, *at - from };
}

/* Only words in quotes, so nothing in them is syntax. */
static int query_quote(struct buf *to, struct str word, const char *end, struct err *e)
{
	to->n = 0;
	return words_add(to, "\"", word, end, e);
}

/* What a search has found so far, by the number of the tool. */
struct hit {
	size_t id;
	bool called; /* it is called as the query says: the first, whatever else has its words */
	uint64_t score; /* of the words of before */
	uint64_t best; /* of the word that is looked at */
	unsigned words; /* that it has */
};

struct search {
	struct tools *t;
	struct hit *hits; /* n + 1 */
	unsigned words;
	struct buf term;
};

/* The best of the ways to say a word counts. */
static int search_term(struct search *s, int percent, struct err *e)
{
	autorows struct db_rows rows = { .db = NULL };
	int more;

	if (db_rows(s->t->db, SCORES, &rows, e, DB_TEXT(buf_str(&s->term)),
		    DB_INT(POINTS / 100 * percent)) < 0)
		return -1;
	while ((more = db_next(&rows, e)) > 0) {
		struct hit *h = &s->hits[db_int(&rows, 0)];
		uint64_t score = (uint64_t)db_int(&rows, 1);

		if (score >= h->best)
			h->best = score + 1;
	}
	return more;
}

/* Whether a group has the word; the others of it are searched. */
static int search_group(struct search *s, const char *group, struct str word, struct err *e)
{
	struct str all = str_of(group), of[GROUP_MAX];
	bool has = false;
	size_t at = 0, n = 0;

	while (n < GROUP_MAX && (of[n] = query_word(all, &at)).n > 0) {
		has |= of[n].n == word.n && strncasecmp(of[n].p, word.p, word.n) == 0;
		n++;
	}
	for (size_t i = 0; has && i < n; i++) {
		if (query_quote(&s->term, of[i], "\"", e) < 0 || search_term(s, LIKE, e) < 0)
			return -1;
	}
	return 0;
}

/* begins: words that begin so, and only those. */
static int search_word(struct search *s, struct str word, bool begins, struct err *e)
{
	size_t at = 0;

	for (size_t i = 1; i <= s->t->n; i++)
		s->hits[i].best = 0;
	if (query_quote(&s->term, word, begins ? "\" *" : "\"", e) < 0 ||
	    search_term(s, 100, e) < 0)
		return -1;
	if (!begins && words_part(word, &at).n < word.n) {
		s->term.n = 0;
		if (buf_add(&s->term, "\"", 1, e) < 0 ||
		    words_add_parts(&s->term, word, PARTS_MAX, e) < 0 ||
		    buf_add(&s->term, "\"", 1, e) < 0 || search_term(s, 100, e) < 0)
			return -1;
	}
	for (size_t i = 0; !begins && i < ARRAY_LEN(groups); i++) {
		if (search_group(s, groups[i], word, e) < 0)
			return -1;
	}
	for (size_t i = 1; i <= s->t->n; i++) {
		s->hits[i].score += s->hits[i].best;
		s->hits[i].words += s->hits[i].best > 0;
	}
	s->words++;
	return 0;
}

static int search_words(struct search *s, struct str query, bool all, bool begins, struct err *e)
{
	struct str word;
	size_t at = 0;

	s->words = 0;
	while (s->words < WORDS_MAX && (word = query_word(query, &at)).n > 0) {
		if ((all || !is_stop_word(word)) && search_word(s, word, begins, e) < 0)
			return -1;
	}
	return 0;
}

static int search_called(struct search *s, struct str query, struct err *e)
{
	autorows struct db_rows rows = { .db = NULL };
	int more = db_rows(s->t->db, CALLED, &rows, e, DB_TEXT(query));

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		struct hit *h = &s->hits[db_int(&rows, 0)];

		h->called = true;
		h->words += h->words == 0;
	}
	return more;
}

static int hit_order(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;
	uint64_t of_x = x->score * x->words, of_y = y->score * y->words;

	return x->called != y->called ? y->called - x->called
	     : of_x != of_y	      ? (of_x < of_y) - (of_x > of_y)
				      : (x->id > y->id) - (x->id < y->id);
}

/* Leaves what was found in front, the best first, and gives how many. */
static size_t search_sort(struct search *s)
{
	size_t n = 0;

	for (size_t i = 1; i <= s->t->n; i++) {
		if (s->hits[i].words > 0) {
			s->hits[n] = s->hits[i];
			s->hits[n++].id = i;
		}
	}
	qsort(s->hits, n, sizeof(*s->hits), hit_order);
	return n;
}

/* The words, else the stop words, where there are no others, else words that only begin so. */
static int search_run(struct search *s, struct str query, size_t *ret, struct err *e)
{
	static const struct {
		bool all, begins;
	} tries[] = { { false, false }, { true, false }, { false, true } };

	*ret = 0;
	for (size_t i = 0; i < ARRAY_LEN(tries) && *ret == 0; i++) {
		if (tries[i].all && s->words > 0)
			continue;
		memset(s->hits, 0, (s->t->n + 1) * sizeof(*s->hits));
		if (search_words(s, query, tries[i].all, tries[i].begins, e) < 0 ||
		    search_called(s, query, e) < 0)
			return -1;
		*ret = search_sort(s);
	}
	return 0;
}

static int tools_show(struct tools *t, size_t id,
		      int (*each)(void *data, const struct tools_entry *x, struct err *e),
		      void *data, struct err *e)
{
	autorows struct db_rows rows = { .db = NULL };
	struct tools_entry x;

	if (db_rows(t->db, SHOWN, &rows, e, DB_INT(id)) < 0 || db_next(&rows, e) < 0)
		return -1;
	x = (struct tools_entry){ .module = db_text(&rows, 0),
				  .tool = db_text(&rows, 1),
				  .function = db_text(&rows, 2),
				  .shown = db_text(&rows, 3) };
	return each(data, &x, e);
}

int tools_find(struct tools *t, struct str query, uint32_t limit,
	       int (*each)(void *data, const struct tools_entry *x, struct err *e), void *data,
	       uint64_t *ret_total, struct err *e)
{
	autofree struct hit *hits = calloc(t->n + 1, sizeof(*hits));
	autobuf struct buf text = BUF_INIT(TERM_MAX);
	struct search s = { .t = t, .hits = hits, .term = BUF_INIT(TERM_MAX) };
	size_t n = 0;
	int rc = hits ? 0 : err_set(e, ERR_LIMIT, "out of memory");

	if (rc == 0 && db_is_open(t->db))
		rc = db_commit(t->db, e);
	if (rc == 0)
		rc = words_add(&text, "", tools_cut(query), "", e);
	if (rc == 0)
		rc = search_run(&s, buf_str(&text), &n, e);
	buf_fini(&s.term);
	for (size_t i = 0; rc == 0 && i < n && i < limit; i++)
		rc = tools_show(t, hits[i].id, each, data, e);
	*ret_total = n;
	return rc;
}
