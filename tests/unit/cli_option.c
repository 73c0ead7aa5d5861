/* cli/common/option.h: one table parses and prints. */
#include "alloc_fail.h"
#include "cli/common/option.h"
#include "test.h"

struct sample {
	bool all, binary;
	const char *dir;
	struct option_list env;
	uint32_t pids, cpus, color;
	uint64_t memory, time;
};

static const struct option_row rows[] = {
	OPTION(struct sample, all, OPTION_FLAG, "all", .letter = 'a', .doc = "Everything."),
	OPTION(struct sample, binary, OPTION_FLAG, "binary", .letter = 'b', .doc = "As bytes."),
	OPTION(struct sample, dir, OPTION_TEXT, "workdir", .letter = 'w', .arg = "DIR",
	       .env = "SAMPLE_DIR", .doc = "Where."),
	OPTION(struct sample, env, OPTION_LIST, "env", .letter = 'e', .arg = "K=V",
	       .doc = "Variable."),
	OPTION(struct sample, pids, OPTION_COUNT, "pids", .arg = "N", .min = 4, .max = 100,
	       .env = "SAMPLE_PIDS", .doc = "Processes."),
	OPTION(struct sample, cpus, OPTION_MILLI, "cpus", .arg = "N", .min = 10,
	       .doc = "Processors."),
	OPTION(struct sample, memory, OPTION_SIZE, "memory", .letter = 'm', .arg = "SIZE",
	       .min = 1024 * 1024, .max = 4ull << 30, .doc = "Memory."),
	OPTION(struct sample, color, OPTION_CHOICE, "color", .arg = "red|green|blue",
	       .doc = "One."),
	OPTION(struct sample, time, OPTION_SECONDS, "timeout", .arg = "TIME", .min = 1,
	       .max = 365ull * 24 * 3600 * 1000, .doc = "Time."),
};
static const struct option_table table = OPTION_TABLE(rows);

enum { WORDS = 8 };

static int parse(const char *const *words, struct sample *ret, struct err *e)
{
	char *argv[WORDS + 2] = { (char *)"verb" };
	int n = 1;

	for (; n <= WORDS && words[n - 1]; n++)
		argv[n] = (char *)words[n - 1];
	*ret = (struct sample){ .pids = 7 };
	*e = ERR_INIT;
	return option_parse(&table, n, argv, ret, e);
}

static const struct {
	const char *words[WORDS + 1];
	int at; /* of the first operand */
	struct sample want;
} taken[] = {
	{ { NULL }, 1, { .pids = 7 } },
	{ { "x" }, 1, { .pids = 7 } },
	{ { "-" }, 1, { .pids = 7 } },
	{ { "--all", "x", "--binary" }, 2, { .all = true, .pids = 7 } },
	{ { "-ab", "x" }, 2, { .all = true, .binary = true, .pids = 7 } },
	{ { "--", "--all" }, 2, { .pids = 7 } },
	{ { "-a", "--", "--", "x" }, 3, { .all = true, .pids = 7 } },
	{ { "--workdir", "d" }, 3, { .dir = "d", .pids = 7 } },
	{ { "--workdir=d=e" }, 2, { .dir = "d=e", .pids = 7 } },
	{ { "-w", "d" }, 3, { .dir = "d", .pids = 7 } },
	{ { "-awd" }, 2, { .all = true, .dir = "d", .pids = 7 } },
	{ { "-w", "--al" }, 3, { .dir = "--al", .pids = 7 } },
	{ { "--workdir=--all" }, 2, { .dir = "--all", .pids = 7 } },
	{ { "-eA=1", "--env", "B", "--env=C=" },
	  5,
	  { .env = { { "A=1", "B", "C=" }, 3 }, .pids = 7 } },
	{ { "--pids", "4" }, 3, { .pids = 4 } },
	{ { "--pids=100", "--pids=5" }, 3, { .pids = 5 } },
	{ { "--cpus", "0.5" }, 3, { .pids = 7, .cpus = 500 } },
	{ { "--cpus", "2" }, 3, { .pids = 7, .cpus = 2000 } },
	{ { "-m", "512M" }, 3, { .pids = 7, .memory = 512ull << 20 } },
	{ { "-m512" }, 2, { .pids = 7, .memory = 512ull << 20 } },
	{ { "-m", "2G" }, 3, { .pids = 7, .memory = 2ull << 30 } },
	{ { "-m", "1.5g" }, 3, { .pids = 7, .memory = 3ull << 29 } },
	{ { "-m", "2048k" }, 3, { .pids = 7, .memory = 2ull << 20 } },
	{ { "-m", "64MiB" }, 3, { .pids = 7, .memory = 64ull << 20 } },
	{ { "-m", "64MB" }, 3, { .pids = 7, .memory = 64ull << 20 } },
	{ { "--timeout", "30" }, 3, { .pids = 7, .time = 30000 } },
	{ { "--timeout", "0.25" }, 3, { .pids = 7, .time = 250 } },
	{ { "--timeout", "1.5m" }, 3, { .pids = 7, .time = 90000 } },
	{ { "--timeout", "2h" }, 3, { .pids = 7, .time = 7200000 } },
	{ { "--color", "red" }, 3, { .pids = 7, .color = 1 } },
	{ { "--color=blue" }, 2, { .pids = 7, .color = 3 } },
};

static void same_text(const char *a, const char *b)
{
	assert_string_equal(a ? a : "(none)", b ? b : "(none)");
}

static void same_options(const struct sample *got, const struct sample *want)
{
	assert_int_equal(got->all, want->all);
	assert_int_equal(got->binary, want->binary);
	same_text(got->dir, want->dir);
	assert_int_equal(got->env.n, want->env.n);
	for (size_t k = 0; k < got->env.n; k++)
		same_text(got->env.p[k], want->env.p[k]);
	assert_int_equal(got->pids, want->pids);
	assert_int_equal(got->cpus, want->cpus);
	assert_int_equal(got->memory, want->memory);
	assert_int_equal(got->time, want->time);
	assert_int_equal(got->color, want->color);
}

static void test_taken(void **state)
{
	struct sample got;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
		assert_int_equal(parse(taken[i].words, &got, &e), taken[i].at);
		same_options(&got, &taken[i].want);
	}
}

/* What was parsed, in words, is parsed to the same. */
static void test_words(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(1 << 20);
	struct sample got;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
		const char *words[WORDS + 1] = { NULL };
		size_t n = 0;

		for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
			for (size_t k = 0;
			     (words[n] = option_word(&rows[r], &taken[i].want, k, a, &e)); k++)
				n++;
		}
		assert_int_equal(e.code, 0);
		assert_int_equal(parse(words, &got, &e), n + 1);
		same_options(&got, &taken[i].want);
	}
}

static const struct {
	const char *words[WORDS + 1];
	const char *msg;
} refused[] = {
	{ { "--al" }, "there is no option --al; did you mean --all?" },
	{ { "--memroy=1G" }, "there is no option --memroy; did you mean --memory?" },
	{ { "--frobnicate" }, "there is no option --frobnicate" },
	{ { "-z" }, "there is no option -z" },
	{ { "-az" }, "there is no option -z" },
	{ { "--all=1" }, "--all takes no value" },
	{ { "--workdir" }, "--workdir wants a value: DIR" },
	{ { "-aw" }, "-w wants a value: DIR" },
	{ { "-w", "--all" }, "-w wants a value: DIR" },
	{ { "--workdir", "--pids=5" }, "--workdir wants a value: DIR" },
	{ { "--workdir", "--", "x" }, "--workdir wants a value: DIR" },
	{ { "--pids", "x" }, "--pids takes a whole number, not 'x'" },
	{ { "--pids", "" }, "--pids takes a whole number, not ''" },
	{ { "--pids", "-5" }, "--pids takes a whole number, not '-5'" },
	{ { "--pids", "5.5" }, "--pids takes a whole number, not '5.5'" },
	{ { "--pids", "3" }, "--pids takes from 4 to 100, not 3" },
	{ { "--pids", "101" }, "--pids takes from 4 to 100, not 101" },
	{ { "--pids", "99999999999999999999999" },
	  "--pids takes a whole number, not '99999999999999999999999'" },
	{ { "--cpus", "0.001" }, "--cpus takes at least 0.01, not 0.001" },
	{ { "-m", "1X" }, "-m takes a size such as 512M or 2G, not '1X'" },
	{ { "-m", "1MX" }, "-m takes a size such as 512M or 2G, not '1MX'" },
	{ { "-m", "5G" }, "-m takes from 1M to 4096M, not 5G" },
	{ { "-m", "0" }, "-m takes from 1M to 4096M, not 0" },
	{ { "-m", "9000000000000T" }, "-m takes a size such as 512M or 2G, not '9000000000000T'" },
	{ { "--color", "re" }, "--color takes red|green|blue, not 're'" },
	{ { "--color", "" }, "--color takes red|green|blue, not ''" },
	{ { "--timeout", "0" }, "--timeout takes from 0.001 to 365d, not 0" },
	{ { "--timeout", "5x" },
	  "--timeout takes seconds such as 30 or 0.5, or a time such as 5m, not '5x'" },
};

static void test_refused(void **state)
{
	struct sample got;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		assert_int_equal(parse(refused[i].words, &got, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		assert_string_equal(e.msg, refused[i].msg);
	}
}

/* Options behind operands: all words are sorted, and "--" ends it. */
static void test_mixed(void **state)
{
	static const struct option_table mixed = OPTION_TABLE(rows, .mixed = true);
	static const char *const words[] = { "verb", "x",   "-a", "y",	"--workdir", "d",
					     "-",    "-eA", "--", "-b", "z" };
	static const char *const sorted[] = { "verb", "-a", "--workdir", "d",  "-eA", "x",
					      "y",    "-",  "--",	 "-b", "z" };
	char *argv[ARRAY_LEN(words) + 1] = { NULL };
	struct sample got = { .all = false };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		argv[i] = (char *)words[i];
	assert_int_equal(option_parse(&mixed, ARRAY_LEN(words), argv, &got, &e), 5);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		assert_string_equal(argv[i], sorted[i]);
	assert_true(got.all);
	assert_false(got.binary);
	same_text(got.dir, "d");
	argv[1] = (char *)"x";
	argv[2] = (char *)"--al";
	assert_int_equal(option_parse(&mixed, 3, argv, &got, &e), -1);
}

static void test_environment(void **state)
{
	static const char *const none[] = { NULL }, *const pids[] = { "--pids", "9", NULL };
	struct sample got;
	struct err e;

	setenv("SAMPLE_DIR", "there", 1);
	setenv("SAMPLE_PIDS", "8", 1);
	assert_int_equal(parse(none, &got, &e), 1);
	assert_string_equal(got.dir, "there");
	assert_int_equal(got.pids, 8);
	assert_int_equal(parse(pids, &got, &e), 3);
	assert_int_equal(got.pids, 9);
	setenv("SAMPLE_PIDS", "none", 1);
	assert_int_equal(parse(none, &got, &e), -1);
	assert_string_equal(e.msg, "SAMPLE_PIDS takes a whole number, not 'none'");
	setenv("SAMPLE_PIDS", "", 1);
	assert_int_equal(parse(none, &got, &e), 1);
	assert_int_equal(got.pids, 7);
	unsetenv("SAMPLE_DIR");
	unsetenv("SAMPLE_PIDS");
}

static void test_list_is_bounded(void **state)
{
	char *argv[OPTION_LIST_MAX + 3];
	struct sample got = { .all = false };
	struct err e = ERR_INIT;

	argv[0] = (char *)"verb";
	for (size_t i = 1; i < ARRAY_LEN(argv); i++)
		argv[i] = (char *)"-eA";
	assert_int_equal(option_parse(&table, OPTION_LIST_MAX + 1, argv, &got, &e),
			 OPTION_LIST_MAX + 1);
	got.env.n = 0;
	assert_int_equal(option_parse(&table, OPTION_LIST_MAX + 2, argv, &got, &e), -1);
	assert_string_equal(e.msg, "-e: at most 256 times");
}

static void test_help(void **state)
{
	static const struct option_row few[] = {
		OPTION(struct sample, all, OPTION_FLAG, "all", .letter = 'a', .doc = "Everything."),
		OPTION(struct sample, dir, OPTION_TEXT, "a-very-long-name-of-an-option",
		       .arg = "DIR", .env = "SAMPLE_DIR",
		       .doc = "A sentence that is so long that it does not go into one line."),
	};
	static const struct option_table t = OPTION_TABLE(few);
	autofree char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	option_help(&t, f);
	fclose(f);
	assert_string_equal(
		text,
		"  -a, --all                 Everything.\n"
		"      --a-very-long-name-of-an-option DIR\n"
		"                            A sentence that is so long that it does not go into\n"
		"                            one line. ($SAMPLE_DIR)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),	    cmocka_unit_test(test_words),
		cmocka_unit_test(test_refused),	    cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_environment), cmocka_unit_test(test_list_is_bounded),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
