/*
 * Values: each is looked for in the encodings in which programs print it. All spellings are found
 * in one pass by their first eight bytes. Of these, four stand at a multiple of five wherever the
 * spelling begins: so a set of hashes is asked for each fifth place, and only where it knows the
 * four bytes, a hash table for what may begin there. Neither has bytes of values; the spellings
 * stand in locked memory.
 */
#include <stdlib.h>

#include "base/base64.h"
#include "base/secret.h"
#include "guard/redact/internal.h"

enum {
	HEAD = 8, /* bytes by which a spelling is found */
	BLOCK = 4,
	STEP = HEAD - BLOCK + 1,
	/* From this length on, base64 and hex are looked for across line ends. */
	WRAP_MIN = 3 * HEAD,
	FULL_LINE = 60, /* characters: base64 and openssl make lines of 76 and of 64 */
	KNOWN_BITS = 18, /* of a hash: the set fits the fastest cache */
};
#define SPELLINGS_MAX ((size_t)32 << 20) /* bytes */

struct spelling {
	union {
		size_t at; /* in spelled.bytes, while that is made */
		const char *p;
	};
	uint32_t n;
	uint32_t next; /* of the same bucket, 0: none; else index + 1 */
	uint16_t head; /* where the eight bytes stand by which it is found: 0, or HEAD */
	bool wraps;
	const char *name;
};

/* The spellings of one value. They are many times as long as it, so they are made once. */
struct spelled {
	struct secret *bytes;
	size_t size; /* of bytes */
	struct spelling *list;
	size_t n, cap;
};

struct values {
	unsigned refs;
	struct value **of; /* that have the spellings; references */
	size_t n_of;
	struct spelling *list;
	size_t n;
	uint32_t *buckets;
	size_t mask;
	uint64_t *heads; /* as numbers, sorted */
	bool wraps; /* any of them */
	uint8_t known[(1 << KNOWN_BITS) / 8]; /* a bit for each hash of four bytes of a head */
};

/* ---- spellings ------------------------------------------------------------------------------- */

/* The table that is being built. */
struct speller {
	struct spelled *v;
	struct buf bytes;
	const char *name;
	size_t first; /* spelling that may be alike */
	struct err *e;
};

static int speller_add(struct speller *s, size_t at, bool wraps)
{
	struct spelled *v = s->v;
	size_t n = s->bytes.n - at;

	if (n < HEAD) {
		s->bytes.n = at;
		return 0;
	}
	for (size_t i = s->first; i < v->n; i++) {
		if (v->list[i].n == n && !memcmp(s->bytes.p + v->list[i].at, s->bytes.p + at, n)) {
			s->bytes.n = at;
			return 0;
		}
	}
	if (v->n + 2 > v->cap) {
		size_t cap = v->cap ? 2 * v->cap : 64;
		struct spelling *more = realloc(v->list, cap * sizeof(*more));

		if (!more)
			return err_set(s->e, ERR_LIMIT, "out of memory");
		v->list = more;
		v->cap = cap;
	}
	wraps = wraps && n >= WRAP_MIN;
	v->list[v->n] =
		(struct spelling){ .at = at, .n = (uint32_t)n, .wraps = wraps, .name = s->name };
	v->n++;
	if (wraps) {
		v->list[v->n] = v->list[v->n - 1];
		v->list[v->n++].head = HEAD;
	}
	return 0;
}

static int speller_plain(struct speller *s, struct str value)
{
	size_t at = s->bytes.n;

	return buf_add(&s->bytes, value.p, value.n, s->e) < 0 ? -1 : speller_add(s, at, false);
}

static int speller_hex(struct speller *s, struct str value, const char *digits)
{
	size_t at = s->bytes.n;
	char *to = buf_reserve(&s->bytes, 2 * value.n, s->e);

	if (!to)
		return -1;
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		to[2 * i] = digits[c >> 4];
		to[2 * i + 1] = digits[c & 15];
	}
	buf_advance(&s->bytes, 2 * value.n);
	return speller_add(s, at, true);
}

/* Behind 0, 1 or 2 other bytes: without the characters that hold bits of others. */
static int speller_base64(struct speller *s, struct str value, size_t behind,
			  int (*encode)(struct buf *, struct str, struct err *))
{
	autowipe struct buf padded = BUF_INIT(value.n + 2), text = BUF_INIT(2 * value.n + 8);
	size_t first = (8 * behind + 5) / 6, end = 8 * (behind + value.n) / 6;
	size_t at = s->bytes.n;

	if (!buf_reserve(&padded, value.n + 2, s->e) || !buf_reserve(&text, text.max, s->e) ||
	    buf_add(&padded, "\0\0", behind, s->e) < 0 ||
	    buf_add(&padded, value.p, value.n, s->e) < 0 ||
	    encode(&text, buf_str(&padded), s->e) < 0)
		return -1;
	if (behind == 0 && end < text.n) {
		if (buf_add(&s->bytes, text.p, text.n, s->e) < 0 || speller_add(s, at, true) < 0)
			return -1;
		at = s->bytes.n;
	}
	if (buf_add(&s->bytes, text.p + first, end - first, s->e) < 0)
		return -1;
	return speller_add(s, at, true);
}

/* plain: characters beside letters and digits that stay; space: what stands for a space, or
 * NULL. */
static int speller_url(struct speller *s, struct str value, const char *plain, const char *space,
		       const char *digits)
{
	size_t at = s->bytes.n, n = 0;
	char *to = buf_reserve(&s->bytes, 3 * value.n, s->e);

	if (!to)
		return -1;
	for (size_t i = 0; i < value.n; i++) {
		char c = value.p[i];
		unsigned char u = (unsigned char)c;

		if (c == ' ' && space) {
			to[n++] = *space;
		} else if ((char_class(c) & ALNUM) || (c && strchr(plain, c))) {
			to[n++] = c;
		} else {
			to[n++] = '%';
			to[n++] = digits[u >> 4];
			to[n++] = digits[u & 15];
		}
	}
	buf_advance(&s->bytes, n);
	return speller_add(s, at, false);
}

/* Characters that writers of JSON escape beside controls, the quote and the backslash. */
struct json_style {
	bool slash; /* \/ */
	bool ascii; /* \uXXXX for what is not ASCII */
	bool upper; /* its digits */
	const char *chars; /* the same for these */
};

static const struct json_style json_styles[] = {
	{ .chars = "" },
	{ .slash = true, .chars = "" },
	{ .ascii = true, .chars = "" }, /* Python */
	{ .slash = true, .ascii = true, .chars = "" }, /* PHP */
	{ .chars = "<>&" }, /* Go */
	{ .slash = true, .chars = "<>&" },
	{ .ascii = true, .chars = "<>&" },
	{ .slash = true, .ascii = true, .chars = "<>&" },
	{ .chars = "<>&='" }, /* Gson */
	{ .chars = "<>&'\"" }, /* Json.NET, in pages */
	{ .ascii = true, .upper = true, .chars = "<>&'\"+`" }, /* System.Text.Json */
	{ .slash = true, .ascii = true, .upper = true, .chars = "<>&'\"" }, /* PHP, in pages */
};

static int json_unit(struct buf *to, uint32_t c, bool upper, struct err *e)
{
	return upper ? buf_addf(to, e, "\\u%04X", c) : buf_addf(to, e, "\\u%04x", c);
}

static int json_char(struct buf *to, uint32_t c, bool upper, struct err *e)
{
	if (c <= 0xffff)
		return json_unit(to, c, upper, e);
	c -= 0x10000;
	return json_unit(to, 0xd800 + (c >> 10), upper, e) < 0
		     ? -1
		     : json_unit(to, 0xdc00 + (c & 0x3ff), upper, e);
}

/* The next character; a byte that is no UTF-8 stands for itself. */
static uint32_t next_char(struct str s, size_t at, size_t *ret_n)
{
	unsigned char c = (unsigned char)s.p[at];
	size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
	uint32_t all = n == 1 ? c : c & (0x7fu >> n);

	if (at + n > s.n)
		n = 1;
	for (size_t i = 1; i < n; i++)
		all = all << 6 | ((unsigned char)s.p[at + i] & 0x3f);
	*ret_n = n;
	return n == 1 ? c : all;
}

static int json_escape(struct buf *to, struct str value, const struct json_style *how,
		       struct err *e)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";

	for (size_t i = 0, n = 1; i < value.n; i += n) {
		size_t run = i;
		uint32_t c;

		while (run < value.n && (char_class(value.p[run]) & WORD))
			run++;
		if (buf_add(to, value.p + i, run - i, e) < 0)
			return -1;
		i = run;
		if (i == value.n)
			break;
		c = next_char(value, i, &n);
		const char *at = c && c < 128 ? strchr(plain, (int)c) : NULL;
		char two[2] = { '\\', at ? letters[at - plain] : '/' };
		int rc;

		if (c < 128 && (!c || strchr(how->chars, (int)c)))
			rc = json_char(to, c, how->upper, e);
		else if (at || (c == '/' && how->slash))
			rc = buf_add(to, two, 2, e);
		else if (c < 32 || (c >= 127 && how->ascii))
			rc = json_char(to, c, how->upper, e);
		else
			rc = buf_add(to, value.p + i, n, e);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* twice: JSON in a string of JSON. */
static int speller_json(struct speller *s, struct str value, const struct json_style *how,
			bool twice)
{
	autowipe struct buf once = BUF_INIT(6 * value.n);
	size_t at = s->bytes.n;

	if (!buf_reserve(&once, once.max, s->e) || json_escape(&once, value, how, s->e) < 0)
		return -1;
	if (twice) {
		if (json_escape(&s->bytes, buf_str(&once), &json_styles[0], s->e) < 0)
			return -1;
	} else if (buf_add(&s->bytes, once.p, once.n, s->e) < 0) {
		return -1;
	}
	return speller_add(s, at, false);
}

/* Each of some characters as another text. */
static int speller_map(struct speller *s, struct str value, const char *from, const char *const *to)
{
	size_t at = s->bytes.n;

	for (size_t i = 0; i < value.n; i++) {
		size_t n = 0;
		const char *c = NULL;

		while (i + n < value.n && !(value.p[i + n] && (c = strchr(from, value.p[i + n]))))
			n++;
		if (buf_add(&s->bytes, value.p + i, n, s->e) < 0 ||
		    (c && buf_add(&s->bytes, to[c - from], strlen(to[c - from]), s->e) < 0))
			return -1;
		i += n;
	}
	return speller_add(s, at, false);
}

static int speller_all(struct speller *s, struct str v)
{
	static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
	static const char *const html[] = { "&amp;", "&lt;", "&gt;", "&#34;", "&#39;" };
	static const char *const named[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#x27;" };
	static const char *const shell[] = { "'\\''" };
	static const char *const quoted[] = { "'\"'\"'" };
	static const char *const crlf[] = { "\r\n" };
	/* What RFC 3986, encodeURIComponent(), Python's quote() and forms leave as it is. */
	static const char *const plain[] = { "-._~", "-._~!'()*", "-._~/", "-._*", "" };

	if (speller_plain(s, v) < 0 || speller_map(s, v, "\n", crlf) < 0 ||
	    speller_hex(s, v, lower) < 0 || speller_hex(s, v, upper) < 0)
		return -1;
	for (size_t i = 0; i < 3; i++) {
		if (speller_base64(s, v, i, base64_encode) < 0 ||
		    speller_base64(s, v, i, base64url_encode) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
		if (speller_url(s, v, plain[i], NULL, upper) < 0 ||
		    speller_url(s, v, plain[i], NULL, lower) < 0 ||
		    speller_url(s, v, plain[i], "+", upper) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(json_styles); i++) {
		if (speller_json(s, v, &json_styles[i], false) < 0 ||
		    speller_json(s, v, &json_styles[i], true) < 0)
			return -1;
	}
	return speller_map(s, v, "&<>\"'", html) < 0 || speller_map(s, v, "&<>\"'", named) < 0 ||
			       speller_map(s, v, "'", shell) < 0 ||
			       speller_map(s, v, "'", quoted) < 0
		     ? -1
		     : 0;
}

/* A value that was read from a file often ends in a line end that is no part of it. */
static struct str without_line_end(struct str v)
{
	while (v.n > 0 && (v.p[v.n - 1] == '\n' || v.p[v.n - 1] == '\r'))
		v.n--;
	return v;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static uint64_t load8(const char *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof(x));
	return x;
}

static unsigned hash4(const char *p)
{
	uint32_t x;

	memcpy(&x, p, sizeof(x));
	return (x * 0x9e3779b1u) >> (32 - KNOWN_BITS);
}

/* In the order of its bytes. */
static uint64_t sortable(const char *p)
{
	return __builtin_bswap64(load8(p));
}

static size_t hash8(uint64_t x)
{
	return (size_t)((x * 0x9e3779b97f4a7c15ull) >> 32);
}

static const char *head_of(const struct spelling *s)
{
	return s->p + s->head;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int values_index(struct values *v, struct err *e)
{
	size_t size = 16;

	while (size < 2 * v->n)
		size *= 2;
	v->mask = size - 1;
	v->buckets = calloc(size, sizeof(*v->buckets));
	v->heads = calloc(v->n + 1, sizeof(*v->heads));
	if (!v->buckets || !v->heads)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < v->n; i++) {
		const char *head = head_of(&v->list[i]);
		uint32_t *bucket = &v->buckets[hash8(load8(head)) & v->mask];

		v->list[i].next = *bucket;
		*bucket = (uint32_t)i + 1;
		v->heads[i] = sortable(v->list[i].p);
		v->wraps |= v->list[i].wraps;
		for (unsigned k = 0; k < STEP; k++) {
			unsigned hash = hash4(head + k);

			v->known[hash / 8] |= (uint8_t)(1u << hash % 8);
		}
	}
	qsort(v->heads, v->n, sizeof(*v->heads), by_number);
	return 0;
}

static void spelled_free(struct spelled *s)
{
	if (!s)
		return;
	secret_free(s->bytes);
	free(s->list);
	free(s);
}
AUTO_DEFINE(spelled_free, struct spelled)

static int value_spell(struct value *x, struct err *e)
{
	AUTO(spelled_free) struct spelled *v = calloc(1, sizeof(*v));
	struct str value = secret_expose(x->bytes, "for redaction");
	struct speller s = { .v = v, .bytes = BUF_INIT(SPELLINGS_MAX), .name = x->name, .e = e };
	size_t most = 216 * value.n + 1024;
	int rc;

	if (!v)
		return err_set(e, ERR_LIMIT, "out of memory");
	/* All of it at once: a buffer that grows leaves copies behind. */
	if (!buf_reserve(&s.bytes, most < SPELLINGS_MAX ? most : SPELLINGS_MAX, e))
		return -1;
	rc = speller_all(&s, value);
	s.first = v->n;
	if (rc == 0 && without_line_end(value).n < value.n)
		rc = speller_all(&s, without_line_end(value));
	v->size = s.bytes.n;
	v->bytes = rc < 0 ? NULL : secret_new(buf_str(&s.bytes), e);
	buf_wipe(&s.bytes);
	if (!v->bytes)
		return -1;
	for (size_t i = 0; i < v->n; i++)
		v->list[i].p = secret_expose(v->bytes, "for redaction").p + v->list[i].at;
	x->spelled = take_ptr(v);
	return 0;
}

void value_unref(struct value *v)
{
	if (--v->refs > 0)
		return;
	spelled_free(v->spelled);
	secret_free(v->bytes);
	free(v);
}

/* Spells what is not spelled yet, and counts. */
static int values_spell(struct value *first, size_t *ret_values, size_t *ret_spellings,
			struct err *e)
{
	size_t bytes = 0;

	for (struct value *x = first; x; x = x->next) {
		if (!x->spelled && value_spell(x, e) < 0)
			return -1;
		bytes += x->spelled->size;
		*ret_spellings += x->spelled->n;
		++*ret_values;
	}
	return bytes <= SPELLINGS_MAX
		     ? 0
		     : err_set(e, ERR_LIMIT, "the values that are redacted are too long together");
}

struct values *values_build(struct value *first, struct err *e)
{
	AUTO(values_free) struct values *v = calloc(1, sizeof(*v));
	size_t values = 0, spellings = 0;

	if (v)
		v->refs = 1;
	else
		err_set(e, ERR_LIMIT, "out of memory");
	if (!v || values_spell(first, &values, &spellings, e) < 0)
		return NULL;
	v->of = calloc(values + 1, sizeof(struct value *));
	v->list = calloc(spellings + 1, sizeof(*v->list));
	if (!v->of || !v->list) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	for (struct value *x = first; x; x = x->next) {
		v->of[v->n_of++] = x;
		x->refs++;
		if (x->spelled->n > 0)
			memcpy(v->list + v->n, x->spelled->list, x->spelled->n * sizeof(*v->list));
		v->n += x->spelled->n;
	}
	return values_index(v, e) < 0 ? NULL : take_ptr(v);
}

struct values *values_ref(struct values *v)
{
	if (v)
		v->refs++;
	return v;
}

void values_free(struct values *v)
{
	if (!v || --v->refs > 0)
		return;
	for (size_t i = 0; i < v->n_of; i++)
		value_unref(v->of[i]);
	free(v->of);
	free(v->list);
	free(v->buckets);
	if (v->heads)
		memset(v->heads, 0, v->n * sizeof(*v->heads));
	free(v->heads);
	free(v);
}

/* ---- the search ------------------------------------------------------------------------------ */

static bool is_line_char(char c)
{
	return c == '\n' || c == '\r';
}

/* Whether a line of base64 or hex that is as long as programs make them ends before `at`. */
static bool line_is_full(const struct finder *f, size_t at)
{
	size_t n = 0;

	while (n < FULL_LINE && n < at && (char_class(f->p[at - 1 - n]) & (URL64 | IS_BASE64)))
		n++;
	return n == FULL_LINE;
}

/* Where a spelling begins whose head stands at `at`, or -1: a line end may stand in between. */
static ssize_t spelling_begins(const struct spelling *s, const struct finder *f, size_t at)
{
	const char *want = s->p;
	size_t k = s->head;

	for (; k > 0 && at > 0; at--) {
		if (f->p[at - 1] == want[k - 1])
			k--;
		else if (f->p[at - 1] != '\r' &&
			 (f->p[at - 1] != '\n' ||
			  !line_is_full(f, at > 1 && f->p[at - 2] == '\r' ? at - 2 : at - 1)))
			return -1;
	}
	return k == 0 ? (ssize_t)at : -1;
}

/* Whether what ends at `at`, before its spelling does, was cut there to be quoted. */
static bool spelling_is_cut(const struct finder *f, size_t at)
{
	static const char more[] = "\u2026";

	if (f->quotes)
		return !(char_class(f->p[at]) & WORD);
	return f->whole && f->n - at == strlen(more) && !memcmp(f->p + at, more, strlen(more));
}

static void spelling_check(const struct spelling *s, struct finder *f, size_t at)
{
	const char *want = s->p;
	size_t k = s->head + HEAD, i = at + HEAD;
	ssize_t begin = spelling_begins(s, f, at);

	if (begin < 0)
		return;
	for (; k < s->n && i < f->n; i++) {
		if (f->p[i] == want[k])
			k++;
		else if (!s->wraps || !is_line_char(f->p[i]))
			break;
	}
	if (k < s->n && i < f->n && !spelling_is_cut(f, i))
		return;
	if (k < s->n && !f->final) {
		finder_open(f, (size_t)begin);
		f->firm = f->firm < (size_t)begin ? f->firm : (size_t)begin;
	} else {
		/* A value that is cut at the end of all counts as far as it goes. */
		finder_add(f, (struct span){ (size_t)begin, i - (size_t)begin, s->name, SPAN_ENDS,
					     '\0', 0 });
	}
}

/* Whether any spelling begins with these fewer than eight bytes. */
static bool values_begin(const struct values *v, const char *p, size_t n)
{
	char from[HEAD] = { 0 };
	size_t low = 0, high = v->n;
	uint64_t least;

	memcpy(from, p, n);
	least = sortable(from);
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (v->heads[mid] < least)
			low = mid + 1;
		else
			high = mid;
	}
	return low < v->n && v->heads[low] >> (8 * (HEAD - n)) == least >> (8 * (HEAD - n));
}

/* A line end among the first bytes of base64 that goes on: the head behind it is not yet whole. */
static void values_hold_wrapped(struct finder *f)
{
	size_t end = f->n, at;

	while (f->n - end < 2 * HEAD && end > 0 &&
	       (char_class(f->p[end - 1]) & (URL64 | IS_BASE64)))
		end--;
	if (end == 0 || !is_line_char(f->p[end - 1]))
		return;
	for (at = end; at > 0 && is_line_char(f->p[at - 1]) && end - at < 2;)
		at--;
	if (line_is_full(f, at))
		finder_open(f, at - HEAD);
}

static void values_check(const struct values *v, struct finder *f, size_t at)
{
	uint64_t head = load8(f->p + at);

	for (uint32_t k = v->buckets[hash8(head) & v->mask]; k; k = v->list[k - 1].next) {
		if (load8(head_of(&v->list[k - 1])) == head)
			spelling_check(&v->list[k - 1], f, at);
	}
}

void values_find(const struct values *v, struct finder *f)
{
	if (v->n == 0)
		return;
	for (size_t at = 0; at + BLOCK <= f->n; at += STEP) {
		unsigned hash = hash4(f->p + at);

		if (!(v->known[hash / 8] & 1u << hash % 8))
			continue;
		for (size_t i = at < STEP ? 0 : at - STEP + 1; i <= at && i + HEAD <= f->n; i++)
			values_check(v, f, i);
	}
	if (f->final)
		return;
	if (v->wraps)
		values_hold_wrapped(f);
	for (size_t i = f->n < HEAD ? 0 : f->n - HEAD + 1; i < f->n; i++) {
		if (values_begin(v, f->p + i, f->n - i)) {
			finder_open(f, i);
			break;
		}
	}
}
