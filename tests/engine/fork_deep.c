/* Forks deeper than squashing keeps up with. */
#include "engine.h"

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
		destroy(fork_of(sb, 1)->children[0]);
		wait_ms(2);
	}
	assert_string_equal(get(sb, "f"), "140");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_deep_in_a_small_disk),
	};

	return ENGINE_MAIN(argc, argv, "fork_deep", tests);
}
