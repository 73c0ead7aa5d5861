/*
 * How much guard/redact does for a byte of text, at most. The library is compiled with a call for
 * each edge of its code, so work is counted and no clock is read. Texts are made of what the tables
 * hold: each name with each separator and beginning of a value, the beginning of each pattern, and
 * these in turn. A text of such a unit again and again is the worst that it can do.
 */
#include <ctype.h>
#include <inttypes.h>

#include "guard/redact/internal.h"
#include "test.h"

enum {
	TEXT_BYTES = 10 << 10, /* of a first look */
	LONG_BYTES = 64 << 10,
	LONGEST_BYTES = 256 << 10,
	UNIT_BYTES = 512,
/* edges; hundreds of thousands for some when each name looked for itself. Sanitizers, and
	 * compilers that don't optimise, have more of them for the same work. */
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
	PER_BYTE = 1000,
#else
	PER_BYTE = 300,
#endif
	WORST = 12, /* units that are looked at in long texts */
	ROUNDS = 1200, /* units at random */
};

static uint64_t edges;
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	edges++;
}

static struct redactor *redactor;
static uint64_t seed = 1;

static unsigned below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

/* ---- units ----------------------------------------------------------------------------------- */

struct unit {
	char text[UNIT_BYTES];
	size_t n;
	uint64_t work;
};

static void unit_add(struct unit *u, const char *p, size_t n)
{
	n = n < sizeof(u->text) - u->n ? n : sizeof(u->text) - u->n;
	memcpy(u->text + u->n, p, n);
	u->n += n;
}

/* One character of [...] at p, which is moved behind it. */
static char sample_set(const char **p)
{
	const char *at = *p + 1;
	bool no = *at == '^';
	char c = *(at += no) == '\\' ? *++at : *at;

	for (*p = at + 1; **p != ']'; *p += 1 + (**p == '\\'))
		;
	*p += 1;
	return no ? 'q' : c;
}

/* What an expression of the table matches, as short as it goes. Sets give their first character,
 * groups their first branch. */
static void sample(struct unit *u, const char *p)
{
	while (*p) {
		char c = *p;
		unsigned long times = 1;

		if (!strncmp(p, "(?:", 3)) {
			p += 3;
			continue;
		}
		if (c == '|') {
			p = strchr(p, ')');
			continue;
		}
		if (c == ')' || c == '?' || c == '+') {
			p++;
			continue;
		}
		if (c == '[')
			c = sample_set(&p);
		else if (c == '\\' && p[1] == 's')
			c = ' ', p += 2;
		else
			p += 1 + (c == '\\'), c = p[-1];
		if (*p == '{')
			times = strtoul(p + 1, (char **)&p, 10), p = strchr(p, '}') + 1;
		else if (*p == '*')
			times = 0, p++;
		for (; times > 0; times--)
			unit_add(u, &c, 1);
	}
}

static const char *const separators[] = {
	"=", ":", ": ", " = ", ":=", "=>", "='", "=\"", "\":\"", "\\\":\\\"", " ", "'] = b'",
};
static const char *const values[] = {
	"",    "$",    "${", "$(", "{{",    "f(", "\xff", "\xc3\xa9", "<",     "[",
	"[]",  "%",    "\\", "-",  "xxx",   "a ", "a1, ", "x\n",      "to do", "todo",
	"://", "(",    "@",  "**", "a.b.c", "A",  "_",	  "/",	      ".",     "#",
	"\t",  "\x01", "&",  ";",  "`",	    "\r", "Ab1",  "token",
};

static bool is_noun(const struct word *w)
{
	return w->is & (2 * WORD_CREDENTIAL - 1);
}

static unsigned nouns(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < word_count; i++)
		n += is_noun(&word_table[i]);
	return n;
}

static const char *noun(unsigned k)
{
	for (size_t i = 0;; i++) {
		if (is_noun(&word_table[i]) && k-- == 0)
			return word_table[i].text;
	}
}

static void unit_text(struct unit *u, const char *text)
{
	unit_add(u, text, strlen(text));
}

/* A piece of a unit at random. */
static void unit_any(struct unit *u)
{
	size_t was = u->n;

	switch (below(6)) {
	case 0:
		sample(u, pattern_table[below((unsigned)pattern_count)].regex);
		break;
	case 1:
		unit_text(u, word_table[below((unsigned)word_count)].text);
		unit_text(u, below(2) ? "_" : "");
		break;
	case 2:
		unit_text(u, separators[below(ARRAY_LEN(separators))]);
		break;
	case 3:
		unit_text(u, values[below(ARRAY_LEN(values))]);
		break;
	default:
		unit_text(u, noun(below(nouns())));
		unit_text(u, separators[below(ARRAY_LEN(separators))]);
		unit_text(u, values[below(ARRAY_LEN(values))]);
	}
	for (size_t i = was; below(4) == 0 && i < u->n; i++)
		u->text[i] = (char)toupper((unsigned char)u->text[i]);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* Edges for so many bytes of the unit again and again. piece: of a stream, or 0. */
static uint64_t work_of(const struct unit *u, size_t n, size_t piece)
{
	autofree char *text = malloc(n);
	autobuf struct buf to = BUF_INIT(redact_grown(n));
	const struct redact_part part = { .text = { text, n } };
	struct err e = ERR_INIT;
	AUTO(redact_stream_free) struct redact_stream *s = redact_stream_new(redactor, false, &e);

	assert_non_null(text);
	assert_non_null(s);
	for (size_t i = 0; i < n; i++)
		text[i] = u->text[i % u->n];
	edges = 0;
	if (piece == 0)
		ROW_CHECK(redact_text(redactor, &part, &to, &e) >= 0, e.msg);
	for (size_t at = 0; piece > 0 && at < n; at += piece)
		ROW_CHECK(redact_stream_add(s, (struct str){ text + at, piece }, REDACT_MORE, &to,
					    &e) == 0,
			  e.msg);
	return edges;
}

static void unit_print(const char *what, const struct unit *u, uint64_t work, size_t n)
{
	print_message("%s: %" PRIu64 " edges a byte:", what, work / n);
	for (size_t i = 0; i < u->n; i++)
		print_message(isprint((unsigned char)u->text[i]) ? " %c" : " %02x",
			      (unsigned char)u->text[i]);
	print_message("\n");
}

static struct unit worst[WORST];
static unsigned looked;

static void unit_try(struct unit *u)
{
	size_t at = WORST;

	if (u->n == 0)
		return;
	looked++;
	u->work = work_of(u, TEXT_BYTES, 0);
	if (u->work > (uint64_t)PER_BYTE * TEXT_BYTES)
		unit_print("too much", u, u->work, TEXT_BYTES);
	assert_true(u->work <= (uint64_t)PER_BYTE * TEXT_BYTES);
	for (; at > 0 && worst[at - 1].work < u->work; at--) {
		if (at < WORST)
			worst[at] = worst[at - 1];
	}
	if (at < WORST)
		worst[at] = *u;
}

static void tables_try(void)
{
	for (size_t i = 0; i < pattern_count; i++) {
		static const char *const around[] = { "", "-", " ", "_a", "\n", "a.", "aaaaaaaa-" };

		for (size_t k = 0; k < ARRAY_LEN(around); k++) {
			struct unit u = { .n = 0 };

			sample(&u, pattern_table[i].regex);
			unit_text(&u, around[k]);
			unit_try(&u);
		}
	}
	for (unsigned i = 0; i < nouns(); i++) {
		for (size_t s = 0; s < ARRAY_LEN(separators); s++) {
			struct unit u = { .n = 0 };

			unit_text(&u, noun(i));
			unit_text(&u, separators[s]);
			unit_try(&u);
		}
		for (size_t v = 0; v < ARRAY_LEN(values); v++) {
			struct unit u = { .n = 0 };

			unit_text(&u, noun(i));
			unit_text(&u, "=");
			unit_text(&u, values[v]);
			unit_try(&u);
		}
	}
}

static void test_work(void **state)
{
	tables_try();
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct unit u = { .n = 0 };

		for (unsigned k = 1 + below(4); k > 0; k--)
			unit_any(&u);
		unit_try(&u);
	}
	print_message("%u units were tried\n", looked);
	for (unsigned i = 0; i < WORST; i++) {
		uint64_t is = work_of(&worst[i], LONG_BYTES, 0);
		uint64_t more = work_of(&worst[i], LONGEST_BYTES, 0);
		uint64_t pieces = work_of(&worst[i], LONG_BYTES, 4096);

		if (i == 0 || is > (uint64_t)PER_BYTE * LONG_BYTES || more > 5 * is ||
		    pieces > 4 * is)
			unit_print("worst", &worst[i], is, LONG_BYTES);
		assert_true(is <= (uint64_t)PER_BYTE * LONG_BYTES);
		assert_true(more <= 5 * is);
		assert_true(pieces <= 4 * is);
	}
}

static void test_words_are_sorted(void **state)
{
	for (size_t i = 1; i < word_count; i++)
		ROW_CHECK(strcmp(word_table[i - 1].text, word_table[i].text) < 0,
			  word_table[i].text);
}

static int set_up(void **state)
{
	struct err e;

	redactor = redactor_new(NULL, &e);
	return redactor ? 0 : -1;
}

static int tear_down(void **state)
{
	redactor_free(redactor);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_are_sorted),
		cmocka_unit_test(test_work),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
