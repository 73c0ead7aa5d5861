/*
 * Measures redaction beside peers of the same run: redact FILE UNITS [ROUNDS]
 *
 * The text is read from FILE, 64 MiB are made of it. Each row is the best of its rounds on one
 * processor: a stream in pieces as they come from pipes, with and without values; then PCRE2 with
 * JIT, with one expression for a third of the kinds, as scanners of secrets use them; and memcpy(),
 * which nothing beats; then the worst texts (worst.h) of the file UNITS. Times are of the
 * processor. bench/redact/run adds sed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"
#include "guard/redact/redact.h"
#include "worst.h"

enum { TEXT_BYTES = 64 << 20, PIECE = 64 << 10, ROUNDS = 5, SECONDS = 20 };

/* Of the processor, so that neighbours count little. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what, const struct err *e)
{
	fprintf(stderr, "bench: %s: %s\n", what, e ? e->msg : "failed");
	exit(1);
}

static size_t run_redact(struct redactor *r, struct str text, size_t size)
{
	struct buf to = BUF_INIT(SIZE_MAX / 2);
	struct err e;
	struct redact_stream *s = redact_stream_new(r, false, &e);
	size_t all = 0;

	if (!s || !buf_reserve(&to, 2 * PIECE, &e))
		die("stream", &e);
	for (size_t at = 0; at < text.n; at += size) {
		size_t n = text.n - at < size ? text.n - at : size;

		to.n = 0;
		if (redact_stream_add(s, (struct str){ text.p + at, n },
				      at + n < text.n ? REDACT_MORE : REDACT_END, &to, &e) < 0)
			die("redact", &e);
		all += to.n;
	}
	redact_stream_free(s);
	buf_fini(&to);
	return all;
}

static void print(const char *name, size_t n, double best)
{
	printf("| %s | %.0f |\n", name, (double)n / 1e6 / best);
	fflush(stdout);
}

static void measure_redact(const char *name, struct redactor *r, struct str text, size_t size,
			   int rounds)
{
	double best = 1e9;

	for (int i = 0; i < rounds; i++) {
		double begin = now(), took;

		run_redact(r, text, size);
		took = now() - begin;
		best = took < best ? took : best;
	}
	print(name, text.n, best);
}

static void measure_copy(struct str text, int rounds)
{
	char *to = malloc(text.n);
	double best = 1e9;

	if (!to)
		die("memory", NULL);
	for (int i = 0; i < rounds; i++) {
		double begin = now(), took;

		memcpy(to, text.p, text.n);
		__asm__ volatile("" : : "r"(to) : "memory");
		took = now() - begin;
		best = took < best ? took : best;
	}
	free(to);
	print("memcpy()", text.n, best);
}

static const char peer[] =
	"gh[pousr]_[A-Za-z0-9]{36}|github_pat_\\w{82}|glpat-[\\w-]{20}|A(?:KIA|SIA)[A-Z2-7]{16}|"
	"AIza[\\w-]{35}|ya29\\.[\\w-]{30,}|xox[abpr]-[\\w-]{20,}|[sr]k_(?:live|test)_\\w{24,}|"
	"sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z]{34}|npm_[A-Za-z0-9]{36}|pypi-AgE[\\w-]{50,}|"
	"SG\\.[\\w-]{22}\\.[\\w-]{43}|eyJ[\\w-]{10,}\\.eyJ[\\w-]{10,}\\.[\\w-]{10,}|"
	"-----BEGIN [A-Z ]*PRIVATE KEY-----|://[^\\s:/@]*:[^\\s/@]+@|"
	"(?i:passwo?r?d|secret|token|api_?key)[\\w.-]{0,20}"
	"[\"']?\\s{0,3}[:=]\\s{0,3}[\"']?[^\\s\"']{8,}";

/* One round: it is slow. Replaces nothing, only finds. */
static void measure_pcre2(struct str text)
{
	int code;
	size_t at, begin = 0, found = 0;
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)peer, PCRE2_ZERO_TERMINATED, 0, &code, &at,
				       NULL);
	pcre2_match_data *m = re ? pcre2_match_data_create_from_pattern(re, NULL) : NULL;
	double start = now();

	if (!m || pcre2_jit_compile(re, PCRE2_JIT_COMPLETE) < 0)
		die("pcre2", NULL);
	while (pcre2_match(re, (PCRE2_SPTR)text.p, text.n, begin, 0, m, NULL) > 0) {
		begin = pcre2_get_ovector_pointer(m)[1];
		found++;
	}
	print("PCRE2 with JIT, 17 expressions", text.n, now() - start);
	pcre2_match_data_free(m);
	pcre2_code_free(re);
}

static struct str load(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = malloc(TEXT_BYTES);
	size_t n = f && text ? fread(text, 1, TEXT_BYTES, f) : 0;

	if (n == 0)
		die(path, NULL);
	fclose(f);
	for (size_t at = n; at < TEXT_BYTES; at += n) {
		n = n < TEXT_BYTES - at ? n : TEXT_BYTES - at;
		memcpy(text + at, text, n);
	}
	return (struct str){ text, TEXT_BYTES };
}

static void values_add(struct redactor *r, int from, int to)
{
	struct err e = ERR_INIT;

	for (int i = from; i < to; i++) {
		char name[16], value[64];

		snprintf(name, sizeof(name), "value-%d", i);
		snprintf(value, sizeof(value), "%08x-Value/%d+of=the?bench",
			 2654435761u * (unsigned)i, i);
		if (redact_value_add(r, str_of(name), str_of(value), &e) < 0)
			die("value", &e);
	}
}

int main(int argc, char **argv)
{
	struct str text = argc > 2 ? load(argv[1]) : STR_NONE;
	int rounds = argc > 3 ? atoi(argv[3]) : ROUNDS;
	struct err e = ERR_INIT;
	struct redactor *r = redactor_new(NULL, &e);
	double start = now();

	if (!text.n || !r)
		die("usage: redact FILE UNITS [ROUNDS]", &e);
	run_redact(r, (struct str){ text.p, 100 }, PIECE);
	printf("The first text takes %.2f ms more: the compiled patterns are read then.\n\n",
	       (now() - start) * 1e3);
	printf("| | MB/s |\n|---|---:|\n");
	measure_redact("Holt, patterns", r, text, PIECE, rounds);
	values_add(r, 0, 20);
	measure_redact("Holt, patterns and 20 values", r, text, PIECE, rounds);
	measure_redact("the same in pieces of 4 KiB", r, text, 4096, rounds);
	values_add(r, 20, 100);
	measure_redact("Holt, patterns and 100 values", r, text, PIECE, rounds);
	measure_pcre2(text);
	measure_copy(text, rounds);
	puts("\nTexts of one of these again and again, with the same values:\n");
	printf("| | MB/s |\n|---|---:|\n");
	worst_measure(r, argv[2], rounds < ROUNDS ? rounds : SECONDS, rounds >= ROUNDS);
	redactor_free(r);
	free((char *)text.p);
	return 0;
}
