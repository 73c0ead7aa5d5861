#pragma once
/* What the files of this folder share. */
#include <stdint.h>

#include "guard/redact/redact.h"

enum {
	/* A pattern decides with this many bytes from where its match begins. */
	HOLD_MAX = 4096,
	/* Bytes before a match that may decide about it. */
	LOOK_BACK = 640,
};

/* How a match that is longer than what was looked at goes on. */
enum span_more { SPAN_ENDS, SPAN_TOKEN, SPAN_QUOTED, SPAN_PEM };

struct span {
	size_t at, n;
	const char *kind;
	enum span_more more;
	char quote; /* of SPAN_QUOTED */
	unsigned rank; /* of two that begin and end alike the lower is shown */
};

/*
 * A text may make a judge look at the same bytes for each of its many matches. So what depends on a
 * stretch of any length is asked as "where is the next byte of this sort?", and the answer is
 * remembered: in from..until there is none. Matches come in the order of their ends, so each sort
 * is looked for once in the whole text. All else that a judge looks at is bounded by a constant.
 */
struct sweep {
	size_t from, until;
};

enum sort {
	SORT_DIGIT,
	SORT_UPPER,
	SORT_LOWER,
	SORT_SPECIAL, /* none of a name */
	SORT_NO_NAME,
	SORT_NO_PATH,
	SORT_NO_VARIABLE,
	SORT_CONTROL,
	SORT_NO_TEXT,
	SORT_AT,
	SORT_OPEN, /* ( */
	SORT_SQUARE, /* [ */
	SORT_DOT,
	SORT_SPACE,
	SORT_SCHEME, /* :// */
	SORTS_OF_BYTES, /* a byte tells; those behind need a look at what follows */
	SORT_TWO_UPPER = SORTS_OF_BYTES,
	SORT_PART, /* of a value that is no secret */
	SORT_NOUN, /* as in a name */
	SORT_TEMPLATE, /* of a program: a format, or an expression */
	SORT_ENDS, /* a value without quotes */
	SORT_CLOSES_SQUARE,
	SORT_CLOSES_CURLY,
	SORT_LESS, /* < */
	SORT_NAME_ENDS,
	SORT_LINE_ENDS,
	SORTS,
};

enum { ROWS_MAX = 192 }; /* of the table: each has a set of characters */

/* A search in one window. */
struct finder {
	const char *p;
	size_t n;
	bool final; /* nothing follows the window */
	bool whole; /* it is all of a text, and no stream */
	bool values_only, quotes;
	/* Where the first match begins that needs more bytes to be decided; n: there is none.
	 * firm: the same of values only. */
	size_t open, firm;
	struct span *spans;
	size_t n_spans, cap;
	size_t name; /* separator of the last name that was judged */
	/* The program that was named last before `at`, and where; NULL: none on its line. */
	struct {
		size_t at, begin;
		const struct tool *tool;
	} line;
	/* The sorts of bytes at the beginning of the part that was asked about last. */
	struct {
		size_t at, end;
		unsigned sorts;
	} part;
	/* The last look for what is in an armour: where it began and stopped, and the characters of
	 * base64 before that. */
	struct body_look {
		size_t from, until, run;
	} body;
	struct sweep sweeps[SORTS], rows[ROWS_MAX];
	unsigned rank; /* of what is found now: values first, then the table's rows in order */
	bool failed; /* out of memory */
};
void finder_add(struct finder *f, struct span s);
/* Whether at..end lies in the last match, so that it would not be added. */
bool finder_has(const struct finder *f, size_t at, size_t end);

static inline void finder_open(struct finder *f, size_t at)
{
	f->open = at < f->open ? at : f->open;
}

/* ---- values ---- */

struct value {
	struct value *next;
	unsigned refs;
	struct secret *bytes;
	struct spelled *spelled; /* NULL: not yet */
	char name[REDACT_KIND_MAX + 1];
};
void value_unref(struct value *v);

/* What is built of a list of values does not change, so other threads may search with it. */
struct values;
struct values *values_build(struct value *first, struct err *e) MUST_USE;
struct values *values_ref(struct values *v); /* NULL-safe */
void values_free(struct values *v); /* a reference; NULL-safe */
AUTO_DEFINE(values_free, struct values)
void values_find(const struct values *v, struct finder *f);

/* ---- patterns ---- */

struct patterns;
struct hs_scratch; /* of one thread */
/* Loads nothing, but for extra patterns. */
struct patterns *patterns_new(const struct redact_options *o, struct err *e) MUST_USE;
/* For another thread: loads them, and makes scratch for that thread. */
struct patterns *patterns_ref(struct patterns *p, struct hs_scratch **ret, struct err *e) MUST_USE;
void patterns_free(struct patterns *p); /* a reference; NULL-safe */
void scratch_free(struct hs_scratch *s); /* NULL-safe */
AUTO_DEFINE(patterns_free, struct patterns)
/* scratch: NULL on the thread that made them. */
int patterns_find(struct patterns *p, struct hs_scratch *scratch, struct finder *f,
		  struct err *e) MUST_USE;

/* What a row of the table decides about a match of its expression, which ends at end. */
struct pattern;
typedef void (*judge_fn)(struct finder *f, const struct pattern *p, size_t end);

/* A row: what Vectorscan looks for, and what then decides. */
struct pattern {
	const char *kind;
	const char *regex;
	judge_fn judge;
	/* For judge_token(): how many bytes its expression matches, which characters go on, how
	 * long the whole is, and what must be among the characters behind the first `prefix`. */
	unsigned width, set, min, max, needs, prefix;
	bool any_case;
};
extern const struct pattern pattern_table[];
extern const size_t pattern_count;

/* The table, compiled when Holt was built. */
extern const char pattern_database[];
extern const size_t pattern_database_size;
struct hs_database;
int patterns_compile(struct hs_database **ret, struct err *e) MUST_USE;

enum {
	IS_UPPER = 1, /* A-Z */
	IS_LOWER = 2,
	IS_DIGIT = 4,
	IS_HEX = 8, /* 0-9a-f */
	IS_UNDER = 16,
	IS_DASH = 32,
	IS_DOT = 64,
	IS_BASE64 = 128, /* + / = */
	IS_ESCAPE = 256, /* % */
	IS_END = 512, /* of a value without quotes */
	IS_CONTROL = 1024, /* but for a tab */
	IS_CLOSER = 2048, /* between a name and its separator */
	IS_SIGN = 4096, /* for what is not shown */
	ALNUM = IS_UPPER | IS_LOWER | IS_DIGIT,
	WORD = ALNUM | IS_UNDER,
	URL64 = WORD | IS_DASH,
	/* for needs */
	MIXED = IS_UPPER | IS_LOWER | IS_DIGIT,
};
extern const uint16_t char_classes[256];
static inline unsigned char_class(char c)
{
	return char_classes[(unsigned char)c];
}

void judge_token(struct finder *f, const struct pattern *p, size_t end);
void judge_after(struct finder *f, const struct pattern *p, size_t end);
void judge_jwt(struct finder *f, const struct pattern *p, size_t end);
void judge_url(struct finder *f, const struct pattern *p, size_t end);
void judge_pem(struct finder *f, const struct pattern *p, size_t end);
void judge_pem64(struct finder *f, const struct pattern *p, size_t end);
void judge_putty(struct finder *f, const struct pattern *p, size_t end);
void judge_hash(struct finder *f, const struct pattern *p, size_t end);
void judge_option(struct finder *f, const struct pattern *p, size_t end);
void judge_pgpass(struct finder *f, const struct pattern *p, size_t end);
void judge_name(struct finder *f, const struct pattern *p, size_t end);
void judge_identified(struct finder *f, const struct pattern *p, size_t end);
void judge_flag(struct finder *f, const struct pattern *p, size_t end);
void judge_user(struct finder *f, const struct pattern *p, size_t end);

/* Where the next byte of a sort stands in at..end; end: nowhere. */
size_t sweep_to(struct finder *f, enum sort sort, size_t at, size_t end);
/* The same for a byte that is not in the row's set. */
size_t sweep_row(struct finder *f, const struct pattern *p, size_t at, size_t end);
/* Whether a part of the window has a byte of the sort. */
bool str_has_sort(struct finder *f, struct str part, enum sort sort);
/* A line end, also as an escape. */
static inline bool is_line_end(const struct finder *f, size_t i)
{
	return f->p[i] == '\n' || (f->p[i] == '\\' && i + 1 < f->n && f->p[i + 1] == 'n');
}
/* Whether two texts have nouns (SORT_NOUN) of the same meaning. */
bool shares_noun(struct str a, struct str b);

/* A byte of what is no text, or of UTF-8 that is none. */
bool is_binary(const char *p, size_t n);
/* Whether a value, a part of the window, can't be meant as text where it stands. */
bool is_chance(struct finder *f, struct str value);

/* Whether a place is inside of an exact mark, which itself looks like a name with a value. */
bool is_in_mark(struct str text, size_t at);

bool is_hex_any_case(char c);
/* Whether a part of the window stands where a secret would, and is none: a mark for one, a
 * variable, an example. key: what it is assigned to, or STR_NONE. */
bool is_placeholder(struct finder *f, struct str value, struct str key);
/* One character again and again, a run of the alphabet, or signs for what is not shown. */
bool is_filler(struct str value);
/* Whether a value has directives of printf, and is no password with a %: that has no space, and
 * beside them small letters, capitals, and digits or two capitals in a row. */
bool is_format(struct str value);
bool str_is_any_case(struct str s, const char *word);

/* What words mean in a name, and as a value. */
enum {
	WORD_SURE = 1, /* the name of a secret */
	WORD_PWD = 2, /* these are judged with the words around them */
	WORD_PW = 4,
	WORD_PASS = 8,
	WORD_SECRET = 16,
	WORD_TOKEN = 32,
	WORD_KEY = 64,
	WORD_AUTH = 128,
	WORD_CREDENTIAL = 256,
	WORD_OTHER = 512, /* behind a noun it makes it something else */
	WORD_ASKS = 1024, /* likewise, as the first */
	WORD_NO_TOKEN = 2048, /* before "token": one of pages, of texts, of threads */
	WORD_SURE_KEY = 4096, /* before "key" */
	WORD_MAYBE_KEY = 8192,
	WORD_NO_PASS = 16384, /* ends in "pass", and is no password */
	WORD_PLAIN = 32768, /* a value of documentation, a type, a state */
	WORD_MAX = 16, /* bytes with NUL */
};
struct word {
	char text[WORD_MAX];
	unsigned is;
};
extern const struct word word_table[]; /* sorted */
extern const size_t word_count;
/* The bits of a word in any case; 0: it is not in the table. */
unsigned word_is(struct str w);

/* Where the header of a block in ASCII armour may be cut by the window's end. */
void hold_armour(struct finder *f);

/* Where a block in ASCII armour goes on behind its header. */
struct armour {
	size_t n; /* bytes so far */
	unsigned run; /* characters of base64 in a row, the last that there was */
	unsigned dashes; /* of the line that ends it, so far */
	bool gap; /* the last character was no base64 */
	char last;
};
/* How many of n bytes belong to it. *ret_done: it ends there. */
size_t armour_eat(struct armour *a, const char *p, size_t n, bool *ret_done);
