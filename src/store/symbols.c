#include "store/symbols.h"

#include <stdlib.h>

#include "base/buf.h"
#include "store/db.h"
#include "store/words.h"

enum {
	WORDS_MAX = 24, /* of a query, and of a name */
	QUERY_MAX = 16 << 10,
};

enum statement {
	FILE_SEEN,
	FILE_PUT,
	FILES_GONE,
	FILES_UNREAD,
	FILE_READ,
	FILE_ID,
	FILE_DROP,
	SYMBOLS_COUNT,
	SYMBOL_HAS,
	SYMBOLS_DROP,
	SYMBOL_PUT,
	WORDS_DROP,
	WORDS_PUT,
	FIND,
	FIND_COUNT,
	COUNT,
	STATEMENTS
};

/* A row of words has the number of its symbol. */
static const char *const migrations[] = {
	"CREATE TABLE files(id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, stamp INT NOT NULL,"
	"  size INT NOT NULL, round INT NOT NULL, unread INT NOT NULL);"
	"CREATE INDEX unread ON files(unread) WHERE unread;"
	"CREATE TABLE symbols(id INTEGER PRIMARY KEY, file INT NOT NULL, name BLOB NOT NULL,"
	"  kind TEXT, line INT NOT NULL, text BLOB);"
	"CREATE INDEX of_file ON symbols(file, name);"
	"CREATE VIRTUAL TABLE words USING fts5(name, parts, about,"
	"  tokenize=\"unicode61 remove_diacritics 0 tokenchars '_'\")",
};

static const char *const statements[STATEMENTS] = {
	[FILE_SEEN] = "UPDATE files SET round = ?4, unread = unread OR ?2 = 0 OR stamp <> ?2"
		      " OR size <> ?3, stamp = ?2, size = ?3 WHERE path = ?1 RETURNING id",
	[FILE_PUT] = "INSERT INTO files(path, stamp, size, round, unread) VALUES(?1, ?2, ?3, ?4, "
		     "1)",
	[FILES_GONE] = "SELECT path FROM files WHERE round <> ?1 LIMIT 1",
	[FILES_UNREAD] = "SELECT path FROM files WHERE unread ORDER BY id LIMIT ?1",
	[FILE_READ] = "UPDATE files SET unread = 0 WHERE path = ?1",
	[FILE_ID] = "SELECT id FROM files WHERE path = ?1",
	[FILE_DROP] = "DELETE FROM files WHERE path = ?1",
	[SYMBOLS_COUNT] = "SELECT count(*) FROM symbols WHERE file = ?1",
	[SYMBOL_HAS] = "SELECT 1 FROM symbols WHERE file = ?1 AND name = ?2",
	[SYMBOLS_DROP] = "DELETE FROM symbols WHERE file = ?1",
	[SYMBOL_PUT] = "INSERT INTO symbols(file, name, kind, line, text)"
		       " VALUES(?1, ?2, ?3, ?4, ?5) RETURNING id",
	[WORDS_DROP] = "DELETE FROM words WHERE rowid IN (SELECT id FROM symbols WHERE file = ?1)",
	[WORDS_PUT] = "INSERT INTO words(rowid, name, parts, about) VALUES(?1, ?2, ?3, ?4)",
	[FIND] = "SELECT f.path, s.name, s.kind, s.line, s.text FROM words"
		 " JOIN symbols s ON s.id = words.rowid JOIN files f ON f.id = s.file"
		 " WHERE words MATCH ?1"
		 " ORDER BY words.name = ?2 DESC, lower(words.name) = lower(?2) DESC,"
		 " bm25(words, 10.0, 5.0, 1.0), f.path, s.line LIMIT ?3",
	[FIND_COUNT] = "SELECT count(*) FROM words WHERE words MATCH ?1",
	[COUNT] = "SELECT count(*), coalesce(sum(unread), 0) FROM files",
};
static const struct db_schema schema = { migrations, ARRAY_LEN(migrations), statements,
					 STATEMENTS };

struct symbols {
	struct db *db;
	int64_t round; /* of the list */
	uint64_t files, left_out; /* in the last list */
	uint64_t n; /* symbols */
	bool full;
	/* The file that is being read. */
	int64_t file;
	uint64_t of_file;
};

struct symbols *symbols_new(struct err *e)
{
	AUTO(symbols_free) struct symbols *s = calloc(1, sizeof(*s));

	if (!s) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	s->db = db_open_scratch(&schema, e);
	return s->db ? take_ptr(s) : NULL;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	db_close(s->db);
	free(s);
}

/* FTS5 writes once for all of a transaction, which lasts until the next search. */
static int symbols_write(struct symbols *s, struct err *e)
{
	return db_is_open(s->db) ? 0 : db_begin(s->db, e);
}

/* The number in the first row, in *ret. 1; 0: there is no row. */
static int symbols_ask(struct symbols *s, size_t which, const struct db_value *values, size_t n,
		       int64_t *ret, struct err *e)
{
	autorows struct db_rows rows;
	int more;

	if (db_rows_values(s->db, which, values, n, &rows, e) < 0)
		return -1;
	more = db_next(&rows, e);
	if (more > 0)
		*ret = db_int(&rows, 0);
	return more;
}

#define ASK(s, which, ret, e, ...)                                                                 \
	symbols_ask(s, which, (const struct db_value[]){ __VA_ARGS__ },                            \
		    sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value),    \
		    ret, e)

/* ---- files --------------------------------------------------------------------------------- */

int symbols_list_begin(struct symbols *s, struct err *e)
{
	s->round++;
	s->files = s->left_out = 0;
	return symbols_write(s, e);
}

int symbols_list_file(struct symbols *s, struct str path, int64_t stamp, uint64_t size,
		      struct err *e)
{
	int64_t id;
	int known;

	if (s->files == SYMBOLS_FILES_MAX) {
		s->left_out++;
		return 0;
	}
	s->files++;
	known = ASK(s, FILE_SEEN, &id, e, DB_BLOB(path), DB_INT(stamp), DB_INT(size),
		    DB_INT(s->round));
	if (known != 0)
		return known < 0 ? -1 : 0;
	return db_run(s->db, FILE_PUT, e, DB_BLOB(path), DB_INT(stamp), DB_INT(size),
		      DB_INT(s->round));
}

/* A path that is gone, copied. 1; 0: there is none. */
static int symbols_gone(struct symbols *s, struct buf *to, struct err *e)
{
	autorows struct db_rows rows;
	struct str path;
	int more;

	if (db_rows(s->db, FILES_GONE, &rows, e, DB_INT(s->round)) < 0)
		return -1;
	more = db_next(&rows, e);
	if (more <= 0)
		return more;
	path = db_text(&rows, 0);
	to->n = 0;
	return buf_add(to, path.p, path.n, e) < 0 ? -1 : 1;
}

int symbols_list_end(struct symbols *s, struct err *e)
{
	autobuf struct buf path = BUF_INIT(QUERY_MAX);
	int more;

	while ((more = symbols_gone(s, &path, e)) > 0) {
		if (symbols_read_begin(s, buf_str(&path), e) < 0 ||
		    db_run(s->db, FILE_DROP, e, DB_BLOB(buf_str(&path))) < 0)
			return -1;
	}
	return more;
}

int symbols_unread(struct symbols *s, uint32_t n,
		   int (*each)(void *data, struct str path, struct err *e), void *data,
		   struct err *e)
{
	autorows struct db_rows rows;
	int more;

	if (db_rows(s->db, FILES_UNREAD, &rows, e, DB_INT(n)) < 0)
		return -1;
	while ((more = db_next(&rows, e)) > 0) {
		if (each(data, db_text(&rows, 0), e) < 0)
			return -1;
	}
	return more;
}

int symbols_read_begin(struct symbols *s, struct str path, struct err *e)
{
	int64_t n = 0;

	s->of_file = 0;
	s->file = 0;
	if (symbols_write(s, e) < 0 || ASK(s, FILE_ID, &s->file, e, DB_BLOB(path)) < 0 ||
	    ASK(s, SYMBOLS_COUNT, &n, e, DB_INT(s->file)) < 0)
		return -1;
	if (n == 0)
		return 0;
	s->n -= (uint64_t)n;
	s->full = false;
	return db_run(s->db, WORDS_DROP, e, DB_INT(s->file)) < 0
		     ? -1
		     : db_run(s->db, SYMBOLS_DROP, e, DB_INT(s->file));
}

int symbols_read_end(struct symbols *s, struct str path, struct err *e)
{
	return db_run(s->db, FILE_READ, e, DB_BLOB(path));
}

int symbols_count(struct symbols *s, struct symbols_count *ret, struct err *e)
{
	autorows struct db_rows rows;

	if (db_rows_values(s->db, COUNT, NULL, 0, &rows, e) < 0 || db_next(&rows, e) < 0)
		return -1;
	*ret = (struct symbols_count){ .files = (uint64_t)db_int(&rows, 0),
				       .unread = (uint64_t)db_int(&rows, 1),
				       .left_out = s->left_out,
				       .full = s->full };
	return 0;
}

/* ---- words --------------------------------------------------------------------------------- */

/* The next word at *at, with underscores: as the tokenizer has it. */
static struct str next_word(struct str s, size_t *at)
{
	size_t from;

	while (*at < s.n && !words_has(s.p[*at]) && s.p[*at] != '_')
		++*at;
	from = *at;
	while (*at < s.n && (words_has(s.p[*at]) || s.p[*at] == '_'))
		++*at;
	return (struct str){ s.p + from, *at - from };
}

/* ---- symbols ------------------------------------------------------------------------------- */

static struct str symbol_cut(struct str s)
{
	return (struct str){ s.p, s.n < SYMBOLS_TEXT_MAX ? s.n : SYMBOLS_TEXT_MAX };
}

int symbols_add(struct symbols *s, const struct symbol *y, bool once, struct err *e)
{
	autobuf struct buf name = BUF_INIT(QUERY_MAX), parts = BUF_INIT(QUERY_MAX),
			   about = BUF_INIT(QUERY_MAX);
	struct str cut = symbol_cut(y->name);
	int64_t id = 0;
	int has = 0;

	if (ASK(s, FILE_ID, &id, e, DB_BLOB(y->path)) < 0)
		return -1;
	if (id != s->file)
		s->of_file = 0;
	s->file = id;
	if (id == 0 || y->name.n == 0 || s->of_file == SYMBOLS_OF_FILE_MAX)
		return 0;
	if (s->n == SYMBOLS_MAX) {
		s->full = true;
		return 0;
	}
	if (once)
		has = ASK(s, SYMBOL_HAS, &id, e, DB_INT(s->file), DB_BLOB(cut));
	if (has != 0)
		return has < 0 ? -1 : 0;
	if (ASK(s, SYMBOL_PUT, &id, e, DB_INT(s->file), DB_BLOB(cut), DB_TEXT(symbol_cut(y->kind)),
		DB_INT(y->line), DB_BLOB(symbol_cut(y->text))) < 0 ||
	    words_add(&name, "", cut, "", e) < 0 ||
	    words_add_parts(&parts, cut, WORDS_MAX, e) < 0 ||
	    words_add(&about, "", symbol_cut(y->about), " ", e) < 0 ||
	    words_add(&about, "", y->path, "", e) < 0)
		return -1;
	s->n++;
	s->of_file++;
	return db_run(s->db, WORDS_PUT, e, DB_INT(id), DB_TEXT(buf_str(&name)),
		      DB_TEXT(buf_str(&parts)), DB_TEXT(buf_str(&about)));
}

/* ---- searching ----------------------------------------------------------------------------- */

/* A word of the query anywhere, or all of its parts in a name. */
static int add_term(struct buf *to, struct str word, struct err *e)
{
	struct str part;
	size_t at = 0;

	if (words_add(to, to->n ? " OR (\"" : "(\"", word, "\" *", e) < 0)
		return -1;
	part = words_part(word, &at);
	if (part.n == 0 || part.n == word.n)
		return buf_add(to, ")", 1, e);
	if (words_add(to, " OR parts : (\"", part, "\"", e) < 0)
		return -1;
	for (int i = 1; i < WORDS_MAX && (part = words_part(word, &at)).n > 0; i++) {
		if (words_add(to, " AND \"", part, "\"", e) < 0)
			return -1;
	}
	return buf_add(to, "))", 2, e);
}

static int add_query(struct buf *to, struct str query, struct err *e)
{
	size_t at = 0;

	for (int i = 0; i < WORDS_MAX; i++) {
		struct str word = next_word(query, &at);

		if (word.n == 0)
			return 0;
		if (add_term(to, word, e) < 0)
			return -1;
	}
	return 0;
}

int symbols_find(struct symbols *s, struct str query, uint32_t limit,
		 int (*each)(void *data, const struct symbol *y, struct err *e), void *data,
		 uint64_t *ret_total, struct err *e)
{
	autobuf struct buf match = BUF_INIT(QUERY_MAX);
	autorows struct db_rows rows = { .db = NULL };
	int64_t total = 0;
	int more;

	*ret_total = 0;
	if ((db_is_open(s->db) && db_commit(s->db, e) < 0) || add_query(&match, query, e) < 0)
		return -1;
	if (match.n == 0)
		return 0;
	if (ASK(s, FIND_COUNT, &total, e, DB_TEXT(buf_str(&match))) < 0 ||
	    db_rows(s->db, FIND, &rows, e, DB_TEXT(buf_str(&match)), DB_TEXT(query),
		    DB_INT(limit)) < 0)
		return -1;
	*ret_total = (uint64_t)total;
	while ((more = db_next(&rows, e)) > 0) {
		const struct symbol y = { .path = db_text(&rows, 0),
					  .name = db_text(&rows, 1),
					  .kind = db_text(&rows, 2),
					  .line = (uint64_t)db_int(&rows, 3),
					  .text = db_text(&rows, 4) };

		if (each(data, &y, e) < 0)
			return -1;
	}
	return more;
}
