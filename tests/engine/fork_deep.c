/* Forks deeper than squashing keeps up with. */
#include "engine.h"

#include <stdlib.h>

/* A line of forks in the smallest disk, where a squashed layer must fit too. */
static void test_deep_in_a_small_disk(void **state)
{
	const struct sandbox_spec spec = { .limits = { .disk = LIMIT_DISK_MIN,
						       .memory = 64 * MIB } };
	struct sandbox *sb = make(&spec);
	char text[16];

	for (int i = 1; i <= 140; i++) {
		snprintf(text, sizeof(text), "%d", i);
		put(sb, "f", text);
		/* refused where squashing is held up */
		destroy(fork_despite(sb, 1, ERR_LIMIT)->children[0]);
		wait_ms(2);
	}
	assert_string_equal(get(sb, "f"), "140");
}

/* How many layers the root of a sandbox stands on. */
static int layers_of(struct sandbox *sb)
{
	return atoi(sh(sb, "grep ' / / ' /proc/self/mountinfo | tr , '\\n' | "
			   "sed -n 's/.*lowerdir=//p' | tr : '\\n' | wc -l"));
}

/* Each layer counts its files anew, so that files of several layers have one number. */
static void test_links_of_many_layers(void **state)
{
	struct sandbox *sb = make(NULL), *child;
	int n = 0, last = 0, now;
	char line[160];

	do {
		last = n ? layers_of(sb) : 0;
		snprintf(line, sizeof(line), "echo %d > f%d; ln f%d g%d", n, n, n, n);
		sh(sb, line);
		child = fork_of(sb, 1)->children[0];
		wait_ms(n < 25 ? 5 : 200); /* squashing may be held up */
		now = layers_of(sb);
		n++;
		if (now > last)
			destroy(child);
	} while (now > last && n < 100);
	assert_true(now < last); /* they were squashed */
	snprintf(
		line, sizeof(line),
		"for i in $(seq 0 %d); do "
		"test $(cat f$i) = $i && test $(cat g$i) = $i && test f$i -ef g$i || echo $i; done",
		n - 1);
	assert_string_equal(sh(child, line), "");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_deep_in_a_small_disk),
		engine_test(test_links_of_many_layers),
	};

	return ENGINE_MAIN(argc, argv, "fork_deep", tests);
}
