/*
 * How much guard/redact does for a byte of text, at most. The library is compiled with a call for
 * each edge of its code, so work is counted and no clock is read. Texts are made of what the tables
 * hold: each name with each separator and beginning of a value, the beginning of each pattern, and
 * these in turn. A text of such a unit again and again is the worst that it can do.
 */
#include <ctype.h>
#include <inttypes.h>

#include "../redact/unit.h"
#include "guard/redact/internal.h"
#include "test.h"

enum {
	TEXT_BYTES = 10 << 10, /* of a first look */
	LONG_BYTES = 64 << 10,
	LONGEST_BYTES = 256 << 10,
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

static void test_work(void **state)
{
	units_of_tables(unit_try);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct unit u = { .n = 0 };

		for (unsigned k = 1 + unit_below(4); k > 0; k--)
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
